/* Plans for jobs of one shape: all pairs ask the same. */
#include <string.h>

#include "model/plan/plan_private.h"

/* A part of the fabric that a plan keeps to: a domain, a node of unknown
 * place (then `slot`), or everything. */
struct scope {
    unsigned tier; /* FABRIC_APART: everything */
    int32_t domain;
    uint32_t slot;
};

enum { FILL_STEPS = 4000000 };

struct offer {
    uint64_t cap;
    uint32_t slot;
};

struct one {
    struct plan_map map;
    struct plan_leaf *sums; /* by domain: what its whole tree holds */
    struct plan_leaf total;
    uint32_t *active; /* slots with nodes or anchors, by their domain on the
                       * tier that the plan keeps to */
    size_t n_active;
    struct offer *offers;
    uint32_t *picked; /* slots in use, those with anchors first */
    size_t n_picked;
    uint64_t steps;  /* that may go into filling leaves well */
    uint64_t *quota; /* by slot */
    uint32_t *count; /* by node: pairs that it gets */
};

static void one_init(struct one *o, const struct plan_cluster *cluster,
                     const struct plan_job *job)
{
    memset(o, 0, sizeof *o);
    o->steps = FILL_STEPS;
    plan_map_init(&o->map, cluster, job);
    o->sums = xcalloc(o->map.cluster->n_domains + 1, sizeof *o->sums);
    o->active = xcalloc(o->map.n_slots + 1, sizeof *o->active);
    o->offers = xcalloc(o->map.n_slots + 1, sizeof *o->offers);
    o->picked = xcalloc(o->map.n_slots + 1, sizeof *o->picked);
    o->quota = xcalloc(o->map.n_slots + 1, sizeof *o->quota);
    o->count = xcalloc(cluster->n_nodes + 1, sizeof *o->count);
}

static void one_fini(struct one *o)
{
    plan_map_fini(&o->map);
    free(o->sums);
    free(o->active);
    free(o->offers);
    free(o->picked);
    free(o->quota);
    free(o->count);
}
DEFINE_CLEANUP(one, struct one *, one_fini)

static void leaf_add(struct plan_leaf *to, const struct plan_leaf *leaf)
{
    to->room += leaf->room;
    to->aligned += leaf->aligned;
    to->anchors += leaf->anchors;
    to->n += leaf->n;
}

static void sum_up(struct one *o)
{
    const struct fabric *fabric = o->map.cluster->fabric;
    for (size_t s = 0; s < o->map.n_slots; s++) {
        const struct plan_leaf *leaf = &o->map.leaves[s];
        if (leaf->n == 0 && leaf->anchors == 0)
            continue;
        o->active[o->n_active++] = (uint32_t)s;
        leaf_add(&o->total, leaf);
        int32_t d = plan_slot_leaf(o->map.cluster, (uint32_t)s);
        for (; d != FABRIC_NONE; d = fabric_domain(fabric, d)->parent)
            leaf_add(&o->sums[d], leaf);
    }
}

/* --- levels 1 to 3: which scope ----------------------------------------- */

static const struct plan_leaf *scope_sum(const struct one *o,
                                         const struct scope *scope)
{
    if (scope->tier == FABRIC_APART)
        return &o->total;
    return scope->domain != FABRIC_NONE ? &o->sums[scope->domain]
                                        : &o->map.leaves[scope->slot];
}

static bool scope_fits(const struct one *o, const struct scope *scope)
{
    const struct plan_leaf *sum = scope_sum(o, scope);
    return sum->anchors == o->map.n_anchors && sum->room >= o->map.asked;
}

static uint64_t scope_unaligned(const struct one *o, const struct scope *scope)
{
    uint64_t aligned = scope_sum(o, scope)->aligned;
    return aligned < o->map.asked ? o->map.asked - aligned : 0;
}

/* Walk over all scopes: domains, then nodes of unknown place, then all. */
static bool next_scope(const struct one *o, size_t *at, struct scope *scope)
{
    const struct plan_cluster *c = o->map.cluster;
    size_t n = c->n_domains, nodes = n + c->n_apart, i = (*at)++;
    if (i > nodes)
        return false;
    *scope = (struct scope){FABRIC_APART, FABRIC_NONE, 0};
    if (i < n) {
        scope->tier = fabric_domain(c->fabric, (int32_t)i)->tier;
        scope->domain = (int32_t)i;
    } else if (i < nodes) {
        scope->tier = 0;
        scope->slot = (uint32_t)i;
    }
    return true;
}

static bool scope_allowed(const struct one *o, const struct scope *scope)
{
    int within = o->map.job->within;
    return within < 0 || scope->tier <= (unsigned)within;
}

/* The fewest unaligned, then the lowest tier; false when nothing fits. */
static bool best_tier(const struct one *o, uint64_t *ret_unaligned,
                      unsigned *ret_tier)
{
    struct scope scope;
    bool found = false;
    for (size_t at = 0; next_scope(o, &at, &scope);) {
        if (!scope_allowed(o, &scope) || !scope_fits(o, &scope))
            continue;
        uint64_t unaligned = scope_unaligned(o, &scope);
        if (found && (unaligned > *ret_unaligned ||
                      (unaligned == *ret_unaligned && scope.tier >= *ret_tier)))
            continue;
        found = true;
        *ret_unaligned = unaligned;
        *ret_tier = scope.tier;
    }
    return found;
}

/* --- level 4: which leaves ---------------------------------------------- */

/* The number of the scope of `tier` that a slot is in. */
static uint32_t scope_of(const struct one *o, unsigned tier, uint32_t slot)
{
    const struct plan_cluster *c = o->map.cluster;
    int32_t leaf = plan_slot_leaf(c, slot);
    if (tier == FABRIC_APART)
        return 0;
    if (leaf == FABRIC_NONE)
        return tier == 0 ? slot : UINT32_MAX;
    int32_t domain = fabric_up(c->fabric, leaf, tier);
    return domain == FABRIC_NONE ? UINT32_MAX : (uint32_t)domain;
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Bring the slots of each scope of `tier` together. */
static void sort_active(struct one *o, unsigned tier)
{
    cleanup_free uint64_t *keys = xcalloc(o->n_active + 1, sizeof *keys);
    for (size_t i = 0; i < o->n_active; i++)
        keys[i] = (uint64_t)scope_of(o, tier, o->active[i]) << 32 |
                  o->active[i];
    qsort(keys, o->n_active, sizeof *keys, compare_u64);
    for (size_t i = 0; i < o->n_active; i++)
        o->active[i] = (uint32_t)keys[i];
}

static int compare_offer(const void *a, const void *b)
{
    const struct offer *x = a, *y = b;
    if (x->cap != y->cap)
        return x->cap > y->cap ? -1 : 1;
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* Take the fewest of the offers, sorted, that reach `need`; the last is the
 * smallest that does. */
static void pick_offers(struct one *o, const struct offer *offers, size_t n,
                        uint64_t need)
{
    for (size_t i = 0; i < n && need > 0; i++) {
        size_t k = i;
        while (offers[i].cap >= need && k + 1 < n && offers[k + 1].cap >= need)
            k++;
        o->picked[o->n_picked++] = offers[k].slot;
        need = offers[i].cap < need ? need - offers[i].cap : 0;
    }
}

/* The leaves of the scope whose slots are active[first] … */
static void pick_leaves(struct one *o, unsigned tier, size_t first,
                        uint64_t unaligned)
{
    const struct plan_map *m = &o->map;
    size_t n = 0;
    uint64_t have = 0;
    uint32_t scope = scope_of(o, tier, o->active[first]);
    o->n_picked = 0;
    for (size_t i = first; i < o->n_active; i++) {
        uint32_t s = o->active[i];
        const struct plan_leaf *leaf = &m->leaves[s];
        if (scope_of(o, tier, s) != scope)
            break;
        uint64_t cap = unaligned ? leaf->room : leaf->aligned;
        if (leaf->anchors || (unaligned && leaf->aligned)) {
            o->picked[o->n_picked++] = s;
            have += cap;
        } else if (cap) {
            o->offers[n++] = (struct offer){cap, s};
        }
    }
    if (have >= m->asked)
        return;
    qsort(o->offers, n, sizeof *o->offers, compare_offer);
    pick_offers(o, o->offers, n, m->asked - have);
}

/* All leaves give what they have aligned; what is too much is left out of
 * the last, what is missing taken from the first with unaligned room. */
static void set_quotas(struct one *o)
{
    uint64_t sum = 0, asked = o->map.asked;
    for (size_t i = 0; i < o->n_picked; i++) {
        uint32_t s = o->picked[i];
        sum += o->quota[s] = o->map.leaves[s].aligned;
    }
    for (size_t i = o->n_picked; i-- > 0 && sum > asked;) {
        uint64_t *quota = &o->quota[o->picked[i]];
        uint64_t cut = sum - asked < *quota ? sum - asked : *quota;
        *quota -= cut;
        sum -= cut;
    }
    for (size_t i = 0; i < o->n_picked && sum < asked; i++) {
        const struct plan_leaf *leaf = &o->map.leaves[o->picked[i]];
        uint64_t more = leaf->room - leaf->aligned;
        if (more > asked - sum)
            more = asked - sum;
        o->quota[o->picked[i]] += more;
        sum += more;
    }
}

/* Levels 4, 6 and 7 of what is picked. */
struct weight {
    uint64_t leaves, damage, idle;
};

static uint64_t picked_idle(const struct one *o)
{
    uint64_t idle = 0;
    for (size_t i = 0; i < o->n_picked; i++)
        idle += o->map.leaves[o->picked[i]].idle;
    return idle;
}

static struct weight weigh(struct one *o)
{
    struct weight w = {.leaves = o->n_picked, .idle = picked_idle(o)};
    set_quotas(o);
    for (size_t i = 0; i < o->n_picked; i++) {
        uint32_t s = o->picked[i];
        w.damage += plan_fill(&o->map, s, o->quota[s], &o->steps, o->count);
    }
    return w;
}

static bool is_lighter(const struct weight *a, const struct weight *b)
{
    if (a->leaves != b->leaves)
        return a->leaves < b->leaves;
    if (a->damage != b->damage)
        return a->damage < b->damage;
    return a->idle < b->idle;
}

/* Of the scopes of `tier` with the fewest unaligned the one with the fewest
 * leaves, then the least damage and the fewest idle cards. */
static void pick_scope(struct one *o, uint64_t unaligned, unsigned tier)
{
    struct weight lightest = {UINT64_MAX, 0, 0}, w;
    size_t best = 0;
    uint32_t last = UINT32_MAX;
    sort_active(o, tier);
    for (size_t i = 0; i < o->n_active; i++) {
        uint32_t number = scope_of(o, tier, o->active[i]);
        struct scope scope = {tier, FABRIC_NONE, number};
        if (number == UINT32_MAX || (i > 0 && number == last))
            continue;
        last = number;
        if (tier != FABRIC_APART && number < o->map.cluster->n_domains)
            scope.domain = (int32_t)number;
        if (!scope_fits(o, &scope) || scope_unaligned(o, &scope) != unaligned)
            continue;
        pick_leaves(o, tier, i, unaligned);
        w = (struct weight){o->n_picked, 0, picked_idle(o)};
        if (!is_lighter(&w, &lightest))
            continue; /* not even without damage */
        w = weigh(o);
        if (is_lighter(&w, &lightest)) {
            lightest = w;
            best = i;
        }
    }
    o->steps = FILL_STEPS;
    pick_leaves(o, tier, best, unaligned);
    (void)weigh(o);
}

/* --- level 5: which ranks on which leaf --------------------------------- */

/* The leaf for the free ranks from `rank` on: that of the rank before, else
 * of the next rank that has its place, else the first with something left. */
static uint32_t choose_leaf(const struct one *o, const uint64_t *left,
                            const int64_t *slot_of, uint32_t rank)
{
    const struct plan_map *m = &o->map;
    if (rank > 0 && left[slot_of[rank - 1]] > 0)
        return (uint32_t)slot_of[rank - 1];
    for (uint32_t r = rank; r < m->job->size; r++) {
        if (m->anchor[r] < 0)
            continue;
        if (left[m->anchor[r]] > 0)
            return (uint32_t)m->anchor[r];
        break;
    }
    size_t i = 0;
    while (left[o->picked[i]] == 0)
        i++;
    return o->picked[i];
}

/* What `room` leaves for the ranks that have no slot yet, to them. */
static void assign_in_order(const struct one *o, const uint64_t *room,
                            int64_t *slot_of)
{
    const struct plan_map *m = &o->map;
    cleanup_free uint64_t *left = xmemdup(room,
                                          (m->n_slots + 1) * sizeof *left);
    for (uint32_t r = 0; r < m->job->size; r++)
        if (m->anchor[r] < 0 && slot_of[r] >= 0)
            left[slot_of[r]]--;
    for (uint32_t r = 0; r < m->job->size; r++) {
        if (slot_of[r] >= 0)
            continue;
        slot_of[r] = choose_leaf(o, left, slot_of, r);
        left[slot_of[r]]--;
    }
}

/* Free ranks in a row, between two that have their place. */
struct run {
    uint32_t first, n;
    int64_t before, after; /* slots, -1: the job begins or ends */
};

static int compare_runs(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static size_t list_runs(const struct plan_map *m, struct run *runs)
{
    size_t n = 0;
    for (uint32_t r = 0; r < m->job->size; r++) {
        if (m->anchor[r] >= 0)
            continue;
        struct run run = {.first = r, .before = -1, .after = -1};
        if (r > 0)
            run.before = m->anchor[r - 1];
        while (r < m->job->size && m->anchor[r] < 0)
            r++;
        run.n = r - run.first;
        if (r < m->job->size)
            run.after = m->anchor[r];
        runs[n++] = run;
    }
    return n;
}

/* What the leaves of fixed pairs have goes to the shortest runs beside them
 * that it can fill: each saves as much. */
static void assign_runs(const struct one *o, const uint64_t *room,
                        int64_t *slot_of)
{
    const struct plan_map *m = &o->map;
    cleanup_free uint64_t *left = xmemdup(room,
                                          (m->n_slots + 1) * sizeof *left);
    cleanup_free struct run *runs = xcalloc(m->job->size, sizeof *runs);
    size_t n = list_runs(m, runs);
    qsort(runs, n, sizeof *runs, compare_runs);
    for (size_t i = 0; i < n; i++) {
        const struct run *run = &runs[i];
        int64_t a = run->before >= 0 ? run->before : run->after;
        int64_t b = run->after >= 0 ? run->after : a;
        if (a < 0 || left[a] + (a == b ? 0 : left[b]) < run->n)
            continue;
        uint64_t from_a = left[a] < run->n ? left[a] : run->n;
        for (uint32_t k = 0; k < run->n; k++)
            slot_of[run->first + k] = k < from_a ? a : b;
        left[a] -= from_a;
        left[b] -= run->n - from_a;
    }
}

static uint32_t count_crossings(const int64_t *slot_of, uint32_t size)
{
    uint32_t n = 0;
    for (uint32_t r = 1; r < size; r++)
        n += slot_of[r] != slot_of[r - 1];
    return n;
}

static void assign_better(const struct one *o, const uint64_t *room, bool runs,
                          int64_t *best)
{
    const struct plan_map *m = &o->map;
    uint32_t size = m->job->size;
    cleanup_free int64_t *slot_of = xmemdup(m->anchor, size * sizeof *slot_of);
    if (runs)
        assign_runs(o, room, slot_of);
    assign_in_order(o, room, slot_of);
    if (count_crossings(slot_of, size) < count_crossings(best, size))
        memcpy(best, slot_of, size * sizeof *best);
}

/* Around fixed pairs several ways are tried, also with more on some of the
 * leaves than their quotas, as long as nobody is unaligned: crossings come
 * before damage. */
static void assign_ranks(struct one *o, int64_t *slot_of)
{
    const struct plan_map *m = &o->map;
    cleanup_free uint64_t *room = xcalloc(m->n_slots + 1, sizeof *room);
    bool aligned = true;
    memcpy(slot_of, m->anchor, m->job->size * sizeof *slot_of);
    assign_in_order(o, o->quota, slot_of);
    if (m->n_anchors == 0)
        return;
    assign_better(o, o->quota, true, slot_of);
    for (size_t i = 0; i < o->n_picked; i++) {
        uint32_t s = o->picked[i];
        room[s] = m->leaves[s].aligned;
        aligned &= o->quota[s] <= room[s];
    }
    if (!aligned)
        return;
    assign_better(o, room, false, slot_of);
    assign_better(o, room, true, slot_of);
    for (size_t i = 0; i < o->n_picked; i++)
        o->quota[o->picked[i]] = 0;
    for (uint32_t r = 0; r < m->job->size; r++)
        o->quota[slot_of[r]] += m->anchor[r] < 0;
    for (size_t i = 0; i < o->n_picked; i++)
        (void)plan_fill(m, o->picked[i], o->quota[o->picked[i]], &o->steps,
                        o->count);
}

/* --- the whole ---------------------------------------------------------- */

static void place_rank(const struct one *o, uint32_t rank, uint32_t node,
                       uint32_t *given, struct plan_place *places)
{
    const struct plan_map *m = &o->map;
    const struct ladder *l = &m->ladders[m->classes.class_of[node]];
    uint32_t rung = o->count[node] + ((int32_t)node == m->pin);
    places[rank].node = (int32_t)node;
    places[rank].choice = *ladder_choice(l, rung, given[node]++);
}

/* Give the ranks of a leaf, in order, to its nodes, in order. */
static void place_ranks(struct one *o, const int64_t *slot_of,
                        struct plan_place *places)
{
    const struct plan_map *m = &o->map;
    const struct plan_job *job = m->job;
    cleanup_free uint32_t *at = xcalloc(m->n_slots + 1, sizeof *at);
    cleanup_free uint32_t *given = xcalloc(m->cluster->n_nodes + 1,
                                           sizeof *given);
    if (job->pin_rank >= 0)
        place_rank(o, (uint32_t)job->pin_rank, (uint32_t)m->pin, given, places);
    for (size_t i = 0; i < job->n_fixed; i++)
        places[job->fixed[i].rank] =
            (struct plan_place){.node = job->fixed[i].node, .fixed = true};
    for (uint32_t r = 0; r < job->size; r++) {
        if (m->anchor[r] >= 0)
            continue;
        const uint32_t *nodes = m->nodes + m->leaves[slot_of[r]].first;
        uint32_t *next = &at[slot_of[r]];
        while (o->count[nodes[*next]] + ((int32_t)nodes[*next] == m->pin) ==
               given[nodes[*next]])
            (*next)++;
        place_rank(o, r, nodes[*next], given, places);
    }
}

/* Might there be room after all, had the search of the ladders not been
 * cut? */
static bool is_open(const struct plan_map *m)
{
    uint64_t room = 0;
    for (uint32_t i = 0; i < m->cluster->n_nodes; i++)
        room += plan_map_bound(m, i);
    return room >= m->asked + (uint64_t)(m->pin >= 0);
}

static void refuse(const struct one *o, struct plan_refusal *ret_refusal)
{
    struct plan_refusal no = {.lack = PLAN_LACK_ROOM,
                              .domain = FABRIC_NONE,
                              .fits_tier = FABRIC_APART};
    const struct plan_map *m = &o->map;
    const struct plan_job *job = m->job;
    uint32_t pinned = job->pin_rank >= 0;
    struct scope scope;
    no.asked = m->asked + pinned;
    no.room = (uint32_t)(o->total.room < m->asked ? o->total.room : m->asked) +
              pinned;
    no.hosts = o->total.room < m->asked && plan_map_lacks_hosts(m);
    if (o->total.room >= m->asked)
        no.lack = PLAN_LACK_TIER;
    else if (is_open(m))
        no.lack = PLAN_LACK_SEARCH;
    bool any = false; /* domain that has all anchors */
    for (size_t at = 0; next_scope(o, &at, &scope);) {
        const struct plan_leaf *sum = scope_sum(o, &scope);
        if (sum->anchors != m->n_anchors)
            continue;
        if (scope_fits(o, &scope) && scope.tier < no.fits_tier)
            no.fits_tier = scope.tier;
        if (job->within < 0 || !scope_allowed(o, &scope))
            continue;
        uint32_t room =
            (uint32_t)(sum->room < m->asked ? sum->room : m->asked) + pinned;
        if (!any || room > no.room_within) {
            no.room_within = room;
            no.domain = scope.domain;
        }
        any = true;
    }
    if (job->within >= 0 && !any)
        no.lack = pinned ? PLAN_LACK_PIN : PLAN_LACK_FIXED;
    *ret_refusal = no;
}

static bool pin_fits(const struct one *o)
{
    const struct plan_map *m = &o->map;
    return m->pin < 0 || plan_map_whole(m, (uint32_t)m->pin) > 0;
}

bool plan_one(const struct plan_cluster *cluster, const struct plan_job *job,
              struct plan_place *places, struct plan_refusal *ret_refusal)
{
    struct one work;
    one_init(&work, cluster, job);
    cleanup_with(one) struct one *o = &work;
    uint64_t unaligned = 0;
    unsigned tier = FABRIC_APART;
    sum_up(o);
    if (!pin_fits(o) || !best_tier(o, &unaligned, &tier)) {
        refuse(o, ret_refusal);
        if (!pin_fits(o))
            ret_refusal->lack = PLAN_LACK_PIN;
        return false;
    }
    pick_scope(o, unaligned, tier);
    cleanup_free int64_t *slot_of = xcalloc(job->size, sizeof *slot_of);
    assign_ranks(o, slot_of);
    place_ranks(o, slot_of, places);
    return true;
}
