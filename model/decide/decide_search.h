/* decide_search - one demand on one state: what the files that search for
 * its cards and GPUs share. */
#ifndef BIGA_MODEL_DECIDE_DECIDE_SEARCH_H
#define BIGA_MODEL_DECIDE_DECIDE_SEARCH_H

#include "model/decide/decide_cover.h"
#include "model/decide/decide_private.h"

/* `gpus` and `around` change with the relation that is tried. */
struct search {
    const struct shape *shape;
    const struct node_state *state;
    const struct demand *demand;
    struct card_need need;
    uint16_t available; /* cards */
    uint16_t must;
    uint16_t gpus_free;
    uint64_t numas;   /* columns with the CPUs asked free */
    uint16_t rooted;  /* cards that are on a NUMA node, and those */
    uint16_t at_cpus; /* whose NUMA node has the CPUs free; both 0 when that
                       * is not required */
    uint16_t idle;    /* cards */
    uint16_t groups[SHAPE_GROUPS_MAX]; /* wholly idle */
    unsigned n_groups;

    enum relation relation;
    struct cover gpus; /* free GPUs within the relation of each card; those
                        * available are covered */
    uint16_t around[TOPO_NUMAS_MAX]; /* cards that share a NUMA node within
                                      * the relation; no set within another */
    unsigned n_around;
    uint16_t reach; /* available cards that can be part of a choice */
};

/* The GPUs and NUMA node for cards that reach the relation. */
void decide_pick(const struct search *s, unsigned cards,
                 struct choice *ret_choice);

#endif
