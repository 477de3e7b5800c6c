/* What one node holds of one shape. */
#include <string.h>

#include "model/plan_private.h"

/* --- bounds ------------------------------------------------------------------ */

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t count_bits(unsigned bits)
{
    return (uint32_t)__builtin_popcount(bits);
}

static unsigned cards_for(const struct node_state *state,
                          const struct demand *shape)
{
    return decide_cards_open(state, shape) &
           decide_cards_with(state->free_cores, state->free_memory_mib,
                             decide_need(shape)) &
           decide_cards_of_arch(state->shape, shape);
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

uint32_t ladder_bound(const struct node_state *state,
                      const struct demand *shape, uint32_t max)
{
    unsigned cards = cards_for(state, shape);
    uint64_t places = 0;
    if (shape->cards == 0 || count_bits(cards) < shape->cards)
        return 0;
    max = cpus_bound(state, shape, max);
    if (shape->gpus)
        max = least(max, (state->shape->n_gpus - count_bits(state->gpus_used)) /
                             shape->gpus);
    for (unsigned c = cards; c; c &= c - 1)
        places += card_serves(state, shape, (unsigned)__builtin_ctz(c), max);
    places /= shape->cards;
    return places < max ? (uint32_t)places : max;
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

/* No node holds more aligned pairs than this. */
static uint32_t aligned_bound(const struct node_state *state,
                              const struct demand *shape, const struct align *a,
                              uint32_t max)
{
    unsigned gpus = ((1u << state->shape->n_gpus) - 1) &
                    ~(unsigned)state->gpus_used;
    uint32_t bound = 0;
    if (shape->cards == 0)
        return 0;
    for (unsigned left = cards_for(state, shape); left && bound < max;) {
        unsigned cards, near;
        uint64_t places = 0;
        component(a, left, shape->gpus ? gpus : 0, &cards, &near);
        left &= ~cards;
        for (unsigned c = cards; c; c &= c - 1)
            places += card_serves(state, shape, (unsigned)__builtin_ctz(c),
                                  max);
        if (count_bits(cards) < shape->cards)
            continue;
        places /= shape->cards;
        uint32_t here = places < max ? (uint32_t)places : max;
        if (shape->gpus)
            here = least(here, count_bits(near) / shape->gpus);
        bound += here;
    }
    return least(bound, max);
}

/* --- ladders ------------------------------------------------------------------ */

static void ladder_grow(struct ladder *l, size_t *cap)
{
    if (l->room + 1 < *cap)
        return;
    *cap = *cap ? *cap * 2 : 16;
    l->unaligned = xrealloc(l->unaligned, *cap, sizeof *l->unaligned);
    l->damage = xrealloc(l->damage, *cap, sizeof *l->damage);
    l->choices = xrealloc(l->choices, *cap, sizeof *l->choices);
}

/* One after the other, each the best that is left. */
static void climb(struct ladder *l, const struct node_state *state,
                  const struct demand *shape, const struct align *a,
                  uint32_t max)
{
    struct node_state left = *state;
    size_t cap = 0;
    uint16_t cards = 0;
    l->nested = true;
    ladder_grow(l, &cap);
    l->unaligned[0] = l->damage[0] = 0;
    while (l->room < max) {
        struct choice *choice = &l->choices[l->room];
        if (!decide_search(&left, shape, 0, UINT16_MAX, choice))
            break;
        bool bad = !decide_meets(state->shape, shape, &a->ideal, choice);
        node_state_take(&left, shape, choice);
        cards |= choice->cards;
        l->room++;
        l->unaligned[l->room] = l->unaligned[l->room - 1] + bad;
        l->damage[l->room] = plan_damage(state, cards);
        if (l->unaligned[l->room] == 0)
            l->aligned = l->room;
        ladder_grow(l, &cap);
    }
}

/* Does every rung have as few unaligned as can be? */
static bool is_best(const struct ladder *l, uint32_t room, uint32_t aligned)
{
    return l->room == room && l->unaligned[room] == room - least(room, aligned);
}

static void ladder_from(struct ladder *l, const struct pack *p)
{
    uint32_t room = p->n_rungs - 1;
    while (!p->rungs[room].fits)
        room--;
    ladder_fini(l);
    memset(l, 0, sizeof *l);
    l->room = room;
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
    pack_fini(&p);
}

void ladder_init(struct ladder *l, const struct node_state *state,
                 const struct demand *shape, const struct align *a,
                 uint32_t max)
{
    memset(l, 0, sizeof *l);
    l->bound = ladder_bound(state, shape, max);
    climb(l, state, shape, a, l->bound);
    l->open = l->room <= PACK_PAIRS &&
              !is_best(l, l->bound, aligned_bound(state, shape, a, l->bound));
}

void ladder_fini(struct ladder *l)
{
    free(l->unaligned);
    free(l->damage);
    free(l->choices);
}

uint32_t plan_room(const struct node_state *state, const struct demand *shape,
                   uint32_t max, uint32_t *ret_aligned)
{
    struct ladder l;
    struct align a;
    uint64_t steps = LADDER_STEPS;
    align_init(&a, state->shape, shape);
    ladder_init(&l, state, shape, &a, max);
    if (l.open)
        ladder_improve(&l, state, shape, &steps);
    uint32_t room = l.room;
    *ret_aligned = l.aligned;
    ladder_fini(&l);
    return room;
}
