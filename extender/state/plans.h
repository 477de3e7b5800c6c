/* plans - a bounded cache of the plans that were made.  Any thread. */
#ifndef BIGA_EXTENDER_STATE_PLANS_H
#define BIGA_EXTENDER_STATE_PLANS_H

#include <stdint.h>

#include "extender/state/snapshot.h"
#include "model/plan/plan.h"
#include "model/pod/demand.h"

enum { PLANS_MAX = 64 };

/* What a plan is made of.  Everything is borrowed, and compared in full. */
struct plans_key {
    const struct snapshot *snapshot;
    const struct demand *asked; /* nothing in it but what decides */
    const uint64_t *candidates; /* bits by node, NULL: all */
    int32_t rank;               /* -1: the same for all ranks */
    int32_t pin;
    uint32_t mode; /* which held places were kept */
};

struct plans;
struct plans *plans_create(void);
void plans_destroy(struct plans *p); /* NULL allowed */

/* True when it is remembered: a plan that the caller owns, or NULL and the
 * refusal. */
bool plans_find(struct plans *p, const struct plans_key *key,
                struct plan **ret_plan, struct plan_refusal *ret_refusal);
/* The newest plan that answers the same of that snapshot, or of an earlier one
 * with the same nodes, fabric and policy; its places may be taken by now.  NULL: none.  Plan
 * and `*ret_snapshot` are the caller's. */
struct plan *plans_find_earlier(struct plans *p, const struct plans_key *key,
                                struct snapshot **ret_snapshot);
/* Remember a plan (a reference is taken), or the refusal when `plan` is NULL.
 * Keeps a reference to the snapshot, so that no later one can have its address
 * and be taken for it. */
void plans_put(struct plans *p, const struct plans_key *key, struct plan *plan,
               const struct plan_refusal *refusal);

/* Since the start: jobs that were planned, and those of them that had no place,
 * by what they lacked.  What is remembered counts once, however often and by
 * whom it is asked for. */
struct plans_counts {
    uint64_t planned;
    uint64_t refused[PLAN_LACKS];
};
void plans_count(struct plans *p, struct plans_counts *ret_counts);

#endif
