/* The nodes by leaf, and what each holds. */
#include <string.h>

#include "model/base/hash.h"
#include "model/plan_private.h"

/* --- ladders, one for each state ----------------------------------------------- */

/* Open addressing by address; the numbers given out follow the order of
 * nodes, so that no address shows in them. */
struct interned {
    const struct node_state *state;
    uint32_t class;
};

static uint32_t intern(struct interned *table, size_t mask,
                       const struct node_state *state, uint32_t *n)
{
    uintptr_t key = (uintptr_t)state;
    size_t at = hash_bytes(&key, sizeof key) & mask;
    while (table[at].state && table[at].state != state)
        at = (at + 1) & mask;
    if (!table[at].state)
        table[at] = (struct interned){state, (*n)++};
    return table[at].class;
}

static void map_ladders(struct plan_map *m)
{
    size_t n = m->cluster->n_nodes, cap = 16;
    uint32_t classes = 0;
    while (cap < n * 2)
        cap *= 2;
    cleanup_free struct interned *table = xcalloc(cap, sizeof *table);
    cleanup_free const struct node_state **states = xcalloc(n + 1,
                                                            sizeof *states);
    m->class_of = xcalloc(n + 1, sizeof *m->class_of);
    for (size_t i = 0; i < n; i++) {
        m->class_of[i] = UINT32_MAX;
        if (!plan_node_ok(m->cluster, m->job, i))
            continue;
        const struct node_state *state = m->cluster->states[i];
        m->class_of[i] = intern(table, cap - 1, state, &classes);
        states[m->class_of[i]] = state;
    }
    m->n_ladders = classes;
    m->ladders = xcalloc(classes + 1u, sizeof *m->ladders);
    for (uint32_t i = 0; i < classes; i++)
        ladder_init(&m->ladders[i], states[i], &m->job->shapes[0],
                    m->job->size);
}

uint32_t plan_map_room(const struct plan_map *m, uint32_t node)
{
    if (m->class_of[node] == UINT32_MAX)
        return 0;
    uint32_t room = m->ladders[m->class_of[node]].room;
    return room - ((int32_t)node == m->pin && room > 0);
}

uint32_t plan_map_aligned(const struct plan_map *m, uint32_t node)
{
    if (m->class_of[node] == UINT32_MAX)
        return 0;
    uint32_t aligned = m->ladders[m->class_of[node]].aligned;
    return aligned - ((int32_t)node == m->pin && aligned > 0);
}

/* --- leaves --------------------------------------------------------------------- */

static void map_anchors(struct plan_map *m)
{
    const struct plan_job *job = m->job;
    m->anchor = xcalloc(job->size, sizeof *m->anchor);
    for (uint32_t r = 0; r < job->size; r++)
        m->anchor[r] = -1;
    for (size_t i = 0; i < job->n_fixed; i++)
        m->anchor[job->fixed[i].rank] = plan_fixed_slot(m->cluster, job, i);
    m->n_anchors = (uint32_t)job->n_fixed;
    m->pin = -1;
    if (job->pin_rank >= 0) {
        m->pin = job->pin_node;
        m->anchor[job->pin_rank] = plan_node_slot(m->cluster, (size_t)m->pin);
        m->n_anchors++;
    }
    m->asked = job->size - m->n_anchors;
    for (uint32_t r = 0; r < job->size; r++)
        if (m->anchor[r] >= 0)
            m->leaves[m->anchor[r]].anchors++;
}

static void map_leaves(struct plan_map *m)
{
    size_t n = m->cluster->n_nodes;
    uint32_t at = 0;
    m->nodes = xcalloc(n + 1, sizeof *m->nodes);
    for (size_t i = 0; i < n; i++)
        if (m->class_of[i] != UINT32_MAX)
            m->leaves[plan_node_slot(m->cluster, i)].n++;
    for (size_t s = 0; s < m->n_slots; s++) {
        m->leaves[s].first = at;
        at += m->leaves[s].n;
        m->leaves[s].n = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (m->class_of[i] == UINT32_MAX)
            continue;
        struct plan_leaf *leaf = &m->leaves[plan_node_slot(m->cluster, i)];
        m->nodes[leaf->first + leaf->n++] = i;
        leaf->room += plan_map_room(m, i);
        leaf->aligned += plan_map_aligned(m, i);
    }
}

void plan_map_init(struct plan_map *m, const struct plan_cluster *cluster,
                   const struct plan_job *job)
{
    memset(m, 0, sizeof *m);
    m->cluster = cluster;
    m->job = job;
    m->n_slots = plan_n_slots(cluster, job);
    m->leaves = xcalloc(m->n_slots + 1, sizeof *m->leaves);
    map_anchors(m);
    map_ladders(m);
    map_leaves(m);
}

void plan_map_fini(struct plan_map *m)
{
    for (size_t i = 0; i < m->n_ladders; i++)
        ladder_fini(&m->ladders[i]);
    free(m->ladders);
    free(m->class_of);
    free(m->anchor);
    free(m->leaves);
    free(m->nodes);
}
