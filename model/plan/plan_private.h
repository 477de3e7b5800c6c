/* plan_private - what the parts of plan share.
 *
 * plan.c        plans, scores
 * plan_host.c   what hosts have left for pods
 * plan_node.c   what one node holds: ladders
 * plan_pack.c   the same for a few pairs of several shapes: packs
 * plan_class.c  nodes with equal states
 * plan_map.c    the nodes by leaf, and what every domain holds
 * plan_one.c    jobs of one shape
 * plan_fill.c   which nodes of a leaf they get
 * plan_many.c   jobs of several shapes
 * plan_search.c small jobs: every plan is tried
 * plan_pick.c   plan_make(): which of them, and why there is no plan */
#ifndef BIGA_MODEL_PLAN_PLAN_PRIVATE_H
#define BIGA_MODEL_PLAN_PLAN_PRIVATE_H

#include "model/decide/decide_private.h"
#include "model/plan/plan.h"

enum { LADDER_STEPS = 200000 }; /* for the rungs of one state */

/* --- leaves ------------------------------------------------------------------
 * A slot stands for a leaf: slots below fabric_n_domains() for the domains,
 * then one for each node (in use when its place is unknown), then one for
 * each fixed pair whose leaf and node are unknown. */
static inline size_t plan_n_slots(const struct plan_cluster *c,
                                  const struct plan_job *j)
{
    return fabric_n_domains(c->fabric) + c->n_nodes + j->n_fixed;
}
static inline uint32_t plan_node_slot(const struct plan_cluster *c, size_t node)
{
    size_t n = fabric_n_domains(c->fabric);
    int32_t leaf = c->leaves[node];
    return (uint32_t)(leaf >= 0 && (size_t)leaf < n ? (size_t)leaf : n + node);
}
static inline uint32_t plan_fixed_slot(const struct plan_cluster *c,
                                       const struct plan_job *j, size_t i)
{
    size_t n = fabric_n_domains(c->fabric);
    const struct plan_fixed *f = &j->fixed[i];
    if (f->leaf >= 0 && (size_t)f->leaf < n)
        return (uint32_t)f->leaf;
    if (f->node >= 0 && (size_t)f->node < c->n_nodes)
        return plan_node_slot(c, (size_t)f->node);
    return (uint32_t)(n + c->n_nodes + i);
}
/* The domain of tier 0 that a slot stands for, or FABRIC_NONE. */
static inline int32_t plan_slot_leaf(const struct plan_cluster *c,
                                     uint32_t slot)
{
    return slot < fabric_n_domains(c->fabric) ? (int32_t)slot : FABRIC_NONE;
}

static inline const struct demand *plan_shape(const struct plan_job *j,
                                              uint32_t rank)
{
    return &j->shapes[j->shape_of ? j->shape_of[rank] : 0];
}
/* Can the node be used at all? */
static inline bool plan_node_ok(const struct plan_cluster *c,
                                const struct plan_job *j, size_t node)
{
    return c->states[node] &&
           (!j->candidates || j->candidates[node / 64] >> node % 64 & 1);
}

/* --- hosts --------------------------------------------------------------------
 * Where no rooms are known, nothing is limited and nothing is computed. */
static inline uint32_t plan_node_holds(const struct plan_cluster *c,
                                       size_t node, const struct demand *pair,
                                       uint32_t max)
{
    return c->rooms ? host_room_holds(&c->rooms[node], pair, max) : max;
}

/* --- one node ------------------------------------------------------------------
 * What a state holds of one shape: rung n (0 … room) is the best way to put n
 * pairs on it; rungs up to `aligned` have nobody unaligned. */
struct ladder {
    uint32_t room, aligned;
    uint32_t bound; /* there is no rung above; > room: nor is it known that
                     * there is none up to it */
    bool open;      /* there may be better rungs: ladder_improve() */
    uint32_t *unaligned, *damage; /* by rung */
    bool nested;                  /* rung n has the first n choices; else its
                                   * own, from n * (n - 1) / 2 on */
    struct choice *choices;
    struct ladder *low; /* has the rungs below low_end; NULL: none */
    uint32_t low_end;
};
static inline const struct choice *ladder_choice(const struct ladder *l,
                                                 uint32_t rung, uint32_t i)
{
    if (l->low && rung < l->low_end)
        return ladder_choice(l->low, rung, i);
    return &l->choices[(l->nested ? 0 : (size_t)rung * (rung - 1) / 2) + i];
}

/* What aligned means to a demand on a shape. */
struct align {
    const struct shape *shape;
    struct decide_ideal ideal;
    unsigned relation;             /* of an aligned pair, at worst */
    uint16_t near[TOPO_CARDS_MAX]; /* cards that can be in one aligned pair
                                    * with this one */
};
void align_init(struct align *a, const struct shape *shape,
                const struct demand *demand);
void ladder_init(struct ladder *l, const struct node_state *state,
                 const struct demand *shape, const struct align *a,
                 uint32_t max);
/* Try everything, for at most `*steps`, of which those it took are gone then;
 * what is better is kept. */
void ladder_improve(struct ladder *l, const struct node_state *state,
                    const struct demand *shape, uint64_t *steps);
void ladder_fini(struct ladder *l);
/* No node holds more pairs than this, wherever its devices are. */
uint32_t ladder_bound(const struct node_state *state,
                      const struct demand *shape, uint32_t max);

/* Cards of wholly idle groups of `state` that are left behind once `cards`
 * are taken. */
uint32_t plan_damage(const struct node_state *state, uint16_t cards);

/* Every best way to put a few pairs of several shapes on one state: the rung
 * of n_s pairs of each shape s is number sum(n_s * stride[s]). */
enum {
    PLAN_FEW = 8,        /* pairs of a job of which every plan is tried */
    PLAN_FEW_NODES = 64, /* … for one shape: on more nodes the search is cut
                          * before it finds anything */
    PACK_PAIRS = 16,     /* that a pack holds, at most */
};
struct pack_rung {
    bool fits;
    uint32_t unaligned, damage;
    uint32_t idle;                     /* idle cards that it takes */
    struct choice choices[PACK_PAIRS]; /* shape by shape, in pack's order */
};
struct pack {
    size_t n_shapes;
    uint8_t order[PLAN_SHAPES_MAX]; /* in which the shapes are placed */
    uint32_t most[PLAN_SHAPES_MAX], stride[PLAN_SHAPES_MAX];
    uint32_t n_rungs;
    struct pack_rung *rungs;
    bool cut; /* the steps did not suffice: rungs are not the best, or fit
               * although they say not */
};
/* At most `most[s]` pairs of each shape, PACK_PAIRS together.  `*steps` are
 * what the search may spend, and then what is left. */
void pack_init(struct pack *p, const struct node_state *state,
               const struct demand *shapes, size_t n_shapes,
               const uint32_t *most, uint64_t *steps);
void pack_fini(struct pack *p);

/* The usable nodes, with equal states made one. */
struct plan_classes {
    uint32_t *class_of;               /* by node; UINT32_MAX: cannot be used */
    const struct node_state **states; /* by class, in the order of nodes */
    uint32_t n;
};
void plan_classes_init(struct plan_classes *k,
                       const struct plan_cluster *cluster,
                       const struct plan_job *job);
void plan_classes_fini(struct plan_classes *k);

/* --- the map ------------------------------------------------------------ */
struct plan_leaf {
    uint64_t room, aligned;
    uint64_t idle;     /* cards, of all its nodes */
    uint32_t first, n; /* its nodes in map->nodes */
    uint32_t anchors;  /* pairs that have their place on it */
};
struct plan_map {
    const struct plan_cluster *cluster;
    const struct plan_job *job;
    uint32_t asked;  /* ranks that still need a place, the pinned one not */
    int64_t *anchor; /* by rank: slot, or -1: free */
    uint32_t n_anchors;
    struct plan_classes classes;
    struct ladder *ladders; /* by class */
    uint32_t *holds;        /* by node: pairs that its host has CPU, memory and
                             * pods for; NULL: that limits no node */
    size_t n_slots;
    struct plan_leaf *leaves; /* by slot */
    uint32_t *nodes;          /* by leaf, then index */
    int32_t pin;              /* node, or -1 */
    bool pin_unaligned;
};
void plan_map_init(struct plan_map *m, const struct plan_cluster *cluster,
                   const struct plan_job *job);
void plan_map_fini(struct plan_map *m);
/* What a node holds, and what nobody knows that it does not. */
uint32_t plan_map_whole(const struct plan_map *m, uint32_t node);
uint32_t plan_map_bound(const struct plan_map *m, uint32_t node);
/* Is it the hosts that have no room for the job, and not the cards? */
bool plan_map_lacks_hosts(const struct plan_map *m);
/* Room and aligned room of a node beside the pinned pair. */
uint32_t plan_map_room(const struct plan_map *m, uint32_t node);
uint32_t plan_map_aligned(const struct plan_map *m, uint32_t node);

/* How many of `quota` pairs each node of a leaf gets (beside the pinned one),
 * into `ret_count` by node: the fewest unaligned, then the least damage.
 * Returns the damage.  `*steps` are what it may spend. */
uint64_t plan_fill(const struct plan_map *m, uint32_t slot, uint64_t quota,
                   uint64_t *steps, uint32_t *ret_count);

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
