/* The threads: one for each remote, and one that hears of changes. */
#include <errno.h>
#include <string.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"
#include "router/volume/volume_sync_private.h"

enum {
    IN_USE_MS = 500,     /* between looks whether the kubelet is done with it */
    SWEEP_MS = 10000,    /* before one that failed is tried again */
    CHANGES = 64,        /* that are taken at once */
    NAMES_MAX = 4 << 20, /* bytes of all pods' names */
};

static bool has_dirty(const struct sync_pod *pod)
{
    for (size_t i = 0; i < pod->n_units; i++)
        if (pod->units[i]->dirty)
            return true;
    return false;
}

/* --- a pod ---------------------------------------------------------------------- */

static void try_again(struct sync_pod *pod)
{
    pod->due_ms = clock_ms() + backoff_fail(&pod->backoff);
}

/* Both give the lock back for a while; the pod is ours. */
static void update(struct sync_remote *r, struct sync_pod *pod)
{
    struct error err = {0};
    (void)pthread_mutex_unlock(&r->sync->lock);
    int rc = sync_deliver(r, pod, &err);
    (void)pthread_mutex_lock(&r->sync->lock);
    if (rc) {
        if (pod->backoff.failures == 0)
            log_event(LOG_WARN, "volume-not-delivered", "remote", r->name,
                      "pod", pod->uid, "error", err.text, NULL);
        try_again(pod);
    } else {
        backoff_succeed(&pod->backoff);
        pod->due_ms = 0;
    }
    sync_pod_give(r, pod);
}

static int remove_all(struct sync_remote *r, const char *uid, unsigned lane,
                      struct error *err)
{
    struct sync_place place;
    sync_place_init(r, uid, lane, &place);
    int rc = volume_send_remove(&place.place, err);
    sync_place_fini(&place);
    return rc;
}

static void end(struct sync_remote *r, struct sync_pod *pod)
{
    struct error err = {0};
    (void)pthread_mutex_unlock(&r->sync->lock);
    bool in_use = volume_home_in_use(r->sync->config.kubelet_root, pod->uid);
    (void)pthread_mutex_lock(&r->sync->lock);
    if (in_use) {
        pod->due_ms = clock_ms() + IN_USE_MS;
        sync_pod_give(r, pod);
        return;
    }
    unsigned lane = sync_lane_take(r);
    (void)pthread_mutex_unlock(&r->sync->lock);
    int rc = remove_all(r, pod->uid, lane, &err);
    (void)pthread_mutex_lock(&r->sync->lock);
    sync_lane_give(r, lane);
    if (!rc && pod->forgotten) {
        sync_pod_drop(r, pod);
        return;
    }
    if (rc && !pod->failed)
        log_event(LOG_WARN, "volume-not-removed", "remote", r->name, "pod",
                  pod->uid, "error", err.text, NULL);
    pod->failed = rc != 0;
    if (rc)
        try_again(pod);
    sync_pod_give(r, pod);
}

/* --- what a former process has left ------------------------------------------ */

static bool is_kept(const struct sync_remote *r, const char *uid)
{
    for (size_t i = 0; i < r->n_kept; i++)
        if (strcmp(r->kept[i], uid) == 0)
            return true;
    return sync_pod_find(r, uid) != NULL;
}

static void drop_kept(struct sync_remote *r)
{
    for (size_t i = 0; i < r->n_kept; i++)
        free(r->kept[i]);
    free(r->kept);
    r->kept = NULL;
    r->n_kept = 0;
}

/* Gives the lock back for a while. */
static void sweep(struct sync_remote *r)
{
    const struct volume_sync_config *c = &r->sync->config;
    cleanup_str struct str names = STR_INIT(NAMES_MAX);
    struct error err = {0};
    cleanup_free char *disk = xasprintf("%s/pods", c->disk);
    unsigned lane = sync_lane_take(r);
    const struct volume_place place = {.exec = c->exec,
                                       .ctx = c->ctx,
                                       .remote = r->name,
                                       .lane = lane,
                                       .disk = disk,
                                       .memory = c->memory_helper};
    (void)pthread_mutex_unlock(&r->sync->lock);
    int rc = volume_send_pods(&place, &names, &err);
    (void)pthread_mutex_lock(&r->sync->lock);
    sync_lane_give(r, lane);
    if (rc) {
        r->sweep_ms = clock_ms() + SWEEP_MS;
        return;
    }
    const char *text = str_text(&names);
    for (const char *at = text; at < text + names.size; at += strlen(at) + 1) {
        struct sync_pod *pod = is_kept(r, at) ? NULL : sync_pod_get(r, at);
        if (pod)
            pod->forgotten = true;
    }
    r->sweeping = false;
    drop_kept(r);
    (void)pthread_cond_broadcast(&r->wake);
}

/* --- the remote's thread ------------------------------------------------------ */

static bool has_work(const struct sync_pod *pod)
{
    return !pod->busy && (pod->forgotten || has_dirty(pod));
}

/* The next step that is due, or when there will be one. */
static bool step(struct sync_remote *r, int64_t *ret_due_ms)
{
    int64_t now = clock_ms(), due = r->sweeping ? r->sweep_ms : INT64_MAX;
    for (size_t i = 0; i < r->n_pods; i++) {
        struct sync_pod *pod = r->pods[i];
        if (!has_work(pod))
            continue;
        if (pod->due_ms > now) {
            due = pod->due_ms < due ? pod->due_ms : due;
            continue;
        }
        pod->busy = true;
        if (pod->forgotten)
            end(r, pod);
        else
            update(r, pod);
        return true;
    }
    if (r->sweeping && r->sweep_ms <= now) {
        sweep(r);
        return true;
    }
    *ret_due_ms = due;
    return false;
}

void *sync_remote_run(void *arg)
{
    struct sync_remote *r = arg;
    int64_t due = 0;
    thread_name("volumes", r->name);
    (void)pthread_mutex_lock(&r->sync->lock);
    while (!r->ending)
        if (!step(r, &due) && !r->ending)
            (void)clock_wait(&r->wake, &r->sync->lock, due);
    drop_kept(r);
    (void)pthread_mutex_unlock(&r->sync->lock);
    return NULL;
}

/* --- the watcher ---------------------------------------------------------------- */

/* With the lock. */
static void mark(struct sync_remote *r, const uint64_t *ids, size_t n)
{
    for (size_t i = 0; i < r->n_pods; i++)
        for (size_t k = 0; k < r->pods[i]->n_units; k++)
            for (size_t m = 0; m < n; m++)
                if (r->pods[i]->units[k]->watch == ids[m]) {
                    r->pods[i]->units[k]->dirty = true;
                    (void)pthread_cond_broadcast(&r->wake);
                }
}

void *sync_watcher_run(void *arg)
{
    struct volume_sync *s = arg;
    uint64_t ids[CHANGES];
    thread_name("volume watch", NULL);
    for (bool ending = false; !ending;) {
        size_t n = volume_watch_wait(s->watch, INT64_MAX, ids, CHANGES);
        hold_lock(&s->lock);
        for (size_t i = 0; i < s->n_remotes; i++)
            mark(s->remotes[i], ids, n);
        ending = s->ending;
    }
    return NULL;
}
