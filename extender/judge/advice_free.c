/* The least cores, memory or CPUs that would have to become free on one
 * node. */
#include "extender/judge/advice_private.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "model/decide/bits.h"

enum {
    /* A sum over cards is one number: cards, cores, MiB, from the highest
     * bits; no card has this many of either. */
    AMOUNT_BITS = 29,
    AMOUNT_MAX = 1 << 25, /* of one card: 16 of them fit */
};

/* What each card must have: one of each when nothing is stated. */
static void need_of(const struct demand *d, uint32_t *ret_cores,
                    uint32_t *ret_memory_mib)
{
    *ret_cores = d->has_card_need ? d->card_cores : 1;
    *ret_memory_mib = d->has_card_need ? d->card_memory_mib : 1;
}

static uint32_t lacking(uint32_t need, uint32_t has)
{
    return has < need ? need - has : 0;
}

/* What each card lacks; the cards that freeing can help.  */
static uint16_t weigh_cards(const struct spot *spot, const struct demand *d,
                            uint64_t ret_weights[TOPO_CARDS_MAX])
{
    const struct node_state *state = spot->state;
    uint32_t cores, memory;
    unsigned cards = spot->within & state->usable & ~(unsigned)state->closed;
    uint16_t ret = 0;
    if (d->exclusive)
        cards &= ~(unsigned)state->shared;
    cards &= d->by_claim ? state->claimed : ~(unsigned)state->claimed;
    need_of(d, &cores, &memory);
    for (; cards; cards &= cards - 1) {
        unsigned c = (unsigned)__builtin_ctz(cards);
        uint64_t lack_cores = lacking(cores, state->free_cores[c]);
        uint64_t lack_memory = lacking(memory, state->free_memory_mib[c]);
        if ((d->arch[0] && strcmp(d->arch, state->shape->arch[c]) != 0) ||
            !device_sets_have(state->shape->devices[c].text, d->devices.text) ||
            !decide_card_lets(state->shape, c, d) || state->cores[c] < cores ||
            state->memory_mib[c] < memory || lack_cores > AMOUNT_MAX ||
            lack_memory > AMOUNT_MAX)
            continue;
        ret |= (uint16_t)(1u << c);
        ret_weights[c] = 0;
        if (lack_cores || lack_memory)
            ret_weights[c] = UINT64_C(1) << 2 * AMOUNT_BITS |
                             lack_cores << AMOUNT_BITS | lack_memory;
    }
    return ret;
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

uint64_t advice_free_bound(const struct spot *spot, const struct demand *d)
{
    uint64_t weights[TOPO_CARDS_MAX], sorted[TOPO_CARDS_MAX], sum = 0;
    size_t n = 0;
    unsigned cards = weigh_cards(spot, d, weights);
    if (count_bits(cards) < d->cards || (spot->must & ~cards))
        return FREE_NEVER;
    for (; cards; cards &= cards - 1)
        sorted[n++] = weights[__builtin_ctz(cards)];
    qsort(sorted, n, sizeof *sorted, compare_u64);
    for (size_t i = 0; i < d->cards; i++)
        sum += sorted[i];
    return sum;
}

/* A set of cards and what it lacks. */
struct offer {
    uint64_t weight;
    uint32_t order; /* of the shape's subsets */
    uint16_t cards;
};

static int compare_offers(const void *a, const void *b)
{
    const struct offer *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight < y->weight ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* The state with enough on `cards`. */
static struct node_state topped_up(const struct spot *spot,
                                   const struct demand *d, unsigned cards)
{
    struct node_state state = *spot->state;
    uint32_t cores, memory;
    need_of(d, &cores, &memory);
    for (; cards; cards &= cards - 1) {
        unsigned c = (unsigned)__builtin_ctz(cards);
        state.free_cores[c] += lacking(cores, state.free_cores[c]);
        state.free_memory_mib[c] += lacking(memory, state.free_memory_mib[c]);
    }
    return state;
}

static bool fits_with(const struct spot *spot, const struct demand *d,
                      uint16_t cards)
{
    struct choice ignored;
    struct node_state state = topped_up(spot, d, cards);
    return decide(&state, d, spot->must, cards & spot->within, &ignored) ==
           REASON_NONE;
}

/* Sets of as many cards as asked that lack less than `below`, the least
 * first. */
static size_t collect_offers(const struct spot *spot, const struct demand *d,
                             uint16_t cards,
                             const uint64_t weights[TOPO_CARDS_MAX],
                             struct offer *offers)
{
    const struct shape *shape = spot->state->shape;
    size_t n = 0;
    for (uint32_t i = shape->first[d->cards]; i < shape->first[d->cards + 1];
         i++) {
        unsigned set = shape->subsets[i].cards;
        if ((set & ~(unsigned)cards) || (spot->must & ~set))
            continue;
        offers[n] = (struct offer){0, i, (uint16_t)set};
        for (; set; set &= set - 1)
            offers[n].weight += weights[__builtin_ctz(set)];
        n++;
    }
    qsort(offers, n, sizeof *offers, compare_offers);
    return n;
}

uint64_t advice_free(const struct spot *spot, const struct demand *d,
                     uint64_t below, unsigned *tries, uint16_t *ret_cards)
{
    const struct shape *shape = spot->state->shape;
    uint64_t weights[TOPO_CARDS_MAX] = {0};
    if (d->cards == 0 || d->cards > shape->n_cards || *tries == 0)
        return FREE_NEVER;
    uint16_t cards = weigh_cards(spot, d, weights);
    (*tries)--;
    if (!fits_with(spot, d, cards))
        return FREE_NEVER;
    size_t room = shape->first[d->cards + 1] - shape->first[d->cards];
    cleanup_free struct offer *offers = xcalloc(room, sizeof *offers);
    size_t n = collect_offers(spot, d, cards, weights, offers);
    for (size_t i = 0; i < n && offers[i].weight < below && *tries; i++) {
        (*tries)--;
        if (!fits_with(spot, d, offers[i].cards))
            continue;
        *ret_cards = offers[i].cards;
        return offers[i].weight;
    }
    return FREE_NEVER;
}

void advice_free_change(const struct spot *spot, const struct demand *d,
                        uint16_t cards, struct change *ret_change)
{
    struct change *change = ret_change;
    uint32_t cores, memory;
    need_of(d, &cores, &memory);
    change->node = spot->node;
    for (unsigned c = 0; c < TOPO_CARDS_MAX; c++) {
        if (!(cards & 1u << c))
            continue;
        change->cores[c] = lacking(cores, spot->state->free_cores[c]);
        change->memory_mib[c] = lacking(memory,
                                        spot->state->free_memory_mib[c]);
        if (change->cores[c] || change->memory_mib[c])
            change->cards |= (uint16_t)(1u << c);
    }
}

struct node_state advice_freed(const struct node_state *state,
                               const struct change *change)
{
    struct node_state freed = *state;
    for (unsigned c = 0; c < TOPO_CARDS_MAX; c++) {
        freed.free_cores[c] += change->cores[c];
        freed.free_memory_mib[c] += change->memory_mib[c];
    }
    for (unsigned n = 0; n < state->shape->n_numas; n++)
        if (change->kind == CHANGE_FREE_CPUS &&
            state->shape->numa_id[n] == change->numa)
            freed.free_cpu_milli[n] += (uint32_t)change->value;
    return freed;
}

uint32_t advice_free_cpus(const struct spot *spot, const struct demand *d,
                          int16_t *ret_numa)
{
    const struct shape *shape = spot->state->shape;
    struct choice ignored;
    uint32_t least = 0;
    for (unsigned n = 0; n < shape->n_numas; n++) {
        uint32_t lack = lacking(d->cpu_milli, spot->state->free_cpu_milli[n]);
        if (lack == 0 || (least && lack >= least))
            continue;
        struct node_state state = *spot->state;
        state.free_cpu_milli[n] += lack;
        if (decide(&state, d, spot->must, spot->within, &ignored) !=
            REASON_NONE)
            continue;
        least = lack;
        *ret_numa = shape->numa_id[n];
    }
    return least;
}
