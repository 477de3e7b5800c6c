/* binder - makes binds true in the API server: POST pods/NAME/binding with
 * the pod's UID as precondition, the node, and the annotation
 * biga.dev/allocation, in one call.  Or, for a pod that a stock kube-scheduler
 * binds (gate/), PATCH pods/NAME with that annotation, what pins it to its node,
 * and its gate removed; it counts as bound with that.
 *
 * Threads with a connection each; the more of them, the more binds the API
 * server commits together.  What comes out is one of
 *   BOUND    the pod is bound to that node with that annotation, by this call
 *            or an earlier one
 *   REFUSED  it is not and will not be by any call of ours: another node, no
 *            such pod, another UID, not allowed, not the leader any more
 *   UNKNOWN  after the deadline nobody answered what became of it: the pod is
 *            looked up until that is known, and `settled` is called then
 * so an allocation is given back only when nothing can make it true. */
#ifndef BIGA_EXTENDER_LEADER_BINDER_H
#define BIGA_EXTENDER_LEADER_BINDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/backoff.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/kube/config.h"
#include "model/pod/demand.h"

enum {
    BINDER_THREADS = 16,
    BINDER_CALL_MS = 3000,
    BINDER_DEADLINE_MS = 4000, /* for an outcome: less than kube-scheduler's
                                * time-out of 5 s */
    BINDER_QUEUE_MAX = 16384,
    BINDER_WHY_MAX = 256, /* bytes of a failed call's text that are reported */
};

enum binder_outcome { BINDER_BOUND, BINDER_REFUSED, BINDER_UNKNOWN };

/* The poster keeps it, and what it points to, until `done` was called (on a
 * binder's thread) with BOUND or REFUSED, or `settled` after an UNKNOWN. */
struct binding {
    char namespace[DEMAND_NAMESPACE_MAX + 1];
    char name[DEMAND_NAME_MAX + 1];
    char uid[DEMAND_UID_MAX + 1];
    char node[DEMAND_NAME_MAX + 1];
    const char *allocation; /* the annotation's text */
    size_t allocation_size; /* 0: without an annotation */
    const char *patch;      /* a merge patch that opens its gate; NULL: POST */
    size_t patch_size;
    bool repeated; /* an earlier call may have bound it: look first */
    void (*done)(struct binding *b, enum binder_outcome outcome,
                 const char *reason);
    /* after an UNKNOWN; `outcome` is BOUND or REFUSED, or UNKNOWN when the
     * binder ends */
    void (*settled)(struct binding *b, enum binder_outcome outcome);
    void *ctx;

    /* the binder's */
    struct binding *next;
    int64_t due_ms, deadline_ms;
    int64_t unsure_until_ms; /* until then a call whose answer was lost may
                              * still be carried out; 0: none was */
    bool looks;              /* the next call looks the pod up */
    bool told;               /* UNKNOWN */
    bool seen_unbound;       /* seen since the last call without an answer */
    struct backoff backoff;
    unsigned attempts;        /* POSTs */
    char why[BINDER_WHY_MAX]; /* the last call failed; "" none has */
};

struct binder;
struct binder_config {
    const struct kube_config *kube; /* outlives it */
    /* Asked right before every call that may bind; NULL: always. */
    bool (*may_bind)(void *ctx, int64_t call_ms);
    void *ctx;
    int64_t call_ms, deadline_ms; /* 0: as above (tests) */
};
int binder_start(const struct binder_config *config, struct binder **ret_binder,
                 struct error *err);
/* First finishes every binding, as UNKNOWN (also to `settled`) where the
 * outcome does not come in time. NULL allowed. */
void binder_stop(struct binder *x);
DEFINE_CLEANUP(binder, struct binder *, binder_stop)

/* -EAGAIN when the queue is full. */
int binder_post(struct binder *x, struct binding *b);
/* Is a bind of this pod under way or unsettled?  Any thread. */
bool binder_is_busy(struct binder *x, const char *uid);
size_t binder_n_busy(struct binder *x);

#endif
