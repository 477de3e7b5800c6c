/* Advice for a job: what others hold or have that would make room for it. */
#include <stdlib.h>
#include <string.h>

#include "extender/judge/advice_private.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"

enum {
    JOBS_MAX = 8,     /* other jobs that are tried */
    ALL_MAX = 4096,   /* places of other jobs that are tried at once */
    OFFERS_MAX = 16,  /* changes of one node that are tried as plans */
    NODES_MAX = 1024, /* nodes whose pods are looked at */
    PAIRS_MAX = 64,   /* pairs of one node that are filled in */
};

/* --- states without some of the pods ------------------------------------ */

/* The node as a pair of the job would see it with some pods gone; false when
 * that makes no difference. */
static bool state_without(const struct job_search *j, size_t index,
                          gone_f *is_gone, const void *ctx,
                          struct node_state *ret_state)
{
    return node_state_without(snapshot_node(j->snapshot, index),
                              j->snapshot->policy, is_gone, ctx, ret_state);
}

/* What those pods take of their host, given back or taken again. */
typedef void room_change_f(struct host_room *room, const struct allocation *a);
static void change_room(struct job_search *j, size_t index, gone_f *is_gone,
                        const void *ctx, room_change_f *change)
{
    const struct node *node = snapshot_node(j->snapshot, index);
    for (size_t i = 0; j->in.rooms && i < node->n_allocations; i++)
        if (is_gone(ctx, node->allocations[i]))
            change(&j->in.rooms[index], node->allocations[i]);
}

static bool is_candidate(const struct job_search *j, size_t index)
{
    const uint64_t *bits = j->in.job.candidates;
    return j->in.states[index] && (!bits || bits[index / 64] >> index % 64 & 1);
}

/* Pairs for which there is no room. */
static uint32_t missing(const struct job_search *j)
{
    const struct plan_refusal *r = &j->refusal;
    uint32_t room = r->lack == PLAN_LACK_TIER ? r->room_within : r->room;
    return r->asked > room ? r->asked - room : 0;
}

/* --- other jobs --------------------------------------------------------- */

/* A job of others: what it has (or only holds) on which nodes. */
struct other {
    const struct allocation *sample; /* one of its pods or places */
    uint32_t places, devices;
};

struct others {
    bool held;
    struct other *list;
    uint32_t *slots; /* open addressing by name: index + 1 */
    size_t n, cap, n_slots;
    uint32_t *of;   /* by place: which other */
    uint32_t *node; /* by place */
    size_t n_places, places_cap;
};

static void others_fini(struct others *o)
{
    free(o->list);
    free(o->slots);
    free(o->of);
    free(o->node);
}

static bool same_job(const struct allocation *a, const struct allocation *b)
{
    return strcmp(a->demand.job, b->demand.job) == 0 &&
           strcmp(a->demand.namespace, b->demand.namespace) == 0;
}

static bool is_of_other(const void *ctx, const struct allocation *a)
{
    const struct other *o = ctx;
    return a->held == o->sample->held && a->demand.role != ROLE_SERVICE &&
           same_job(a, o->sample);
}

static uint32_t find_other(struct others *o, const struct allocation *a)
{
    uint64_t hash = hash_bytes(a->demand.job, strlen(a->demand.job));
    size_t at = hash % o->n_slots;
    for (; o->slots[at]; at = (at + 1) % o->n_slots)
        if (same_job(o->list[o->slots[at] - 1].sample, a))
            return o->slots[at] - 1;
    o->list = xgrow(o->list, o->n, &o->cap, sizeof *o->list);
    o->list[o->n] = (struct other){.sample = a};
    o->slots[at] = (uint32_t)++o->n;
    return (uint32_t)(o->n - 1);
}

static void add_place(struct others *o, const struct allocation *a, size_t node)
{
    uint32_t which = find_other(o, a);
    size_t cap = o->places_cap;
    o->of = xgrow(o->of, o->n_places, &cap, sizeof *o->of);
    o->node = xgrow(o->node, o->n_places, &o->places_cap, sizeof *o->node);
    o->of[o->n_places] = which;
    o->node[o->n_places++] = (uint32_t)node;
    o->list[which].places++;
    o->list[which].devices += (uint32_t)a->n_cards + a->n_gpus + a->n_nics;
}

/* Is it a place that counts? */
static bool is_others(const struct others *o, const struct job_search *j,
                      const struct allocation *a)
{
    return a->held == o->held && a->demand.job[0] &&
           a->demand.role != ROLE_SERVICE && !advice_is_of_job(a, j->job);
}

static void add_all(struct others *o, const struct job_search *j)
{
    const struct snapshot *s = j->snapshot;
    for (size_t i = 0; i < s->n_nodes; i++) {
        const struct node *node = snapshot_node(s, i);
        size_t n = o->held ? node->n_held : node->n_allocations - node->n_held;
        for (size_t k = 0; n && is_candidate(j, i) && k < node->n_allocations;
             k++)
            if (is_others(o, j, node->allocations[k]))
                add_place(o, node->allocations[k], i);
    }
}

struct place {
    const struct allocation *allocation;
    int32_t node;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return allocation_compare_pod(x->allocation, y->allocation);
}

/* The same in the same order, of the jobs that `list` has members of. */
static void add_listed(struct others *o, const struct job_search *j,
                       const struct allocation *const *list, size_t n_list)
{
    cleanup_free struct place *places = xcalloc(n_list + 1, sizeof *places);
    size_t n = 0;
    for (size_t i = 0; i < n_list; i++) {
        const char *name = list[i]->node;
        int32_t node = snapshot_find(j->snapshot, name, strlen(name));
        if (node >= 0 && is_candidate(j, (size_t)node) &&
            is_others(o, j, list[i]))
            places[n++] = (struct place){list[i], node};
    }
    qsort(places, n, sizeof *places, compare_places);
    for (size_t i = 0; i < n; i++)
        add_place(o, places[i].allocation, (size_t)places[i].node);
}

/* The places of jobs but this one on nodes that it could use; those of jobs
 * with fewer devices can be left out. */
static void others_init(struct others *o, const struct job_search *j, bool held,
                        uint32_t devices)
{
    const struct alloc_index *all = j->snapshot->allocations;
    cleanup_free const struct allocation **list = NULL;
    size_t n = alloc_index_size(all);
    bool some = !held && devices > 1;
    memset(o, 0, sizeof *o);
    if (some)
        list = alloc_index_large_jobs(all, devices, &n);
    o->held = held;
    o->n_slots = 2 * n + 1;
    o->slots = xcalloc(o->n_slots, sizeof *o->slots);
    if (some)
        add_listed(o, j, list, n);
    else
        add_all(o, j);
}

/* Of any job but this one, a place that is only held? */
static bool is_leased(const void *ctx, const struct allocation *a)
{
    const struct job_search *j = ctx;
    return a->held && a->demand.job[0] && a->demand.role != ROLE_SERVICE &&
           !advice_is_of_job(a, j->job);
}

enum { ALL_OTHERS = UINT32_MAX };

/* What the places of others take of their hosts. */
static void change_rooms(struct job_search *j, const struct others *all,
                         uint32_t which, room_change_f *change)
{
    bool any = which == ALL_OTHERS;
    size_t last = SIZE_MAX;
    for (size_t i = 0; j->in.rooms && i < all->n_places; i++) {
        size_t node = all->node[i];
        if ((!any && all->of[i] != which) || node == last)
            continue;
        last = node;
        change_room(j, node, any ? is_leased : is_of_other,
                    any ? (const void *)j : &all->list[which], change);
    }
}

/* The nodes on which it has something get a state of their own. */
static bool fits_without(struct job_search *j, const struct others *all,
                         uint32_t which)
{
    bool any = which == ALL_OTHERS;
    gone_f *is_gone = any ? is_leased : is_of_other;
    const void *ctx = any ? (const void *)j : &all->list[which];
    size_t places = any ? all->n_places : all->list[which].places;
    size_t n = j->in.cluster.n_nodes, n_own = 0;
    cleanup_free struct node_state *own = xcalloc(places + 1, sizeof *own);
    cleanup_free const struct node_state **states =
        xmemdup(j->in.states, n * sizeof(*states));
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < all->n_places; i++) {
        size_t node = all->node[i];
        if ((!any && all->of[i] != which) || node == last)
            continue;
        last = node;
        if (state_without(j, node, is_gone, ctx, &own[n_own]))
            states[node] = &own[n_own++];
    }
    j->in.cluster.states = states;
    change_rooms(j, all, which, room_give);
    bool fits = job_search_fits_changed(j);
    change_rooms(j, all, which, room_take);
    j->in.cluster.states = j->in.states;
    return fits;
}

/* Fewer places first, then by the order of nodes. */
static uint32_t next_other(const struct others *o, const bool *tried,
                           uint32_t devices)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < o->n; i++)
        if (!tried[i] && o->list[i].devices >= devices &&
            (best == UINT32_MAX || o->list[i].places < o->list[best].places))
            best = i;
    return best;
}

/* One of those with the fewest places; then the leases of all at once. */
static void try_others(struct job_search *j, enum change_kind kind)
{
    struct change change = {.kind = kind, .node = NODE_NONE};
    bool found = false;
    struct others o;
    if (j->steps < j->steps_per_plan)
        return; /* none could be tried */
    /* each pair that gets room gets it from a device that was not free,
     * unless it is hosts that have none */
    uint32_t devices = j->refusal.hosts ? 0 : missing(j);
    others_init(&o, j, kind == CHANGE_LEASE, devices);
    cleanup_free bool *tried = xcalloc(o.n + 1, sizeof *tried);
    for (unsigned i = 0; i < JOBS_MAX && !found; i++) {
        uint32_t which = next_other(&o, tried, devices);
        if (which == UINT32_MAX)
            break;
        tried[which] = true;
        found = fits_without(j, &o, which);
        if (found)
            job_key(&o.list[which].sample->demand, change.job);
    }
    if (!found && o.held && o.n > 1 && o.n_places <= ALL_MAX)
        found = fits_without(j, &o, ALL_OTHERS);
    if (found)
        advice_add(j->advice, &change);
    others_fini(&o);
}

/* --- one node ----------------------------------------------------------- */

/* Could more room on this node be of use? */
static bool is_of_use(const struct job_search *j, size_t index)
{
    const struct plan_refusal *r = &j->refusal;
    if (!is_candidate(j, index))
        return false;
    return r->lack != PLAN_LACK_TIER || r->domain == FABRIC_NONE ||
           fabric_up(j->in.cluster.fabric, j->in.leaves[index],
                     (unsigned)j->in.job.within) == r->domain;
}

/* What is left when the node holds as many pairs as it can. */
static void fill(const struct node_state *state, const struct demand *shape,
                 struct node_state *ret_left)
{
    struct choice choice;
    *ret_left = *state;
    for (unsigned i = 0; i < PAIRS_MAX; i++) {
        if (decide(ret_left, shape, 0, UINT16_MAX, &choice) != REASON_NONE)
            return;
        node_state_take(ret_left, shape, &choice);
    }
}

struct offer {
    uint64_t weight;
    struct change change;
};

static int compare_offers(const void *a, const void *b)
{
    const struct offer *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight < y->weight ? -1 : 1;
    return x->change.node < y->change.node ? -1
                                           : x->change.node > y->change.node;
}

/* Keep the OFFERS_MAX lightest. */
static size_t keep_offer(struct offer *offers, size_t n,
                         const struct offer *offer)
{
    if (n == OFFERS_MAX && compare_offers(offer, &offers[n - 1]) >= 0)
        return n;
    size_t at = n < OFFERS_MAX ? n++ : n - 1;
    for (; at > 0 && compare_offers(offer, &offers[at - 1]) < 0; at--)
        offers[at] = offers[at - 1];
    offers[at] = *offer;
    return n;
}

/* The least that makes room for one more pair on the node; the weight is
 * FREE_NEVER when nothing does. */
static struct offer offer_of(const struct job_search *j, size_t index,
                             enum change_kind kind, uint64_t below,
                             unsigned *tries)
{
    const struct demand *shape = &j->in.job.shapes[0];
    struct offer offer = {.weight = FREE_NEVER, .change = {.kind = kind}};
    struct node_state left;
    uint16_t cards;
    fill(j->in.states[index], shape, &left);
    struct spot spot = {(int32_t)index, REASON_NONE, &left, 0, UINT16_MAX};
    offer.change.node = (int32_t)index;
    if (kind == CHANGE_FREE) {
        if (advice_free_bound(&spot, shape) < below)
            offer.weight = advice_free(&spot, shape, below, tries, &cards);
        if (offer.weight != FREE_NEVER)
            advice_free_change(&spot, shape, cards, &offer.change);
        if (!offer.change.cards)
            offer.weight = FREE_NEVER;
        return offer;
    }
    offer.change.value = advice_free_cpus(&spot, shape, &offer.change.numa);
    if (offer.change.value)
        offer.weight = offer.change.value;
    return offer;
}

static bool fits_with_state(struct job_search *j, size_t index,
                            const struct node_state *state)
{
    const struct node_state *old = j->in.states[index];
    j->in.states[index] = state;
    bool fits = job_search_fits_changed(j);
    j->in.states[index] = old;
    return fits;
}

/* How many pairs the node holds with so much more free; NULL: as it is. */
static uint32_t room_with(const struct job_search *j, size_t index,
                          const struct change *change)
{
    struct node_state state = *j->in.states[index];
    uint32_t aligned;
    if (change)
        state = advice_freed(&state, change);
    return plan_room(&state, &j->in.job.shapes[0], PAIRS_MAX, &aligned);
}

/* The least of `*amount`, a part of the change, that makes more room than
 * `now`. */
static void lessen(const struct job_search *j, const struct change *change,
                   uint32_t now, uint32_t *amount)
{
    size_t node = (size_t)change->node;
    uint32_t low = 0, high = *amount; /* high makes room */
    while (low < high) {
        *amount = low + (high - low) / 2;
        if (room_with(j, node, change) > now)
            high = *amount;
        else
            low = *amount + 1;
    }
    *amount = high;
}

/* The pairs that the node holds anyway may be put elsewhere on it than where
 * they were when it was seen what one more lacks. */
static struct change lessened(const struct job_search *j,
                              const struct change *change)
{
    struct change less = *change;
    size_t node = (size_t)change->node;
    uint32_t now = room_with(j, node, NULL), value = (uint32_t)less.value;
    if (room_with(j, node, change) <= now)
        return less;
    for (uint32_t low = 0; low < value;) { /* of CPUs */
        less.value = low + (value - low) / 2;
        if (room_with(j, node, &less) > now)
            value = (uint32_t)less.value;
        else
            low = (uint32_t)less.value + 1;
    }
    less.value = value;
    for (unsigned c = 0; c < TOPO_CARDS_MAX; c++) {
        lessen(j, &less, now, &less.cores[c]);
        lessen(j, &less, now, &less.memory_mib[c]);
        if (!less.cores[c] && !less.memory_mib[c])
            less.cards &= (uint16_t) ~(1u << c);
    }
    return less;
}

/* A part of one node, when just one pair has no room. */
static void try_free(struct job_search *j, enum change_kind kind)
{
    struct offer offers[OFFERS_MAX];
    unsigned tries = ADVICE_TRIES;
    size_t n = 0;
    if (missing(j) != 1 || j->in.job.n_shapes > 1)
        return;
    const struct node_state *last = NULL;
    for (size_t i = 0; i < j->in.cluster.n_nodes && tries; i++) {
        uint64_t below = n == OFFERS_MAX ? offers[n - 1].weight : FREE_NEVER;
        if (!is_of_use(j, i) || j->in.states[i] == last)
            continue;
        last = j->in.states[i];
        tries--;
        struct offer offer = offer_of(j, i, kind, below, &tries);
        if (offer.weight != FREE_NEVER)
            n = keep_offer(offers, n, &offer);
    }
    for (size_t i = 0; i < n; i++) {
        size_t node = (size_t)offers[i].change.node;
        struct node_state freed = advice_freed(j->in.states[node],
                                               &offers[i].change);
        if (!fits_with_state(j, node, &freed))
            continue;
        struct change less = lessened(j, &offers[i].change);
        freed = advice_freed(j->in.states[node], &less);
        advice_add(j->advice, fits_with_state(j, node, &freed)
                                  ? &less
                                  : &offers[i].change);
        return;
    }
}

/* --- pods of one node --------------------------------------------------- */

struct gone {
    const struct allocation *list[ADVICE_GONE_MAX];
    size_t n;
};

static bool is_in(const void *ctx, const struct allocation *a)
{
    const struct gone *gone = ctx;
    for (size_t i = 0; i < gone->n; i++)
        if (gone->list[i] == a)
            return true;
    return false;
}

/* How many more pairs its host can have with the pods gone. */
static uint32_t host_holds(const struct job_search *j, size_t index,
                           const struct gone *gone, uint32_t max)
{
    if (!j->in.rooms)
        return max;
    struct host_room room = j->in.rooms[index];
    for (size_t i = 0; i < gone->n; i++)
        room_give(&room, gone->list[i]);
    return host_room_holds(&room, &j->in.job.shapes[0], max);
}

/* Does the node have room for `want` pairs with the pods gone? */
static bool has_room(const struct job_search *j, size_t index, uint32_t want,
                     const struct gone *gone)
{
    struct node_state state;
    uint32_t aligned;
    return host_holds(j, index, gone, want) >= want &&
           state_without(j, index, is_in, gone, &state) &&
           plan_room(&state, &j->in.job.shapes[0], want, &aligned) >= want;
}

/* One pod, or a set of which each is needed; none when not even all do. */
static void fewest_gone(const struct job_search *j, size_t index, uint32_t want,
                        struct gone *ret_gone)
{
    struct gone all;
    const struct node *node = snapshot_node(j->snapshot, index);
    all.n = advice_deletable(node, "", j->job, all.list);
    ret_gone->n = 0;
    if (all.n == 0 || !has_room(j, index, want, &all))
        return;
    for (size_t i = 0; i < all.n; i++) {
        struct gone one = {.list = {all.list[i]}, .n = 1};
        if (has_room(j, index, want, &one)) {
            *ret_gone = one;
            return;
        }
    }
    for (size_t i = all.n; i-- > 0 && all.n > 1;) {
        struct gone less = all;
        less.n--;
        memmove(&less.list[i], &less.list[i + 1],
                (less.n - i) * sizeof *less.list);
        if (has_room(j, index, want, &less))
            all = less;
    }
    *ret_gone = all;
}

static void try_release(struct job_search *j)
{
    const struct demand *shape = &j->in.job.shapes[0];
    struct change best = {.kind = CHANGE_RELEASE};
    unsigned nodes = NODES_MAX, plans = OFFERS_MAX;
    uint32_t lack = missing(j), aligned;
    if (lack == 0 || lack > TOPO_CARDS_MAX || j->in.job.n_shapes > 1)
        return;
    for (size_t i = 0; i < j->in.cluster.n_nodes && nodes && plans; i++) {
        struct gone gone;
        struct node_state state;
        if (!is_of_use(j, i) || best.n_gone == 1 ||
            snapshot_node(j->snapshot, i)->n_allocations == 0)
            continue;
        nodes--;
        gone.n = 0;
        uint32_t now = plan_room(j->in.states[i], shape,
                                 host_holds(j, i, &gone, PAIRS_MAX), &aligned);
        fewest_gone(j, i, now + lack, &gone);
        if (gone.n == 0 || (best.n_gone && gone.n >= best.n_gone) ||
            !state_without(j, i, is_in, &gone, &state))
            continue;
        plans--;
        change_room(j, i, is_in, &gone, room_give);
        bool fits = fits_with_state(j, i, &state);
        change_room(j, i, is_in, &gone, room_take);
        if (!fits)
            continue;
        best.node = (int32_t)i;
        best.n_gone = gone.n;
        memcpy(best.gone, gone.list, gone.n * sizeof *gone.list);
    }
    if (best.n_gone)
        advice_add(j->advice, &best);
}

void job_search_take_little(struct job_search *j)
{
    try_others(j, CHANGE_LEASE);
    try_free(j, CHANGE_FREE);
    try_free(j, CHANGE_FREE_CPUS);
}

void job_search_take_more(struct job_search *j)
{
    try_release(j);
    try_others(j, CHANGE_JOB_END);
}
