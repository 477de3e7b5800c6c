/* plan_private - what the parts of plan share.
 *
 * plan.c        plans, scores
 * plan_host.c   what hosts have left for pods
 * plan_node.c   what one node holds: ladders
 * plan_pack.c   the same for a few pairs of several shapes: packs
 * plan_class.c  nodes with equal states
 * plan_base.c   the nodes by class and by leaf
 * plan_map.c    what all leaves hold of a job
 * plan_one.c    jobs of one shape
 * plan_fill.c   which nodes of a leaf they get
 * plan_many.c   jobs of several shapes
 * plan_search.c small jobs: every plan is tried
 * plan_pick.c   plan_make(): which of them, and why there is no plan */
#ifndef BIGA_MODEL_PLAN_PLAN_PRIVATE_H
#define BIGA_MODEL_PLAN_PLAN_PRIVATE_H

#include "model/plan/plan_map.h"

/* --- leaves ------------------------------------------------------------------
 * A slot stands for a leaf: slots below n_domains for the domains, then one for
 * each node up to the last of unknown place (in use when its own is unknown),
 * then one for each fixed pair whose leaf and node are unknown. */
static inline bool plan_is_leaf(const struct plan_cluster *c, int32_t leaf)
{
    return leaf >= 0 && (size_t)leaf < c->n_domains;
}
/* The same cluster, with what is not the caller's. */
static inline struct plan_cluster plan_known(const struct plan_cluster *cluster)
{
    struct plan_cluster c = *cluster;
    c.n_domains = fabric_n_domains(c.fabric);
    c.n_apart = c.n_nodes;
    while (c.n_apart > 0 && plan_is_leaf(&c, c.leaves[c.n_apart - 1]))
        c.n_apart--;
    return c;
}
static inline size_t plan_n_slots(const struct plan_cluster *c,
                                  const struct plan_job *j)
{
    return c->n_domains + c->n_apart + j->n_fixed;
}
static inline uint32_t plan_node_slot(const struct plan_cluster *c, size_t node)
{
    int32_t leaf = c->leaves[node];
    return (uint32_t)(plan_is_leaf(c, leaf) ? (size_t)leaf
                                            : c->n_domains + node);
}
static inline uint32_t plan_fixed_slot(const struct plan_cluster *c,
                                       const struct plan_job *j, size_t i)
{
    const struct plan_fixed *f = &j->fixed[i];
    if (plan_is_leaf(c, f->leaf))
        return (uint32_t)f->leaf;
    if (f->node >= 0 && (size_t)f->node < c->n_nodes)
        return plan_node_slot(c, (size_t)f->node);
    return (uint32_t)(c->n_domains + c->n_apart + i);
}
/* The domain of tier 0 that a slot stands for, or FABRIC_NONE. */
static inline int32_t plan_slot_leaf(const struct plan_cluster *c,
                                     uint32_t slot)
{
    return slot < c->n_domains ? (int32_t)slot : FABRIC_NONE;
}

static inline const struct demand *plan_shape(const struct plan_job *j,
                                              uint32_t rank)
{
    return &j->shapes[j->shape_of ? j->shape_of[rank] : 0];
}
/* Can the node be used at all? */
static inline bool plan_node_ok(const struct plan_cluster *c,
                                const uint64_t *candidates, size_t node)
{
    return c->states[node] &&
           (!candidates || candidates[node / 64] >> node % 64 & 1);
}

/* --- hosts --------------------------------------------------------------------
 * Where no rooms are known, nothing is limited and nothing is computed. */
static inline uint32_t plan_node_holds(const struct plan_cluster *c,
                                       size_t node, const struct demand *pair,
                                       uint32_t max)
{
    return c->rooms ? host_room_holds(&c->rooms[node], pair, max) : max;
}

/* --- the planners ------------------------------------------------------- */
/* Each fills `places` (of job->size, zeroed) and returns true, or says why
 * not. */
bool plan_one(const struct plan_cluster *cluster, const struct plan_job *job,
              struct plan_place *places, struct plan_refusal *ret_refusal);
bool plan_many(const struct plan_cluster *cluster, const struct plan_job *job,
               struct plan *plan, struct plan_refusal *ret_refusal);

/* Try every plan of a job that asks for at most PLAN_FEW places.  `places` is
 * the plan to beat when `found`; true when there is one then.  `*ret_done`:
 * the search ran to its end. */
bool plan_search(const struct plan_cluster *cluster, const struct plan_job *job,
                 bool found, struct plan_place *places, bool *ret_done);

#endif
