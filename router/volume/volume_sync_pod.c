/* The table of pods of a remote; with the lock. */
#include <stdio.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/io/clock.h"
#include "router/volume/volume_sync_private.h"

enum { RETRY_MIN_MS = 500, RETRY_MAX_MS = 5000 };

struct sync_pod *sync_pod_find(const struct sync_remote *r, const char *uid)
{
    for (size_t i = 0; i < r->n_pods; i++)
        if (strcmp(r->pods[i]->uid, uid) == 0)
            return r->pods[i];
    return NULL;
}

struct sync_pod *sync_pod_get(struct sync_remote *r, const char *uid)
{
    struct sync_pod *pod = sync_pod_find(r, uid);
    if (pod || r->n_pods == VOLUME_PODS_MAX)
        return pod;
    pod = xcalloc(1, sizeof *pod);
    pod->uid = xstrdup(uid);
    pod->backoff = (struct backoff){.min_ms = RETRY_MIN_MS,
                                    .max_ms = RETRY_MAX_MS,
                                    .random = hash_bytes(uid, strlen(uid))};
    r->pods = xgrow(r->pods, r->n_pods, &r->cap, sizeof *r->pods);
    r->pods[r->n_pods++] = pod;
    return pod;
}

static void unit_destroy(struct sync_unit *unit)
{
    volume_home_fini(&unit->home);
    free(unit->at);
    free(unit);
}

void sync_pod_remove(struct sync_pod *pod, struct sync_unit *unit)
{
    for (size_t i = 0; i < pod->n_units; i++)
        if (pod->units[i] == unit)
            pod->units[i] = pod->units[--pod->n_units];
    unit_destroy(unit);
}

void sync_pod_destroy(struct sync_pod *pod)
{
    for (size_t i = 0; i < pod->n_units; i++)
        unit_destroy(pod->units[i]);
    free(pod->units);
    free(pod->uid);
    free(pod);
}

bool sync_pod_take(struct sync_remote *r, struct sync_pod *pod)
{
    pod->n_waiting++;
    while (pod->busy && !pod->gone && !r->ending)
        (void)clock_wait(&r->wake, &r->sync->lock, INT64_MAX);
    pod->n_waiting--;
    if (pod->gone && pod->n_waiting == 0)
        sync_pod_destroy(pod);
    else if (!pod->gone && !r->ending)
        return pod->busy = true;
    return false;
}

void sync_pod_give(struct sync_remote *r, struct sync_pod *pod)
{
    pod->busy = false;
    (void)pthread_cond_broadcast(&r->wake);
}

void sync_pod_drop(struct sync_remote *r, struct sync_pod *pod)
{
    for (size_t i = 0; i < r->n_pods; i++)
        if (r->pods[i] == pod)
            r->pods[i] = r->pods[--r->n_pods];
    for (size_t i = 0; i < pod->n_units; i++)
        if (pod->units[i]->watch)
            volume_watch_remove(r->sync->watch, pod->units[i]->watch);
    pod->gone = true;
    if (pod->n_waiting == 0)
        sync_pod_destroy(pod);
    (void)pthread_cond_broadcast(&r->wake);
}

void sync_pod_add(struct volume_sync *s, struct sync_pod *pod,
                  struct volume_home *home, bool ours)
{
    struct sync_unit *unit = NULL;
    cleanup_free char *at = xasprintf("%s/%s", home->memory ? "memory" : "disk",
                                      home->name);
    bool changes = home->form == VOLUME_AS_TREE || home->form == VOLUME_AS_FILE;
    for (size_t i = 0; i < pod->n_units; i++)
        if (strcmp(pod->units[i]->at, at) == 0)
            unit = pod->units[i];
    bool fresh = !unit;
    if (fresh) {
        unit = xcalloc(1, sizeof *unit);
        unit->at = steal(&at);
        pod->units = xgrow(pod->units, pod->n_units, &pod->cap,
                           sizeof *pod->units);
        pod->units[pod->n_units++] = unit;
        /* before it is read: nothing is missed in between */
        unit->watch = changes ? volume_watch_add(s->watch, home->path) : 0;
    }
    if (fresh || ours) {
        volume_home_fini(&unit->home);
        unit->home = *home;
        *home = (struct volume_home){0};
    }
    unit->dirty = true;
    unit->asked = ours;
}

unsigned sync_lane_take(struct sync_remote *r)
{
    for (;;) {
        for (unsigned lane = 0; lane < VOLUME_LANES; lane++)
            if (!(r->lanes & 1u << lane)) {
                r->lanes |= 1u << lane;
                return lane;
            }
        (void)clock_wait(&r->wake, &r->sync->lock, INT64_MAX);
    }
}

void sync_lane_give(struct sync_remote *r, unsigned lane)
{
    r->lanes &= ~(1u << lane);
    (void)pthread_cond_broadcast(&r->wake);
}
