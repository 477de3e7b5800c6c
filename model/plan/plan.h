/* plan - where every pair of a job goes: all of them or none.
 *
 * A pure function of (cluster, job).  Plans are compared level by level
 * (schema/plan.md); a level only breaks ties of those before:
 *   1. unaligned: pairs that are placed worse than the job prefers,
 *   2. wider: is the job spread over more than prefer-within?
 *   3. tier of the smallest fabric domain that holds the whole job (all on
 *      one node counts as tier 0),
 *   4. leaves: leaf domains in use; a node of unknown place is one by itself,
 *   5. crossings: how many pairs r, r + 1 are on different leaves,
 *   6. damage: cards of wholly idle aligned groups that are left useless
 *      behind, over all nodes,
 *   7. idle cards left on the leaves in use: fewer is tighter.
 * Equal plans: the lowest node names in the order of ranks.
 * Required are `within` and each shape's own `align`.
 *
 * For jobs of one shape feasibility is exact unless the refusal says
 * PLAN_LACK_SEARCH, and so are levels 1, 3 and 4 as long as no pair costs
 * others of its node their alignment.  Small jobs (up
 * to eight pairs) are searched to the end; large ones within a bound that
 * counts steps, never time (schema/plan.md, Limits). */
#ifndef BIGA_MODEL_PLAN_PLAN_H
#define BIGA_MODEL_PLAN_PLAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/mem.h"
#include "model/decide/decide.h"
#include "model/fabric/fabric.h"
#include "model/pod/demand.h"

enum {
    PLAN_SHAPES_MAX = DEMAND_SHAPES_MAX + 1,
    PLAN_ANYWHERE = -1, /* within, prefer_within: not asked */
};

/* What a host has left for the host pods of pairs that have no place yet;
 * INT64_MAX: nobody knows, so it limits nothing. */
struct host_room {
    int64_t cpu_milli, memory_mib, pods;
};
/* How many pairs (their host pods) like that it holds, at most `max`. */
uint32_t host_room_holds(const struct host_room *room,
                         const struct demand *pair, uint32_t max);
/* Take a pair off, or give it back. */
void host_room_take(struct host_room *room, const struct demand *pair);
void host_room_give(struct host_room *room, const struct demand *pair);

struct plan_base;

/* What there is.  Everything is borrowed. */
struct plan_cluster {
    const struct fabric *fabric; /* NULL: nothing is known */
    size_t n_nodes;              /* indexes: ranks in the order of names */
    /* what each node has left, members of the job that are `fixed` taken
     * off; NULL: it cannot be used.  Nodes with equal states should share the
     * pointer: work is done once per pointer. */
    const struct node_state *const *states;
    const int32_t *leaves;         /* domain of tier 0, or FABRIC_NONE */
    const struct host_room *rooms; /* of each node; NULL: not known */
    const struct plan_base *base;  /* of just this and the job's candidates;
                                    * NULL: it is found out for each plan */
    /* not the caller's, plan_make() and plan_score() see to them: */
    size_t n_domains; /* of the fabric */
    size_t n_apart;   /* no node from this one on is of unknown place */
};

/* A pair that has its place already (bound, or held by a lease). */
struct plan_fixed {
    int32_t rank;
    int32_t node; /* index, or NODE_NONE (-1): a node that is gone */
    int32_t leaf; /* of that node, or FABRIC_NONE */
    bool unaligned;
};

struct plan_job {
    uint32_t size;               /* ranks 0 … size - 1 */
    const uint8_t *shape_of;     /* of each rank: index into shapes; NULL: 0 */
    const struct demand *shapes; /* what a pair of each shape asks:
                                  * demand_pair() */
    size_t n_shapes;             /* 1 … PLAN_SHAPES_MAX */
    const struct plan_fixed *fixed; /* by ascending rank */
    size_t n_fixed;
    int within, prefer_within;  /* tiers, or PLAN_ANYWHERE */
    const uint64_t *candidates; /* bits by node index: nodes that may be
                                 * used; NULL: all */
    int32_t pin_rank; /* this rank (not fixed) must be on pin_node; -1: none */
    int32_t pin_node;
};

struct plan_score {
    uint32_t unaligned;
    bool wider;
    uint8_t tier; /* FABRIC_APART when no domain holds all */
    uint32_t leaves, crossings, damage;
    uint64_t idle_left;
};
/* < 0 when `a` is better. */
int plan_score_compare(const struct plan_score *a, const struct plan_score *b);

struct plan_place {
    int32_t node; /* index; of a fixed pair: its node */
    bool fixed;   /* then `choice` is all zero */
    struct choice choice;
};

/* Immutable; ref-counted. */
struct plan {
    atomic_uint refs;
    struct plan_score score;
    uint32_t size;
    bool exact; /* the search ran to its end: no plan is better */
    struct plan_place places[]; /* by rank */
};
struct plan *plan_ref(struct plan *p);
void plan_unref(struct plan *p); /* NULL allowed */
DEFINE_CLEANUP(plan, struct plan *, plan_unref)

/* Why there is no plan. */
enum plan_lack {
    PLAN_LACK_NOTHING,
    PLAN_LACK_ROOM,   /* all candidates together have no room */
    PLAN_LACK_TIER,   /* they have, no domain of tier `within` has */
    PLAN_LACK_FIXED,  /* pairs that have a place are not within one domain of
                      * tier `within`; nobody knows where a node is that is
                      * gone */
    PLAN_LACK_PIN,    /* the pinned rank does not fit its node, or the rest
                      * does not fit around it */
    PLAN_LACK_SEARCH, /* the bounded search found none, which does not prove
                       * that there is none: jobs of several shapes, or cards
                       * that are shared in very many ways */
    PLAN_LACK_COMING, /* not plan_make()'s: nodes that other pairs are to come
                       * to have no room for them yet */
    PLAN_LACKS
};
/* "room", "tier" …; of what is none, "room". */
const char *plan_lack_name(enum plan_lack lack);
struct plan_refusal {
    enum plan_lack lack;
    uint32_t asked;       /* pairs without a place */
    uint32_t room;        /* of them have room on all candidates together */
    uint32_t room_within; /* in the best domain of tier `within` */
    bool at_most;    /* several shapes: no more than those have room, each shape
                     * being counted as if alone */
    bool hosts;      /* for PLAN_LACK_ROOM: but for what hosts have left there
                 * would be room */
    uint32_t coming; /* for PLAN_LACK_COMING: pairs without room so far */
    int32_t domain;  /* that domain, or FABRIC_NONE */
    unsigned fits_tier; /* the lowest tier on which the job would fit,
                           * FABRIC_APART: only without `within`; meaningful
                           * for PLAN_LACK_TIER */
};

/* What does not depend on what a job asks: for whoever tries several jobs on
 * the same nodes.  Owned by the caller. */
struct plan_base *plan_base_create(const struct plan_cluster *cluster,
                                   const uint64_t *candidates);
void plan_base_destroy(struct plan_base *base); /* NULL allowed */

/* 0 and a plan that the caller owns; or -EBUSY and the refusal.  Jobs of
 * more than DEMAND_SIZE_MAX pairs are the caller's error. */
int plan_make(const struct plan_cluster *cluster, const struct plan_job *job,
              struct plan **ret_plan, struct plan_refusal *ret_refusal);

/* The score of any complete placement (all places filled in, `fixed` as in
 * the job), by definition; for tests, for simulations and to compare
 * policies. */
void plan_score(const struct plan_cluster *cluster, const struct plan_job *job,
                const struct plan_place *places, struct plan_score *ret_score);

/* How many pairs of one shape `state` has room for, at most `max`, and how
 * many of them aligned.  Exact. */
uint32_t plan_room(const struct node_state *state, const struct demand *shape,
                   uint32_t max, uint32_t *ret_aligned);

/* The same for at most `*steps` of search, of which those it took are gone
 * then; less than exact when they do not suffice, but never too much. */
uint32_t plan_room_for(const struct node_state *state,
                       const struct demand *shape, uint32_t max,
                       uint64_t *steps, uint32_t *ret_aligned);

#endif
