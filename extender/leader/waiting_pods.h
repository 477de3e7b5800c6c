/* waiting_pods - the pods that kube-scheduler has put aside as unschedulable,
 * and which of them to wake because there is room.
 *
 * kube-scheduler tries such a pod again on events of Kubernetes: a pod is gone,
 * a Node has changed.  It does not see what changes here alone (a lease has
 * expired, a quota or policy has changed, a card has recovered); the pod would
 * wait for its periodic retry, after 5 minutes.  So each pod is judged again
 * with each snapshot newer than that of its refusal, whatever has changed.
 *
 * A registry, no I/O, no clock: its caller (waker.h) judges and wakes.  A pod
 * is to be woken when it fits one of the nodes named in its refusal, or more
 * nodes than before; only once until filter is asked about it again, and not in
 * short order. */
#ifndef BIGA_EXTENDER_LEADER_WAITING_PODS_H
#define BIGA_EXTENDER_LEADER_WAITING_PODS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/pods/kube_pod.h"
#include "extender/state/candidates.h"

enum {
    WAITING_PODS_MAX = 32768, /* pods; others wait for kube-scheduler */
    WAITING_PODS_PAUSE_MIN_MS =
        1000, /* between two times that a pod is woken */
    WAITING_PODS_PAUSE_MAX_MS = 10000,
    WAITING_PODS_UNHEARD_MS = 60000, /* of one that is not asked about since;
                                 * doubled each time */
    WAITING_PODS_UNHEARD_MAX_MS = 3600000,
};

struct waiting_pods;
struct waiting_pods *waiting_pods_create(void);
void waiting_pods_destroy(struct waiting_pods *w); /* NULL allowed */

/* A pod as it is now, or it is gone. */
void waiting_pods_put(struct waiting_pods *w, const struct kube_pod *pod);
void waiting_pods_gone(struct waiting_pods *w, const char *uid);
/* Filter was asked about it, with the snapshot of that number; `refused`: none
 * of `named` fits (a reference is taken; NULL: all nodes). */
void waiting_pods_asked(struct waiting_pods *w, const char *uid,
                        uint64_t number, bool refused,
                        struct candidates *named);
/* Forget what filter has answered: another replica led meanwhile. */
void waiting_pods_again(struct waiting_pods *w);

/* The pods to be judged with the snapshot of that number: first those that the
 * extender has refused, then others, which may wait for anything; by priority,
 * then in the order of arrival.  The caller frees the array. */
struct waiting_pods_pod {
    char uid[DEMAND_UID_MAX + 1];
    bool refused;
    int64_t priority;
    uint64_t turn;
};
struct waiting_pods_pod *waiting_pods_list(const struct waiting_pods *w,
                                           uint64_t number, size_t *ret_n);
/* The nodes of the last refusal, a reference for the caller; NULL: all, or not
 * known. */
struct candidates *waiting_pods_named(const struct waiting_pods *w,
                                      const char *uid);

/* How a pod was judged: does it fit one of those named, and how many nodes of
 * all? */
struct waiting_pods_verdict {
    uint64_t number; /* of the snapshot */
    bool fits_named;
    size_t fitting;
};
/* When it may be woken, because there is room now that there was not;
 * INT64_MAX: not. */
int64_t waiting_pods_judge(struct waiting_pods *w, const char *uid,
                           const struct waiting_pods_verdict *verdict,
                           int64_t now_ms);
/* The first pod that may be woken now: those that fit a node that refused them,
 * then others, each in the order of waiting_pods_list().  Pods woken before it
 * may have taken the room: judge it once more, then call waiting_pods_woken().
 * False: none; `*ret_due_ms` is when there will be one (INT64_MAX: none is
 * known).  Visits all. */
bool waiting_pods_next(const struct waiting_pods *w, int64_t now_ms,
                       struct waiting_pods_pod *ret_pod, int64_t *ret_due_ms);
/* The outcome: 0; -errno of kube_call(), or -EPERM when this replica may not
 * write.  A failure is tried again, unless it was refused for good. */
void waiting_pods_woken(struct waiting_pods *w, const char *uid,
                        const struct waiting_pods_verdict *verdict, int result,
                        int64_t now_ms);

/* For people: has kube-scheduler put it aside, and when was it woken, without
 * the extender having been asked since?  -1: it was not. */
struct waiting_pods_state {
    bool aside;
    bool refused; /* the extender was asked, and no node did */
    int64_t woken_ms;
};
void waiting_pods_state(const struct waiting_pods *w, const char *uid,
                        struct waiting_pods_state *ret_state);

#endif
