/* Jobs of several shapes. */
#include <string.h>

#include "model/plan_private.h"

struct many {
    const struct plan_cluster *cluster;
    const struct plan_job *job;
    struct node_state *left; /* by node in `order` */
    uint32_t *order;         /* nodes that may be used, leaf by leaf */
    size_t n;
};

static uint64_t order_key(const struct plan_cluster *c, uint32_t node)
{
    return (uint64_t)plan_node_slot(c, node) << 32 | node;
}

static int compare_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The nodes of a scope: within `domain` of `tier`, or all. */
static void list_nodes(struct many *m, unsigned tier, int32_t domain)
{
    const struct plan_cluster *c = m->cluster;
    cleanup_free uint64_t *keys = xcalloc(c->n_nodes + 1, sizeof *keys);
    m->n = 0;
    for (uint32_t i = 0; i < c->n_nodes; i++)
        if (plan_node_ok(c, m->job, i) &&
            (tier == FABRIC_APART ||
             fabric_up(c->fabric, c->leaves[i], tier) == domain))
            keys[m->n++] = order_key(c, i);
    qsort(keys, m->n, sizeof *keys, compare_key);
    for (size_t i = 0; i < m->n; i++) {
        m->order[i] = (uint32_t)keys[i];
        m->left[i] = *c->states[m->order[i]];
    }
}

static bool try_place(struct many *m, size_t i, uint32_t rank,
                      struct plan_place *places)
{
    const struct demand *shape = plan_shape(m->job, rank);
    struct choice choice;
    if (!decide_search(&m->left[i], shape, 0, UINT16_MAX, &choice))
        return false;
    node_state_take(&m->left[i], shape, &choice);
    places[rank] = (struct plan_place){.node = (int32_t)m->order[i],
                                       .choice = choice};
    return true;
}

/* Rank after rank, each on the node of the one before when it fits, else on
 * the first that has room. */
static bool fill(struct many *m, const uint8_t *has_place,
                 struct plan_place *places)
{
    const struct plan_job *job = m->job;
    size_t at = 0;
    if (job->pin_rank >= 0) {
        size_t i = 0;
        while (i < m->n && (int32_t)m->order[i] != job->pin_node)
            i++;
        if (i == m->n || !try_place(m, i, (uint32_t)job->pin_rank, places))
            return false;
    }
    for (uint32_t r = 0; r < job->size; r++) {
        if (has_place[r])
            continue;
        size_t tried = 0;
        while (tried < m->n && !try_place(m, at, r, places)) {
            at = (at + 1) % m->n;
            tried++;
        }
        if (tried >= m->n)
            return false;
    }
    return true;
}

bool plan_many(const struct plan_cluster *cluster, const struct plan_job *job,
               struct plan_place *places, struct plan_refusal *ret_refusal)
{
    cleanup_free struct node_state *left = xcalloc(cluster->n_nodes + 1,
                                                   sizeof *left);
    cleanup_free uint32_t *order = xcalloc(cluster->n_nodes + 1, sizeof *order);
    cleanup_free uint8_t *has_place = xcalloc(job->size, 1);
    struct many m = {
        .cluster = cluster, .job = job, .left = left, .order = order};
    struct plan_refusal no = {.lack = PLAN_LACK_SEARCH,
                              .asked = job->size - (uint32_t)job->n_fixed,
                              .domain = FABRIC_NONE,
                              .fits_tier = FABRIC_APART};
    for (size_t i = 0; i < job->n_fixed; i++) {
        has_place[job->fixed[i].rank] = 1;
        places[job->fixed[i].rank] =
            (struct plan_place){.node = job->fixed[i].node, .fixed = true};
    }
    if (job->pin_rank >= 0)
        has_place[job->pin_rank] = 1;
    for (unsigned tier = 0; tier < fabric_n_tiers(cluster->fabric); tier++) {
        if (job->within >= 0 && tier > (unsigned)job->within)
            break;
        for (size_t d = 0; d < fabric_n_domains(cluster->fabric); d++) {
            if (fabric_domain(cluster->fabric, (int32_t)d)->tier != tier)
                continue;
            bool inside = true;
            for (size_t i = 0; i < job->n_fixed && inside; i++)
                inside = fabric_up(cluster->fabric, job->fixed[i].leaf, tier) ==
                         (int32_t)d;
            if (job->pin_rank >= 0 && inside)
                inside = fabric_up(cluster->fabric,
                                   cluster->leaves[job->pin_node],
                                   tier) == (int32_t)d;
            if (!inside)
                continue;
            list_nodes(&m, tier, (int32_t)d);
            if (fill(&m, has_place, places))
                return true;
        }
    }
    if (job->within < 0) {
        list_nodes(&m, FABRIC_APART, FABRIC_NONE);
        if (fill(&m, has_place, places))
            return true;
    }
    *ret_refusal = no;
    return false;
}
