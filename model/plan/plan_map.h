/* plan_map - the nodes of a cluster by leaf, and what each leaf holds of a
 * job. */
#ifndef BIGA_MODEL_PLAN_PLAN_MAP_H
#define BIGA_MODEL_PLAN_PLAN_MAP_H

#include "model/plan/plan_ladder.h"

/* The usable nodes, with equal states made one. */
struct plan_classes {
    uint32_t *class_of;               /* by node; UINT32_MAX: cannot be used */
    const struct node_state **states; /* by class, in the order of nodes */
    uint32_t n;
};
void plan_classes_init(struct plan_classes *k,
                       const struct plan_cluster *cluster,
                       const uint64_t *candidates);
void plan_classes_fini(struct plan_classes *k);

struct plan_leaf {
    uint64_t room, aligned;
    uint64_t idle;     /* cards, of all its nodes */
    uint32_t first, n; /* its nodes in map->nodes */
    uint32_t anchors;  /* pairs that have their place on it */
};
/* Without jobs: rooms are 0, and nobody has a place. */
struct plan_base {
    struct plan_classes classes;
    struct plan_leaf *leaves; /* by slot, but those of fixed pairs */
    uint32_t *nodes;          /* by leaf, then index */
};
struct plan_map {
    const struct plan_cluster *cluster;
    const struct plan_job *job;
    uint32_t asked;  /* ranks that still need a place, the pinned one not */
    int64_t *anchor; /* by rank: slot, or -1: free */
    uint32_t n_anchors;
    struct plan_base *own_base;  /* NULL: the cluster has one */
    struct plan_classes classes; /* of the base, as nodes */
    struct ladder *ladders;      /* by class */
    uint32_t *holds; /* by node: pairs that its host has CPU, memory and
                             * pods for; NULL: that limits no node */
    size_t n_slots;
    struct plan_leaf *leaves; /* by slot */
    const uint32_t *nodes;
    int32_t pin; /* node, or -1 */
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

#endif
