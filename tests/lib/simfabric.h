/* simfabric - regular trees of switches, without a text to read them from. */
#ifndef BIGA_TESTS_SIMFABRIC_H
#define BIGA_TESTS_SIMFABRIC_H

#include "model/fabric.h"

/* `n_leaves` leaves, of which each `per[0]` in a row share a domain of tier
 * 1, of which each `per[1]` share one of tier 2, and so on for n_tiers - 1
 * numbers.  The domains 0 … n_leaves - 1 are the leaves.  No hosts. */
struct fabric *simfabric_create(size_t n_leaves, const size_t *per,
                                unsigned n_tiers);

#endif
