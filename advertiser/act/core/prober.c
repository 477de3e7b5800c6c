/* The thread of a place: probes it and lists what is there. */
#include "advertiser/act/core/place_threads.h"

#include <stdio.h>
#include <string.h>

#include "advertiser/act/card/connection.h"
#include "advertiser/act/core/config.h"
#include "advertiser/act/core/events.h"
#include "advertiser/act/core/helper_pod.h"
#include "advertiser/act/core/place.h"
#include "advertiser/act/core/pod_table.h"
#include "advertiser/act/core/threads.h"
#include "advertiser/act/machine/inventory.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/footprint.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"

enum {
    TRIM_FIRST_MS = 3000,
    TRIM_MS = 60000,
    THREAD_RETRY_MS = 1000,
    LEAVE_RETRY_MS = 1000,
};

/* What the prober keeps for itself. */
struct prober {
    struct place *p;
    struct connection c;
    bool known;       /* its version was asked for on this connection */
    bool half;        /* containers are listed, sandboxes are to follow */
    int64_t begun_ms; /* of the list */
    struct inventory listed;
};

/* --- places ------------------------------------------------------------- */

void prober_remove_place(struct place *p)
{
    if (!p->present)
        return;
    p->present = false;
    p->unread = true;
    p->generation++;
    events_wake(p->a);
    (void)snprintf(p->reason, sizeof p->reason,
                   "it is not in this node any more");
    place_publish(p);
    clock_wake_one(&p->wake);
}

/* --- what is listed ----------------------------------------------------- */

/* The same for the same objects in any order. */
static uint64_t sum_of(const struct machine_found *f)
{
    uint64_t sum = f->n_sandboxes + f->n_containers;
    for (size_t i = 0; i < f->n_sandboxes; i++) {
        const struct machine_sandbox *s = &f->sandboxes[i];
        sum += hash_mix(hash_bytes(s->id, strlen(s->id)),
                        s->ready ? 0x9e3779b97f4a7c15U : 3);
    }
    for (size_t i = 0; i < f->n_containers; i++) {
        const struct machine_container *c = &f->containers[i];
        sum += hash_mix(hash_bytes(c->id, strlen(c->id)),
                        0xd6e8feb86659fd93U + (uint64_t)c->state);
    }
    return sum;
}

/* Did a container of a running pod end, which only an event could have told? */
static bool has_ended(const struct pod_entry *e,
                      const struct machine_found *found)
{
    const struct machine_found *was = &e->m.found;
    if (e->intent->state != ACT_RUNNING || !e->m.listed)
        return false;
    for (size_t i = 0; i < was->n_containers; i++)
        for (size_t k = 0; k < found->n_containers; k++)
            if (was->containers[i].state == CRI_RUNNING &&
                found->containers[k].state == CRI_EXITED &&
                strcmp(was->containers[i].id, found->containers[k].id) == 0)
                return true;
    return false;
}

static LOCKED void see(struct prober *t, struct pod_entry *e, int64_t now)
{
    struct machine_found found = {0};
    if (e->busy || e->acted_ms >= t->begun_ms)
        return;
    bool told = e->stirred;
    e->stirred = false;
    inventory_take(&t->listed, e->intent->uid, &found);
    if (e->m.listed && sum_of(&found) == sum_of(&e->m.found)) {
        machine_found_fini(&found);
        return;
    }
    if (!told && has_ended(e, &found))
        events_missed(t->p, now);
    machine_see(&e->m, &found, now);
    e->met = true;
    e->due_ms = 0;
    e->m.changed = true;
}

static LOCKED void see_orphans(struct prober *t, int64_t now)
{
    struct place *p = t->p;
    struct actuator *a = p->a;
    size_t n_more = p->orphans.n_more;
    p->n_spared = p->n_spared_running = 0;
    for (size_t i = 0; i < a->n_spared; i++)
        inventory_spare(&t->listed, a->spared[i], &p->n_spared,
                        &p->n_spared_running);
    orphans_update(&p->orphans, t->listed.seen, t->listed.n, now,
                   a->orphan_grace_ms);
    p->swept = true;
    if (p->orphans.n_more > 0 && n_more == 0) {
        char text[24];
        (void)snprintf(text, sizeof text, "%zu", p->orphans.n_more);
        log_event(LOG_WARN, "orphans-many", "place", p->desc.name, "more", text,
                  NULL);
    }
}

/* Is a change expected there soon?  `*ret_any`: it has a pod at all. */
static LOCKED bool is_busy(struct place *p, bool *ret_any)
{
    bool busy = false, any = false;
    for (size_t i = 0; i < p->a->n_entries; i++) {
        const struct pod_entry *e = p->a->entries[i];
        if (!pod_entry_is_on(e, p) || e->intent->state == ACT_GONE)
            continue;
        any = true;
        busy |= e->intent->state == ACT_CREATING ||
                e->intent->state == ACT_STOPPING ||
                (e->intent->state == ACT_RUNNING &&
                 !pod_entry_is_ready(p->a, e));
    }
    *ret_any = any;
    return busy;
}

static LOCKED void take_lists(struct prober *t, int64_t now)
{
    struct place *p = t->p;
    bool any, stirred = false, unread = p->unread;
    p->unread = false;
    for (size_t i = 0; i < p->a->n_entries; i++) {
        struct pod_entry *e = p->a->entries[i];
        if (!pod_entry_is_on(e, p))
            continue;
        if (e->intent->state != ACT_GONE)
            inventory_know(&t->listed, e->intent->uid);
        else if (e->acted_ms < t->begun_ms) /* its card was away */
            inventory_end(&t->listed, e->intent->uid);
        see(t, e, now);
        stirred |= e->stirred && !e->busy; /* somebody was at it */
        if (e->m.changed && !e->busy)
            pod_entry_publish(p->a, e);
    }
    see_orphans(t, now);
    if (unread)
        place_publish(p);
    t->half = false;
    bool busy = is_busy(p, &any);
    bool often = any && !events_live(p, now);
    p->list_ms = now + (busy || stirred ? PLACE_BUSY_LIST_MS
                        : often         ? PLACE_LIST_MS
                                        : PLACE_SWEEP_MS);
    if (p->orphans.n > 0 && p->list_ms > now + PLACE_LIST_MS)
        p->list_ms = now + PLACE_LIST_MS;
}

/* --- probing ------------------------------------------------------------ */

static int ask_version(struct prober *t, unsigned ms, struct cri_version *v,
                       struct error *err)
{
    int e = cri_version(t->c.cri, ms, v, err);
    t->known = e == 0;
    return e;
}

static int list_containers(struct prober *t, unsigned ms, struct error *err)
{
    struct cri_pair list[2];
    inventory_fini(&t->listed);
    t->begun_ms = clock_ms();
    int e = cri_list_containers(t->c.cri, config_ours(t->p->a, list), ms,
                                &t->listed.containers, err);
    t->half = e == 0;
    return e;
}

/* Containers are listed first: when the sandbox of a listed container is
 * missing afterwards, it is gone, and not just newer than the list. */
static int list_sandboxes(struct prober *t, unsigned ms, struct error *err)
{
    struct cri_pair list[2];
    int e = cri_list_sandboxes(t->c.cri, config_ours(t->p->a, list), ms,
                               &t->listed.sandboxes, err);
    if (e == 0)
        inventory_sort(&t->listed); /* while nobody waits for it */
    return e;
}

struct asked {
    bool lists, at_once; /* what is to be asked */
    bool listed;         /* both are there */
    struct cri_version version;
    int e;
    struct error err;
};

static void ask(struct prober *t, unsigned ms, struct asked *q)
{
    q->e = connection_open(&t->c, &q->err);
    if (q->e < 0)
        return;
    if (!t->known) {
        q->e = ask_version(t, ms, &q->version, &q->err);
    } else if (!q->lists) {
        q->e = ask_version(t, ms, &q->version, &q->err);
    } else {
        if (!t->half)
            q->e = list_containers(t, ms, &q->err);
        else
            q->at_once = true;
        if (q->e == 0 && q->at_once) {
            q->e = list_sandboxes(t, ms, &q->err);
            q->listed = q->e == 0;
        }
    }
    if (q->e < 0) {
        t->known = t->half = false;
        cri_reconnect(t->c.cri);
    }
}

/* --- the thread --------------------------------------------------------- */

/* A card that was lost may have been rebooted: pods that are being prepared
 * are prepared anew.  Those that waited for the helper's end wait afresh. */
static LOCKED void come_back(struct place *p)
{
    bool anew = p->unread || !p->swept;
    p->n_lives += anew;
    for (size_t i = 0; i < p->a->n_entries; i++) {
        struct pod_entry *e = p->a->entries[i];
        if (!pod_entry_is_on(e, p))
            continue;
        e->await_ms = 0;
        if (anew)
            e->m.prepared = e->configured = false;
    }
    events_begin(p);
}

static LOCKED void say_health(struct place *p, enum act_health was)
{
    if (was == p->health.now)
        return;
    if (p->health.now == ACT_READY)
        come_back(p);
    else
        events_wake(p->a);
    log_event(p->health.now == ACT_READY ? LOG_INFO : LOG_WARN, "place-health",
              "place", p->desc.name, "health", act_health_name(p->health.now),
              "reason", p->reason, NULL);
    p->unread |= p->health.now == ACT_LOST;
    place_publish(p);
}

static LOCKED void judge(struct prober *t, const struct asked *q, int64_t sent)
{
    struct place *p = t->p;
    enum act_health was = p->health.now;
    int64_t now = clock_ms();
    if (t->c.generation != p->generation)
        return; /* it was another place that answered */
    if (q->e < 0) {
        (void)snprintf(p->reason, sizeof p->reason, "%s", q->err.text);
        (void)health_bad(&p->health, sent, now);
    } else {
        (void)health_good(&p->health, now);
        if (p->health.now == ACT_READY)
            p->reason[0] = '\0';
        if (q->version.runtime[0])
            (void)snprintf(p->runtime, sizeof p->runtime, "%.200s %.200s",
                           q->version.runtime, q->version.version);
    }
    say_health(p, was);
    if (q->listed)
        take_lists(t, now);
    if (was != ACT_READY && p->health.now == ACT_READY)
        p->list_ms = now;
    if (place_works(p))
        place_wake(p);
}

static LOCKED void forget_connection(struct prober *t)
{
    struct actuator *a = t->p->a;
    act_unlock(a);
    connection_close(&t->c);
    act_lock(a);
    t->known = t->half = false;
    t->c.place = t->p->desc;
    t->c.generation = t->p->generation;
}

/* When to ask next, and what. */
static LOCKED int64_t next_ask(struct prober *t, struct asked *ret_asked)
{
    struct place *p = t->p;
    bool any;
    bool busy = is_busy(p, &any);
    bool often = any && !events_live(p, clock_ms());
    int64_t due = p->health.due_ms, event = events_due(p, t->begun_ms);
    *ret_asked = (struct asked){0};
    if (p->health.now != ACT_READY)
        return due;
    if (busy && p->list_ms > clock_ms() + PLACE_BUSY_LIST_MS)
        p->list_ms = clock_ms() + PLACE_BUSY_LIST_MS;
    if (event != INT64_MAX)
        t->half = false; /* the first half may be older than the event */
    if (event < p->list_ms)
        p->list_ms = event;
    /* with pods, a list is also the probe: one half after the other; where
     * events come, lists are rare */
    ret_asked->lists = often || p->orphans.n > 0 || p->list_ms <= due;
    ret_asked->at_once = busy || !often || !p->swept || event != INT64_MAX;
    if (often && due > t->begun_ms + PLACE_LIST_MS / 2)
        due = t->half ? t->begun_ms + PLACE_LIST_MS / 2
                      : t->begun_ms + PLACE_LIST_MS;
    if (busy || p->list_ms < due)
        due = p->list_ms < due ? p->list_ms : due;
    return due;
}

/* Until `due`, or until a step is due when there is no worker to wait for it. */
static LOCKED void wait_until(struct place *p, int64_t due, int64_t now)
{
    int64_t work = p->n_workers == 0 && place_works(p) ? place_due(p)
                                                       : INT64_MAX;
    if (work <= now) {
        place_wake(p);
        if (p->n_workers > 0)
            return;
        work = now + THREAD_RETRY_MS; /* there is no thread to be had */
    }
    (void)clock_wait(&p->wake, &p->a->lock, work < due ? work : due);
}

static LOCKED void probe(struct prober *t)
{
    struct place *p = t->p;
    struct actuator *a = p->a;
    struct asked q;
    int64_t due = next_ask(t, &q), now = clock_ms();
    if (now < due) {
        wait_until(p, due, now);
        return;
    }
    unsigned ms = (unsigned)health_deadline_ms(&p->health);
    act_unlock(a);
    ask(t, ms, &q);
    act_lock(a);
    judge(t, &q, now);
}

/* Gives free memory back to the system, when no worker is busy. */
static LOCKED void trim(struct actuator *a)
{
    int64_t now = clock_ms();
    for (size_t i = 0; i < a->n_places; i++)
        if (a->places[i]->n_workers > 0)
            return;
    if (now < a->trim_ms)
        return;
    a->trim_ms = now + TRIM_MS;
    act_unlock(a);
    footprint_trim();
    act_lock(a);
}

static void *prober_thread(void *arg)
{
    struct prober t = {.p = arg};
    struct place *p = t.p;
    struct actuator *a = p->a;
    act_lock(a);
    thread_name("probe", p->desc.name);
    t.c.place = p->desc;
    t.c.generation = p->generation;
    while (!a->stopping) {
        if (t.c.generation != p->generation) {
            forget_connection(&t);
        } else if (p->present && p->desc.endpoint[0]) {
            probe(&t);
            helper_tend(p);
            trim(a);
        } else {
            worker_run_host_pods(p);
            int64_t next = place_due(p);
            if (!p->present && !pod_table_end_gone(a))
                next = clock_ms() + LEAVE_RETRY_MS;
            if (!a->stopping && t.c.generation == p->generation &&
                next > clock_ms())
                (void)clock_wait(&p->wake, &a->lock, next);
        }
    }
    act_unlock(a);
    connection_close(&t.c);
    inventory_fini(&t.listed);
    act_lock(a);
    act_thread_ends(a);
    return NULL;
}

static LOCKED struct place *place_new(struct actuator *a)
{
    if (a->n_places == PLACES_KEPT)
        return NULL;
    struct place *p = xcalloc(1, sizeof *p);
    p->a = a;
    clock_wait_init(&p->wake);
    clock_wait_init(&p->work);
    (void)pthread_mutex_init(&p->prep, NULL); /* cannot fail on Linux */
    (void)pthread_mutex_init(&p->vfs, NULL);
    a->places[a->n_places++] = p;
    a->trim_ms = clock_ms() + TRIM_FIRST_MS;
    return p;
}

static bool is_same(const struct act_place *a, const struct act_place *b)
{
    return strcmp(a->endpoint, b->endpoint) == 0 && strcmp(a->ca, b->ca) == 0 &&
           strcmp(a->cert, b->cert) == 0 && strcmp(a->key, b->key) == 0 &&
           a->plaintext == b->plaintext;
}

struct place *prober_set_place(struct actuator *a, const struct act_place *what)
{
    struct place *p = place_find(a, what->name);
    if (!p)
        p = place_new(a);
    if (!p)
        return NULL;
    bool runs = what->endpoint[0], host = card_is_host(what);
    bool same = p->present && is_same(&p->desc, what);
    bool new_keys = p->desc.files_ns != what->files_ns;
    p->desc = *what;
    p->desc.counts = &p->counts;
    if (same && new_keys)
        p->generation++; /* other connections, to the card as it was */
    if (!same) {
        p->present = true;
        p->swept = false;
        p->generation++;
        p->list_ms = 0;
        p->reason[0] = p->runtime[0] = '\0';
        if (!runs)
            (void)snprintf(p->reason, sizeof p->reason, "%s",
                           "no endpoint is known: give it one in the card "
                           "file");
        p->unread |= !runs && !host;
        health_init(&p->health, a->probe_ms, a->lost_ms, clock_ms());
        place_publish(p);
    }
    if (!same || new_keys) {
        p->events = (struct place_events){0};
        events_wake(a);
    }
    if (!p->prober && (runs || host)) /* else there is nothing to do */
        p->prober = act_thread(a, prober_thread, p);
    clock_wake_one(&p->wake);
    return p;
}
