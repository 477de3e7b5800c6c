/* What one node holds of one shape. */
#include <string.h>

#include "model/plan_private.h"

/* No node holds more pairs than this, however little they take. */
static uint32_t room_bound(const struct node_state *state,
                           const struct demand *shape, uint32_t max)
{
    struct card_need need = decide_need(shape);
    unsigned cards = decide_cards_open(state, shape) &
                     decide_cards_of_arch(state->shape, shape) &
                     decide_cards_with(state->free_cores,
                                       state->free_memory_mib, need);
    unsigned gpus = state->shape->n_gpus -
                    (unsigned)__builtin_popcount(state->gpus_used);
    if (shape->cards == 0 || (unsigned)__builtin_popcount(cards) < shape->cards)
        return 0;
    if (shape->gpus && gpus / shape->gpus < max)
        max = gpus / shape->gpus;
    return max;
}

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
                  const struct demand *shape, uint32_t max)
{
    struct node_state left = *state;
    struct decide_ideal ideal = {0, 0};
    size_t cap = 0;
    uint16_t cards = 0;
    (void)decide_ideal(state->shape, shape, &ideal);
    ladder_grow(l, &cap);
    l->unaligned[0] = l->damage[0] = 0;
    while (l->room < max) {
        struct choice *choice = &l->choices[l->room];
        if (!decide_search(&left, shape, 0, UINT16_MAX, choice))
            break;
        bool bad = !decide_meets(state->shape, shape, &ideal, choice);
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

void ladder_init(struct ladder *l, const struct node_state *state,
                 const struct demand *shape, uint32_t max)
{
    memset(l, 0, sizeof *l);
    climb(l, state, shape, room_bound(state, shape, max));
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
    ladder_init(&l, state, shape, max);
    uint32_t room = l.room;
    *ret_aligned = l.aligned;
    ladder_fini(&l);
    return room;
}
