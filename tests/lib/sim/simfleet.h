/* simfleet - nodes in a draft or snapshot, without anybody who publishes. */
#ifndef BIGA_TESTS_LIB_SIM_SIMFLEET_H
#define BIGA_TESTS_LIB_SIM_SIMFLEET_H

#include "extender/state/draft.h"
#include "extender/state/snapshot.h"

/* Put a node that is ready, with this hardware and its name; a reference to
 * the topo is taken. */
void simfleet_put(struct draft *d, struct topo *topo);

/* A draft with the nodes "node000" … of what `make` makes of each name and
 * `n_cards`. */
struct draft *simfleet_draft(struct topo *(*make)(const char *, unsigned),
                             unsigned n_nodes, unsigned n_cards);
/* A snapshot of such nodes of simhost.h. */
struct snapshot *simfleet_create(unsigned n_nodes, unsigned n_cards);

#endif
