/* What one node holds of one shape. */
#include <string.h>

#include "model/decide/bits.h"
#include "model/plan/plan_private.h"

/* --- bounds ------------------------------------------------------------- */

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* How many pairs one card can serve. */
static uint32_t card_serves(const struct node_state *state,
                            const struct demand *shape, unsigned card,
                            uint32_t max)
{
    if (shape->exclusive || !shape->has_card_need ||
        (state->unsized >> card & 1))
        return least(1, max);
    if (shape->card_cores)
        max = least(max, state->free_cores[card] / shape->card_cores);
    if (shape->card_memory_mib)
        max = least(max, state->free_memory_mib[card] / shape->card_memory_mib);
    return max;
}

/* How often as many of `cards` as a pair has can be taken: n times when they
 * serve n times that many pairs, none of them more than n. */
static uint32_t sets_bound(const struct node_state *state,
                           const struct demand *shape, unsigned cards,
                           uint32_t max)
{
    uint32_t serves[TOPO_CARDS_MAX];
    for (unsigned c = cards; c; c &= c - 1) {
        unsigned card = (unsigned)__builtin_ctz(c);
        serves[card] = card_serves(state, shape, card, max);
    }
    for (;;) {
        uint64_t sum = 0;
        for (unsigned c = cards; c; c &= c - 1)
            sum += least(serves[__builtin_ctz(c)], max);
        sum /= shape->cards;
        if (sum >= max)
            return max;
        max = (uint32_t)sum;
    }
}

/* How many pairs the NUMA nodes have the CPUs for. */
static uint32_t cpus_bound(const struct node_state *state,
                           const struct demand *shape, uint32_t max)
{
    uint32_t cpus = decide_cpus(shape);
    uint64_t bound = 0;
    if (!cpus || shape->align > (shape->gpus ? RELATION_NODE : RELATION_SOCKET))
        return max;  /* they may be anywhere */
    if (shape->gpus) /* cards that are on no NUMA node leave it open */
        for (unsigned c = 0; c < state->shape->n_cards; c++) {
            bool rooted = false;
            for (unsigned n = 0; n < state->shape->n_numas; n++)
                rooted |= state->shape->card_numa[c][n] <= RELATION_NODE;
            if (!rooted)
                return max;
        }
    for (unsigned n = 0; n < state->shape->n_numas; n++)
        bound += state->free_cpu_milli[n] == UINT32_MAX
                     ? max
                     : state->free_cpu_milli[n] / cpus;
    return bound < max ? (uint32_t)bound : max;
}

/* The cards and GPUs that hang together with the lowest of `cards`: no
 * aligned pair is partly among them. */
static void component(const struct align *a, unsigned cards, unsigned gpus,
                      unsigned *ret_cards, unsigned *ret_gpus)
{
    unsigned in = cards & -cards, in_gpus = 0, seen = 0;
    while (in & ~seen) {
        unsigned c = (unsigned)__builtin_ctz(in & ~seen);
        seen |= 1u << c;
        in |= a->near[c] & cards;
        for (unsigned g = gpus & ~in_gpus; g; g &= g - 1) {
            unsigned gpu = (unsigned)__builtin_ctz(g);
            if (a->shape->card_gpu[c][gpu] > a->relation)
                continue;
            in_gpus |= 1u << gpu;
            for (unsigned d = cards & ~in; d; d &= d - 1)
                if (a->shape->card_gpu[__builtin_ctz(d)][gpu] <= a->relation)
                    in |= d & -d;
        }
    }
    *ret_cards = in;
    *ret_gpus = in_gpus;
}

static unsigned gpus_left(const struct node_state *state,
                          const struct demand *shape)
{
    if (!shape->gpus)
        return 0;
    return ((1u << state->shape->n_gpus) - 1) & ~(unsigned)state->gpus_used;
}

/* Of some cards and GPUs. */
static uint32_t part_bound(const struct node_state *state,
                           const struct demand *shape, unsigned cards,
                           unsigned gpus, uint32_t max)
{
    if (shape->gpus)
        max = least(max, count_bits(gpus) / shape->gpus);
    return sets_bound(state, shape, cards, max);
}

/* Of aligned pairs on `cards`. */
static uint32_t parts_bound(const struct node_state *state,
                            const struct demand *shape, const struct align *a,
                            unsigned cards, uint32_t max)
{
    uint32_t bound = 0;
    while (cards && bound < max) {
        unsigned part, gpus;
        component(a, cards, gpus_left(state, shape), &part, &gpus);
        cards &= ~part;
        bound += part_bound(state, shape, part, gpus, max);
    }
    return least(bound, max);
}

static unsigned cards_near(const struct shape *shape, unsigned numa,
                           unsigned relation)
{
    unsigned cards = 0;
    for (unsigned c = 0; c < shape->n_cards; c++)
        if (shape->card_numa[c][numa] <= relation)
            cards |= 1u << c;
    return cards;
}

/* Pairs without GPUs have one NUMA node near all of their cards.  `a`: count
 * the aligned ones, NULL: all. */
static uint32_t numas_bound(const struct node_state *state,
                            const struct demand *shape, const struct align *a,
                            unsigned cards, uint32_t max)
{
    unsigned relation = a ? a->relation : decide_align(shape);
    uint32_t cpus = decide_cpus(shape), bound = 0;
    if (relation < RELATION_NODE)
        relation = RELATION_NODE;
    for (unsigned n = 0; n < state->shape->n_numas && bound < max; n++) {
        unsigned near = cards & cards_near(state->shape, n, relation);
        uint32_t most = max;
        if (cpus && state->free_cpu_milli[n] != UINT32_MAX)
            most = least(most, state->free_cpu_milli[n] / cpus);
        bound += a ? parts_bound(state, shape, a, near, most)
                   : sets_bound(state, shape, near, most);
    }
    return least(bound, max);
}

uint32_t ladder_bound(const struct node_state *state,
                      const struct demand *shape, uint32_t max)
{
    unsigned cards = decide_cards_for(state, shape);
    if (shape->cards == 0 || count_bits(cards) < shape->cards)
        return 0;
    max = cpus_bound(state, shape, max);
    if (shape->gpus)
        max = least(max, (state->shape->n_gpus - count_bits(state->gpus_used)) /
                             shape->gpus);
    if (shape->nics)
        max = least(max, count_bits(decide_nics_free(state)) / shape->nics);
    if (!shape->gpus && decide_align(shape) < RELATION_SYS)
        return numas_bound(state, shape, NULL, cards, max);
    if (shape->gpus == 1 || (shape->gpus && shape->cards == 1)) {
        /* all of a pair hang together, at `align` or closer */
        struct align a = {.shape = state->shape, .relation = shape->align};
        for (unsigned c = 0; c < state->shape->n_cards; c++)
            a.near[c] = (uint16_t)(1u << c);
        return parts_bound(state, shape, &a, cards, max);
    }
    return sets_bound(state, shape, cards, max);
}

void align_init(struct align *a, const struct shape *shape,
                const struct demand *demand)
{
    unsigned k = demand->cards;
    memset(a, 0, sizeof *a);
    a->shape = shape;
    a->ideal = (struct decide_ideal){0, 0};
    if (!decide_ideal(shape, demand, &a->ideal) || k > TOPO_CARDS_MAX)
        return;
    bool best = demand->prefer_align == RELATION_PIX;
    a->relation = best ? a->ideal.relation : demand->prefer_align;
    for (unsigned c = 0; c < shape->n_cards; c++)
        a->near[c] = (uint16_t)(1u << c);
    for (uint32_t i = shape->first[k]; i < shape->first[k + 1]; i++) {
        const struct shape_subset *set = &shape->subsets[i];
        if (best && set->spread > a->ideal.spread)
            break;
        for (unsigned c = set->cards; c; c &= c - 1)
            a->near[__builtin_ctz(c)] |= set->cards;
    }
}

/* No node holds more aligned pairs than this. */
static uint32_t aligned_bound(const struct node_state *state,
                              const struct demand *shape, const struct align *a,
                              uint32_t max)
{
    unsigned cards = decide_cards_for(state, shape);
    if (shape->cards == 0)
        return 0;
    max = parts_bound(state, shape, a, cards, max);
    if (!shape->gpus && a->relation < RELATION_SYS)
        max = numas_bound(state, shape, a, cards, max);
    return max;
}

/* --- ladders ------------------------------------------------------------ */

struct climber {
    struct ladder *ladder;
    const struct demand *shape;
    const struct align *a;
    const struct node_state *state;
    struct node_state left;
    size_t cap;
    uint16_t cards; /* that are taken */
};

static void ladder_grow(struct ladder *l, size_t *cap)
{
    if (l->room + 1 < *cap)
        return;
    *cap = *cap ? *cap * 2 : 16;
    l->unaligned = xrealloc(l->unaligned, *cap, sizeof *l->unaligned);
    l->damage = xrealloc(l->damage, *cap, sizeof *l->damage);
    l->choices = xrealloc(l->choices, *cap, sizeof *l->choices);
}

static void climber_init(struct climber *c, struct ladder *l,
                         const struct node_state *state,
                         const struct demand *shape, const struct align *a)
{
    *c = (struct climber){
        .ladder = l, .shape = shape, .a = a, .state = state, .left = *state};
    memset(l, 0, sizeof *l);
    l->nested = true;
    ladder_grow(l, &c->cap);
    l->unaligned[0] = l->damage[0] = 0;
}

/* One more pair, with the cards `must` and none but `within`. */
static bool climb_once(struct climber *c, unsigned must, unsigned within,
                       bool aligned)
{
    struct ladder *l = c->ladder;
    struct choice *choice = &l->choices[l->room];
    if (!decide_search(&c->left, c->shape, (uint16_t)must, (uint16_t)within,
                       choice))
        return false;
    bool bad = !decide_meets(c->state->shape, c->shape, &c->a->ideal, choice);
    if (bad && aligned)
        return false;
    node_state_take(&c->left, c->shape, choice);
    c->cards |= choice->cards;
    l->room++;
    l->unaligned[l->room] = l->unaligned[l->room - 1] + bad;
    l->damage[l->room] = plan_damage(c->state, c->cards);
    if (l->unaligned[l->room] == 0)
        l->aligned = l->room;
    ladder_grow(l, &c->cap);
    return true;
}

/* One after the other, each the best that is left. */
static void climb(struct ladder *l, const struct node_state *state,
                  const struct demand *shape, const struct align *a,
                  uint32_t max)
{
    struct climber c;
    climber_init(&c, l, state, shape, a);
    while (l->room < max && climb_once(&c, 0, UINT16_MAX, false))
        continue;
}

/* As many as `cards` can serve: of cards that serve as many pairs as are
 * still to come all have to be taken each time, or else nothing but them. */
static void climb_part(struct climber *c, unsigned cards, unsigned gpus,
                       bool aligned, uint32_t max)
{
    cards &= decide_cards_for(&c->left, c->shape);
    uint32_t n = part_bound(&c->left, c->shape, cards, gpus,
                            max - c->ladder->room);
    for (; n > 0; n--) {
        unsigned tight = 0;
        for (unsigned m = cards; m; m &= m - 1)
            if (card_serves(&c->left, c->shape, (unsigned)__builtin_ctz(m),
                            n) >= n)
                tight |= m & -m;
        tight &= decide_cards_for(&c->left, c->shape);
        bool many = count_bits(tight) > c->shape->cards;
        if (!climb_once(c, many ? 0 : tight, many ? tight : cards, aligned) &&
            !climb_once(c, 0, cards, aligned))
            break;
    }
}

/* Aligned pairs first, so that no card is left over if it can be helped. */
static void climb_evenly(struct ladder *l, const struct node_state *state,
                         const struct demand *shape, const struct align *a,
                         uint32_t max)
{
    struct climber c;
    climber_init(&c, l, state, shape, a);
    unsigned part, gpus;
    for (unsigned cards = decide_cards_for(state, shape); cards;
         cards &= ~part) {
        component(a, cards, gpus_left(state, shape), &part, &gpus);
        climb_part(&c, part, gpus, true, max);
    }
    if (!shape->gpus && decide_align(shape) < RELATION_SYS)
        for (unsigned n = 0; n < state->shape->n_numas; n++)
            climb_part(&c, cards_near(state->shape, n, decide_align(shape)), 0,
                       false, max);
    climb_part(&c, UINT16_MAX, gpus_left(&c.left, shape), false, max);
}

/* As many as there is room for, aligned or not. */
static void climb_fully(struct ladder *l, const struct node_state *state,
                        const struct demand *shape, const struct align *a,
                        uint32_t max)
{
    struct climber c;
    climber_init(&c, l, state, shape, a);
    climb_part(&c, UINT16_MAX, gpus_left(state, shape), false, max);
}

/* Take the upper rungs of `tall`, from the first one on from where it is
 * nowhere worse and somewhere better.  `tall` is used up. */
static void ladder_merge(struct ladder *l, struct ladder *tall)
{
    uint32_t first = l->room + 1;
    while (first > 1 && first - 1 <= tall->room &&
           tall->unaligned[first - 1] <= l->unaligned[first - 1])
        first--;
    while (first <= l->room && first <= tall->room &&
           tall->unaligned[first] == l->unaligned[first])
        first++;
    if (tall->room < l->room || first > tall->room) {
        ladder_fini(tall);
        return;
    }
    for (uint32_t n = 1; n < first; n++) {
        tall->damage[n] = l->damage[n];
        tall->unaligned[n] = l->unaligned[n];
    }
    tall->aligned = 0;
    while (tall->aligned < tall->room &&
           tall->unaligned[tall->aligned + 1] == 0)
        tall->aligned++;
    tall->low = xmemdup(l, sizeof *l);
    tall->low_end = first;
    *l = *tall;
}

/* Does every rung have as few unaligned as can be? */
static bool is_best(const struct ladder *l, uint32_t room, uint32_t aligned)
{
    return l->room == room && l->unaligned[room] == room - least(room, aligned);
}

static void ladder_from(struct ladder *l, const struct pack *p)
{
    uint32_t room = p->n_rungs - 1, bound = l->bound;
    while (!p->rungs[room].fits)
        room--;
    ladder_fini(l);
    memset(l, 0, sizeof *l);
    l->room = room;
    l->bound = bound;
    l->unaligned = xcalloc(room + 1u, sizeof *l->unaligned);
    l->damage = xcalloc(room + 1u, sizeof *l->damage);
    l->choices = xcalloc((size_t)room * (room + 1) / 2 + 1, sizeof *l->choices);
    for (uint32_t n = 1; n <= room; n++) {
        l->unaligned[n] = p->rungs[n].unaligned;
        l->damage[n] = p->rungs[n].damage;
        if (l->unaligned[n] == 0)
            l->aligned = n;
        memcpy(l->choices + (size_t)n * (n - 1) / 2, p->rungs[n].choices,
               n * sizeof *l->choices);
    }
}

void ladder_improve(struct ladder *l, const struct node_state *state,
                    const struct demand *shape, uint64_t *steps)
{
    struct pack p;
    uint32_t most = least(l->bound, PACK_PAIRS);
    pack_init(&p, state, shape, 1, &most, steps);
    uint32_t top = most;
    while (!p.rungs[top].fits)
        top--;
    if (top > l->room || (top == l->room && (!p.cut || p.rungs[top].unaligned <
                                                           l->unaligned[top])))
        ladder_from(l, &p);
    if (!p.cut && most == l->bound)
        l->bound = l->room;
    pack_fini(&p);
}

void ladder_init(struct ladder *l, const struct node_state *state,
                 const struct demand *shape, const struct align *a,
                 uint32_t max)
{
    uint32_t bound = ladder_bound(state, shape, max);
    uint32_t aligned = aligned_bound(state, shape, a, bound);
    climb(l, state, shape, a, bound);
    if (!is_best(l, bound, aligned) && shape->cards > 1) {
        struct ladder even;
        climb_evenly(&even, state, shape, a, bound);
        ladder_merge(l, &even);
        if (l->room < bound) {
            climb_fully(&even, state, shape, a, bound);
            ladder_merge(l, &even);
        }
    }
    l->bound = bound;
    l->open = l->room <= PACK_PAIRS && !is_best(l, bound, aligned);
}

void ladder_fini(struct ladder *l)
{
    free(l->unaligned);
    free(l->damage);
    free(l->choices);
    if (l->low)
        ladder_fini(l->low);
    free(l->low);
}

uint32_t plan_room_for(const struct node_state *state,
                       const struct demand *shape, uint32_t max,
                       uint64_t *steps, uint32_t *ret_aligned)
{
    struct ladder l;
    struct align a;
    align_init(&a, state->shape, shape);
    ladder_init(&l, state, shape, &a, max);
    if (l.open && *steps)
        ladder_improve(&l, state, shape, steps);
    uint32_t room = l.room;
    *ret_aligned = l.aligned;
    ladder_fini(&l);
    return room;
}

uint32_t plan_room(const struct node_state *state, const struct demand *shape,
                   uint32_t max, uint32_t *ret_aligned)
{
    uint64_t steps = LADDER_STEPS;
    return plan_room_for(state, shape, max, &steps, ret_aligned);
}
