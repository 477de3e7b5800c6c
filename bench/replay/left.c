#include "bench/replay/left.h"

#include "lib/base/mem.h"

void left_init(struct left *l, const struct replay_fleet *fleet)
{
    *l = (struct left){.fleet = fleet};
    l->free = xcalloc(fleet->n, sizeof *l->free);
}

void left_fini(struct left *l)
{
    free(l->free);
    free(l->states);
    free(l->rooms);
}

/* How many pairs of the need a card holds. */
static uint32_t card_pairs(const struct left *l, const struct node_state *state,
                           unsigned card)
{
    const struct demand *p = l->pair;
    uint32_t n = UINT32_MAX;
    if (!(state->usable & ~(unsigned)state->closed & 1u << card))
        return 0;
    if (p->card_cores)
        n = state->free_cores[card] / p->card_cores;
    if (p->card_memory_mib &&
        state->free_memory_mib[card] / p->card_memory_mib < n)
        n = state->free_memory_mib[card] / p->card_memory_mib;
    return n;
}

static uint16_t shared_cards(const struct left *l,
                             const struct node_state *state)
{
    unsigned cards = 0;
    for (unsigned c = 0; c < state->shape->n_cards; c++)
        if (card_pairs(l, state, c))
            cards |= 1u << c;
    return (uint16_t)cards;
}

void left_begin(struct left *l, const struct snapshot *s,
                const struct demand *pair)
{
    l->pair = pair;
    free(l->rooms);
    l->rooms = pair->cpu_milli || pair->memory_mib ? snapshot_rooms_left(s)
                                                   : NULL;
    if (pair->has_card_need && !l->states)
        l->states = xcalloc(l->fleet->n, sizeof *l->states);
    for (size_t i = 0; i < l->fleet->n; i++) {
        const struct node_state *state = &snapshot_node(s, i)->state;
        l->free[i].gpus = fleet_kind(l->fleet, i)->gpus &
                          (uint16_t)~state->gpus_used;
        l->free[i].cards = state->usable &
                           (uint16_t) ~(state->closed | state->shared);
        if (!pair->has_card_need)
            continue;
        l->states[i] = *state;
        l->free[i].cards = shared_cards(l, state);
    }
}

void left_take(struct left *l, size_t node, uint16_t cards, uint16_t gpus)
{
    struct free_devices *f = &l->free[node];
    f->cards &= (uint16_t)~cards;
    f->gpus &= (uint16_t)~gpus;
    if (l->rooms)
        host_room_take(&l->rooms[node], l->pair);
    if (!l->pair->has_card_need)
        return;
    const struct choice choice = {.cards = cards, .gpus = gpus, .numa = -1};
    node_state_take(&l->states[node], l->pair, &choice);
    f->cards = shared_cards(l, &l->states[node]);
}

uint32_t left_pairs(const struct left *l, size_t node)
{
    const struct demand *p = l->pair;
    uint32_t n = count_bits(l->free[node].cards);
    if (!left_fits(l, node))
        return 0;
    if (p->has_card_need) {
        n = 0;
        for (unsigned c = l->free[node].cards; c; c &= c - 1)
            n += card_pairs(l, &l->states[node], (unsigned)__builtin_ctz(c));
    }
    n /= p->cards;
    if (p->gpus && count_bits(l->free[node].gpus) / p->gpus < n)
        n = count_bits(l->free[node].gpus) / p->gpus;
    return l->rooms ? host_room_holds(&l->rooms[node], p, n) : n;
}

uint32_t left_cores(const struct left *l, size_t node)
{
    uint32_t cores = 0;
    for (unsigned c = 0; c < TOPO_CARDS_MAX; c++)
        cores += l->states[node].free_cores[c];
    return cores;
}
