#include "lib/base/backoff.h"

#include <criterion/criterion.h>

Test(backoff, doubles_up_to_its_limit)
{
    static const int64_t whole[] = {250,  500,   1000,  2000, 4000,
                                    8000, 15000, 15000, 15000};
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct backoff b = {.min_ms = 250, .max_ms = 15000, .random = seed};
        for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
            int64_t ms = backoff_fail(&b);
            cr_expect(ms >= whole[i] / 2 && ms <= whole[i], "%d: %lld", (int)i,
                      (long long)ms);
        }
    }
}

Test(backoff, begins_again_after_a_success)
{
    struct backoff b = {.min_ms = 250, .max_ms = 15000, .random = 3};
    for (unsigned i = 0; i < 1000; i++)
        cr_expect_leq(backoff_fail(&b), 15000);
    cr_expect_geq(backoff_fail(&b), 7500);
    backoff_succeed(&b);
    cr_expect_eq(b.failures, 0);
    cr_expect_leq(backoff_fail(&b), 250);
}

Test(backoff, varies)
{
    struct backoff a = {.min_ms = 10000, .max_ms = 10000, .random = 1};
    struct backoff b = {.min_ms = 10000, .max_ms = 10000, .random = 2};
    unsigned same = 0, low = 0;
    for (unsigned i = 0; i < 1000; i++) {
        int64_t x = backoff_fail(&a), y = backoff_fail(&b);
        same += x == y;
        low += x < 7500;
    }
    cr_expect_lt(same, 10);
    cr_expect(low > 400 && low < 600, "%u", low);
}

/* A limit below the minimum is a limit. */
Test(backoff, keeps_to_odd_settings)
{
    struct backoff none = {0}, low = {.min_ms = 100, .max_ms = 10};
    cr_expect_eq(backoff_fail(&none), 0);
    cr_expect_leq(backoff_fail(&low), 10);
}
