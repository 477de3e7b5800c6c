#include "bench/replay/uplink.h"

#include "lib/base/mem.h"
#include "model/decide/bits.h"

void uplinks_init(struct uplinks *u, const struct replay_fleet *fleet,
                  const struct costs_model *costs)
{
    size_t n_domains = fabric_n_domains(fleet->idle->fabric);
    *u = (struct uplinks){.fleet = fleet};
    if (costs->tapered <= 0)
        return;
    u->links = xcalloc(n_domains + 1, sizeof *u->links);
    u->flows = xcalloc(n_domains + 1, sizeof *u->flows);
    for (size_t i = 0; i < fleet->n; i++) {
        int32_t leaf = snapshot_leaf(fleet->idle, i);
        if (leaf != FABRIC_NONE)
            u->links[leaf] += count_bits(fleet_kind(fleet, i)->cards) /
                              costs->tapered;
    }
}

void uplinks_fini(struct uplinks *u)
{
    free(u->links);
    free(u->flows);
}

static void add_ring(struct uplinks *u, const struct spot *spots, uint32_t n,
                     double flows)
{
    for (uint32_t i = 0; u->links && i < n; i++) {
        size_t node = (size_t)spots[i].node;
        size_t next = (size_t)spots[(i + 1) % n].node;
        int32_t leaf = snapshot_leaf(u->fleet->idle, node);
        if (leaf != FABRIC_NONE && leaf != snapshot_leaf(u->fleet->idle, next))
            u->flows[leaf] += flows;
    }
}

void uplinks_start(struct uplinks *u, const struct spot *spots, uint32_t n)
{
    add_ring(u, spots, n, 1);
}

void uplinks_end(struct uplinks *u, const struct spot *spots, uint32_t n)
{
    add_ring(u, spots, n, -1);
}

struct cost_net uplinks_net(const struct uplinks *u)
{
    return (struct cost_net){u->fleet->idle->fabric, u->links, u->flows};
}
