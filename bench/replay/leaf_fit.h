/* leaf_fit - which leaf switch the pairs of a job go to, by the rule of
 * Kueue's topology-aware scheduling (BestFit): the lowest domain of the
 * fabric that holds the whole job, of several the one with the least room;
 * in it the leaf that holds what is left with the least room, else the one
 * with the most.
 *
 * A host whose place is unknown is a leaf by itself. */
#ifndef BIGA_BENCH_REPLAY_LEAF_FIT_H
#define BIGA_BENCH_REPLAY_LEAF_FIT_H

#include <stddef.h>
#include <stdint.h>

#include "bench/replay/fleet.h"

struct leaf_fit {
    const struct fabric *fabric;
    size_t n_nodes, n_domains;
    int32_t *leaf;  /* of each node; n_domains + node: unknown */
    int32_t *nodes; /* by leaf */
    size_t *first;  /* of each leaf in `nodes`, and behind the last */
    uint32_t *room; /* pairs, of each domain and each node of unknown place */
    int32_t within; /* the domain that the job stays in; -1: anywhere */
    int32_t at;     /* the leaf that is being filled; -1: none yet */
};
void leaf_fit_init(struct leaf_fit *l, const struct replay_fleet *fleet);
void leaf_fit_fini(struct leaf_fit *l);

/* A job comes: no room is known yet, then what each node has is added. */
void leaf_fit_begin(struct leaf_fit *l);
void leaf_fit_add(struct leaf_fit *l, size_t node, uint32_t pairs);
/* All is added: stay in the domain that suits so many pairs. */
void leaf_fit_choose(struct leaf_fit *l, uint32_t pairs);

/* The nodes of the leaf that the next of `left` pairs goes to, 0: there is
 * no room; and that one of them took it.  A leaf is filled before the next
 * one is chosen. */
size_t leaf_fit_nodes(struct leaf_fit *l, uint32_t left,
                      const int32_t **ret_nodes);
void leaf_fit_take(struct leaf_fit *l, size_t node);

#endif
