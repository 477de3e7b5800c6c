/* The best of many nodes for a pod. */
#include <stdlib.h>

#include "extender/judge/schedule.h"
#include "lib/base/mem.h"

enum { BEST_INSERT_MAX = 64 }; /* up to here the best are kept by insertion */

/* cost, then rank of the name: the order in which nodes are preferred */
struct ranked {
    uint64_t key;
    uint32_t position;
};

static uint64_t rank_key(uint32_t cost, int32_t index)
{
    return (uint64_t)cost << 32 | (uint32_t)index;
}

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

static size_t best_by_sorting(const struct schedule *s,
                              const int32_t *candidates, size_t n, size_t max,
                              uint32_t *ret_best, size_t *ret_fitting)
{
    cleanup_free struct ranked *all = xcalloc(n, sizeof *all);
    size_t fitting = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t cost = schedule_cost(s, candidates[i]);
        if (cost != COST_NO_FIT)
            all[fitting++] = (struct ranked){rank_key(cost, candidates[i]),
                                             (uint32_t)i};
    }
    qsort(all, fitting, sizeof *all, compare_ranked);
    size_t kept = max && fitting > max ? max : fitting;
    for (size_t i = 0; i < kept; i++)
        ret_best[i] = all[i].position;
    *ret_fitting = fitting;
    return kept;
}

static void insert_ranked(struct ranked *best, size_t n, size_t max,
                          struct ranked item)
{
    size_t at = n < max ? n : max - 1;
    while (at > 0 && best[at - 1].key > item.key) {
        best[at] = best[at - 1];
        at--;
    }
    best[at] = item;
}

/* The best so far, by insertion. */
struct best {
    struct ranked list[BEST_INSERT_MAX];
    size_t n, max;
    uint64_t worst; /* a key at or above it is of no interest */
};

static void best_offer(struct best *b, uint64_t key, size_t position)
{
    if (key >= b->worst)
        return;
    insert_ranked(b->list, b->n, b->max,
                  (struct ranked){key, (uint32_t)position});
    if (b->n < b->max)
        b->n++;
    if (b->n == b->max)
        b->worst = b->list[b->max - 1].key;
}

/* The hot loop: a new pod that follows nobody, its class's costs cached. */
static size_t offer_by_costs(const struct schedule *s,
                             const int32_t *candidates, size_t n,
                             struct best *best)
{
    struct node_page *const *pages = s->snapshot->pages;
    struct costs *costs = s->costs;
    size_t fitting = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t index = (uint32_t)candidates[i];
        if (candidates[i] < 0)
            continue;
        uint32_t id =
            pages[index / SNAPSHOT_PAGE]->state[index % SNAPSHOT_PAGE];
        uint32_t cost = costs_peek(costs, id);
        fitting += cost != COST_NO_FIT;
        uint64_t key = rank_key(cost, candidates[i]);
        if (__builtin_expect(key >= best->worst, 1))
            continue;
        if (cost == 0) { /* not known: below all that are */
            cost = costs_compute(costs, id);
            fitting -= cost == COST_NO_FIT;
            key = rank_key(cost, candidates[i]);
        }
        best_offer(best, key, i);
    }
    return fitting;
}

static size_t offer_by_choice(const struct schedule *s,
                              const int32_t *candidates, size_t n,
                              struct best *best)
{
    size_t fitting = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t cost = schedule_cost(s, candidates[i]);
        if (cost == COST_NO_FIT)
            continue;
        fitting++;
        best_offer(best, rank_key(cost, candidates[i]), i);
    }
    return fitting;
}

size_t schedule_best(const struct schedule *s, const int32_t *candidates,
                     size_t n, size_t max, uint32_t *ret_best,
                     size_t *ret_fitting)
{
    if (max == 0 || max > BEST_INSERT_MAX)
        return best_by_sorting(s, candidates, n, max, ret_best, ret_fitting);

    struct best best;
    best.n = 0;
    best.max = max;
    best.worst = rank_key(COST_NO_FIT, 0);
    bool known = s->costs && s->former_index == NODE_NONE &&
                 s->quota.kind == QUOTA_OK;
    size_t fitting = known ? offer_by_costs(s, candidates, n, &best)
                           : offer_by_choice(s, candidates, n, &best);
    for (size_t i = 0; i < best.n; i++)
        ret_best[i] = best.list[i].position;
    *ret_fitting = fitting;
    return best.n;
}
