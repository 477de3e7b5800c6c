#include "tests/lib/sim/simfleet.h"

#include <stdio.h>

#include "extender/state/draft.h"
#include "tests/lib/sim/simhost.h"

void simfleet_put(struct draft *d, struct topo *topo)
{
    draft_put_node(d, &(struct node_update){.name = topo_node(topo),
                                            .status = NODE_READY,
                                            .epoch = {"boot", 1},
                                            .hash = "0123456789abcdef",
                                            .n_slices = 1,
                                            .pool_count = 1,
                                            .topo = topo});
}

struct draft *simfleet_draft(struct topo *(*make)(const char *, unsigned),
                             unsigned n_nodes, unsigned n_cards)
{
    cleanup_with(snapshot) struct snapshot *empty = snapshot_create_empty();
    struct draft *d = draft_create(empty);
    for (unsigned i = 0; i < n_nodes; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "node%03u", i);
        cleanup_with(topo) struct topo *topo = make(name, n_cards);
        simfleet_put(d, topo);
    }
    return d;
}

struct snapshot *simfleet_create(unsigned n_nodes, unsigned n_cards)
{
    return draft_commit(simfleet_draft(simhost_topo, n_nodes, n_cards));
}
