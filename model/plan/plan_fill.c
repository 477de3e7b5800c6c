/* Which nodes of a leaf get how many pairs. */
#include <string.h>

#include "model/plan/plan_private.h"

/* What `n` pairs on a node cost: unaligned ones first, then damage. */
static uint64_t cost_of(const struct plan_map *m, uint32_t node, uint32_t n)
{
    const struct ladder *l = &m->ladders[m->classes.class_of[node]];
    uint32_t rung = n + ((int32_t)node == m->pin);
    return (uint64_t)l->unaligned[rung] << 32 | l->damage[rung];
}

/* In the order of nodes, what is aligned first. */
static void fill_in_order(const struct plan_map *m,
                          const struct plan_leaf *leaf, uint64_t quota,
                          uint32_t *ret_count)
{
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < leaf->n; i++) {
            uint32_t node = m->nodes[leaf->first + i];
            uint32_t most = pass ? plan_map_room(m, node)
                                 : plan_map_aligned(m, node);
            uint64_t more = most - (pass ? ret_count[node] : 0);
            more = more < quota ? more : quota;
            ret_count[node] = (uint32_t)more + (pass ? ret_count[node] : 0);
            quota -= more;
        }
    }
}

/* best[q]: the least that q pairs on the nodes so far cost; took[i][q]: how
 * many of them the i-th node has. */
static void fill_best(const struct plan_map *m, const struct plan_leaf *leaf,
                      uint32_t quota, uint32_t *ret_count)
{
    size_t width = (size_t)quota + 1;
    cleanup_free uint64_t *best = xcalloc(width, sizeof *best);
    cleanup_free uint64_t *next = xcalloc(width, sizeof *next);
    cleanup_free uint32_t *took = xcalloc(width * (leaf->n + 1u), sizeof *took);
    uint64_t before = 0, later = leaf->room; /* room of the other nodes */
    for (size_t q = 1; q < width; q++)
        best[q] = UINT64_MAX;
    for (uint32_t i = 0; i < leaf->n; i++) {
        uint32_t node = m->nodes[leaf->first + i];
        uint32_t room = plan_map_room(m, node);
        later -= room;
        size_t low = quota > later ? quota - later : 0;
        for (size_t q = 0; q < width; q++)
            next[q] = UINT64_MAX;
        for (uint32_t n = room < quota ? room : quota;; n--) {
            uint64_t cost = cost_of(m, node, n);
            size_t end = width - n > before ? n + before + 1 : width;
            for (size_t q = n > low ? n : low; q < end; q++)
                if (best[q - n] != UINT64_MAX && best[q - n] + cost < next[q]) {
                    next[q] = best[q - n] + cost;
                    took[i * width + q] = n;
                }
            if (n == 0)
                break;
        }
        before += room;
        uint64_t *held = best;
        best = next;
        next = held;
    }
    size_t q = quota;
    for (uint32_t i = leaf->n; i-- > 0;) {
        ret_count[m->nodes[leaf->first + i]] = took[i * width + q];
        q -= took[i * width + q];
    }
}

uint64_t plan_fill(const struct plan_map *m, uint32_t slot, uint64_t quota,
                   uint64_t *steps, uint32_t *ret_count)
{
    const struct plan_leaf *leaf = &m->leaves[slot];
    uint64_t asked = leaf->room * quota, damage = 0;
    if (quota == leaf->aligned || quota == leaf->room || asked > *steps) {
        fill_in_order(m, leaf, quota, ret_count);
    } else {
        *steps -= asked;
        fill_best(m, leaf, (uint32_t)quota, ret_count);
    }
    for (uint32_t i = 0; i < leaf->n; i++) {
        uint32_t node = m->nodes[leaf->first + i];
        damage += (uint32_t)cost_of(m, node, ret_count[node]);
    }
    return damage;
}
