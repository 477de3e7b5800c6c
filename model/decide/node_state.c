/* What a node has, what a pair takes off it, and how good its place there
 * is. */
#include <string.h>

#include "model/decide/decide.h"
#include "model/decide/decide_private.h"

void node_state_init(struct node_state *state, const struct topo *topo,
                     const struct shape *shape)
{
    size_t first = 0;
    memset(state, 0, sizeof *state);
    state->shape = shape;
    decide_idle_cpus(shape, state->free_cpu_milli);
    state->passive = topo_runs(topo) == TOPO_RUNS_NONE;
    (void)topo_count(topo, DEVICE_CARD, &first);
    for (unsigned c = 0; c < shape->n_cards; c++) {
        const struct device *card = topo_device(topo, first + c);
        uint64_t memory = card->memory_mib ? card->memory_mib : 1;
        if (card->cores == 0 || card->memory_mib == 0)
            state->unsized |= (uint16_t)(1u << c);
        if (card->by_claims)
            state->claimed |= (uint16_t)(1u << c);
        if (topo_runs(topo) == TOPO_RUNS_PODS && !card->runs_pods)
            state->inert |= (uint16_t)(1u << c);
        if (card->unhealthy && strcmp(card->health, "drained") == 0)
            state->drained |= (uint16_t)(1u << c);
        if (card->unhealthy)
            continue; /* nothing of it can be had */
        state->usable |= (uint16_t)(1u << c);
        state->cores[c] = card->cores ? card->cores : 1;
        state->memory_mib[c] = (uint32_t)(memory < UINT32_MAX ? memory
                                                              : UINT32_MAX);
    }
    memcpy(state->free_cores, state->cores, sizeof state->cores);
    memcpy(state->free_memory_mib, state->memory_mib, sizeof state->memory_mib);
}

/* --- what a pair takes --------------------------------------------------- */

static uint32_t less(uint32_t from, uint32_t amount)
{
    return amount < from ? from - amount : 0;
}

/* The column of the NUMA node with that os index, or n_numas. */
static unsigned numa_column(const struct shape *shape, int numa)
{
    unsigned n = 0;
    while (n < shape->n_numas && shape->numa_id[n] != numa)
        n++;
    return n;
}

void node_state_take_cpus(struct node_state *state, int numa, uint32_t milli)
{
    unsigned n = numa_column(state->shape, numa);
    if (n < state->shape->n_numas && state->free_cpu_milli[n] != UINT32_MAX)
        state->free_cpu_milli[n] = less(state->free_cpu_milli[n], milli);
}

void node_state_take(struct node_state *state, const struct demand *pair,
                     const struct choice *choice)
{
    for (unsigned c = choice->cards; c; c &= c - 1) {
        unsigned card = (unsigned)__builtin_ctz(c);
        state->free_cores[card] = less(state->free_cores[card],
                                       pair->card_cores);
        state->free_memory_mib[card] = less(state->free_memory_mib[card],
                                            pair->card_memory_mib);
    }
    state->occupied |= choice->cards;
    state->shared |= choice->cards;
    if (pair->exclusive || !pair->has_card_need)
        state->closed |= choice->cards;
    state->closed |= choice->cards & state->unsized;
    state->gpus_used |= choice->gpus;
    state->nics_used |= choice->nics;
    node_state_take_cpus(state, choice->numa, decide_cpus(pair));
}

/* --- aligned or not ----------------------------------------------------- */

static unsigned spread_of(const struct shape *shape, unsigned cards)
{
    unsigned spread = 0;
    for (unsigned c = cards; c; c &= c - 1)
        for (unsigned d = c & (c - 1); d; d &= d - 1)
            spread += shape->card_card[__builtin_ctz(c)][__builtin_ctz(d)];
    return spread;
}

bool decide_ideal(const struct shape *shape, const struct demand *demand,
                  struct decide_ideal *ret_ideal)
{
    struct node_state idle;
    struct demand any = *demand;
    struct choice best;
    memset(&idle, 0, sizeof idle);
    idle.shape = shape;
    idle.usable = (uint16_t)((1u << shape->n_cards) - 1);
    for (unsigned c = 0; c < shape->n_cards; c++)
        idle.free_cores[c] = idle.free_memory_mib[c] = 1;
    decide_idle_cpus(shape, idle.free_cpu_milli);
    any.has_card_need = false;
    any.runs = 0;
    any.by_claim = false;
    any.nics = 0; /* they do not tell how close the cards are */
    any.align = RELATION_SYS;
    if (!decide_search(&idle, &any, 0, UINT16_MAX, &best))
        return false;
    ret_ideal->relation = best.relation;
    ret_ideal->spread = (uint16_t)spread_of(shape, best.cards);
    return true;
}

bool decide_meets(const struct shape *shape, const struct demand *demand,
                  const struct decide_ideal *ideal, const struct choice *choice)
{
    unsigned prefer = demand->prefer_align;
    if (prefer == RELATION_PIX)
        return choice->relation <= ideal->relation &&
               spread_of(shape, choice->cards) <= ideal->spread;
    if (demand->gpus == 0 && prefer < RELATION_NODE)
        prefer = RELATION_NODE;
    return choice->relation <= prefer;
}

bool decide_is_aligned(const struct shape *shape, const struct demand *pair,
                       const struct choice *choice)
{
    struct decide_ideal ideal = {0, 0};
    if (pair->prefer_align == RELATION_PIX &&
        !decide_ideal(shape, pair, &ideal))
        return false;
    return decide_meets(shape, pair, &ideal, choice);
}
