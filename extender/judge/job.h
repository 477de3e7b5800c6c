/* job - a whole job against one snapshot: which of its pairs have a place,
 * and the plan for the rest.
 *
 * Pure but for the memory of plans that were made (plans), which changes no
 * answer.  A pair has its place when a member of it is bound, or when a lease
 * holds a place for it (struct allocation with `held`). */
#ifndef BIGA_EXTENDER_JUDGE_JOB_H
#define BIGA_EXTENDER_JUDGE_JOB_H

#include <stddef.h>
#include <stdint.h>

#include "extender/judge/schedule.h"
#include "extender/state/allocation.h"
#include "extender/state/plans.h"
#include "extender/state/snapshot.h"
#include "model/plan/plan.h"

/* The plan of a pod's job in `snapshot`, limited to `candidates` (indexes,
 * NODE_NONE allowed; NULL: all nodes), `pod`'s own pair on node `pin` unless
 * that is NODE_NONE.  `memory` may be NULL.
 * When another pod of the pair is nominated to a node (moving_pods.h), the pair
 * is pinned there.  Other nominated pairs of the job get their place on their
 * nodes; while one of these nodes has no room yet there is no plan
 * (PLAN_LACK_COMING).
 * Held places are kept.  When the place of the pod's own pair cannot be used,
 * that pair is planned anew around the others; when that fails, so are all
 * pairs without a bound pod.
 * For a pod in a PodGroup the scheduler leaves out nodes that it has assumed
 * others of the group on.  So the plan for all nodes counts as long as it has
 * the pod's own pair on a candidate.
 * Returns 0 and a plan that the caller owns, or -EBUSY and the refusal.
 * The same (job, candidates, snapshot) gives the same plan in every process. */
int job_plan(struct plans *memory, const struct snapshot *snapshot,
             const struct demand *pod, const int32_t *candidates, size_t n,
             int32_t pin, struct plan **ret_plan,
             struct plan_refusal *ret_refusal);

/* The plan for the first pod of a job that was made in an earlier snapshot with
 * the same nodes, fabric and policy, as the filter before a bind does.  Whether
 * its places are still free is for the caller to see.  NULL: none is
 * remembered, or a pair of the job has a place by now or comes to a node.
 * Plan and `*ret_snapshot` are the caller's. */
struct plan *job_plan_earlier(struct plans *memory,
                              const struct snapshot *snapshot,
                              const struct demand *pod,
                              const int32_t *candidates, size_t n,
                              struct snapshot **ret_snapshot);

/* Does the pod, as judged by schedule_init(), follow its pair: is a member of
 * it bound, or room made for one where nobody knows yet, or a place held for it
 * that it can have (but for its namespace's quota) and that is among the
 * candidates (NULL: all)?  Else its job is to be planned. */
bool job_is_placed(const struct schedule *s, const int32_t *candidates,
                   size_t n);
/* The pod's index among the pairs of its plan. */
uint32_t job_rank(const struct demand *pod);

/* What job_plan() hands to plan_make() at last, when it refuses: for the
 * explanations.  Borrows snapshot; fini releases the arrays. */
struct job_input {
    struct plan_cluster cluster;
    struct plan_job job;
    struct demand shapes[PLAN_SHAPES_MAX];
    const struct node_state **states;
    int32_t *leaves;
    struct host_room *rooms; /* or NULL */
    uint8_t *shape_of;
    struct plan_fixed *fixed;
    uint64_t *candidates;
    struct node_state *changed; /* of nodes where something counts as gone,
                                 * or is taken by those that come */
    size_t n_changed;
    /* other pairs that are nominated to nodes with room for them, fixed */
    struct job_coming {
        int32_t rank, node;
        struct choice choice;
    } * coming;
    size_t n_coming;
    uint32_t n_waiting; /* pairs that are nominated, without room so far */
};
void job_input_init(struct job_input *in, const struct snapshot *snapshot,
                    const struct demand *pod, const int32_t *candidates,
                    size_t n, int32_t pin);
void job_input_fini(struct job_input *in);

/* A place of a plan, held for the pair `rank` of the pod's job. */
struct allocation *job_hold(const struct snapshot *snapshot,
                            const struct demand *pod, uint32_t rank,
                            const struct plan_place *place);
const struct allocation *job_find_hold(const struct alloc_index *x,
                                       const struct demand *pod, uint32_t rank);
/* The lease that goes with the first bind: one held allocation for every
 * pair that the plan has found a place for; the caller owns array and
 * references. */
struct allocation **job_holds(const struct snapshot *snapshot,
                              const struct demand *pod, const struct plan *plan,
                              size_t *ret_n);

/* The place of the host pod of a pair (`rank`) of the pod's job of which only
 * xPU pods are bound: with them; NULL when it has none there. */
struct allocation *job_hold_host(const struct snapshot *snapshot,
                                 const struct demand *pod, int32_t rank);

/* The place of a host pod, held for its pair; NULL when its node is not
 * there. */
struct allocation *job_hold_again(const struct snapshot *snapshot,
                                  const struct allocation *a);

/* "NS/JOB", which all members of a job share; "NS/NAME" of a pod alone. */
enum { JOB_KEY_MAX = DEMAND_NAME_MAX + DEMAND_NAMESPACE_MAX + 2 };
void job_key(const struct demand *demand, char ret_key[JOB_KEY_MAX]);

/* Is its whole job planned?  Else its pair is, alone. */
static inline bool job_is_whole(const struct demand *d)
{
    return d->job[0] && d->size > 1;
}
/* What is planned, and so leased, together: the key of its job, with '/'
 * behind it, when that has several pairs, else of its pair. */
enum { JOB_LEASE_KEY_MAX = DEMAND_PAIR_KEY_MAX };
void job_lease_key(const struct demand *demand,
                   char ret_key[JOB_LEASE_KEY_MAX]);
/* Who is planned together with a pod, bound and held, by pair, in the
 * caller's array (free it). */
const struct allocation **job_together(const struct alloc_index *x,
                                       const struct demand *demand,
                                       size_t *ret_n);
/* Has the job, or the pair of a pod without one, any? */
bool job_has_any(const struct alloc_index *x, const struct demand *demand);

#endif
