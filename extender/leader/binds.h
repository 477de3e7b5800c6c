/* binds - the bind requests under way in a cluster: a decided bind is posted to
 * the API server and told as an Event, or its allocation is given back.
 * kube-scheduler may ask again while an earlier call may still succeed, so only
 * the last request of a pod gives the allocation back, and none does once one
 * has bound the pod.  Any thread. */
#ifndef BIGA_EXTENDER_LEADER_BINDS_H
#define BIGA_EXTENDER_LEADER_BINDS_H

#include <stddef.h>

#include "extender/keep/writer.h"
#include "extender/leader/binder.h"
#include "extender/leader/events.h"
#include "extender/pods/pod_source.h"
#include "model/pod/demand.h"

struct binds;
struct binds_config {
    struct writer *writer;
    struct binder *binder;
    /* An Event about a pod. */
    void (*tell)(void *ctx, const struct demand *pod, enum events_reason reason,
                 const char *text);
    /* It is bound, by what was decided now.  NULL: nobody counts. */
    void (*bound)(void *ctx, const struct demand *pod);
    /* A bind was given up with its outcome unknown. */
    void (*unsure)(void *ctx);
    void *ctx;
};
/* All of the configuration outlives it. */
struct binds *binds_create(const struct binds_config *config);
/* After the binder was stopped, which ends all binds under way. */
void binds_destroy(struct binds *x); /* NULL allowed */

/* A request begins, before anything is allocated for it. */
void binds_begin(struct binds *x, const char *uid);
/* Its bind was decided: b->done() is called with the outcome, or after the
 * binder's deadline. */
void binds_post(struct binds *x, struct pod_bind *b);
/* Somebody else has made it true: the request ends. */
void binds_end(struct binds *x, const char *uid);
/* It was refused: the request ends.  `reason` NULL: nobody is told. */
void binds_refuse(struct binds *x, const struct pod_bind *b,
                  const char *reason);

/* Requests under way, of all pods. */
size_t binds_count(struct binds *x);

#endif
