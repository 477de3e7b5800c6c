/* Which cards of a node a demand can have, by one rule each and by all. */
#include <string.h>

#include "model/decide/decide_private.h"

uint16_t decide_cards_of_arch(const struct shape *shape,
                              const struct demand *demand)
{
    unsigned cards = 0;
    for (unsigned c = 0; c < shape->n_cards; c++)
        if (demand->arch[0] == '\0' ||
            strcmp(demand->arch, shape->arch[c]) == 0)
            cards |= 1u << c;
    return (uint16_t)cards;
}

uint16_t decide_cards_with(const uint32_t cores[TOPO_CARDS_MAX],
                           const uint32_t memory_mib[TOPO_CARDS_MAX],
                           struct card_need need)
{
    unsigned cards = 0;
    for (unsigned c = 0; c < TOPO_CARDS_MAX; c++)
        if (cores[c] >= need.cores && memory_mib[c] >= need.memory_mib)
            cards |= 1u << c;
    return (uint16_t)cards;
}

uint16_t decide_cards_open(const struct node_state *state,
                           const struct demand *demand)
{
    unsigned taken = state->closed;
    if (demand->exclusive)
        taken |= state->shared;
    return (uint16_t)(state->usable & ~taken);
}

uint16_t decide_cards_running(const struct node_state *state,
                              const struct demand *demand)
{
    if (demand->runs && state->passive)
        return 0;
    return demand->runs & RUNS_CARDS ? (uint16_t)~state->inert : UINT16_MAX;
}

uint16_t decide_cards_by(const struct node_state *state,
                         const struct demand *demand)
{
    return demand->by_claim ? state->claimed : (uint16_t)~state->claimed;
}

uint16_t decide_cards_for(const struct node_state *state,
                          const struct demand *demand)
{
    return decide_cards_open(state, demand) &
           decide_cards_of_arch(state->shape, demand) &
           decide_cards_with_devices(state->shape, demand) &
           decide_cards_letting(state->shape, demand) &
           decide_cards_by(state, demand) &
           decide_cards_running(state, demand) &
           decide_cards_with(state->free_cores, state->free_memory_mib,
                             decide_need(demand));
}
