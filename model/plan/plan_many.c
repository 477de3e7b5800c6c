/* Jobs of several shapes: scope after scope, from the lowest tier up, the
 * ranks are put on its nodes one by one. */
#include <string.h>

#include "model/plan/plan_private.h"

enum {
    MANY_STEPS = 40000, /* choices on nodes, beside those of the last scope */
    FITS = 0,           /* what is known of a shape on a node: nothing, */
    NOT_ALIGNED = 1,    /* it has no aligned place any more, */
    FULL = 2,           /* it has none at all */
};

struct many {
    const struct plan_cluster *cluster;
    const struct plan_job *job;
    uint8_t *has_place;              /* by rank: fixed, or pinned */
    uint32_t asked[PLAN_SHAPES_MAX]; /* ranks without a place */
    uint64_t *holds; /* by slot: pairs of all shapes, as if alone */
    uint64_t steps;
    bool room;     /* some scope has room for every shape alone */
    uint32_t most; /* pairs that a scope holds, every shape as if alone */
    /* of the scope that is tried */
    uint32_t *order;         /* its nodes, the leaf with most room first */
    struct node_state *left; /* of those */
    struct host_room *rooms; /* the same; NULL: not known */
    uint8_t *known;          /* by node and shape */
    size_t n;
};

/* --- scopes ------------------------------------------------------------- */

struct entry {
    uint64_t holds;
    uint32_t slot, node;
};

static int compare_entry(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->holds != y->holds)
        return x->holds > y->holds ? -1 : 1;
    if (x->slot != y->slot)
        return x->slot < y->slot ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* No node holds more pairs of a shape than this, if it were for it alone. */
static uint32_t node_bound(const struct many *m, size_t node, size_t shape)
{
    const struct plan_cluster *c = m->cluster;
    const struct demand *pair = &m->job->shapes[shape];
    uint32_t max = plan_node_holds(c, node, pair, m->asked[shape]);
    return max ? ladder_bound(c->states[node], pair, max) : 0;
}

static void count_holds(struct many *m)
{
    const struct plan_cluster *c = m->cluster;
    for (size_t i = 0; i < c->n_nodes; i++)
        for (size_t s = 0; s < m->job->n_shapes; s++)
            if (m->asked[s] && plan_node_ok(c, m->job->candidates, i))
                m->holds[plan_node_slot(c, i)] += node_bound(m, i, s);
}

/* Is all that has its place within the domain? */
static bool holds_fixed(const struct many *m, unsigned tier, int32_t domain)
{
    const struct plan_job *job = m->job;
    const struct plan_cluster *c = m->cluster;
    if (tier == FABRIC_APART)
        return true;
    for (size_t i = 0; i < job->n_fixed; i++)
        if (fabric_up(c->fabric, job->fixed[i].leaf, tier) != domain)
            return false;
    return job->pin_rank < 0 ||
           fabric_up(c->fabric, c->leaves[job->pin_node], tier) == domain;
}

/* Its nodes; false when a shape has no room there even alone. */
static bool enter_scope(struct many *m, unsigned tier, int32_t domain)
{
    const struct plan_cluster *c = m->cluster;
    const struct plan_job *job = m->job;
    uint64_t room[PLAN_SHAPES_MAX] = {0};
    cleanup_free struct entry *list = xcalloc(c->n_nodes + 1, sizeof *list);
    m->n = 0;
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        if (!plan_node_ok(c, job->candidates, i) ||
            (tier != FABRIC_APART &&
             fabric_up(c->fabric, c->leaves[i], tier) != domain))
            continue;
        uint32_t slot = plan_node_slot(c, i);
        list[m->n++] = (struct entry){m->holds[slot], slot, i};
        for (size_t s = 0; s < job->n_shapes; s++)
            if (room[s] < m->asked[s])
                room[s] += node_bound(m, i, s);
    }
    bool fits = true;
    uint32_t most = 0;
    for (size_t s = 0; s < job->n_shapes; s++) {
        fits &= room[s] >= m->asked[s];
        most += (uint32_t)(room[s] < m->asked[s] ? room[s] : m->asked[s]);
    }
    m->most = most > m->most ? most : m->most;
    if (!fits)
        return false;
    qsort(list, m->n, sizeof *list, compare_entry);
    for (size_t i = 0; i < m->n; i++) {
        m->order[i] = list[i].node;
        m->left[i] = *c->states[list[i].node];
        if (m->rooms)
            m->rooms[i] = c->rooms[list[i].node];
    }
    memset(m->known, FITS, m->n * job->n_shapes);
    return true;
}

/* --- filling one -------------------------------------------------------- */

/* Put a rank on the i-th node, only if aligned or anyhow. */
static bool try_place(struct many *m, size_t i, uint32_t rank, bool anyhow,
                      struct plan_place *places)
{
    const struct demand *shape = plan_shape(m->job, rank);
    size_t s = (size_t)(shape - m->job->shapes);
    uint8_t *known = &m->known[i * m->job->n_shapes + s];
    struct choice choice;
    if (*known > (anyhow ? NOT_ALIGNED : FITS))
        return false;
    m->steps -= m->steps > 0;
    if ((m->rooms && !host_room_holds(&m->rooms[i], shape, 1)) ||
        !decide_search(&m->left[i], shape, 0, UINT16_MAX, &choice)) {
        *known = FULL;
        return false;
    }
    if (!anyhow && !decide_is_aligned(m->left[i].shape, shape, &choice)) {
        *known = NOT_ALIGNED;
        return false;
    }
    node_state_take(&m->left[i], shape, &choice);
    if (m->rooms)
        host_room_take(&m->rooms[i], shape);
    places[rank] = (struct plan_place){.node = (int32_t)m->order[i],
                                       .choice = choice};
    return true;
}

static bool place_pin(struct many *m, struct plan_place *places)
{
    size_t i = 0;
    if (m->job->pin_rank < 0)
        return true;
    while (i < m->n && (int32_t)m->order[i] != m->job->pin_node)
        i++;
    return i < m->n &&
           try_place(m, i, (uint32_t)m->job->pin_rank, true, places);
}

/* Each rank on the node of the one before, if it is aligned there, else on
 * the first where it is, else on the first that has room. */
static bool fill(struct many *m, struct plan_place *places)
{
    const struct plan_job *job = m->job;
    size_t first[2][PLAN_SHAPES_MAX] = {{0}}, at = 0;
    if (!place_pin(m, places))
        return false;
    for (uint32_t r = 0; r < job->size; r++) {
        if (m->has_place[r])
            continue;
        size_t s = (size_t)(plan_shape(job, r) - job->shapes);
        bool placed = try_place(m, at, r, false, places);
        for (int anyhow = 0; anyhow < 2 && !placed; anyhow++) {
            size_t *i = &first[anyhow][s];
            for (; *i < m->n; (*i)++) {
                placed = try_place(m, *i, r, anyhow, places);
                if (placed) {
                    at = *i;
                    break;
                }
            }
        }
        if (!placed)
            return false;
    }
    return true;
}

/* --- the whole ---------------------------------------------------------- */

/* A plan of this scope, if it is better than the best so far. */
static void try_scope(struct many *m, unsigned tier, int32_t domain,
                      struct plan *best, bool *found)
{
    const struct plan_job *job = m->job;
    struct plan_score score;
    if (!holds_fixed(m, tier, domain) || !enter_scope(m, tier, domain))
        return;
    m->room = true;
    cleanup_free struct plan_place *places = xcalloc(job->size, sizeof *places);
    for (size_t i = 0; i < job->n_fixed; i++)
        places[job->fixed[i].rank] =
            (struct plan_place){.node = job->fixed[i].node, .fixed = true};
    if (m->n == 0 || !fill(m, places))
        return;
    plan_score(m->cluster, job, places, &score);
    if (*found && plan_score_compare(&score, &best->score) >= 0)
        return;
    *found = true;
    best->score = score;
    memcpy(best->places, places, job->size * sizeof *places);
}

static void try_tiers(struct many *m, struct plan *best, bool *found)
{
    const struct fabric *fabric = m->cluster->fabric;
    int within = m->job->within;
    uint32_t fixed_unaligned = 0;
    for (size_t i = 0; i < m->job->n_fixed; i++)
        fixed_unaligned += m->job->fixed[i].unaligned;
    for (unsigned tier = 0; tier < fabric_n_tiers(fabric); tier++) {
        if (within >= 0 && tier > (unsigned)within)
            return;
        for (size_t d = 0; d < m->cluster->n_domains; d++)
            if (fabric_domain(fabric, (int32_t)d)->tier == tier &&
                (m->steps || tier == (unsigned)within ||
                 tier + 1 == fabric_n_tiers(fabric)))
                try_scope(m, tier, (int32_t)d, best, found);
        if (*found && best->score.unaligned == fixed_unaligned)
            return; /* wider is no better */
    }
    if (within < 0)
        try_scope(m, FABRIC_APART, FABRIC_NONE, best, found);
}

/* On all nodes together, every shape as if alone. */
static uint32_t room_anywhere(const struct many *m)
{
    uint32_t all = 0;
    for (size_t s = 0; s < m->job->n_shapes; s++) {
        uint64_t room = 0;
        for (size_t i = 0; i < m->cluster->n_nodes && room < m->asked[s]; i++)
            if (plan_node_ok(m->cluster, m->job->candidates, i))
                room += node_bound(m, i, s);
        all += (uint32_t)(room < m->asked[s] ? room : m->asked[s]);
    }
    return all;
}

bool plan_many(const struct plan_cluster *cluster, const struct plan_job *job,
               struct plan *plan, struct plan_refusal *ret_refusal)
{
    size_t n = cluster->n_nodes + 1;
    cleanup_free struct node_state *left = xcalloc(n, sizeof *left);
    cleanup_free struct host_room *rooms = cluster->rooms
                                               ? xcalloc(n, sizeof *rooms)
                                               : NULL;
    cleanup_free uint32_t *order = xcalloc(n, sizeof *order);
    cleanup_free uint8_t *known = xcalloc(n, job->n_shapes);
    cleanup_free uint8_t *has_place = xcalloc(job->size, 1);
    cleanup_free uint64_t *holds = xcalloc(plan_n_slots(cluster, job) + 1,
                                           sizeof *holds);
    struct many m = {.cluster = cluster,
                     .job = job,
                     .has_place = has_place,
                     .holds = holds,
                     .steps = MANY_STEPS,
                     .order = order,
                     .left = left,
                     .rooms = rooms,
                     .known = known};
    bool found = false;
    for (size_t i = 0; i < job->n_fixed; i++)
        has_place[job->fixed[i].rank] = 1;
    for (uint32_t r = 0; r < job->size; r++)
        m.asked[plan_shape(job, r) - job->shapes] += !has_place[r];
    if (job->pin_rank >= 0)
        has_place[job->pin_rank] = 1;
    count_holds(&m);
    try_tiers(&m, plan, &found);
    if (found)
        return true;
    *ret_refusal = (struct plan_refusal){
        .lack = m.room || job->within >= 0 ? PLAN_LACK_SEARCH : PLAN_LACK_ROOM,
        .asked = job->size - (uint32_t)job->n_fixed,
        .room = room_anywhere(&m),
        .room_within = job->within >= 0 ? m.most : 0,
        .at_most = true,
        .domain = FABRIC_NONE,
        .fits_tier = FABRIC_APART};
    return false;
}
