/* pair_rules - what the leader does about pairs: when a host pod ends, its xPU
 * pods are deleted; when an xPU pod ends, its host pod's condition says so; and
 * a host pod with a buddy gets its xPU pod.
 *
 * A registry of all host and xPU pods and their pairs, which names the next
 * thing to do.  No I/O, no clock: its caller (pair_controller.h) carries out
 * what pair_rules_next() names and reports the outcome.  What is done is not
 * named again; what failed comes back after a back-off.
 *
 *   DELETE  an xPU pod whose host pod has ended, unless that is Kubernetes' own
 *           business: its owner is gone; and, of a buddy's xPU pods that have
 *           ended, all but the newest
 *   MAKE    the xPU pod of a host pod with biga.dev/buddy; again when it has
 *           failed or is gone, but not when it has succeeded
 *   MARK    on an xPU pod without an owner, which host pod it is paired with,
 *           so that a later leader knows when that one is gone
 *   TELL    on the host pod, whether its xPU pods are all ready, or why its
 *           buddy cannot be made */
#ifndef BIGA_EXTENDER_LEADER_PAIR_RULES_H
#define BIGA_EXTENDER_LEADER_PAIR_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/pods/kube_pod.h"

enum {
    PAIR_RULES_MEMBERS_MAX = 256, /* of one pair; others are not looked after */
    PAIR_RULES_TEXT_MAX = 768,
    PAIR_RULES_BACKOFF_MIN_MS = 1000,
    PAIR_RULES_BACKOFF_MAX_MS = 60000,
    PAIR_RULES_TRIES =
        5, /* that fail with an error that passes, before it is told */
    PAIR_RULES_RESTART_MS =
        10000, /* before a failed buddy is made again; doubled
                               * each time, up to PAIR_RULES_RESTART_MAX_MS */
    PAIR_RULES_RESTART_MAX_MS = 300000,
    PAIR_RULES_SHOWN_MS =
        10000, /* what was written and not seen in the watch by then is
                * written again */
};

enum pair_rules_kind {
    PAIR_RULES_DELETE,
    PAIR_RULES_MAKE,
    PAIR_RULES_MARK,
    PAIR_RULES_TELL
};
const char *pair_rules_kind_name(enum pair_rules_kind kind);

struct pair_rules_action {
    enum pair_rules_kind kind;
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
    const char *reason;             /* a constant: "XpuPodsReady" … */
    char text[PAIR_RULES_TEXT_MAX]; /* for people; of DELETE: why; of MAKE: who
                                * reports that it failed says here why */
    char pair[DEMAND_PAIR_KEY_MAX];
};

struct pair_rules;
struct pair_rules *pair_rules_create(void);
void pair_rules_destroy(struct pair_rules *p); /* NULL allowed */

/* A pod as it is now, or that it is gone; services are passed over. */
void pair_rules_put(struct pair_rules *p, const struct kube_pod *pod,
                    int64_t now_ms);
void pair_rules_gone(struct pair_rules *p, const char *uid, int64_t now_ms);
/* Look at every pair again: after somebody else was the leader. */
void pair_rules_again(struct pair_rules *p, int64_t now_ms);

/* The next thing to do; false when nothing is due at `now_ms`.  Each must be
 * reported before the next is asked for. */
bool pair_rules_next(struct pair_rules *p, int64_t now_ms,
                     struct pair_rules_action *ret_action);
/* 0: done; -errno: it failed and will be tried again.  (-ENOENT of a DELETE,
 * MARK or TELL: the pod is gone, which counts as done; -ECANCELED of a MAKE:
 * the host pod has changed meanwhile, which does not count as a failure.) */
void pair_rules_report(struct pair_rules *p,
                       const struct pair_rules_action *action, int result,
                       int64_t now_ms);
/* When something will be due; INT64_MAX: when something changes. */
int64_t pair_rules_due(const struct pair_rules *p);

size_t pair_rules_n_pods(const struct pair_rules *p);

#endif
