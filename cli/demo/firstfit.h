/* firstfit - what a scheduler that does not know the topology gives, and
 * what one that does could give: the yardsticks of the demo.  Pure. */
#ifndef BIGA_CLI_DEMO_FIRSTFIT_H
#define BIGA_CLI_DEMO_FIRSTFIT_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/verb/host.h"

/* One pair of a card and a GPU. */
struct placement {
    bool placed;
    size_t host;      /* index into the hosts */
    size_t card, gpu; /* device indexes of that host */
    enum relation relation;
};

/* Hosts, and which of their devices others have (by host, then device). */
struct publisher {
    const struct host *hosts;
    size_t n_hosts;
    bool *const *taken;
};

/* For each of `n` pairs the first host, in the given order, with a free card
 * and a free GPU, and there the first free card and the first free GPU. */
void firstfit(const struct publisher *fleet, size_t n,
              struct placement *ret_placements);

/* The best relations that `n` pairs of a card and a GPU can have at once, best
 * first: on each host the closest is taken until none is left.  How many. */
size_t best_relations(const struct publisher *fleet, size_t n,
                      enum relation *ret_relations);

/* How many pairs that are no worse than `worst` one host has room for. */
size_t room_within(const struct publisher *fleet, size_t host,
                   enum relation worst);

#endif
