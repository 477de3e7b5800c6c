#include "bench/replay/leaf_fit.h"

#include <string.h>

#include "lib/base/mem.h"

static size_t n_rooms(const struct leaf_fit *l)
{
    return l->n_domains + l->n_nodes;
}

/* Nodes by leaf: how many are on each, from where on they stand, then each to
 * its place. */
static void sort_nodes(struct leaf_fit *l)
{
    for (size_t i = 0; i < l->n_nodes; i++)
        l->first[l->leaf[i] + 1]++;
    for (size_t i = 0; i < n_rooms(l); i++)
        l->first[i + 1] += l->first[i];
    cleanup_free size_t *next = xcalloc(n_rooms(l) + 1, sizeof *next);
    memcpy(next, l->first, n_rooms(l) * sizeof *next);
    for (size_t i = 0; i < l->n_nodes; i++)
        l->nodes[next[l->leaf[i]]++] = (int32_t)i;
}

void leaf_fit_init(struct leaf_fit *l, const struct replay_fleet *fleet)
{
    *l = (struct leaf_fit){.fabric = fleet->idle->fabric,
                           .n_nodes = fleet->n,
                           .n_domains = fabric_n_domains(fleet->idle->fabric)};
    l->leaf = xcalloc(l->n_nodes, sizeof *l->leaf);
    l->nodes = xcalloc(l->n_nodes, sizeof *l->nodes);
    l->first = xcalloc(n_rooms(l) + 1, sizeof *l->first);
    l->room = xcalloc(n_rooms(l), sizeof *l->room);
    for (size_t i = 0; i < l->n_nodes; i++) {
        int32_t leaf = snapshot_leaf(fleet->idle, i);
        l->leaf[i] = leaf == FABRIC_NONE ? (int32_t)(l->n_domains + i) : leaf;
    }
    sort_nodes(l);
}

void leaf_fit_fini(struct leaf_fit *l)
{
    free(l->leaf);
    free(l->nodes);
    free(l->first);
    free(l->room);
}

/* The domain above, -1: none. */
static int32_t parent_of(const struct leaf_fit *l, int32_t domain)
{
    return (size_t)domain < l->n_domains
               ? fabric_domain(l->fabric, domain)->parent
               : FABRIC_NONE;
}

void leaf_fit_begin(struct leaf_fit *l)
{
    memset(l->room, 0, n_rooms(l) * sizeof *l->room);
}

void leaf_fit_add(struct leaf_fit *l, size_t node, uint32_t pairs)
{
    for (int32_t d = l->leaf[node]; d >= 0; d = parent_of(l, d))
        l->room[d] += pairs;
}

void leaf_fit_take(struct leaf_fit *l, size_t node)
{
    for (int32_t d = l->leaf[node]; d >= 0; d = parent_of(l, d))
        l->room[d]--;
}

static unsigned tier_of(const struct leaf_fit *l, int32_t domain)
{
    return (size_t)domain < l->n_domains
               ? fabric_domain(l->fabric, domain)->tier
               : 0;
}

void leaf_fit_choose(struct leaf_fit *l, uint32_t pairs)
{
    l->within = l->at = FABRIC_NONE;
    for (int32_t d = 0; (size_t)d < n_rooms(l); d++) {
        int32_t w = l->within;
        if (l->room[d] < pairs || (w >= 0 && (tier_of(l, d) > tier_of(l, w) ||
                                              (tier_of(l, d) == tier_of(l, w) &&
                                               l->room[d] >= l->room[w]))))
            continue;
        l->within = d;
    }
}

static bool is_within(const struct leaf_fit *l, int32_t leaf)
{
    int32_t d = leaf;
    while (d >= 0 && d != l->within)
        d = parent_of(l, d);
    return l->within < 0 || d >= 0;
}

/* Whether a leaf with room `a` suits `left` pairs better than one with `b`:
 * the least of those that hold them all, else the most. */
static bool suits_better(uint32_t a, uint32_t b, uint32_t left)
{
    if ((a >= left) != (b >= left))
        return a >= left;
    return a >= left ? a < b : a > b;
}

static int32_t next_leaf(const struct leaf_fit *l, uint32_t left)
{
    int32_t best = FABRIC_NONE;
    for (int32_t d = 0; (size_t)d < n_rooms(l); d++)
        if (l->room[d] && l->first[d + 1] > l->first[d] && is_within(l, d) &&
            (best < 0 || suits_better(l->room[d], l->room[best], left)))
            best = d;
    return best;
}

size_t leaf_fit_nodes(struct leaf_fit *l, uint32_t left,
                      const int32_t **ret_nodes)
{
    if (l->at < 0 || !l->room[l->at])
        l->at = next_leaf(l, left);
    if (l->at < 0)
        return 0;
    *ret_nodes = &l->nodes[l->first[l->at]];
    return l->first[l->at + 1] - l->first[l->at];
}
