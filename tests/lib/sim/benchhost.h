/* benchhost - the made-up hosts of the bench: two packages, four PCIe
 * switches, 8 cards and 4 or 8 GPUs, in four shapes. */
#ifndef BIGA_TESTS_LIB_SIM_BENCHHOST_H
#define BIGA_TESTS_LIB_SIM_BENCHHOST_H

#include <stddef.h>

#include "model/fabric/fabric.h"
#include "model/topo/topo.h"

enum { BENCHHOST_CARDS = 8, BENCHHOST_SHAPES = 4 };

/* Host `index` (its shape is index % BENCHHOST_SHAPES); the caller owns
 * it. */
struct topo *benchhost_create(const char *node, size_t index);

/* The fabric of `n` hosts "host00000" … (their numbers have `digits`), so many
 * to a leaf, leaves to a spine, and one core; the caller owns it. */
struct fabric *benchhost_fabric(size_t n, int digits, size_t leaf_hosts,
                                size_t spine_leaves);

#endif
