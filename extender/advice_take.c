/* Advice for a job: what others hold or have that would make room for it. */
#include <stdlib.h>
#include <string.h>

#include "extender/advice_private.h"
#include "extender/usage.h"
#include "model/base/mem.h"

enum {
    JOBS_MAX = 32,    /* other jobs that are tried */
    OFFERS_MAX = 16,  /* changes of one node that are tried as plans */
    NODES_MAX = 1024, /* nodes whose pods are looked at */
    PAIRS_MAX = 64,   /* pairs of one node that are filled in */
};

/* --- states without some of the pods ------------------------------------------------ */

typedef bool gone_f(const void *ctx, const struct allocation *a);

/* The node as a pair of the job would see it with some pods gone; false when
 * that makes no difference. */
static bool state_without(const struct job_search *j, size_t index,
                          gone_f *is_gone, const void *ctx,
                          struct node_state *ret_state)
{
    const struct node *node = snapshot_node(j->snapshot, index);
    cleanup_free const struct allocation **list =
        xcalloc(node->n_allocations + 1, sizeof *list);
    struct usage usage;
    node_usage(node, j->snapshot->policy, &usage);
    usage.allocations = list;
    usage.n = 0;
    for (size_t i = 0; i < node->n_allocations; i++)
        if (!is_gone(ctx, node->allocations[i]))
            list[usage.n++] = node->allocations[i];
    if (usage.n == node->n_allocations)
        return false;
    usage_state(&usage, NULL, ret_state);
    return true;
}

static bool is_candidate(const struct job_search *j, size_t index)
{
    const uint64_t *bits = j->in.job.candidates;
    return j->in.states[index] && (!bits || bits[index / 64] >> index % 64 & 1);
}

/* --- other jobs ----------------------------------------------------------------------- */

struct other {
    char job[JOB_KEY_MAX];
    bool held; /* only what it holds */
    uint32_t places;
};

static bool is_of_other(const void *ctx, const struct allocation *a)
{
    const struct other *o = ctx;
    return a->held == o->held && a->demand.role != ROLE_SERVICE &&
           advice_is_of_job(a, o->job);
}

/* The other jobs that have, or only hold, places: those of few places first,
 * at most JOBS_MAX. */
static size_t list_others(const struct job_search *j, bool held,
                          struct other *others)
{
    size_t n = 0;
    for (size_t i = 0; i < j->snapshot->n_nodes; i++) {
        const struct node *node = snapshot_node(j->snapshot, i);
        for (size_t k = 0; k < node->n_allocations; k++) {
            const struct allocation *a = node->allocations[k];
            size_t at = 0;
            if (a->held != held || !a->demand.job[0] ||
                a->demand.role == ROLE_SERVICE || advice_is_of_job(a, j->job))
                continue;
            while (at < n && !advice_is_of_job(a, others[at].job))
                at++;
            if (at == JOBS_MAX)
                continue;
            if (at == n) {
                others[n].held = held;
                others[n].places = 0;
                job_key(&a->demand, others[n++].job);
            }
            others[at].places++;
        }
    }
    return n;
}

static int compare_others(const void *a, const void *b)
{
    const struct other *x = a, *y = b;
    if (x->places != y->places)
        return x->places < y->places ? -1 : 1;
    return strcmp(x->job, y->job);
}

/* Nodes on which it has something get a state of their own. */
static bool fits_without(struct job_search *j, const struct other *o)
{
    size_t n = j->in.cluster.n_nodes, n_own = 0;
    cleanup_free struct node_state *own = xcalloc(o->places + 1, sizeof *own);
    cleanup_free const struct node_state **states =
        xmemdup(j->in.states, n * sizeof(*states));
    for (size_t i = 0; i < n && n_own < o->places; i++)
        if (states[i] && state_without(j, i, is_of_other, o, &own[n_own]))
            states[i] = &own[n_own++];
    j->in.cluster.states = states;
    bool fits = job_search_fits(j);
    j->in.cluster.states = j->in.states;
    return fits;
}

static void try_others(struct job_search *j, enum change_kind kind)
{
    struct change change = {.kind = kind, .node = NODE_NONE};
    struct other others[JOBS_MAX];
    size_t n = list_others(j, kind == CHANGE_LEASE, others);
    qsort(others, n, sizeof *others, compare_others);
    for (size_t i = 0; i < n; i++) {
        if (!fits_without(j, &others[i]))
            continue;
        memcpy(change.job, others[i].job, sizeof change.job);
        advice_add(j->advice, &change);
        return;
    }
}

/* --- one node -------------------------------------------------------------------------- */

/* Pairs for which there is no room. */
static uint32_t missing(const struct job_search *j)
{
    const struct plan_refusal *r = &j->refusal;
    uint32_t room = r->lack == PLAN_LACK_TIER ? r->room_within : r->room;
    return r->asked > room ? r->asked - room : 0;
}

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
    bool fits = job_search_fits(j);
    j->in.states[index] = old;
    return fits;
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
        advice_add(j->advice, &offers[i].change);
        return;
    }
}

/* --- pods of one node --------------------------------------------------------------- */

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

/* Does the node have room for `want` pairs with the pods gone? */
static bool has_room(const struct job_search *j, size_t index, uint32_t want,
                     const struct gone *gone)
{
    struct node_state state;
    uint32_t aligned;
    return state_without(j, index, is_in, gone, &state) &&
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
    if (lack == 0 || lack > PAIRS_MAX || j->in.job.n_shapes > 1)
        return;
    for (size_t i = 0; i < j->in.cluster.n_nodes && nodes && plans; i++) {
        struct gone gone;
        struct node_state state;
        if (!is_of_use(j, i) || best.n_gone == 1 ||
            snapshot_node(j->snapshot, i)->n_allocations == 0)
            continue;
        nodes--;
        uint32_t now = plan_room(j->in.states[i], shape, PAIRS_MAX, &aligned);
        fewest_gone(j, i, now + lack, &gone);
        if (gone.n == 0 || (best.n_gone && gone.n >= best.n_gone) ||
            !state_without(j, i, is_in, &gone, &state))
            continue;
        plans--;
        if (!fits_with_state(j, i, &state))
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
