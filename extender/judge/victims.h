/* victims - whom to evict so that a pod, or the whole job it belongs to, has
 * room: the preempt verb.  Pure.
 *
 * Pairs die whole: host and xPU pods of one pair are victims together.  Never
 * a victim is a service, a pod of equal or higher priority (nor its pair), a
 * pod of the same job, or a pair with a held place: nobody has that, so
 * nothing can be evicted, and it lapses with its lease. */
#ifndef BIGA_EXTENDER_JUDGE_VICTIMS_H
#define BIGA_EXTENDER_JUDGE_VICTIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/state/allocation.h"
#include "extender/state/snapshot.h"

enum {
    VICTIMS_PAIRS_MAX = 64, /* pairs of one node that are looked at: those of
                             * the lowest priority */
    VICTIMS_STEPS_MAX = 131072,    /* sets of pairs tried for one request */
    VICTIMS_JOB_STEPS_MAX = 32768, /* the same when a whole job is planned */
};

/* A node that the scheduler offers, and those of its victims there that have
 * an allocation.  Borrowed. */
struct victims_ask {
    int32_t node; /* NODE_NONE: unknown */
    const struct allocation *const *given;
    size_t n_given;
    bool others; /* it has victims there that have none: what they leave of
                  * the host is not known, but enough for the pod */
};

/* `fits`: with the given victims and those that are named (borrowed from the
 * snapshot) gone, there is room; `n` 0: the given ones are enough. */
struct victims {
    bool fits;
    bool instead; /* victims_choose(): of the given ones, which are named too
                   * where they go */
    const struct allocation **named; /* owned */
    size_t n;
};
void victims_fini(struct victims *v);

/* One answer for each ask.
 *
 * A pod by itself, or one whose pair has its place: on each node the fewest
 * pairs, then those that break the fewest jobs, then the lowest sum of
 * priorities, then the fewest pods, then the first by priority and name.
 * Exact as long as VICTIMS_STEPS_MAX lasts; then no named pair can be spared,
 * but a smaller set may exist.
 *
 * For a pod whose whole job is planned it looks for nodes for all pairs without
 * a place, in one domain of its `within`, with few victims per pair; nodes that
 * are asked about come first, and VICTIMS_JOB_STEPS_MAX bounds the search.
 * Those that are asked about and need victims fit.  Once all of them are
 * evicted, job_plan() finds a plan.  The search simulates on the snapshot and
 * leaves it unchanged. */
void victims_find(struct snapshot *snapshot, const struct demand *pod,
                  const struct victims_ask *asks, size_t n,
                  struct victims *ret_victims);

/* The same; but for a pod of a planned job of several pairs, the scheduler's
 * victims count only when no other choice frees as much of the host.  It
 * proposes different ones for each pod of a job, because it assumes the earlier
 * pods on their nominated nodes, and each would be one more eviction.  Without
 * them all pods of the job get the same answer on the same snapshot.  While
 * enough victims of the job are leaving (moving_pods.h), no others are named.
 * For any other pod the scheduler's victims are kept: it may have chosen them
 * for a disruption budget, or for reasons not known here. */
void victims_choose(struct snapshot *snapshot, const struct demand *pod,
                    const struct victims_ask *asks, size_t n,
                    struct victims *ret_victims);

#endif
