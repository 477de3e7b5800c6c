/* randnode - random nodes and demands, small enough to be checked by brute
 * force, from a seed. */
#ifndef BIGA_TESTS_RANDNODE_H
#define BIGA_TESTS_RANDNODE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/decide/decide.h"

/* Starts the chance from $BIGA_TEST_SEED or a fixed seed, which is returned
 * (print it). */
uint64_t chance_init(void);
uint32_t roll(uint32_t n); /* 0 … n - 1 */
bool odds(uint32_t percent);

/* $NAME as a number. */
uint64_t setting(const char *name, uint64_t otherwise);

/* A node that was rolled, and a question about it. */
struct randnode_limits {
    unsigned cards, gpus, numas, nics;
};
struct question {
    struct shape *shape; /* owned */
    struct node_state state;
    struct demand demand;
    uint16_t must, within;
};

/* Half of the shapes are trees, half have any symmetric relations.  `must`
 * is 0 and `within` all for most. */
void question_roll(struct question *q, struct randnode_limits max);
void question_fini(struct question *q);

/* A demand alone. */
void demand_roll(struct demand *d, struct randnode_limits max);

/* Does its node let applied pods have the rights, as the contract has it? */
bool randnode_lets(const struct shape *shape, unsigned card,
                   const struct demand *d);

/* The same question with the devices in another order. */
void question_rename(const struct question *q, struct question *ret_other);

#endif
