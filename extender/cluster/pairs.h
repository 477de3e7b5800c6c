/* pairs - what the leader does about pairs: a host pod's end takes its xPU
 * pods with it, an xPU pod's end is told on its host pod, and a host pod with
 * a buddy gets its xPU pod.
 *
 * A registry of all host and xPU pods and the pairs that they make, and from
 * it the next thing to do.  No I/O, no clock: whoever runs it (pairing.h)
 * carries out what pairs_next() names and reports what became of it.  Asked
 * again, it names nothing that was done; what failed comes back after a
 * back-off.
 *
 *   DELETE  an xPU pod whose host pod has ended, unless that is Kubernetes' own
 *           business: its owner is gone; and, of a buddy's xPU pods that have
 *           ended, all but the newest
 *   MAKE    the xPU pod of a host pod with biga.dev/buddy; again when it has
 *           failed or is gone, but not when it has succeeded
 *   MARK    on an xPU pod without an owner, which host pod it is paired with,
 *           so that a later leader knows when that one is gone
 *   TELL    on the host pod, whether its xPU pods are all there, or why its buddy
 *           cannot be made */
#ifndef BIGA_EXTENDER_CLUSTER_PAIRS_H
#define BIGA_EXTENDER_CLUSTER_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/pods/kube_pod.h"

enum {
    PAIRS_MEMBERS_MAX = 256, /* of one pair; others are not looked after */
    PAIRS_TEXT_MAX = 768,
    PAIRS_BACKOFF_MIN_MS = 1000,
    PAIRS_BACKOFF_MAX_MS = 60000,
    PAIRS_TRIES = 5, /* that fail in a way that passes, before it is told */
    PAIRS_RESTART_MS = 10000, /* before a failed buddy is made again; doubled
                               * each time, up to PAIRS_RESTART_MAX_MS */
    PAIRS_RESTART_MAX_MS = 300000,
    PAIRS_SHOWN_MS = 10000, /* what was written must be seen within that, or
                             * is written again */
};

enum pairs_kind { PAIRS_DELETE, PAIRS_MAKE, PAIRS_MARK, PAIRS_TELL };
const char *pairs_kind_name(enum pairs_kind kind);

struct pairs_action {
    enum pairs_kind kind;
    /* the pod that it is about: to be deleted, marked or told; of MAKE the
     * host pod */
    char namespace[DEMAND_NAMESPACE_MAX + 1];
    char name[DEMAND_NAME_MAX + 1];
    char uid[DEMAND_UID_MAX + 1];
    /* MAKE: the xPU pod to make, and the PodTemplate */
    char made[DEMAND_NAME_MAX + 1];
    char buddy[DEMAND_NAME_MAX + 1];
    /* MARK: the host pod's uid */
    char host_uid[DEMAND_UID_MAX + 1];
    /* TELL */
    bool ready;
    const char *reason;        /* a constant: "XpuPodsReady" … */
    char text[PAIRS_TEXT_MAX]; /* for people; of DELETE: why; of MAKE: who
                                * reports that it failed says here why */
    char pair[DEMAND_PAIR_KEY_MAX];
};

struct pairs;
struct pairs *pairs_create(void);
void pairs_destroy(struct pairs *p); /* NULL allowed */

/* A pod as it is now, or that it is gone; services are passed over. */
void pairs_put(struct pairs *p, const struct kube_pod *pod, int64_t now_ms);
void pairs_gone(struct pairs *p, const char *uid, int64_t now_ms);
/* Look at every pair again: after somebody else was the leader. */
void pairs_again(struct pairs *p, int64_t now_ms);

/* The next thing to do; false when nothing is due at `now_ms`.  Each must be
 * reported before the next is asked for. */
bool pairs_next(struct pairs *p, int64_t now_ms,
                struct pairs_action *ret_action);
/* 0: done; -errno: it failed and will be tried again.  (-ENOENT of a DELETE,
 * MARK or TELL: the pod is gone, which is as good; -ECANCELED of a MAKE: the
 * host pod is not any more as it was, which is no failure of the buddy.) */
void pairs_report(struct pairs *p, const struct pairs_action *action,
                  int result, int64_t now_ms);
/* When something will be due; INT64_MAX: when something changes. */
int64_t pairs_due(const struct pairs *p);

size_t pairs_n_pods(const struct pairs *p);

#endif
