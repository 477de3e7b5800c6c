#include "bench/replay/cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

void profile_default(struct profile *ret_profile)
{
    static const struct profile_call own[] = {
        {COLL_BARRIER, 0, 4},          {COLL_BCAST, 64 << 10, 2},
        {COLL_ALLREDUCE, 8, 16},       {COLL_ALLREDUCE, 64 << 20, 4},
        {COLL_ALLGATHER, 16 << 20, 2}, {COLL_ALLTOALL, 128 << 10, 2},
        {COLL_ALLTOALLV, 32 << 10, 2},
    };
    ret_profile->n = ARRAY_LEN(own);
    ret_profile->n_skipped = 0;
    memcpy(ret_profile->calls, own, sizeof own);
}

/* --- links -------------------------------------------------------------- */

enum cost_tier cost_tier(const struct fabric *fabric,
                         const struct cost_place *a, const struct cost_place *b)
{
    if (a->node == b->node)
        return COST_NODE;
    unsigned tier = fabric_common_tier(fabric, a->leaf, b->leaf);
    if (tier == 0)
        return COST_LEAF;
    return tier == 1 ? COST_SPINE : COST_CORE;
}

/* alpha and seconds per byte. */
struct link {
    double alpha, beta;
};

static struct link link_of(const struct costs_model *m, unsigned relation,
                           enum cost_tier tier)
{
    return (struct link){m->alpha_s[tier],
                         1 / (m->bytes_per_s[relation] * m->factor[tier])};
}

static void take_slower(struct link *worst, struct link l)
{
    worst->alpha = fmax(worst->alpha, l.alpha);
    worst->beta = fmax(worst->beta, l.beta);
}

/* The slowest link of the ring 0, 1, … n - 1, 0. */
static struct link ring_link(const struct costs_model *m,
                             const struct fabric *fabric,
                             const struct cost_place *places, size_t n)
{
    struct link worst = {0};
    for (size_t i = 0; i < n; i++) {
        const struct cost_place *a = &places[i], *b = &places[(i + 1) % n];
        unsigned far = a->relation > b->relation ? a->relation : b->relation;
        take_slower(&worst, link_of(m, far, cost_tier(fabric, a, b)));
    }
    return worst;
}

/* The slowest link of each round of recursive doubling, summed up. */
static struct link tree_links(const struct costs_model *m,
                              const struct fabric *fabric,
                              const struct cost_place *places, size_t n)
{
    struct link sum = {0};
    for (size_t step = 1; step < n; step *= 2) {
        struct link worst = {0};
        for (size_t i = 0; i < n; i++) {
            const struct cost_place *a = &places[i];
            const struct cost_place *b = &places[(i + step) % n];
            unsigned far = a->relation > b->relation ? a->relation
                                                     : b->relation;
            take_slower(&worst, link_of(m, far, cost_tier(fabric, a, b)));
        }
        sum.alpha += worst.alpha;
        sum.beta += worst.beta;
    }
    return sum;
}

/* --- all to all --------------------------------------------------------- */

/* How many pairs of the job are in the same place, by place. */
struct tally {
    int32_t place;
    uint32_t n;
};

static int compare_i32(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static int32_t place_at(const struct fabric *fabric, const struct cost_place *p,
                        unsigned level)
{
    if (level == 0)
        return p->node;
    return fabric_up(fabric, p->leaf, level - 1);
}

/* For each pair, how many of the job share its node (level 0), leaf (1),
 * spine (2) with it; 0 where the place is not known. */
static void count_near(const struct fabric *fabric,
                       const struct cost_place *places, size_t n,
                       unsigned level, uint32_t *ret_near)
{
    cleanup_free int32_t *sorted = xcalloc(n, sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        sorted[i] = place_at(fabric, &places[i], level);
    qsort(sorted, n, sizeof *sorted, compare_i32);
    cleanup_free struct tally *tallies = xcalloc(n, sizeof *tallies);
    size_t n_tallies = 0;
    for (size_t i = 0; i < n; i++) {
        if (n_tallies == 0 || tallies[n_tallies - 1].place != sorted[i])
            tallies[n_tallies++].place = sorted[i];
        tallies[n_tallies - 1].n++;
    }
    for (size_t i = 0; i < n; i++) {
        int32_t place = place_at(fabric, &places[i], level);
        const struct tally *t = bsearch(&place, tallies, n_tallies,
                                        sizeof *tallies, compare_i32);
        ret_near[i] = place == FABRIC_NONE ? 0 : t->n;
    }
}

/* Each rank sends to all others in turn; the slowest rank counts.  Its own
 * relation bounds it, and that of the worst it talks to. */
static struct link exchange_links(const struct costs_model *m,
                                  const struct fabric *fabric,
                                  const struct cost_place *places, size_t n)
{
    struct link worst = {0};
    cleanup_free uint32_t *near = xcalloc(3 * n, sizeof *near);
    unsigned far = 0;
    for (unsigned level = 0; level < 3; level++)
        count_near(fabric, places, n, level, near + level * n);
    for (size_t i = 0; i < n; i++)
        far = places[i].relation > far ? places[i].relation : far;
    for (size_t i = 0; i < n; i++) {
        double at_node = near[i], at_leaf = near[n + i];
        double at_spine = near[2 * n + i];
        at_leaf = fmax(at_leaf, at_node);
        at_spine = fmax(at_spine, at_leaf);
        double many[COST_TIERS] = {at_node - 1, at_leaf - at_node,
                                   at_spine - at_leaf, (double)n - at_spine};
        struct link sum = {0};
        for (unsigned t = 0; t < COST_TIERS; t++) {
            struct link l = link_of(m, far, (enum cost_tier)t);
            sum.alpha += many[t] * l.alpha;
            sum.beta += many[t] * l.beta;
        }
        take_slower(&worst, sum);
    }
    return worst;
}

/* --- a job -------------------------------------------------------------- */

double cost_job(const struct costs_model *m, const struct profile *profile,
                const struct fabric *fabric, const struct cost_place *places,
                size_t n)
{
    double seconds = 0, ranks = (double)n;
    if (n < 2)
        return 0;
    struct link ring = ring_link(m, fabric, places, n);
    struct link tree = tree_links(m, fabric, places, n);
    struct link all = exchange_links(m, fabric, places, n);
    for (size_t i = 0; i < profile->n; i++) {
        const struct profile_call *c = &profile->calls[i];
        double one = 0, part = c->bytes / ranks;
        switch (c->what) {
        case COLL_BARRIER:
            one = tree.alpha;
            break;
        case COLL_BCAST:
            one = tree.alpha + c->bytes * tree.beta;
            break;
        case COLL_ALLREDUCE: /* the better of ring and recursive doubling */
            one = fmin(2 * (ranks - 1) * (ring.alpha + part * ring.beta),
                       tree.alpha + c->bytes * tree.beta);
            break;
        case COLL_ALLGATHER:
        case COLL_REDUCE_SCATTER:
            one = (ranks - 1) * (ring.alpha + part * ring.beta);
            break;
        case COLL_ALLTOALL:
        case COLL_ALLTOALLV:
            one = all.alpha + c->bytes * all.beta;
            break;
        case COLL_COUNT:
            break;
        }
        seconds += one * (double)c->count;
    }
    return seconds;
}
