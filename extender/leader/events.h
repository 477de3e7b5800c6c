/* events - Kubernetes Events about pods: what happened to them, for `kubectl
 * describe pod`.
 *
 * Nobody waits for one: they are written by a thread of their own, when there
 * is time (those that are no warnings not while binds are under way), and never
 * more than one per pod and reason within EVENTS_PAUSE_MS; what comes in
 * between is counted up in the one that is there.  At most
 * EVENTS_PER_SECOND are written; of what has to wait, warnings go first, then
 * what is told once, and beyond EVENTS_WAITING_MAX the others are dropped.  One
 * whose answer was lost is tried again under the same name, so that it is no
 * second one. */
#ifndef BIGA_EXTENDER_LEADER_EVENTS_H
#define BIGA_EXTENDER_LEADER_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/kube/config.h"
#include "model/pod/demand.h"

enum {
    EVENTS_CALL_MS = 3000,
    EVENTS_PAUSE_MS = 60000,
    EVENTS_PER_SECOND = 20,
    EVENTS_WAITING_MAX = 4096,
    EVENTS_KEPT_MAX = 65536, /* pods and reasons that are remembered */
    EVENTS_TEXT_MAX = 1024,  /* the API server's limit */
    EVENTS_DELAY_MS = 2000,  /* of a refusal: one that is bound meanwhile
                              * never was worth telling */
};

enum events_reason {
    EVENTS_ALIGNED,            /* as near as the node's hardware offers */
    EVENTS_ALIGNMENT_DEGRADED, /* within what the pod accepts, but not that */
    EVENTS_UNALIGNED,          /* across sockets or unknown */
    EVENTS_REFUSED,            /* no node fits, or a bind was refused */
    EVENTS_XPU_POD_FAILED,     /* on a host pod */
    EVENTS_XPU_POD_GONE,
    EVENTS_BUDDY_MADE,
    EVENTS_BUDDY_FAILED,
    EVENTS_PAIR_ENDED,     /* on an xPU pod: its host pod has ended */
    EVENTS_PAIR_NOT_ENDED, /* and it could not be deleted */
    EVENTS_CARD_LOST,      /* on a pod on a card */
    EVENTS_CARD_BACK,
    EVENTS_EVICTED,     /* its card stayed lost */
    EVENTS_NOT_EVICTED, /* and it could not be evicted */
    EVENTS_DRAINED,     /* its card was drained, and it is to end */
    EVENTS_NOT_DRAINED, /* and it could not be evicted */
    EVENTS_PREEMPTED,   /* at the gate: for a pod of higher priority */
    EVENTS_OVERFULL,    /* it has more than its node has */
    EVENTS_UNKNOWN_KEY,
    EVENTS_ALIGNMENT_LOST, /* it got less than it was promised */
    EVENTS_REASONS
};

struct events_pod {
    const char *namespace, *name, *uid;
};

struct events;
struct events_config {
    const struct kube_config *kube; /* outlives it */
    const char *reporter;           /* of this replica */
    /* Only the leader writes; asked before every call; NULL: always. */
    bool (*may_write)(void *ctx, int64_t call_ms);
    /* Is there something more urgent for the API server to do?  NULL: no. */
    bool (*is_busy)(void *ctx);
    void *ctx;
    /* Told of all that is posted, by who posts it; NULL: nobody. */
    void (*told)(void *told_ctx, const struct events_pod *pod,
                 enum events_reason reason, const char *text);
    void *told_ctx;
    unsigned call_ms; /* 0: EVENTS_CALL_MS (tests) */
};
int events_start(const struct events_config *config, struct events **ret_events,
                 struct error *err);
void events_stop(struct events *e); /* NULL allowed; what waits is dropped */
DEFINE_CLEANUP(events, struct events *, events_stop)

/* Any thread; never waits.  NULL allowed for `e`: nothing happens. */
void events_post(struct events *e, const struct demand *pod,
                 enum events_reason reason, const char *text);
/* The same of a pod that is known by its names alone. */
void events_post_named(struct events *e, const struct events_pod *pod,
                       enum events_reason reason, const char *text);

#endif
