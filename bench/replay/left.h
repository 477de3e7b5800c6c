/* left - what the nodes have left for the pairs of one job, while a policy
 * other than Biga places them one by one. */
#ifndef BIGA_BENCH_REPLAY_LEFT_H
#define BIGA_BENCH_REPLAY_LEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/replay/fleet.h"
#include "model/decide/bits.h"

struct free_devices {
    uint16_t cards, gpus; /* that one more pair can have */
};

struct left {
    const struct replay_fleet *fleet;
    const struct demand *pair; /* what each pair asks; borrowed */
    struct free_devices *free; /* of each node */
    struct node_state *states; /* of each node, while cards are shared */
    struct host_room *rooms;   /* of each node; NULL: nothing is asked of
                                 * hosts, or known of them */
};
void left_init(struct left *l, const struct replay_fleet *fleet);
void left_fini(struct left *l);

/* A job comes, all of whose pairs ask the same. */
void left_begin(struct left *l, const struct snapshot *s,
                const struct demand *pair);
/* One of them gets these devices of the node. */
void left_take(struct left *l, size_t node, uint16_t cards, uint16_t gpus);

/* Has the node cards, GPUs, CPUs and memory for one more such pair? */
static inline bool left_fits(const struct left *l, size_t node)
{
    struct free_devices f = l->free[node];
    return count_bits(f.cards) >= l->pair->cards &&
           count_bits(f.gpus) >= l->pair->gpus &&
           (!l->rooms || host_room_holds(&l->rooms[node], l->pair, 1));
}
/* For how many? */
uint32_t left_pairs(const struct left *l, size_t node);

uint32_t left_cores(const struct left *l, size_t node);
/* How much of its cards is left: cores when they are shared, else cards. */
static inline uint32_t left_amount(const struct left *l, size_t node)
{
    return l->pair->has_card_need ? left_cores(l, node)
                                  : count_bits(l->free[node].cards);
}

#endif
