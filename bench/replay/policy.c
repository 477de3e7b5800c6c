#include "bench/replay/policy.h"

#include <errno.h>
#include <string.h>

#include "extender/judge/schedule.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "model/decide/bits.h"

enum {
    BEST = 16,               /* as many as the filter answers with */
    CLOSEST_SLOTS = 1 << 16, /* of the memory of closest devices */
    ELSEWHERE = 1 << 24,     /* more than cards or cores of a node */
};

enum devices {
    DEVICES_ANY,
    DEVICES_FIRST,
    DEVICES_ALIGNED, /* the best of the node */
    DEVICES_CLOSEST, /* those that the node was chosen for */
};

static const struct rule {
    const char *name;
    enum devices devices;
    bool one_numa; /* of the NUMA node that holds the pair, if any does */
} rules[POLICY_COUNT] = {
    [POLICY_RANDOM] = {"random", DEVICES_ANY, false},
    [POLICY_FIRST_FIT] = {"first-fit", DEVICES_FIRST, false},
    [POLICY_FIRST_ALIGNED] = {"first-fit+aligned", DEVICES_ALIGNED, false},
    [POLICY_LEAST] = {"least-allocated", DEVICES_ANY, false},
    [POLICY_MOST] = {"most-allocated", DEVICES_ANY, false},
    [POLICY_MOST_ALIGNED] = {"most-allocated+aligned", DEVICES_ALIGNED, false},
    [POLICY_NUMA] = {"numa-only", DEVICES_ANY, true},
    [POLICY_NUMA_ALIGNED] = {"numa-only+aligned", DEVICES_ALIGNED, true},
    [POLICY_GREEDY] = {"pcie-greedy", DEVICES_CLOSEST, false},
    [POLICY_LEAF] = {"leaf-best-fit+aligned", DEVICES_ALIGNED, false},
    [POLICY_BIGA] = {"biga", DEVICES_ANY, false},
};

const char *replay_policy_name(enum replay_policy policy)
{
    return rules[policy].name;
}

int replay_policies_parse(const char *text, unsigned *ret_policies,
                          struct error *err)
{
    unsigned policies = 0;
    for (const char *at = text;; at++) {
        size_t size = strcspn(at, ","), i = 0;
        if (size == 3 && memcmp(at, "all", size) == 0)
            policies = (1u << POLICY_COUNT) - 1;
        else
            for (; i < POLICY_COUNT; i++)
                if (strlen(rules[i].name) == size &&
                    !memcmp(rules[i].name, at, size))
                    break;
        if (i == POLICY_COUNT) {
            cleanup_str struct str all = STR_INIT(ERROR_TEXT_MAX / 2);
            for (i = 0; i < POLICY_COUNT; i++)
                str_addf(&all, ", %s", rules[i].name);
            return error_set(err, EINVAL,
                             "--policies: has \"%.*s\", may have all%s",
                             (int)(size < 64 ? size : 64), at, str_text(&all));
        }
        if (size != 3)
            policies |= 1u << i;
        at += size;
        if (*at == '\0')
            break;
    }
    *ret_policies = policies;
    return 0;
}

void chooser_init(struct chooser *c, enum replay_policy policy,
                  const struct replay_fleet *fleet, bool want_gpus,
                  uint64_t seed)
{
    *c = (struct chooser){
        .policy = policy, .fleet = fleet, .want_gpus = want_gpus};
    c->random = hash_mix(seed + 1, UINT64_C(0xe7037ed1a0b428db) + policy);
    c->candidates = xcalloc(fleet->n, sizeof *c->candidates);
    for (size_t i = 0; i < fleet->n; i++)
        c->candidates[i] = (int32_t)i;
    c->fitting = xcalloc(fleet->n, sizeof *c->fitting);
    left_init(&c->left, fleet);
    if (policy == POLICY_LEAF)
        leaf_fit_init(&c->leaves, fleet);
    c->closest = xcalloc(CLOSEST_SLOTS, sizeof *c->closest);
    c->closest_key = xcalloc(CLOSEST_SLOTS, sizeof *c->closest_key);
}

void chooser_fini(struct chooser *c)
{
    free(c->candidates);
    free(c->fitting);
    left_fini(&c->left);
    leaf_fit_fini(&c->leaves);
    free(c->closest);
    free(c->closest_key);
}

void replay_demand(const struct chooser *c, const struct replay_job *job,
                   size_t number, uint32_t rank, struct demand *ret_demand)
{
    *ret_demand = (struct demand){
        .role = ROLE_HOST,
        .pair = (int32_t)rank,
        .size = (int32_t)job->pairs,
        .cards = job->cards,
        .pair_cards = job->cards,
        .gpus = c->want_gpus ? job->cards : 0,
        .pair_gpus = c->want_gpus ? job->cards : 0,
        .align = RELATION_SYS,
        .prefer_align = RELATION_PIX,
        .cpu_milli = job->cpu_milli,
        .memory_mib = job->memory_mib,
        .has_card_need = job->card_cores || job->card_memory_mib,
        .card_cores = job->card_cores,
        .card_memory_mib = job->card_memory_mib,
        .exclusive = !job->card_cores && !job->card_memory_mib,
        .within = DEMAND_ANYWHERE,
        .prefer_within = DEMAND_ANYWHERE,
    };
    (void)snprintf(ret_demand->namespace, sizeof ret_demand->namespace,
                   "replay");
    (void)snprintf(ret_demand->name, sizeof ret_demand->name, "job%zu-%u",
                   number, rank);
    (void)snprintf(ret_demand->job, sizeof ret_demand->job, "job%zu", number);
    (void)snprintf(ret_demand->uid, sizeof ret_demand->uid, "uid-%zu-%u",
                   number, rank);
}

/* --- biga --------------------------------------------------------------- */

/* As kube-scheduler does before it asks: only nodes whose hosts have the CPUs
 * and memory. */
static size_t find_fitting(struct chooser *c, const struct snapshot *s,
                           const struct demand *pod,
                           const int32_t **ret_candidates)
{
    size_t n = 0;
    *ret_candidates = c->candidates;
    if (!pod->cpu_milli && !pod->memory_mib)
        return c->fleet->n;
    for (size_t i = 0; i < c->fleet->n; i++) {
        const struct host_room room = snapshot_room_left(s, i);
        if (host_room_holds(&room, pod, 1))
            c->fitting[n++] = (int32_t)i;
    }
    *ret_candidates = c->fitting;
    return n;
}

static bool place_pod(struct chooser *c, const struct snapshot *s,
                      const struct demand *pod, struct spot *ret_spot)
{
    struct schedule schedule;
    struct choice choice;
    const int32_t *candidates;
    uint32_t best[BEST];
    size_t fitting, n = find_fitting(c, s, pod, &candidates);
    schedule_init(&schedule, s, pod);
    if (!schedule_best(&schedule, candidates, n, BEST, best, &fitting))
        return false;
    int32_t node = candidates[best[0]];
    if (schedule_choose(&schedule, node, &choice) != REASON_NONE)
        return false;
    *ret_spot = (struct spot){node, choice.cards, choice.gpus};
    return true;
}

/* Without the memory of plans, which serves pods of a job that ask one after
 * the other: here each job asks once, and a plan that is remembered would keep
 * the snapshot of a decision until the next one, in whose time it would go. */
static bool place_job(const struct snapshot *s, const struct demand *pod,
                      struct spot *ret_spots)
{
    cleanup_with(plan) struct plan *plan = NULL;
    struct plan_refusal refusal;
    if (job_plan(NULL, s, pod, NULL, 0, NODE_NONE, &plan, &refusal) < 0)
        return false;
    for (uint32_t r = 0; r < plan->size; r++)
        ret_spots[r] = (struct spot){plan->places[r].node,
                                     plan->places[r].choice.cards,
                                     plan->places[r].choice.gpus};
    return true;
}

/* --- the others: devices of a node -------------------------------------- */

static uint16_t random_bits(uint64_t *random, unsigned from, unsigned n)
{
    unsigned taken = 0;
    for (; n; n--) {
        unsigned left = from & ~taken, skip;
        for (skip = random_below(random, count_bits(left)); skip; skip--)
            left &= left - 1;
        taken |= left & -left;
    }
    return (uint16_t)taken;
}

static void pick_any(struct chooser *c, const struct replay_job *job,
                     struct free_devices from, struct spot *spot)
{
    spot->cards = random_bits(&c->random, from.cards, job->cards);
    spot->gpus = c->want_gpus ? random_bits(&c->random, from.gpus, job->cards)
                              : 0;
}

/* The NUMA node (a column of the shape) that holds the pair, -1: none. */
static int whole_numa(const struct chooser *c, const struct replay_job *job,
                      size_t node)
{
    const struct host_kind *k = fleet_kind(c->fleet, node);
    struct free_devices f = c->left.free[node];
    for (unsigned i = 0; i < k->n_numas; i++)
        if (count_bits(f.cards & k->numa_cards[i]) >= job->cards &&
            (!c->want_gpus ||
             count_bits(f.gpus & k->numa_gpus[i]) >= job->cards))
            return (int)i;
    return -1;
}

/* What is free on the node, or of it on the NUMA node that holds the pair. */
static struct free_devices
choose_from(const struct chooser *c, const struct replay_job *job, size_t node)
{
    const struct host_kind *k = fleet_kind(c->fleet, node);
    struct free_devices f = c->left.free[node];
    int numa = rules[c->policy].one_numa ? whole_numa(c, job, node) : -1;
    if (numa >= 0) {
        f.cards &= k->numa_cards[numa];
        f.gpus &= k->numa_gpus[numa];
    }
    return f;
}

static void pick_aligned(const struct chooser *c, const struct snapshot *s,
                         const struct demand *pod, struct free_devices from,
                         struct spot *spot)
{
    struct choice choice;
    struct node_state state = pod->has_card_need
                                  ? c->left.states[spot->node]
                                  : snapshot_node(s, (size_t)spot->node)->state;
    state.usable &= from.cards; /* pairs of this very job have the rest */
    state.gpus_used |= (uint16_t)~from.gpus;
    if (decide(&state, pod, 0, UINT16_MAX, &choice) != REASON_NONE)
        abort(); /* there are enough cards and GPUs */
    spot->cards = choice.cards;
    spot->gpus = choice.gpus;
}

/* Give each card in turn the nearest GPU that is still free. */
static unsigned greedy_gpus(const struct shape *shape, unsigned cards,
                            unsigned gpus)
{
    unsigned taken = 0;
    for (unsigned c = cards; c; c &= c - 1) {
        unsigned best = RELATION_COUNT, nearest = 0;
        for (unsigned g = gpus & ~taken; g; g &= g - 1) {
            unsigned r = shape->card_gpu[__builtin_ctz(c)][__builtin_ctz(g)];
            if (r < best) {
                best = r;
                nearest = g & -g;
            }
        }
        taken |= nearest;
    }
    return taken;
}

/* The closest devices of a node: worst relation first, then spread; the node
 * of the answer is that worth. */
static struct spot closest(const struct chooser *c,
                           const struct replay_job *job, size_t node)
{
    const struct host_kind *k = fleet_kind(c->fleet, node);
    const struct shape *shape = k->shape;
    struct free_devices f = c->left.free[node];
    struct spot best = {.node = INT32_MAX};
    for (uint32_t i = shape->first[job->cards];
         i < shape->first[job->cards + 1]; i++) {
        struct shape_subset subset = shape->subsets[i];
        struct choice choice;
        if (subset.cards & ~f.cards)
            continue;
        unsigned gpus = c->want_gpus ? greedy_gpus(shape, subset.cards, f.gpus)
                                     : 0;
        kind_rate(k, subset.cards, (uint16_t)gpus, &choice);
        int32_t worth = choice.relation << 16 | subset.spread;
        if (worth < best.node)
            best = (struct spot){worth, subset.cards, (uint16_t)gpus};
    }
    return best;
}

static struct spot closest_known(struct chooser *c,
                                 const struct replay_job *job, size_t node)
{
    uint64_t key = (uint64_t)(node % c->fleet->n_kinds + 1) << 40 |
                   (uint64_t)job->cards << 32 |
                   (uint64_t)c->left.free[node].cards << 16 |
                   c->left.free[node].gpus;
    size_t slot = hash_bytes(&key, sizeof key) % CLOSEST_SLOTS;
    if (c->closest_key[slot] != key) {
        c->closest[slot] = closest(c, job, node);
        c->closest_key[slot] = key;
    }
    return c->closest[slot];
}

/* --- the others: the node ----------------------------------------------- */

/* How well a node suits, lower is better. */
static int32_t node_worth(struct chooser *c, const struct replay_job *job,
                          size_t node)
{
    int32_t left = (int32_t)left_amount(&c->left, node);
    switch (c->policy) {
    case POLICY_LEAST:
        return -left;
    case POLICY_MOST:
    case POLICY_MOST_ALIGNED:
    case POLICY_LEAF:
        return left;
    case POLICY_NUMA:
    case POLICY_NUMA_ALIGNED:
        return left + (whole_numa(c, job, node) < 0 ? ELSEWHERE : 0);
    case POLICY_GREEDY:
        return closest_known(c, job, node).node;
    default:
        return 0;
    }
}

/* The best of the nodes; one of them at random, as kube-scheduler does, when
 * several are equal; the first one for first-fit. */
static int32_t pick_node(struct chooser *c, const struct replay_job *job,
                         const int32_t *nodes, size_t n)
{
    int32_t best = INT32_MAX, node = NODE_NONE;
    uint32_t equal = 0;
    for (size_t i = 0; i < n; i++) {
        if (!left_fits(&c->left, (size_t)nodes[i]))
            continue;
        if (c->policy == POLICY_FIRST_FIT || c->policy == POLICY_FIRST_ALIGNED)
            return nodes[i];
        int32_t worth = node_worth(c, job, (size_t)nodes[i]);
        if (worth > best)
            continue;
        equal = worth < best ? 1 : equal + 1;
        if (equal == 1 || random_below(&c->random, equal) == 0)
            node = nodes[i];
        best = worth;
    }
    return node;
}

static void pick_devices(struct chooser *c, const struct snapshot *s,
                         const struct replay_job *job, const struct demand *pod,
                         struct spot *spot)
{
    struct free_devices from = choose_from(c, job, (size_t)spot->node);
    switch (rules[c->policy].devices) {
    case DEVICES_FIRST:
        spot->cards = lowest_bits(from.cards, job->cards);
        spot->gpus = c->want_gpus ? lowest_bits(from.gpus, job->cards) : 0;
        break;
    case DEVICES_ALIGNED:
        pick_aligned(c, s, pod, from, spot);
        break;
    case DEVICES_CLOSEST: {
        struct spot near = closest_known(c, job, (size_t)spot->node);
        spot->cards = near.cards;
        spot->gpus = near.gpus;
        break;
    }
    case DEVICES_ANY:
        pick_any(c, job, from, spot);
    }
}

/* A single pair has no neighbours to be near. */
static bool is_by_leaf(const struct chooser *c, const struct replay_job *job)
{
    return c->policy == POLICY_LEAF && job->pairs > 1;
}

/* One of `left` pairs. */
static bool place_one(struct chooser *c, const struct snapshot *s,
                      const struct replay_job *job, uint32_t left,
                      const struct demand *pod, struct spot *spot)
{
    const int32_t *nodes = c->candidates;
    size_t n = is_by_leaf(c, job) ? leaf_fit_nodes(&c->leaves, left, &nodes)
                                  : c->fleet->n;
    spot->node = pick_node(c, job, nodes, n);
    if (spot->node == NODE_NONE)
        return false;
    pick_devices(c, s, job, pod, spot);
    left_take(&c->left, (size_t)spot->node, spot->cards, spot->gpus);
    if (is_by_leaf(c, job))
        leaf_fit_take(&c->leaves, (size_t)spot->node);
    return true;
}

static void look_at_leaves(struct chooser *c, const struct replay_job *job)
{
    leaf_fit_begin(&c->leaves);
    for (size_t i = 0; i < c->fleet->n; i++)
        leaf_fit_add(&c->leaves, i, left_pairs(&c->left, i));
    leaf_fit_choose(&c->leaves, job->pairs);
}

bool chooser_place(struct chooser *c, const struct snapshot *s,
                   const struct replay_job *job, size_t number,
                   struct spot *ret_spots)
{
    struct demand pod;
    replay_demand(c, job, number, 0, &pod);
    if (c->policy == POLICY_BIGA)
        return demand_is_planned(&pod) ? place_job(s, &pod, ret_spots)
                                       : place_pod(c, s, &pod, ret_spots);
    left_begin(&c->left, s, &pod);
    if (is_by_leaf(c, job))
        look_at_leaves(c, job);
    for (uint32_t r = 0; r < job->pairs; r++)
        if (!place_one(c, s, job, job->pairs - r, &pod, &ret_spots[r]))
            return false;
    return true;
}
