#include "model/decide/decide_level.h"

#include <criterion/criterion.h>

#include "tests/lib/randnode.h"

/* Costs of any decisions, taken apart: the first level is the relation, and the
 * cost that is lower is so at the first level in which they differ. */
Test(decide_level, says_what_makes_the_difference)
{
    enum { ROUNDS = 3000 };
    uint32_t last[2] = {0, 0};
    unsigned compared = 0;
    cr_log_info("seed %llu", (unsigned long long)chance_init());
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct question q;
        struct choice c;
        question_roll(&q, (struct randnode_limits){6, 5, 4, 4});
        bool nics = q.demand.nics > 0;
        if (decide(&q.state, &q.demand, q.must, q.within, &c) == REASON_NONE) {
            uint32_t other = last[nics];
            enum decide_level l = decide_level_between(c.cost, other, nics);
            cr_assert_eq(decide_level_value(c.cost, DECIDE_RELATION, nics),
                         c.relation);
            cr_assert_eq(decide_level_value(c.cost, DECIDE_NICS, nics),
                         nics ? c.nic_relation : 0);
            cr_assert_eq(l == DECIDE_LEVELS, c.cost == other);
            if (l < DECIDE_LEVELS && other) {
                cr_assert_eq(decide_level_value(c.cost, l, nics) <
                                 decide_level_value(other, l, nics),
                             c.cost < other);
                compared++;
            }
            last[nics] = c.cost;
        }
        question_fini(&q);
    }
    cr_expect_gt(compared, 100);
}

Test(decide_level, has_a_word_for_each)
{
    cr_expect_str_eq(decide_level_word(DECIDE_RELATION), "relation");
    cr_expect_str_eq(decide_level_word(DECIDE_CORES), "cores");
    cr_expect_str_eq(decide_level_word(DECIDE_LEVELS), "name");
}
