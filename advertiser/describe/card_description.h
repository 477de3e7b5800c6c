/* card_description - a host description as the operator's file of cards has it. */
#ifndef BIGA_ADVERTISER_DESCRIBE_CARD_DESCRIPTION_H
#define BIGA_ADVERTISER_DESCRIBE_CARD_DESCRIPTION_H

#include "advertiser/describe/cardfile.h"
#include "lib/base/error.h"
#include "model/topo/topo.h"

/* `topo` as schema/cards.md says of a host that was looked at: a card takes
 * what the file says of it; one that is excluded is a NIC for each of its
 * functions; and a PCI device that the file matches is a card.  The caller
 * owns `*ret_topo`. */
int card_description_build(const struct topo *topo,
                           const struct cardfile *cards, struct topo **ret_topo,
                           struct error *err);

#endif
