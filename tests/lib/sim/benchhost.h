/* benchhost - the made-up hosts of the bench: two packages, four PCIe
 * switches, 8 cards and 4 or 8 GPUs, in four shapes. */
#ifndef BIGA_TESTS_LIB_SIM_BENCHHOST_H
#define BIGA_TESTS_LIB_SIM_BENCHHOST_H

#include <stddef.h>

#include "model/topo/topo.h"

enum { BENCHHOST_CARDS = 8, BENCHHOST_SHAPES = 4 };

/* Host `index` (its shape is index % BENCHHOST_SHAPES); the caller owns
 * it. */
struct topo *benchhost_create(const char *node, size_t index);

#endif
