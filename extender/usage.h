/* usage - what a node has left, from its hardware and its allocations. Pure.
 *
 * xPU pods and services are charged what they state on each of their cards.
 * A host pod holds, on each card of its pair, the larger of what it stated
 * and what its xPU pods take.  A card on which nobody of a pair (or no
 * service) has stated a need yet is closed to others: an unknown need is not
 * a small one.  So is a card of unknown size once anyone has it.  An
 * exclusive pod closes its cards.  Devices that are no longer there are left
 * out. */
#ifndef BIGA_EXTENDER_USAGE_H
#define BIGA_EXTENDER_USAGE_H

#include <stddef.h>

#include "extender/allocation.h"
#include "model/decide.h"

/* `except_pair` (may be NULL): holds of that pair's host pods, and the
 * closing, sharing and occupying by any of its members, are not counted:
 * the state as that pair sees it. */
void usage_state(const struct topo *topo, const struct shape *shape,
                 const struct allocation *const *allocations, size_t n,
                 const char *except_pair, struct node_state *ret_state);

/* The cards (bits of `topo`'s order) that an allocation names. */
uint16_t usage_cards(const struct topo *topo, const struct allocation *a);

/* The cards whose cores or memory nobody has told. */
uint16_t usage_unsized(const struct topo *topo);

#endif
