/* simfabric - fabrics for tests: regular trees without a text, or from a
 * text. */
#ifndef BIGA_TESTS_LIB_SIM_SIMFABRIC_H
#define BIGA_TESTS_LIB_SIM_SIMFABRIC_H

#include "model/fabric/fabric.h"

/* `n_leaves` leaves, of which each `per[0]` in a row share a domain of tier
 * 1, of which each `per[1]` share one of tier 2, and so on for n_tiers - 1
 * numbers.  The domains 0 … n_leaves - 1 are the leaves.  No hosts. */
struct fabric *simfabric_create(size_t n_leaves, const size_t *per,
                                unsigned n_tiers);

/* The fabric that a text in any known format describes; aborts when it
 * cannot be read. */
struct fabric *simfabric_read(const char *text);

#endif
