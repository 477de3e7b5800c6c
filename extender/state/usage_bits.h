/* usage_bits - the devices of allocations as bits of a topology. */
#ifndef BIGA_EXTENDER_STATE_USAGE_BITS_H
#define BIGA_EXTENDER_STATE_USAGE_BITS_H

#include <stdint.h>

#include "extender/state/allocation.h"
#include "model/topo/topo.h"

/* The cards, GPUs or NICs (bits of topo_considered()) that an allocation
 * names. */
uint16_t usage_cards(const struct topo *topo, const struct allocation *a);
uint16_t usage_gpus(const struct topo *topo, const struct allocation *a);
uint16_t usage_nics(const struct topo *topo, const struct allocation *a);

#endif
