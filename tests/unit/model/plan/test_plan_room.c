/* How many pairs a node of shared cards holds, when they are too many to try
 * all ways. */
#include <criterion/criterion.h>

#include "lib/base/mem.h"
#include "model/plan/plan.h"
#include "tests/lib/randnode.h"
#include "tests/lib/sim/simhost.h"

enum { CARDS = 8, ROUNDS = 400 };

/* Each time as many cards as asked, those with most left: no way gives
 * more. */
static uint32_t most_pairs(const struct node_state *state, unsigned k)
{
    uint32_t left[CARDS], n = 0;
    for (unsigned c = 0; c < CARDS; c++)
        left[c] = state->free_cores[c];
    for (;; n++) {
        unsigned taken = 0;
        for (unsigned i = 0; i < k; i++) {
            unsigned most = CARDS;
            for (unsigned c = 0; c < CARDS; c++)
                if (!(taken >> c & 1) && left[c] &&
                    (most == CARDS || left[c] > left[most]))
                    most = c;
            if (most == CARDS)
                return n;
            taken |= 1u << most;
            left[most]--;
        }
    }
}

/* Two cards are aligned behind one switch: cards 0 and 1, 2 and 3 … */
static uint32_t most_aligned(const struct node_state *state)
{
    uint32_t n = 0;
    for (unsigned c = 0; c < CARDS; c += 2) {
        uint32_t a = state->free_cores[c], b = state->free_cores[c + 1];
        n += a < b ? a : b;
    }
    return n;
}

static void roll_state(struct node_state *state)
{
    for (unsigned c = 0; c < CARDS; c++)
        state->free_cores[c] = odds(30) ? roll(40) : roll(10);
}

Test(plan_room, shared_cards_are_used_up)
{
    cleanup_with(topo) struct topo *topo = simhost_topo("host", CARDS);
    struct shape *shape = shape_create(topo);
    struct demand d = {.role = ROLE_HOST,
                       .align = RELATION_SYS,
                       .prefer_align = RELATION_PIX,
                       .has_card_need = true,
                       .card_cores = 1};
    unsigned large = 0;
    (void)chance_init();
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct node_state state;
        uint32_t aligned = 0;
        node_state_init(&state, topo, shape);
        roll_state(&state);
        d.cards = d.pair_cards = (uint8_t)(2 + i % 2);
        uint32_t room = plan_room(&state, &d, 1000, &aligned);
        cr_assert_eq(room, most_pairs(&state, d.cards), "round %u: %u pairs", i,
                     room);
        large += room > 16;
        if (d.cards == 2)
            cr_assert_eq(aligned, most_aligned(&state), "round %u: %u", i,
                         aligned);
    }
    cr_assert(large > ROUNDS / 4);
    shape_destroy(shape);
}
