/* Carries out the steps that the machine of each pod asks for, and removes
 * orphans. */
#include "advertiser/act/core/place_threads.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "advertiser/act/card/connection.h"
#include "advertiser/act/card/labels.h"
#include "advertiser/act/core/card_devices.h"
#include "advertiser/act/core/card_setup.h"
#include "advertiser/act/core/config.h"
#include "advertiser/act/core/deliver.h"
#include "advertiser/act/core/events.h"
#include "advertiser/act/core/helper_pod.h"
#include "advertiser/act/core/host_devices.h"
#include "advertiser/act/core/leftover_dirs.h"
#include "advertiser/act/core/place.h"
#include "advertiser/act/core/pod_table.h"
#include "advertiser/act/core/saved_logs.h"
#include "advertiser/act/core/threads.h"
#include "advertiser/act/core/unrecorded.h"
#include "advertiser/act/machine/inventory.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/failpoint.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"
#include "model/pod/rights.h"

enum {
    SAVE_RETRY_MS = 1000,
    LIST_RETRY_MS = 500,
    STEPS_AT_ONCE = 64, /* of one pod, then the next has its turn */
};

struct worker {
    struct place *p;
    struct connection c;
};

/* --- what is due -------------------------------------------------------- */

static LOCKED struct pod_entry *pick(struct place *p, int64_t now)
{
    struct pod_entry *best = NULL;
    for (size_t i = 0; i < p->a->n_entries; i++) {
        struct pod_entry *e = p->a->entries[i];
        if (pod_entry_is_on(e, p) && !e->busy && e->due_ms <= now &&
            (!best || e->due_ms < best->due_ms))
            best = e;
    }
    return best;
}

/* --- steps -------------------------------------------------------------- */

static void step_failpoint(const char *when, enum machine_kind kind)
{
#ifdef FAILPOINTS
    char name[64];
    if (kind == MACHINE_WAIT)
        return;
    (void)snprintf(name, sizeof name, "act-%s-%s", when,
                   machine_kind_name(kind));
    (void)failpoint(name);
#else
    (void)when;
    (void)kind;
#endif
}

static int list_pod(struct worker *w, const char *uid,
                    struct machine_found *ret_found, struct error *err)
{
    struct inventory listed = {0};
    struct cri_pair labels[3];
    (void)config_ours(w->p->a, labels);
    labels[2] = (struct cri_pair){ACT_LABEL_UID, uid};
    const struct cri_pairs filter = {labels, ARRAY_LEN(labels)};
    int e = cri_list_containers(w->c.cri, filter, CALL_LIST_MS,
                                &listed.containers, err);
    if (e == 0)
        e = cri_list_sandboxes(w->c.cri, filter, CALL_LIST_MS,
                               &listed.sandboxes, err);
    if (e == 0) {
        inventory_sort(&listed);
        inventory_take(&listed, uid, ret_found);
    }
    inventory_fini(&listed);
    return e;
}

#define cleanup_config __attribute__((__cleanup__(config_sandbox_fini)))

static int run_sandbox(struct worker *w, struct pod_entry *e,
                       const struct machine_step *step,
                       char ret_id[CRI_ID_MAX + 1], struct error *err)
{
    cleanup_config struct config_sandbox config;
    config_sandbox(w->p->a, e, step->attempt, &config);
    return cri_run_sandbox(w->c.cri, &config.cri, CALL_MS, ret_id, err);
}

/* Our own address on the connection to the card, for BIGA_PEER_ADDRESS.  It is
 * known once the connection was used, so one that was not is used first. */
static int own_address(struct worker *w,
                       const struct cri_container_config *config,
                       char ret_text[GRPC_ADDRESS_MAX], struct error *err)
{
    struct cri_version version;
    cri_local_address(w->c.cri, ret_text);
    if (ret_text[0] || !config_wants_peer(config) ||
        strncmp(w->c.place.endpoint, "tcp://", 6) != 0)
        return 0;
    int e = cri_version(w->c.cri, CALL_LIST_MS, &version, err);
    cri_local_address(w->c.cri, ret_text);
    return e;
}

static void create(struct worker *w, struct pod_entry *e,
                   const struct machine_step *step, struct machine_result *r,
                   char ret_id[CRI_ID_MAX + 1], struct error *err)
{
    cleanup_config struct config_sandbox sandbox;
    struct cri_container_config config;
    config_sandbox(w->p->a, e, step->sandbox_attempt, &sandbox);
    char own[GRPC_ADDRESS_MAX];
    config_container(w->p->a, e, step->unit, step->attempt, &sandbox, &config);
    r->e = own_address(w, &config, own, err);
    config_set_peer(&config, own, &sandbox);
    card_devices_limit(w->p, e->spec, step->unit, &sandbox.arena, &config);
    if (r->e == 0)
        card_devices_find(w->p, &w->c, e, &sandbox.arena, &config, r, err);
    if (r->e == 0)
        r->e = host_devices_find(w->p, e, &sandbox, &config, err);
    if (r->e == 0)
        r->e = card_setup_env(w->p, &w->c.place, e, &sandbox.arena, &config,
                              err);
    if (r->e == 0)
        r->e = cri_create_container(w->c.cri, step->sandbox_id, &config,
                                    &sandbox.cri, CALL_MS, ret_id, err);
}

static int look(struct worker *w, const struct machine_step *step,
                struct machine_result *r, char *reason, struct error *err)
{
    struct cri_container c = {0};
    int e = cri_container_status(w->c.cri, step->id, CALL_LIST_MS, &c, err);
    if (e < 0)
        return e;
    r->state = c.state;
    r->exit_code = c.exit_code;
    (void)snprintf(reason, ACT_REASON_MAX + 1, "%s", c.reason ? c.reason : "");
    r->exit_reason = reason;
    cri_container_fini(&c);
    return 0;
}

static int look_image(struct worker *w, const char *name,
                      struct machine_result *r, char *username,
                      struct error *err)
{
    struct cri_image found = {0};
    char arch[sizeof w->p->desc.arch]; /* it may be another since we came */
    act_lock(w->p->a);
    memcpy(arch, w->p->desc.arch, sizeof arch);
    act_unlock(w->p->a);
    int code = cri_image_status(w->c.cri, name, CALL_LIST_MS, &found, err);
    r->present = found.present;
    r->uid = found.uid;
    (void)snprintf(username, CRI_TEXT_MAX, "%s", found.username);
    r->username = username;
    if (code == 0 && found.arch[0] && arch[0] && strcmp(found.arch, arch) != 0)
        return error_set(err, ENOEXEC, "image %s is for %s, and %s is %s", name,
                         found.arch, w->c.place.name, arch);
    return code;
}

static int pull_image(struct worker *w, struct pod_entry *e, const char *name,
                      struct error *err)
{
    cleanup_config struct config_sandbox config;
    config_sandbox(w->p->a, e, e->intent->attempt + 1, &config);
    return cri_pull_image(w->c.cri, name, &config.cri, CALL_PULL_MS, err);
}

static int stop(struct worker *w, const struct machine_step *step,
                struct error *err)
{
    return cri_stop_container(w->c.cri, step->id, step->grace_s,
                              step->grace_s ? CALL_TELL_MS : CALL_MS, err);
}

static void prepare(struct worker *w, struct pod_entry *e,
                    struct machine_result *r, struct error *err)
{
    if (pod_entry_is_helper(e))
        return;
    /* checked when it was wanted, but the operator may have allowed more then */
    r->e = card_devices_check(w->p->a, e->intent->place, e->spec, err);
    if (r->e < 0) {
        r->permanent = true;
        r->reason = "NotAllowed";
        return;
    }
    card_devices_take(w->p, e, r, err);
    if (r->e == 0)
        host_devices_await(w->p, e, r, err);
    if (r->e == 0)
        card_setup_run(w->p, &w->c.place, e, r, err);
    if (r->e == 0)
        card_devices_seek(w->p, &w->c, e, r, err);
    if (r->e == 0)
        deliver_files(w->p, &w->c, e, r, err);
}

/* The result of a step, with room for the texts that it points to. */
struct done {
    struct machine_result r;
    struct error err;
    char id[CRI_ID_MAX + 1];
    char reason[ACT_REASON_MAX + 1];
    char username[CRI_TEXT_MAX];
};

static void do_step(struct worker *w, struct pod_entry *e,
                    const struct machine_step *step, struct done *d)
{
    struct machine_result *r = &d->r;
    struct error *err = &d->err;
    switch (step->kind) {
    case MACHINE_PREPARE:
        prepare(w, e, r, err);
        break;
    case MACHINE_LOOK_IMAGE:
        r->e = look_image(w, e->m.units[step->unit].image, r, d->username, err);
        break;
    case MACHINE_PULL:
        r->e = pull_image(w, e, e->m.units[step->unit].image, err);
        break;
    case MACHINE_RUN_SANDBOX:
        r->e = run_sandbox(w, e, step, d->id, err);
        break;
    case MACHINE_CREATE:
        create(w, e, step, r, d->id, err);
        break;
    case MACHINE_START:
        r->e = cri_start_container(w->c.cri, step->id, CALL_MS, err);
        break;
    case MACHINE_LOOK:
        r->e = look(w, step, r, d->reason, err);
        break;
    case MACHINE_STOP:
        r->e = stop(w, step, err);
        break;
    case MACHINE_REMOVE:
        r->e = cri_remove_container(w->c.cri, step->id, CALL_MS, err);
        break;
    case MACHINE_STOP_SANDBOX:
        r->e = cri_stop_sandbox(w->c.cri, step->id, CALL_MS, err);
        break;
    case MACHINE_REMOVE_SANDBOX:
        r->e = cri_remove_sandbox(w->c.cri, step->id, CALL_MS, err);
        break;
    case MACHINE_CLEAN:
        if (pod_entry_is_helper(e))
            break;
        saved_logs_take(w->p, &w->c, e);
        card_setup_end(w->p, &w->c.place, e);
        deliver_end(w->p, &w->c, e, r, err);
        break;
    case MACHINE_WAIT:
    case MACHINE_LIST:
        break;
    }
}

static void call(struct worker *w, struct pod_entry *e,
                 const struct machine_step *step, struct done *d)
{
    *d = (struct done){0};
    step_failpoint("before", step->kind);
    do_step(w, e, step, d);
    step_failpoint("after", step->kind);
    d->r.code = d->r.e < 0 ? cri_end(w->c.cri)->code : GRPC_OK;
    if (d->r.e < 0 && (step->kind == MACHINE_PREPARE || d->r.reason))
        d->r.code =
            GRPC_UNKNOWN; /* the failure is not of a CRI call, so its code says nothing */
    d->r.text = d->err.text;
    d->r.id = d->id;
    /* no reply came: the connection may be broken */
    if (d->r.e < 0 && d->r.code < 0)
        cri_reconnect(w->c.cri);
}

/* --- one pod: each releases the lock for its calls ----------------------- */

static LOCKED bool save(struct actuator *a, struct pod_entry *e)
{
    struct error err = {0};
    act_unlock(a);
    int r = pod_entry_save(a, e, &err);
    act_lock(a);
    if (r == 0)
        return true;
    log_event(LOG_ERROR, "act-not-saved", "uid", e->intent->uid, "error",
              err.text, NULL);
    e->m.unsaved = true;
    /* How a pod ended stays its reason: who is told so goes by it. */
    if (e->intent->state != ACT_FAILED)
        machine_say(&e->m, "StateNotWritten",
                    "%s: nothing is begun that is not written down; see to "
                    "the state directory",
                    err.text);
    e->due_ms = clock_ms() + SAVE_RETRY_MS;
    return false;
}

static LOCKED bool list(struct worker *w, struct pod_entry *e)
{
    struct actuator *a = w->p->a;
    struct machine_found found = {0};
    struct error err = {0};
    act_unlock(a);
    step_failpoint("before", MACHINE_LIST);
    int r = list_pod(w, e->intent->uid, &found, &err);
    step_failpoint("after", MACHINE_LIST);
    if (r < 0)
        cri_reconnect(w->c.cri);
    act_lock(a);
    if (r == 0) {
        machine_see(&e->m, &found, clock_ms());
        e->met = true;
        e->m.changed = true;
        return true;
    }
    machine_found_fini(&found);
    e->due_ms = clock_ms() + LIST_RETRY_MS;
    return false;
}

/* Counters of a place as they were before a step. */
struct before {
    unsigned n_lives, n_turns, n_freed;
};

/* What the pod is to wait for ended while the step failed: it would wait for a
 * wake-up that came already. */
static LOCKED bool waits_no_more(const struct place *p,
                                 const struct before *was,
                                 const struct machine_result *r)
{
    return r->waits && ((was->n_turns != p->n_turns &&
                         strcmp(r->reason, "WaitsForCard") == 0) ||
                        (was->n_freed != p->n_freed &&
                         (strcmp(r->reason, "VfsInUse") == 0 ||
                          strcmp(r->reason, "DevicesInUse") == 0)));
}

/* May release the lock for a while. */
static LOCKED void take_done(struct worker *w, struct pod_entry *e,
                             const struct machine_step *step,
                             const struct done *d, const struct before *was)
{
    const struct place *p = w->p;
    machine_done(&e->m, step, &d->r, clock_ms());
    if (step->kind == MACHINE_PREPARE && was->n_lives != p->n_lives)
        e->m.prepared = e->configured =
            false; /* the card came back meanwhile, not configured */
    if (waits_no_more(p, was, &d->r))
        e->m.retry_ms = 0;
    if (step->kind == MACHINE_RUN_SANDBOX && d->r.e == 0)
        e->configured =
            false; /* from now on the listed sandbox shows that the card is used */
    if (step->kind == MACHINE_CLEAN && e->m.left) {
        log_event(LOG_WARN, "act-files-left", "place", w->c.place.name, "uid",
                  e->intent->uid, "error", d->err.text, NULL);
        leftover_dirs_add(w->p, e->intent->uid);
    }
}

/* False when there is nothing more to do. */
static LOCKED bool turn(struct worker *w, struct pod_entry *e)
{
    struct actuator *a = w->p->a;
    struct machine_step step;
    struct done d;
    if (!e->intent->stop && pod_entry_pair_is_over(a, e)) {
        e->intent->stop = e->intent->keep = e->m.unsaved = true;
        e->m.changed = true;
    }
    e->m.hold = pod_entry_hold(a, e);
    if (helper_awaited(w->p, e))
        return false;
    e->due_ms = INT64_MAX; /* a change during the step sets an earlier one */
    machine_next(&e->m, clock_ms(), &step);
    if (e->m.changed)
        pod_entry_publish(a, e);
    if (step.save && !save(a, e))
        return false;
    if (step.kind == MACHINE_WAIT) {
        if (step.due_ms < e->due_ms)
            e->due_ms = step.due_ms;
        return false;
    }
    e->due_ms = 0;
    if (!place_works(w->p) || w->c.generation != w->p->generation)
        return false;
    if (step.kind == MACHINE_LIST)
        return list(w, e);
    const struct before was = {w->p->n_lives, w->p->n_turns, w->p->n_freed};
    act_unlock(a);
    call(w, e, &step, &d);
    act_lock(a);
    take_done(w, e, &step, &d, &was);
    return true;
}

static LOCKED void work_entry(struct worker *w, struct pod_entry *e)
{
    struct actuator *a = w->p->a;
    unsigned n = 0;
    e->busy = true;
    bool more = true;
    while (!a->stopping && !e->dropped && n++ < STEPS_AT_ONCE && more) {
        more = turn(w, e);
        card_setup_note_use(w->p, e);
        card_devices_note_use(w->p, e);
        e->acted_ms = clock_ms();
        if (e->m.changed)
            pod_entry_publish(a, e);
    }
    events_attend(w->p, e);
    pod_entry_release(e);
}

/* --- orphans ------------------------------------------------------------ */

static LOCKED void work_orphan(struct worker *w, const struct orphan *o)
{
    struct actuator *a = w->p->a;
    struct error err = {0};
    int e = 0;
    act_unlock(a);
    (void)failpoint("act-before-orphan");
    if (o->running)
        e = o->sandbox ? cri_stop_sandbox(w->c.cri, o->id, CALL_MS, &err)
                       : cri_stop_container(w->c.cri, o->id, 0, CALL_MS, &err);
    if (e == 0 || e == -ENOENT)
        e = o->sandbox ? cri_remove_sandbox(w->c.cri, o->id, CALL_MS, &err)
                       : cri_remove_container(w->c.cri, o->id, CALL_MS, &err);
    (void)failpoint("act-after-orphan");
    bool gone = e == 0 || e == -ENOENT;
    log_event(gone ? LOG_INFO : LOG_WARN,
              gone ? "orphan-removed" : "orphan-stays", "place",
              w->c.place.name, "id", o->id, "what",
              o->sandbox ? "sandbox" : "container", "error", err.text, NULL);
    act_lock(a);
    if (gone)
        orphans_removed(&w->p->orphans, o->id);
    if (gone && !orphans_run(&w->p->orphans))
        card_setup_freed(w->p);
}

/* --- the thread --------------------------------------------------------- */

/* A connection to what the place is now; false when there can be none. */
static LOCKED bool connect_place(struct worker *w)
{
    struct place *p = w->p;
    struct actuator *a = p->a;
    struct error err = {0};
    if (w->c.cri && w->c.generation == p->generation)
        return true;
    const struct act_place what = p->desc;
    w->c.generation = p->generation;
    act_unlock(a);
    connection_close(&w->c);
    w->c.place = what;
    int e = connection_open(&w->c, &err);
    act_lock(a);
    return e == 0;
}

/* False when it is to end. */
static LOCKED bool work_once(struct worker *w, int64_t *idle_end)
{
    struct place *p = w->p;
    struct actuator *a = p->a;
    struct orphan orphan;
    int64_t now = clock_ms();
    if (!connect_place(w))
        return false;
    struct pod_entry *e = pick(p, now);
    if (e) {
        work_entry(w, e);
    } else if (a->fed && orphans_take(&p->orphans, now, &orphan)) {
        if (unrecorded_is_orphan(p, orphan.uid))
            work_orphan(w, &orphan);
        else /* a pod of that UID was recorded after the list */
            orphans_removed(&p->orphans, orphan.id);
    } else if (place_leftover_dirs_due(p) <= now) {
        leftover_dirs_sweep(p, &w->c);
    } else if (now >= *idle_end) {
        return false;
    } else {
        int64_t due = place_due(p);
        p->n_idle++;
        (void)clock_wait(&p->work, &a->lock, due < *idle_end ? due : *idle_end);
        p->n_idle--;
        return true;
    }
    *idle_end = clock_ms() + PLACE_IDLE_MS;
    return true;
}

void *worker_thread(void *arg)
{
    struct worker w = {.p = arg};
    struct place *p = w.p;
    struct actuator *a = p->a;
    act_lock(a);
    thread_name("work", p->desc.name);
    int64_t idle_end = clock_ms() + PLACE_IDLE_MS;
    while (place_works(p) && work_once(&w, &idle_end))
        ;
    p->n_workers--;
    /* the prober starts a worker when something is due */
    clock_wake_one(&p->wake);
    act_unlock(a);
    connection_close(&w.c);
    act_lock(a);
    act_thread_ends(a);
    return NULL;
}

/* --- pods of the host that somebody else runs --------------------------- */

static LOCKED void virtual_turn(struct actuator *a, struct pod_entry *e)
{
    enum act_state was = e->intent->state;
    enum machine_hold hold = pod_entry_hold(a, e);
    e->due_ms = INT64_MAX;
    if (e->intent->stop) {
        machine_move(&e->m, ACT_STOPPING);
        machine_move(&e->m, ACT_GONE);
        machine_quiet(&e->m);
    } else if (hold == MACHINE_GO) {
        machine_move(&e->m, ACT_CREATING);
        machine_move(&e->m, ACT_RUNNING);
        e->intent->ran = true;
        machine_quiet(&e->m);
    } else {
        if (was == ACT_RUNNING)
            machine_move(&e->m, ACT_CREATING);
        machine_say(&e->m, hold == MACHINE_HOLD_BEGIN ? "Held" : "WaitsForPair",
                    "begins when the xPU pods of its pair are ready");
    }
    if (e->intent->state != was || e->m.unsaved) {
        e->m.unsaved = false;
        (void)save(a, e); /* sets it again when it cannot */
    }
    if (e->m.changed)
        pod_entry_publish(a, e);
}

void worker_run_host_pods(struct place *p)
{
    struct actuator *a = p->a;
    struct pod_entry *e;
    if (!card_is_host(&p->desc) || !p->present || p->desc.endpoint[0])
        return;
    while (!a->stopping && (e = pick(p, clock_ms()))) {
        e->busy = true;
        virtual_turn(a, e);
        pod_entry_release(e);
    }
    if (place_due(p) != INT64_MAX && !a->stopping)
        (void)clock_wait(&p->wake, &a->lock, place_due(p));
}
