#include "advertiser/act/core/actuator.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/core/actuator_private.h"
#include "advertiser/act/core/card_devices.h"
#include "advertiser/act/core/events.h"
#include "advertiser/act/core/leftover_dirs.h"
#include "advertiser/act/core/place.h"
#include "advertiser/act/core/place_threads.h"
#include "advertiser/act/core/pod_table.h"
#include "advertiser/act/core/state.h"
#include "advertiser/act/core/status_private.h"
#include "advertiser/act/core/threads.h"
#include "advertiser/act/core/unrecorded.h"
#include "advertiser/act/pod/files.h"
#include "advertiser/act/pod/item.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/failpoint.h"
#include "lib/io/log.h"
#include "model/pod/rights.h"

#define CARD_DIR "/var/lib/biga"

/* --- making and ending it ------------------------------------------------ */

static char *copy(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

static LOCKED void take_intent(void *ctx, struct intent *i)
{
    struct actuator *a = ctx;
    (void)pod_entry_add(a, i);
}

/* Nobody else has it yet: the lock is free, also while rows are read. */
static int load(struct actuator *a, const struct actuator_config *c,
                struct error *err)
{
    act_lock(a);
    a->fed = !c->fed;
    a->changed = c->changed;
    a->version = 1;
    int e = intents_each_drained(a->intents, actuator_take_drained, a, err);
    if (e == 0)
        e = intents_each(a->intents, take_intent, a, err);
    if (e == 0)
        e = leftover_dirs_load(a, err);
    act_unlock(a);
    return e;
}

int actuator_create(const struct actuator_config *c,
                    struct actuator **ret_actuator, struct error *err)
{
    cleanup_with(actuator) struct actuator *a = xcalloc(1, sizeof *a);
    /* threads that mostly wait need no heap of their own each */
    (void)mallopt(M_ARENA_MAX, 1);
    (void)pthread_mutex_init(&a->lock, NULL); /* cannot fail on Linux */
    (void)pthread_mutex_init(&a->saving, NULL);
    clock_wait_init(&a->news);
    a->dir = copy(c->dir);
    a->cluster = xstrdup(c->cluster ? c->cluster : "");
    a->node = xstrdup(c->node ? c->node : "");
    a->boot_id = copy(c->boot_id);
    a->card_dir = xstrdup(c->card_dir ? c->card_dir : CARD_DIR);
    a->dirs = (struct pod_dirs){.host = a->dir, .card = a->card_dir};
    a->helper_image = copy(c->helper_image);
    a->sysfs = copy(c->sysfs);
    a->dev = copy(c->dev);
    a->hooks_dir = copy(c->hooks_dir);
    a->devlink = copy(c->devlink);
    a->orphan_grace_ms = c->orphan_grace_ms > 0 ? c->orphan_grace_ms
                                                : ACT_ORPHAN_GRACE_MS;
    a->sweep_ms = c->sweep_ms > 0 ? c->sweep_ms : ACT_SWEEP_MS;
    a->destroy_ms = c->destroy_ms > 0 ? c->destroy_ms : DESTROY_MS;
    a->probe_ms = c->probe_ms;
    a->lost_ms = c->lost_ms;
    a->ctx = c->ctx;
    a->worker = worker_thread;
    int e = rights_parse(c->allow, &a->rights, err);
    if (e == 0)
        e = intents_open(c->dir, &a->intents, err);
    if (e == 0)
        e = load(a, c, err);
    if (e == 0)
        e = actuator_load_flashes(a, err);
    if (e < 0)
        return e;
    *ret_actuator = steal(&a);
    return 0;
}

/* Threads that are in a call end after it; not for ever is waited for that. */
static bool threads_end(struct actuator *a)
{
    int64_t end = clock_ms() + a->destroy_ms;
    act_lock(a);
    a->stopping = true;
    a->changed = NULL;
    for (size_t i = 0; i < a->n_places; i++) {
        clock_wake_all(&a->places[i]->wake);
        clock_wake_all(&a->places[i]->work);
    }
    events_wake(a);
    clock_wake_all(&a->news);
    while (a->n_threads > 0 && clock_ms() < end)
        (void)clock_wait(&a->news, &a->lock, end);
    bool ended = a->n_threads == 0, any = a->has_ended;
    pthread_t last = a->ended;
    act_unlock(a);
    if (ended && any)
        (void)pthread_join(last, NULL);
    return ended;
}

void actuator_destroy(struct actuator *a)
{
    if (!a)
        return;
    if (a->flasher)
        flasher_stop(a->flasher); /* its threads use all the others */
    if (!threads_end(a)) { /* what they use stays, until the process ends */
        log_event(LOG_WARN, "act-call-abandoned", NULL);
        return;
    }
    flasher_destroy(a->flasher);
    act_lock(a);
    while (a->n_entries > 0)
        pod_entry_drop(a, a->entries[a->n_entries - 1]);
    for (size_t i = 0; i < a->n_places; i++)
        place_free(a->places[i]);
    for (size_t i = 0; i < a->n_drained; i++)
        free(a->drained[i]);
    unrecorded_set(a, NULL, 0);
    free(a->drained);
    free(a->leftovers);
    free(a->entries);
    host_side_unref(a->host);
    act_unlock(a);
    intents_close(a->intents);
    (void)pthread_cond_destroy(&a->news);
    (void)pthread_mutex_destroy(&a->saving);
    (void)pthread_mutex_destroy(&a->lock);
    free(a->dir);
    free(a->cluster);
    free(a->node);
    free(a->boot_id);
    free(a->card_dir);
    free(a->helper_image);
    free(a->sysfs);
    free(a->dev);
    free(a->hooks_dir);
    free(a->devlink);
    free(a);
}

/* --- what is wanted ------------------------------------------------------ */

static int check_texts(const struct act_pod *pod, struct error *err)
{
    if (!pod->uid || !act_uid_valid(pod->uid))
        return error_set(err, EINVAL,
                         "uid: \"%s\": 1 to 63 letters, digits, '-', '_' and "
                         "'.' are allowed",
                         pod->uid ? pod->uid : "");
    if (strncmp(pod->uid, ACT_HELPER, strlen(ACT_HELPER)) == 0)
        return error_set(err, EINVAL,
                         "uid: \"%s\": " ACT_HELPER "… is Biga's own",
                         pod->uid);
    if (!pod->namespace || !act_namespace_valid(pod->namespace))
        return error_set(err, EINVAL, "namespace: \"%s\" is no DNS label",
                         pod->namespace ? pod->namespace : "");
    if (!pod->name || !act_name_valid(pod->name))
        return error_set(err, EINVAL, "name: \"%s\" is no DNS subdomain",
                         pod->name ? pod->name : "");
    if (!pod->place || !pod->spec)
        return error_set(err, EINVAL, "%s: required member missing",
                         pod->place ? "spec" : "place");
    if (pod->owner && strlen(pod->owner) > 15)
        return error_set(err, EINVAL, "owner: \"%s\": longer than 15 bytes",
                         pod->owner);
    return 0;
}

/* Not by us: what it may ask for is for others to say. */
static bool is_run_elsewhere(struct actuator *a, const char *name)
{
    act_lock(a);
    const struct place *p = place_find(a, name);
    bool elsewhere = strcmp(name, ACT_HOST) == 0 && p && !p->desc.endpoint[0];
    act_unlock(a);
    return elsewhere;
}

static int check_spec(struct actuator *a, const struct act_pod *pod,
                      struct error *err)
{
    cleanup_with(podspec) struct podspec *spec = NULL;
    struct files files;
    int e = files_init(&files, pod->files, pod->files ? pod->files_size : 0,
                       err);
    if (e < 0)
        return e;
    struct podspec_source source = files_source(&files);
    e = podspec_parse(pod->spec, pod->spec_size, a->node, &source, &spec, err);
    files_fini(&files);
    if (e < 0)
        return e == -ENOENT ? -ENODATA : -EINVAL;
    return is_run_elsewhere(a, pod->place)
               ? 0
               : card_devices_check(a, pod->place, spec, err);
}

static LOCKED int refuse_drained(const struct place *p, struct error *err)
{
    struct flasher_view flash = {.state = FLASHER_NONE};
    const char *name = p->desc.name;
    if (p->a->flasher)
        flasher_look(p->a->flasher, name, &flash);
    if (flash.state == FLASHER_RUNNING)
        return error_set(err, EBUSY, "%s is being flashed", name);
    if (flash.state == FLASHER_FAILED)
        return error_set(err, EBUSY,
                         "%s is out of service (%s): biga card show %s says "
                         "why",
                         name, flash.reason, name);
    return error_set(err, EBUSY,
                     "%s is drained: biga card undrain %s lets pods come again",
                     name, name);
}

/* 1 when it is wanted already. */
static LOCKED int check_room(struct actuator *a, const struct act_pod *pod,
                             struct error *err)
{
    const struct place *p = place_find(a, pod->place);
    const struct pod_entry *e = pod_entry_by_name(a, pod->namespace, pod->name);
    if (pod_entry_by_uid(a, pod->uid))
        return 1;
    if (leftover_dirs_busy(a, pod->uid))
        return error_set(err, EEXIST,
                         "pod %s: what another of that uid left is being "
                         "removed",
                         pod->uid);
    if (!p || !p->present)
        return error_set(err, ENOENT, "%s: there is no such place", pod->place);
    if (!p->desc.endpoint[0] && strcmp(pod->place, ACT_HOST) != 0)
        return error_set(err, ENOENT,
                         "%s: its runtime is not known: give the card an "
                         "endpoint in the card file",
                         pod->place);
    if (p->drained)
        return refuse_drained(p, err);
    if (e && e->intent->state != ACT_GONE)
        return error_set(err, EEXIST,
                         "pod %s/%s: another of that name (uid %s) is %s",
                         pod->namespace, pod->name, e->intent->uid,
                         act_state_name(e->intent->state));
    if (a->n_entries >= ACT_PODS_MAX)
        return error_set(err, ENOSPC, "more than %d pods on this node",
                         ACT_PODS_MAX);
    return 0;
}

static int want_locked(struct actuator *a, const struct act_pod *pod,
                       struct error *err)
{
    act_lock(a);
    int e = check_room(a, pod, err);
    act_unlock(a);
    if (e != 0)
        return e < 0 ? e : 0;
    cleanup_with(intent) struct intent *i = intent_create(pod);
    (void)failpoint("act-before-wanted");
    e = intents_put(a->intents, i, err);
    (void)failpoint("act-after-wanted");
    if (e < 0)
        return e;
    act_lock(a);
    struct pod_entry *added = pod_entry_add(a, steal(&i));
    struct place *p = place_find(a, pod->place);
    pod_entry_publish(a, added);
    if (p)
        place_wake(p);
    act_unlock(a);
    return 0;
}

bool actuator_knows(struct actuator *a, const char *uid)
{
    act_lock(a);
    bool known = pod_entry_by_uid(a, uid) != NULL;
    act_unlock(a);
    return known;
}

int actuator_want(struct actuator *a, const struct act_pod *pod,
                  struct error *err)
{
    int e = check_texts(pod, err);
    if (e < 0)
        return e;
    if (actuator_knows(a, pod->uid))
        return 0;
    e = check_spec(a, pod, err);
    if (e < 0)
        return e;
    hold_lock(&a->saving);
    return want_locked(a, pod, err);
}

int actuator_begin(struct actuator *a, const char *uid, struct error *err)
{
    act_lock(a);
    struct pod_entry *e = pod_entry_by_uid(a, uid);
    if (e && e->intent->held) {
        struct place *p = place_find(a, e->intent->place);
        e->intent->held = false;
        e->due_ms = 0;
        pod_entry_publish(a, e);
        if (p)
            place_wake(p);
    }
    act_unlock(a);
    if (!e)
        return error_set(err, ENOENT, "pod %s: there is none here", uid);
    return pod_entry_save_uid(a, uid, err);
}

static int unwant(struct actuator *a, const char *uid, int64_t grace_s,
                  bool keep, struct error *err)
{
    (void)failpoint("act-before-unwanted");
    act_lock(a);
    struct pod_entry *e = pod_entry_by_uid(a, uid);
    bool again = e && e->intent->stop && e->stop_saved &&
                 e->intent->keep == keep &&
                 (grace_s < 0 || grace_s == e->intent->grace_s);
    if (e)
        e->intent->keep = keep;
    if (e && !again)
        pod_entry_stop(a, e, grace_s);
    act_unlock(a);
    if (!e)
        return error_set(err, ENOENT, "pod %s: there is none here", uid);
    int r = again ? 0 : pod_entry_save_uid(a, uid, err);
    (void)failpoint("act-after-unwanted");
    act_lock(a);
    (void)pod_table_end_gone(a); /* the same */
    act_unlock(a);
    return r;
}

int actuator_unwant(struct actuator *a, const char *uid, int64_t grace_s,
                    struct error *err)
{
    return unwant(a, uid, grace_s, false, err);
}

int actuator_end(struct actuator *a, const char *uid, int64_t grace_s,
                 struct error *err)
{
    return unwant(a, uid, grace_s, true, err);
}

void actuator_set_host(struct actuator *a, struct host_side *host)
{
    act_lock(a);
    struct host_side *before = a->host;
    a->host = host;
    act_unlock(a);
    host_side_unref(before);
}

static int compare_text(const void *key, const void *at)
{
    return strcmp(key, *(const char *const *)at);
}

int actuator_keep(struct actuator *a, const char *owner,
                  const char *const *uids, size_t n, struct error *err)
{
    size_t n_ended = 0;
    int e = 0;
    act_lock(a);
    cleanup_free char **ended = xcalloc(a->n_entries + 1, sizeof *ended);
    for (size_t i = 0; i < a->n_entries; i++) {
        const struct intent *at = a->entries[i]->intent;
        if (strcmp(at->owner, owner) == 0 && !at->stop &&
            !(n && bsearch(at->uid, uids, n, sizeof *uids, compare_text)))
            ended[n_ended++] = xstrdup(at->uid);
    }
    act_unlock(a);
    for (size_t i = 0; i < n_ended; i++) {
        int r = actuator_unwant(a, ended[i], -1, err);
        if (r < 0 && r != -ENOENT)
            e = r;
        free(ended[i]);
    }
    return e;
}

int actuator_forget(struct actuator *a, const char *uid, struct error *err)
{
    return pod_entry_forget(a, uid, err);
}

void actuator_told(struct actuator *a, const char *const *uids, size_t n)
{
    unrecorded_told(a, uids, n);
}

int actuator_left(struct actuator *a, const char *place, const char *uid,
                  struct error *err)
{
    return unrecorded_check_gone(a, place, uid, err);
}

/* --- what is known ------------------------------------------------------- */

size_t actuator_list(struct actuator *a, struct act_pod_status **ret_pods)
{
    size_t n = 0;
    act_lock(a);
    struct act_pod_status *list = xcalloc(a->n_entries + 1, sizeof *list);
    for (size_t i = 0; i < a->n_entries; i++)
        if (!pod_entry_is_helper(a->entries[i]))
            status_fill_pod(a, a->entries[i], &list[n++]);
    act_unlock(a);
    *ret_pods = list;
    return n;
}

int actuator_find(struct actuator *a, const char *namespace, const char *name,
                  struct act_pod_status *ret_pod)
{
    act_lock(a);
    const struct pod_entry *e = pod_entry_by_name(a, namespace, name);
    if (e)
        status_fill_pod(a, e, ret_pod);
    act_unlock(a);
    return e ? 0 : -ENOENT;
}

uint64_t actuator_version(struct actuator *a)
{
    act_lock(a);
    uint64_t version = a->version;
    act_unlock(a);
    return version;
}

uint64_t actuator_wait(struct actuator *a, uint64_t version, int64_t ms)
{
    int64_t end = clock_ms() + ms;
    act_lock(a);
    while (a->version <= version && !a->stopping && clock_ms() < end)
        (void)clock_wait(&a->news, &a->lock, end);
    version = a->version;
    act_unlock(a);
    return version;
}
