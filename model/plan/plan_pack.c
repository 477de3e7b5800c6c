/* The best ways to put a few pairs on one node: every way is tried, but for
 * those that are another under other names. */
#include <string.h>

#include "lib/base/hash.h"
#include "model/decide/decide_cover.h"
#include "model/plan/plan_private.h"

enum { WAYS_PER_STEP = 16 }; /* that cost no more to skip than one step */

/* One way to give one pair its devices. */
struct way {
    struct choice choice; /* NICs, NUMA node, relation to it and cost not
                           * yet known */
    uint16_t order;       /* of its set of cards: pairs of one shape follow
                           * each other in this order */
};

struct ways {
    struct way *list;
    size_t n, cap;
};

/* How far a dive has come. */
struct walk {
    uint32_t code, unaligned;
    struct choice choice; /* of the pair that comes next */
};

struct dive {
    const struct node_state *state;
    const struct demand *shapes;
    struct pack *pack;
    struct ways ways[PLAN_SHAPES_MAX];
    struct decide_ideal ideal[PLAN_SHAPES_MAX];
    uint16_t lower_twins[TOPO_GPUS_MAX]; /* GPUs below that are as close to
                                          * every card */
    uint32_t used[PLAN_SHAPES_MAX];
    struct choice chosen[PACK_PAIRS];
    uint64_t *seen; /* hashes, open addressing */
    uint32_t *seen_unaligned;
    size_t seen_mask, n_seen;
    uint64_t steps; /* that are left */
};

/* --- the ways of a shape ------------------------------------------------ */

static unsigned worse(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

/* Everybody's distance to the nearest of the others, at worst. */
static unsigned gpu_relation(const struct shape *s, unsigned cards,
                             unsigned gpus)
{
    uint8_t gpu_near[TOPO_GPUS_MAX];
    unsigned worst = 0;
    memset(gpu_near, RELATION_COUNT, sizeof gpu_near);
    for (unsigned c = cards; c; c &= c - 1) {
        unsigned card = (unsigned)__builtin_ctz(c), near = RELATION_COUNT;
        for (unsigned g = gpus; g; g &= g - 1) {
            unsigned gpu = (unsigned)__builtin_ctz(g);
            uint8_t relation = s->card_gpu[card][gpu];
            near = relation < near ? relation : near;
            if (relation < gpu_near[gpu])
                gpu_near[gpu] = relation;
        }
        worst = worse(worst, near);
    }
    for (unsigned g = gpus; g; g &= g - 1)
        worst = worse(worst, gpu_near[__builtin_ctz(g)]);
    return worst;
}

static unsigned numa_relation(const struct shape *s, unsigned cards, unsigned n,
                              unsigned *ret_sum)
{
    unsigned worst = RELATION_NODE, sum = 0;
    for (unsigned c = cards; c; c &= c - 1) {
        worst = worse(worst, s->card_numa[__builtin_ctz(c)][n]);
        sum += s->card_numa[__builtin_ctz(c)][n];
    }
    *ret_sum = sum;
    return worst;
}

static void add_way(struct ways *ways, const struct way *way)
{
    ways->list = xgrow(ways->list, ways->n, &ways->cap, sizeof *ways->list);
    ways->list[ways->n++] = *way;
}

/* The same set of cards with all sets of GPUs. */
static void add_gpus(struct ways *ways, const struct node_state *state,
                     const struct demand *demand, struct way *way)
{
    unsigned free = ((1u << state->shape->n_gpus) - 1) &
                    ~(unsigned)state->gpus_used;
    if (!demand->gpus) {
        way->choice.gpus = 0;
        add_way(ways, way);
        return;
    }
    struct sets sets;
    sets_begin(&sets, free, demand->gpus);
    for (unsigned gpus; (gpus = sets_next(&sets)) != 0;) {
        way->choice.gpus = (uint16_t)gpus;
        way->choice.relation = (uint8_t)gpu_relation(state->shape,
                                                     way->choice.cards, gpus);
        if (way->choice.relation <= demand->align)
            add_way(ways, way);
    }
}

static uint64_t choose(unsigned n, unsigned k)
{
    uint64_t ways = 1;
    for (unsigned i = 0; i < k && k <= n; i++)
        ways = ways * (n - i) / (i + 1);
    return k <= n ? ways : 0;
}

/* False when there are more than can be looked at; each is a step. */
static bool list_ways(struct ways *ways, const struct node_state *state,
                      const struct demand *demand, uint64_t *steps)
{
    enum { WAYS_MAX = 16384 };
    const struct shape *shape = state->shape;
    unsigned cards = decide_cards_for(state, demand);
    unsigned n_gpus = shape->n_gpus -
                      (unsigned)__builtin_popcount(state->gpus_used);
    struct way way = {.choice = {.cost = 0}};
    if (demand->cards == 0 || demand->cards > TOPO_CARDS_MAX ||
        demand->gpus > n_gpus)
        return true;
    uint64_t n = choose((unsigned)__builtin_popcount(cards), demand->cards) *
                 choose(n_gpus, demand->gpus);
    if (n > WAYS_MAX || n > *steps)
        return false;
    *steps -= n;
    for (uint32_t i = shape->first[demand->cards];
         i < shape->first[demand->cards + 1]; i++) {
        if (shape->subsets[i].cards & ~cards)
            continue;
        way.choice.cards = shape->subsets[i].cards;
        add_gpus(ways, state, demand, &way);
        way.order++;
    }
    return true;
}

static void find_twins(struct dive *d)
{
    const struct shape *s = d->state->shape;
    for (unsigned g = 0; g < s->n_gpus; g++)
        for (unsigned h = 0; h < g; h++) {
            bool same = true;
            for (unsigned c = 0; c < s->n_cards && same; c++)
                same = s->card_gpu[c][g] == s->card_gpu[c][h];
            if (same)
                d->lower_twins[g] |= (uint16_t)(1u << h);
        }
}

/* --- the search --------------------------------------------------------- */

static bool rung_improves(const struct pack_rung *rung, uint32_t unaligned,
                          uint32_t damage, uint32_t idle)
{
    if (!rung->fits || unaligned != rung->unaligned)
        return !rung->fits || unaligned < rung->unaligned;
    if (damage != rung->damage)
        return damage < rung->damage;
    return idle > rung->idle;
}

static void record(struct dive *d, uint32_t code, uint32_t depth,
                   uint32_t unaligned)
{
    struct pack_rung *rung = &d->pack->rungs[code];
    unsigned cards = 0;
    for (uint32_t i = 0; i < depth; i++)
        cards |= d->chosen[i].cards;
    uint32_t damage = plan_damage(d->state, (uint16_t)cards);
    uint32_t idle = (uint32_t)__builtin_popcount(cards & d->state->usable &
                                                 ~(unsigned)d->state->occupied);
    if (!rung_improves(rung, unaligned, damage, idle))
        return;
    rung->fits = true;
    rung->unaligned = unaligned;
    rung->damage = damage;
    rung->idle = idle;
    memcpy(rung->choices, d->chosen, depth * sizeof d->chosen[0]);
}

static void seen_grow(struct dive *d)
{
    size_t old = d->seen_mask + 1, size = d->seen ? old * 2 : 256;
    uint64_t *seen = xcalloc(size, sizeof *seen);
    uint32_t *unaligned = xcalloc(size, sizeof *unaligned);
    for (size_t i = 0; d->seen && i < old; i++) {
        size_t at = d->seen[i] & (size - 1);
        if (!d->seen[i])
            continue;
        while (seen[at])
            at = (at + 1) & (size - 1);
        seen[at] = d->seen[i];
        unaligned[at] = d->seen_unaligned[i];
    }
    free(d->seen);
    free(d->seen_unaligned);
    d->seen = seen;
    d->seen_unaligned = unaligned;
    d->seen_mask = size - 1;
}

/* Was as much already reached from here, with no more unaligned? */
static bool was_seen(struct dive *d, const struct node_state *left,
                     uint64_t where, uint32_t unaligned)
{
    /* all but the shape's address */
    uint64_t key = hash_mix(hash_bytes(left->free_cores,
                                       sizeof *left - sizeof left->shape) ^
                                where,
                            UINT64_C(0x9e3779b97f4a7c15)) |
                   1;
    if (!d->seen || d->n_seen * 2 > d->seen_mask)
        seen_grow(d);
    size_t at = key & d->seen_mask;
    while (d->seen[at] && d->seen[at] != key)
        at = (at + 1) & d->seen_mask;
    if (d->seen[at] && d->seen_unaligned[at] <= unaligned)
        return true;
    d->n_seen += !d->seen[at];
    d->seen[at] = key;
    d->seen_unaligned[at] = unaligned;
    return false;
}

/* GPUs that are as close to everything are taken from below. */
static bool gpus_are_lowest(const struct dive *d, unsigned used, unsigned gpus)
{
    for (unsigned g = gpus; g; g &= g - 1)
        if (d->lower_twins[__builtin_ctz(g)] & ~used & ~gpus)
            return false;
    return true;
}

static void dive(struct dive *d, const struct node_state *left, size_t at,
                 unsigned order, uint32_t code, uint32_t unaligned);

static uint32_t depth_of(const struct dive *d)
{
    uint32_t depth = 0;
    for (size_t s = 0; s < d->pack->n_shapes; s++)
        depth += d->used[s];
    return depth;
}

/* Any free NICs: they decide neither whether pairs fit nor how aligned they
 * are.  False when too few are left. */
static bool take_nics(const struct node_state *left, unsigned n,
                      struct choice *choice)
{
    unsigned free = n ? decide_nics_free(left) : 0;
    for (; n && free; free &= free - 1, n--)
        choice->nics |= (uint16_t)(free & -free);
    return n == 0;
}

/* One more pair of a shape, as `way` says and on that NUMA node. */
static void dive_pair(struct dive *d, const struct node_state *left, size_t at,
                      const struct way *way, struct walk walk)
{
    size_t shape = d->pack->order[at];
    const struct demand *demand = &d->shapes[shape];
    struct choice *choice = &walk.choice;
    if (!take_nics(left, demand->nics, choice))
        return;
    if (d->steps == 0) {
        d->pack->cut = true;
        return;
    }
    d->steps--;
    struct node_state next = *left;
    bool bad = !decide_meets(left->shape, demand, &d->ideal[shape], choice);
    node_state_take(&next, demand, choice);
    d->chosen[depth_of(d)] = *choice;
    d->used[shape]++;
    dive(d, &next, at, way->order, walk.code + d->pack->stride[shape],
         walk.unaligned + bad);
    d->used[shape]--;
}

/* Is one of the cards on the NUMA node, as far as they are on any? */
static bool numa_is_own(const struct shape *s, unsigned cards, unsigned n)
{
    bool rooted = false;
    for (unsigned c = cards; c; c &= c - 1)
        for (unsigned m = 0; m < s->n_numas; m++)
            if (s->card_numa[__builtin_ctz(c)][m] <= RELATION_NODE) {
                rooted = true;
                if (m == n)
                    return true;
            }
    return !rooted;
}

/* May the pair's CPUs be on no NUMA node in particular?  Whether one would
 * do must not matter, or the order of pairs would. */
static bool may_be_nowhere(const struct shape *s, const struct demand *demand,
                           unsigned cards)
{
    if (!demand->gpus)
        return demand->align == RELATION_SYS;
    return demand->align > RELATION_NODE || !decide_cpus(demand) ||
           numa_is_own(s, cards, TOPO_NUMAS_MAX);
}

/* The closest NUMA node of `*numas` that may hold the pair's CPUs, taken out
 * of them; false when there is none. */
static bool next_numa(const struct shape *shape, const struct demand *demand,
                      unsigned cards, uint64_t *numas, struct choice *choice)
{
    bool own = demand->gpus && demand->align <= RELATION_NODE &&
               decide_cpus(demand);
    unsigned best = UINT32_MAX, best_n = 0;
    for (uint64_t m = *numas; m; m &= m - 1) {
        unsigned n = (unsigned)__builtin_ctzll(m), sum;
        unsigned relation = numa_relation(shape, cards, n, &sum);
        unsigned weight = relation * TOPO_CARDS_MAX * RELATION_COUNT + sum;
        if (weight >= best ||
            (!demand->gpus && relation > decide_align(demand)) ||
            (own && !numa_is_own(shape, cards, n)))
            continue;
        best = weight;
        best_n = n;
        choice->numa = shape->numa_id[n];
        if (!demand->gpus)
            choice->relation = (uint8_t)relation;
    }
    *numas &= ~(UINT64_C(1) << best_n);
    return best != UINT32_MAX;
}

/* On every NUMA node that may hold the pair's CPUs; the closest alone when it
 * makes no difference. */
static void dive_numas(struct dive *d, const struct node_state *left, size_t at,
                       const struct way *way, struct walk walk)
{
    const struct demand *demand = &d->shapes[d->pack->order[at]];
    unsigned cards = way->choice.cards;
    uint64_t numas = decide_numas_with(left, decide_cpus(demand));
    bool any = false;
    walk.choice = way->choice;
    while (next_numa(left->shape, demand, cards, &numas, &walk.choice)) {
        any = true;
        dive_pair(d, left, at, way, walk);
        if (!decide_cpus(demand))
            break;
    }
    if ((any && !decide_cpus(demand)) ||
        !may_be_nowhere(left->shape, demand, cards))
        return;
    walk.choice.numa = -1;
    if (!demand->gpus)
        walk.choice.relation = RELATION_SYS;
    dive_pair(d, left, at, way, walk);
}

static void dive_ways(struct dive *d, const struct node_state *left, size_t at,
                      unsigned order, struct walk walk)
{
    size_t shape = d->pack->order[at];
    unsigned cards = decide_cards_for(left, &d->shapes[shape]);
    uint64_t scan = d->ways[shape].n / WAYS_PER_STEP;
    d->steps -= scan < d->steps ? scan : d->steps;
    for (size_t i = 0; i < d->ways[shape].n && !d->pack->cut; i++) {
        const struct way *way = &d->ways[shape].list[i];
        if (way->order < order || (way->choice.cards & ~cards) != 0 ||
            (way->choice.gpus & left->gpus_used) != 0 ||
            !gpus_are_lowest(d, left->gpus_used, way->choice.gpus))
            continue;
        dive_numas(d, left, at, way, walk);
    }
}

static void dive(struct dive *d, const struct node_state *left, size_t at,
                 unsigned order, uint32_t code, uint32_t unaligned)
{
    uint32_t depth = depth_of(d);
    if (was_seen(d, left, (uint64_t)code << 32 | order, unaligned))
        return;
    record(d, code, depth, unaligned);
    for (size_t i = at; i < d->pack->n_shapes; i++)
        if (d->used[d->pack->order[i]] < d->pack->most[d->pack->order[i]])
            dive_ways(d, left, i, i == at ? order : 0,
                      (struct walk){.code = code, .unaligned = unaligned});
}

/* Pairs that state no need close their cards: they come last. */
static void order_shapes(struct pack *p, const struct demand *shapes)
{
    size_t n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t s = 0; s < p->n_shapes; s++)
            if (shapes[s].has_card_need == (pass == 0))
                p->order[n++] = (uint8_t)s;
}

/* Of one rung: the best NICs for its pairs, in their order. */
static void settle_nics(const struct dive *d, uint32_t code)
{
    const struct pack *p = d->pack;
    struct node_state left = *d->state;
    struct choice *choice = p->rungs[code].choices;
    for (size_t i = 0; i < p->n_shapes; i++) {
        unsigned s = p->order[i];
        uint32_t n = code / p->stride[s] % (p->most[s] + 1);
        for (; n > 0; n--, choice++) {
            if (d->shapes[s].nics)
                (void)decide_add_nics(&left, &d->shapes[s], choice);
            left.nics_used |= choice->nics;
        }
    }
}

void pack_init(struct pack *p, const struct node_state *state,
               const struct demand *shapes, size_t n_shapes,
               const uint32_t *most, uint64_t *steps)
{
    struct dive d = {
        .state = state, .shapes = shapes, .pack = p, .steps = *steps};
    memset(p, 0, sizeof *p);
    p->n_shapes = n_shapes;
    p->n_rungs = 1;
    order_shapes(p, shapes);
    for (size_t s = 0; s < n_shapes; s++) {
        p->most[s] = most[s];
        p->stride[s] = p->n_rungs;
        p->n_rungs *= most[s] + 1;
    }
    p->rungs = xcalloc(p->n_rungs, sizeof *p->rungs);
    find_twins(&d);
    for (size_t s = 0; s < n_shapes; s++)
        if (most[s]) {
            (void)decide_ideal(state->shape, &shapes[s], &d.ideal[s]);
            if (!list_ways(&d.ways[s], state, &shapes[s], &d.steps))
                p->cut = true;
        }
    dive(&d, state, 0, 0, 0, 0);
    for (uint32_t code = 0; code < p->n_rungs; code++)
        if (p->rungs[code].fits)
            settle_nics(&d, code);
    *steps = d.steps;
    for (size_t s = 0; s < n_shapes; s++)
        free(d.ways[s].list);
    free(d.seen);
    free(d.seen_unaligned);
}

void pack_fini(struct pack *p)
{
    free(p->rungs);
}
