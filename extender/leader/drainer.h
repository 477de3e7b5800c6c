/* drainer - drains in a cluster: the thread that writes them down in the API
 * server, on whichever replica is asked, and, while this one leads, evicts the
 * pods of drains that say so, again and again until they have left. */
#ifndef BIGA_EXTENDER_LEADER_DRAINER_H
#define BIGA_EXTENDER_LEADER_DRAINER_H

#include "extender/keep/writer.h"
#include "extender/leader/events.h"
#include "extender/pods/pod_source.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/kube/config.h"

enum {
    DRAINER_CALL_MS = 3000,
    DRAINER_PAUSE_MS = 1000,   /* between two rounds */
    DRAINER_WAITING_MAX = 256, /* requests */
    DRAINER_RETRY_MS = 5000,   /* of an eviction; doubled each time, up to */
    DRAINER_RETRY_MAX_MS = 60000,
};

struct drainer_config {
    const struct kube_config *kube; /* outlives it */
    const char *namespace;          /* of ConfigMap biga-drains */
    struct writer *writer;
    struct events *events; /* NULL: none are written; outlives it */
    /* Asked before every eviction; NULL: always. */
    bool (*may_write)(void *ctx, int64_t call_ms);
    void *ctx;
};

struct drainer;
int drainer_start(const struct drainer_config *config,
                  struct drainer **ret_drainer, struct error *err);
/* Requests fail from now on, and those that wait at once: before the listeners
 * are stopped. */
void drainer_quiesce(struct drainer *d); /* NULL allowed */
/* Before the writer is stopped. NULL allowed */
void drainer_stop(struct drainer *d);
DEFINE_CLEANUP(drainer, struct drainer *, drainer_stop)

/* Any thread; `drain->done` is called by the drainer's, or by this one. */
void drainer_post(struct drainer *d, struct pod_drain *drain);

#endif
