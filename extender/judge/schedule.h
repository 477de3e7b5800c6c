/* schedule - judges one pod against one snapshot: which nodes fit, and what it
 * would get there.  Pure. */
#ifndef BIGA_EXTENDER_JUDGE_SCHEDULE_H
#define BIGA_EXTENDER_JUDGE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/state/allocation.h"
#include "extender/state/quota.h"
#include "extender/state/snapshot.h"
#include "model/plan/plan.h"

/* A pod is judged by itself, or follows a member of its pair to a node.
 * - An allocation under its own name counts as free.  With the same uid it is
 *   this pod's, which must go there (kube-scheduler asks again when the answer
 *   to a bind was lost); with another uid that pod has ended.
 * - A pair without a bound pod follows the place that is held for it, if there
 *   is one; its host pod gets exactly that place.
 * - When kube-scheduler makes room for another pod of the pair on another node,
 *   this pod waits for that one; also while that pod has an offer of several
 *   nodes (moving_pods.h), and then it fits nowhere.
 * Borrows the snapshot and the demand. */
struct schedule {
    const struct snapshot *snapshot;
    const struct demand *demand;
    char pair_key[DEMAND_PAIR_KEY_MAX];
    int32_t follows; /* index of its pair's node; NODE_NONE: it follows nobody;
                      * NODE_GONE: the node is not in the snapshot */
    const char *follows_node; /* its name, of the snapshot; NULL: nobody */
    const struct allocation *former; /* under its own name, or NULL */
    int32_t former_index; /* of that one's node; NODE_NONE: not there */
    const struct allocation *hold; /* the place held for its pair, or NULL */
    bool bound;                    /* a member of its pair, or it, is bound */
    bool nominated; /* neither of these: room is made for another pod of its
                     * pair on the node that it follows */
    bool unsettled; /* the same, and where is not known yet: NODE_GONE */
    /* why its job has no plan, borrowed; NULL: was not asked for */
    const struct plan_refusal *refusal;
    bool own_holds;             /* then: places may be held for its job */
    struct quota_verdict quota; /* set when it follows nobody */
    bool own_share;             /* its service holds a share of some cards */
    struct costs *costs;        /* of its class; NULL: compute each */
};
enum { NODE_GONE = -2 };

void schedule_init(struct schedule *s, const struct snapshot *snapshot,
                   const struct demand *demand);
/* The node where kube-scheduler makes room for a pod of the pair other than
 * `uid`; NULL: none, or not in the snapshot.  Borrowed. */
const char *schedule_coming(const struct snapshot *snapshot,
                            const char *pair_key, const char *uid);
/* For a pair (see demand_pair) whose job has no plan: places held for its job
 * count as free, and nodes that would fit get the reason of the job. */
void schedule_init_job(struct schedule *s, const struct snapshot *snapshot,
                       const struct demand *pair,
                       const struct plan_refusal *refusal);

/* The cost of node `index` (NODE_NONE: an unknown name), COST_NO_FIT when
 * it does not fit. */
uint32_t schedule_cost(const struct schedule *s, int32_t index);

/* The choice on one node, or the reason; for bind, why and simulate. */
enum reason schedule_choose(const struct schedule *s, int32_t index,
                            struct choice *ret_choice);
/* The same as if `n` allocations of that node were gone (preemption). */
enum reason schedule_choose_without(const struct schedule *s, int32_t index,
                                    const struct allocation *const *gone,
                                    size_t n, struct choice *ret_choice);
/* What the host has left for the pair; places held for its own job count as
 * free. */
struct host_room schedule_room(const struct schedule *s, int32_t index);
/* The state of a ready node without what the pod's own pair holds; `must` and
 * `within` are those of decide(). */
void schedule_view(const struct schedule *s, int32_t index,
                   struct node_state *ret_state, uint16_t *ret_must,
                   uint16_t *ret_within);
/* The reasons by state, for one schedule; initialize with zeros. */
struct schedule_reasons {
    uint8_t *of; /* one more than the reason; 0: not known */
};
void schedule_reasons_fini(struct schedule_reasons *known);
/* The reason of schedule_choose() alone, for many nodes one by one. */
enum reason schedule_reason(const struct schedule *s, int32_t index,
                            struct schedule_reasons *known);
/* The reason without the node's numbers, so that kube-scheduler can count equal
 * ones: "too few free cores on the cards (4 asked of each)". */
void schedule_brief(const struct schedule *s, enum reason reason,
                    struct str *out);
/* Instead of that, where only few nodes have the reason: which cards of the
 * node are barred, and why; false, and nothing: it is not for that. */
bool schedule_tell_barred(const struct schedule *s, int32_t index,
                          enum reason reason, struct str *out);
/* The reason as a sentence with the node's own numbers. */
void schedule_explain(const struct schedule *s, int32_t index,
                      enum reason reason, struct str *out);

/* The best `max` of n candidate indexes (NODE_NONE allowed: never chosen),
 * best first, ties by node name: positions in `candidates` into `ret_best`.
 * Returns how many fit within max; *ret_fitting: how many fit in all. */
size_t schedule_best(const struct schedule *s, const int32_t *candidates,
                     size_t n, size_t max, uint32_t *ret_best,
                     size_t *ret_fitting);

/* The allocation of a demand at a place, without its number. */
struct allocation *schedule_place(const struct demand *demand,
                                  const struct node *node,
                                  const struct choice *choice);
/* The allocation that binding to node `index` with `choice` makes; the
 * caller owns it. */
struct allocation *schedule_allocation(const struct schedule *s, int32_t index,
                                       const struct choice *choice);

#endif
