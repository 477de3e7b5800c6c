/* What each node holds of a job, and each leaf. */
#include <string.h>

#include "model/plan/plan_private.h"

enum { MAP_STEPS = 60000 }; /* for the ladders of all states */

/* All open ladders together have a fixed number of steps, so that a cluster
 * where no two nodes are alike takes no longer: each has its part of what is
 * left, and leaves to the others what it did not need. */
static void improve_ladders(struct plan_map *m)
{
    uint64_t left = MAP_STEPS, n_open = 0;
    for (uint32_t i = 0; i < m->classes.n; i++)
        n_open += m->ladders[i].open;
    for (uint32_t i = 0; i < m->classes.n; i++) {
        if (!m->ladders[i].open)
            continue;
        uint64_t part = left / n_open--;
        part = part < LADDER_STEPS ? part : LADDER_STEPS;
        left -= part;
        ladder_improve(&m->ladders[i], m->classes.states[i], &m->job->shapes[0],
                       &part);
        left += part;
    }
}

static void map_ladders(struct plan_map *m)
{
    enum { ALIGNS = 16 }; /* shapes that are remembered */
    struct align aligns[ALIGNS];
    size_t n_aligns = 0;
    const struct demand *demand = &m->job->shapes[0];
    m->ladders = xcalloc(m->classes.n + 1u, sizeof *m->ladders);
    for (uint32_t i = 0; i < m->classes.n; i++) {
        const struct node_state *state = m->classes.states[i];
        size_t k = 0;
        while (k < n_aligns && aligns[k].shape != state->shape)
            k++;
        if (k == n_aligns) {
            if (n_aligns < ALIGNS)
                n_aligns++;
            else
                k = ALIGNS - 1;
            align_init(&aligns[k], state->shape, demand);
        }
        ladder_init(&m->ladders[i], state, demand, &aligns[k], m->job->size);
    }
    improve_ladders(m);
}

/* Nodes of one class share their ladder; a host that has no room for all of
 * it has the lower rungs. */
static void map_hosts(struct plan_map *m)
{
    const struct plan_cluster *c = m->cluster;
    for (size_t i = 0; c->rooms && i < c->n_nodes; i++) {
        if (m->classes.class_of[i] == UINT32_MAX)
            continue;
        uint32_t bound = m->ladders[m->classes.class_of[i]].bound;
        uint32_t holds = host_room_holds(&c->rooms[i], &m->job->shapes[0],
                                         bound);
        if (holds == bound)
            continue;
        if (!m->holds) {
            m->holds = xmalloc((c->n_nodes + 1) * sizeof *m->holds);
            memset(m->holds, UINT8_MAX, (c->n_nodes + 1) * sizeof *m->holds);
        }
        m->holds[i] = holds;
    }
}

static uint32_t limited(const struct plan_map *m, uint32_t node, uint32_t n)
{
    return m->holds && m->holds[node] < n ? m->holds[node] : n;
}

uint32_t plan_map_whole(const struct plan_map *m, uint32_t node)
{
    if (m->classes.class_of[node] == UINT32_MAX)
        return 0;
    return limited(m, node, m->ladders[m->classes.class_of[node]].room);
}

bool plan_map_lacks_hosts(const struct plan_map *m)
{
    uint64_t room = 0;
    for (uint32_t i = 0; m->holds && i < m->cluster->n_nodes; i++)
        if (m->classes.class_of[i] != UINT32_MAX)
            room += m->ladders[m->classes.class_of[i]].room;
    return m->holds && room >= m->asked + (uint64_t)(m->pin >= 0);
}

uint32_t plan_map_bound(const struct plan_map *m, uint32_t node)
{
    if (m->classes.class_of[node] == UINT32_MAX)
        return 0;
    return limited(m, node, m->ladders[m->classes.class_of[node]].bound);
}

/* Of the `n` that its devices hold, those that its host holds beside the pinned
 * pair. */
static uint32_t left_of(const struct plan_map *m, uint32_t node, uint32_t n)
{
    n = limited(m, node, n);
    return n - ((int32_t)node == m->pin && n > 0);
}

uint32_t plan_map_room(const struct plan_map *m, uint32_t node)
{
    uint32_t class = m->classes.class_of[node];
    return class == UINT32_MAX ? 0 : left_of(m, node, m->ladders[class].room);
}

uint32_t plan_map_aligned(const struct plan_map *m, uint32_t node)
{
    uint32_t class = m->classes.class_of[node];
    return class == UINT32_MAX ? 0
                               : left_of(m, node, m->ladders[class].aligned);
}

/* --- leaves ------------------------------------------------------------- */

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

/* What each class has, close together. */
struct summary {
    uint32_t room, aligned;
};

static struct summary *sum_classes(const struct plan_map *m)
{
    struct summary *sums = xcalloc(m->classes.n + 1u, sizeof *sums);
    for (uint32_t k = 0; k < m->classes.n; k++)
        sums[k] = (struct summary){m->ladders[k].room, m->ladders[k].aligned};
    return sums;
}

static void map_leaves(struct plan_map *m)
{
    cleanup_free struct summary *sums = sum_classes(m);
    for (size_t s = 0; s < m->n_slots; s++) {
        struct plan_leaf *leaf = &m->leaves[s];
        for (uint32_t i = 0; i < leaf->n; i++) {
            uint32_t node = m->nodes[leaf->first + i];
            const struct summary *sum = &sums[m->classes.class_of[node]];
            leaf->room += left_of(m, node, sum->room);
            leaf->aligned += left_of(m, node, sum->aligned);
        }
    }
}

void plan_map_init(struct plan_map *m, const struct plan_cluster *cluster,
                   const struct plan_job *job)
{
    const struct plan_base *base = cluster->base;
    memset(m, 0, sizeof *m);
    if (!base)
        base = m->own_base = plan_base_create(cluster, job->candidates);
    m->cluster = cluster;
    m->job = job;
    m->classes = base->classes;
    m->nodes = base->nodes;
    m->n_slots = plan_n_slots(cluster, job);
    m->leaves = xcalloc(m->n_slots + 1, sizeof *m->leaves);
    memcpy(m->leaves, base->leaves,
           (m->n_slots - job->n_fixed) * sizeof *m->leaves);
    map_anchors(m);
    map_ladders(m);
    map_hosts(m);
    map_leaves(m);
}

void plan_map_fini(struct plan_map *m)
{
    for (size_t i = 0; i < m->classes.n; i++)
        ladder_fini(&m->ladders[i]);
    free(m->ladders);
    free(m->holds);
    plan_base_destroy(m->own_base);
    free(m->anchor);
    free(m->leaves);
}
