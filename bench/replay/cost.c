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

/* The pairs of a job, and what of its own goes over each leaf's uplinks in the
 * step that is looked at. */
struct talk {
    const struct costs_model *m;
    const struct cost_net *net;
    const struct cost_place *places;
    size_t n;
    double *flows; /* by leaf, zero between two steps; NULL: nobody shares */
};

/* How many times as long bytes take over the uplinks of a leaf. */
static double stretch(const struct talk *t, int32_t leaf)
{
    if (!t->flows || leaf == FABRIC_NONE)
        return 1;
    double flows = t->flows[leaf] + t->net->others[leaf];
    double links = t->net->links[leaf];
    return flows <= links ? 1 : flows / (links * t->m->contended);
}

static struct link link_between(const struct talk *t,
                                const struct cost_place *a,
                                const struct cost_place *b)
{
    unsigned far = a->relation > b->relation ? a->relation : b->relation;
    enum cost_tier tier = cost_tier(t->net->fabric, a, b);
    struct link l = link_of(t->m, far, tier);
    if (tier > COST_LEAF)
        l.beta *= fmax(stretch(t, a->leaf), stretch(t, b->leaf));
    return l;
}

static void set_flow(struct talk *t, int32_t leaf, double flows)
{
    if (t->flows && leaf != FABRIC_NONE)
        t->flows[leaf] = flows;
}

static void clear_flows(struct talk *t)
{
    for (size_t i = 0; i < t->n; i++)
        set_flow(t, t->places[i].leaf, 0);
}

/* The slowest link when each pair i sends to i + step, around the end. */
static struct link shift_link(struct talk *t, size_t step)
{
    struct link worst = {0};
    for (size_t i = 0; t->flows && i < t->n; i++) {
        int32_t leaf = t->places[i].leaf;
        if (leaf != FABRIC_NONE && leaf != t->places[(i + step) % t->n].leaf)
            t->flows[leaf]++;
    }
    for (size_t i = 0; i < t->n; i++)
        take_slower(&worst, link_between(t, &t->places[i],
                                         &t->places[(i + step) % t->n]));
    clear_flows(t);
    return worst;
}

/* The slowest link of each round of recursive doubling, summed up. */
static struct link tree_links(struct talk *t)
{
    struct link sum = {0};
    for (size_t step = 1; step < t->n; step *= 2) {
        struct link worst = shift_link(t, step);
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

/* The most that bytes are held up when each rank sends to all others in turn:
 * of those of a leaf as many are under way as its share of them is. */
static double exchange_stretch(struct talk *t, const uint32_t *at_leaf)
{
    double most = 1, n = (double)t->n;
    for (size_t i = 0; i < t->n; i++)
        set_flow(t, t->places[i].leaf, at_leaf[i] * (n - at_leaf[i]) / (n - 1));
    for (size_t i = 0; i < t->n; i++)
        most = fmax(most, stretch(t, t->places[i].leaf));
    clear_flows(t);
    return most;
}

/* The slowest rank counts.  Its own relation bounds it, and that of the worst
 * it talks to. */
static struct link exchange_links(struct talk *t)
{
    const struct cost_place *places = t->places;
    size_t n = t->n;
    struct link worst = {0};
    cleanup_free uint32_t *near = xcalloc(3 * n, sizeof *near);
    unsigned far = 0;
    for (unsigned level = 0; level < 3; level++)
        count_near(t->net->fabric, places, n, level, near + level * n);
    for (size_t i = 0; i < n; i++)
        far = places[i].relation > far ? places[i].relation : far;
    double held_up = exchange_stretch(t, near + n);
    for (size_t i = 0; i < n; i++) {
        double at_node = near[i], at_leaf = near[n + i];
        double at_spine = near[2 * n + i];
        at_leaf = fmax(at_leaf, at_node);
        at_spine = fmax(at_spine, at_leaf);
        double many[COST_TIERS] = {at_node - 1, at_leaf - at_node,
                                   at_spine - at_leaf, (double)n - at_spine};
        struct link sum = {0};
        for (unsigned k = 0; k < COST_TIERS; k++) {
            struct link l = link_of(t->m, far, (enum cost_tier)k);
            sum.alpha += many[k] * l.alpha;
            sum.beta += many[k] * l.beta * (k > COST_LEAF ? held_up : 1);
        }
        take_slower(&worst, sum);
    }
    return worst;
}

/* --- a job -------------------------------------------------------------- */

double cost_job(const struct costs_model *m, const struct profile *profile,
                const struct cost_net *net, const struct cost_place *places,
                size_t n)
{
    double seconds = 0, ranks = (double)n;
    if (n < 2)
        return 0;
    cleanup_free double *flows =
        net->links ? xcalloc(fabric_n_domains(net->fabric) + 1, sizeof *flows)
                   : NULL;
    struct talk t = {m, net, places, n, flows};
    struct link ring = shift_link(&t, 1);
    struct link tree = tree_links(&t);
    struct link all = exchange_links(&t);
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
