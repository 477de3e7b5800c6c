#include "extender/judge/score.h"

#include "model/decide/decide.h"

/* Insert `cost` into the ascending list of the lowest distinct costs. */
static size_t note_level(uint32_t *levels, size_t n, uint32_t cost)
{
    size_t at = n;
    while (at > 0 && levels[at - 1] > cost)
        at--;
    if (at > 0 && levels[at - 1] == cost)
        return n;
    size_t last = n < SCORE_MAX ? n++ : n - 1;
    if (at > last)
        return n;
    for (size_t i = last; i > at; i--)
        levels[i] = levels[i - 1];
    levels[at] = cost;
    return n;
}

void score_ranks(const uint32_t *costs, size_t n, uint8_t *ret_scores)
{
    uint32_t levels[SCORE_MAX];
    size_t n_levels = 0;
    for (size_t i = 0; i < n; i++)
        if (costs[i] != COST_NO_FIT &&
            (n_levels < SCORE_MAX || costs[i] < levels[SCORE_MAX - 1]))
            n_levels = note_level(levels, n_levels, costs[i]);

    for (size_t i = 0; i < n; i++) {
        if (costs[i] == COST_NO_FIT) {
            ret_scores[i] = 0;
            continue;
        }
        size_t level = 0;
        while (level < n_levels && levels[level] < costs[i])
            level++;
        ret_scores[i] = (uint8_t)(level < SCORE_MAX - 1 ? SCORE_MAX - level
                                                        : 1);
    }
}
