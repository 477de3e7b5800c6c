#include "bench/replay/given.h"

#include <assert.h>

#include "lib/base/mem.h"
#include "model/decide/bits.h"

void given_init(struct given *g, enum gpus_by by,
                const struct replay_fleet *fleet, size_t n_jobs)
{
    *g = (struct given){.by = by, .fleet = fleet, .n_jobs = n_jobs};
    g->taken = xcalloc(fleet->n, sizeof *g->taken);
    g->jobs = xcalloc(n_jobs, sizeof(struct spot *));
}

void given_fini(struct given *g)
{
    for (size_t i = 0; i < g->n_jobs; i++)
        free(g->jobs[i]);
    free(g->jobs);
    free(g->taken);
}

static uint16_t give(const struct given *g, const struct spot *promised)
{
    size_t node = (size_t)promised->node;
    unsigned left = fleet_kind(g->fleet, node)->gpus &
                    ~(unsigned)g->taken[node];
    if (g->by == GPUS_BY_CLAIMS)
        return promised->gpus;
    return lowest_bits(left, count_bits(promised->gpus));
}

const struct spot *given_take(struct given *g, uint32_t job,
                              const struct spot *promised, uint32_t n)
{
    struct spot *spots = xcalloc(n, sizeof *spots);
    for (uint32_t r = 0; r < n; r++) {
        spots[r] = promised[r];
        spots[r].gpus = give(g, &promised[r]);
        assert((g->taken[spots[r].node] & spots[r].gpus) == 0);
        g->taken[spots[r].node] |= spots[r].gpus;
    }
    g->jobs[job] = spots;
    return spots;
}

void given_release(struct given *g, uint32_t job, uint32_t n)
{
    for (uint32_t r = 0; r < n; r++)
        g->taken[g->jobs[job][r].node] &= (uint16_t)~g->jobs[job][r].gpus;
    free(g->jobs[job]);
    g->jobs[job] = NULL;
}
