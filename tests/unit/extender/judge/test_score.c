#include <criterion/criterion.h>

#include "extender/judge/score.h"
#include "model/decide/decide.h"

Test(score, best_is_ten_and_alone)
{
    const uint32_t costs[] = {700, 20, COST_NO_FIT, 20, 21};
    uint8_t scores[5];
    score_ranks(costs, 5, scores);
    const uint8_t expected[] = {8, 10, 0, 10, 9};
    cr_assert_arr_eq(scores, expected, 5);
}

Test(score, more_levels_than_eleven_end_in_one)
{
    uint32_t costs[40];
    uint8_t scores[40];
    for (unsigned i = 0; i < 40; i++)
        costs[i] = 1000 - i * 7; /* worst first */
    score_ranks(costs, 40, scores);
    for (unsigned i = 0; i < 40; i++) {
        unsigned rank = 39 - i;
        cr_assert_eq(scores[i], rank < 9 ? 10 - rank : 1, "rank %u", rank);
    }
}

Test(score, never_ranks_a_worse_node_higher)
{
    uint32_t seed = 1, costs[200];
    uint8_t scores[200];
    for (int round = 0; round < 200; round++) {
        for (unsigned i = 0; i < 200; i++) {
            seed = seed * 1664525u + 1013904223u;
            costs[i] = seed >> 28 == 0 ? COST_NO_FIT : 1 + (seed >> 8) % 25;
        }
        score_ranks(costs, 200, scores);
        for (unsigned i = 0; i < 200; i++)
            for (unsigned j = 0; j < 200; j++)
                cr_assert(costs[i] >= costs[j] || scores[i] >= scores[j]);
    }
}

Test(score, nothing_fits)
{
    const uint32_t costs[] = {COST_NO_FIT, COST_NO_FIT};
    uint8_t scores[2] = {7, 7};
    score_ranks(costs, 2, scores);
    cr_assert_eq(scores[0] + scores[1], 0);
}
