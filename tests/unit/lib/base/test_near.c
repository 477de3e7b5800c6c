#include "lib/base/near.h"

#include <criterion/criterion.h>
#include <string.h>

Test(near, distance)
{
    cr_assert_eq(near_distance("", ""), 0);
    cr_assert_eq(near_distance("abc", ""), 3);
    cr_assert_eq(near_distance("abc", "acb"), 1);
    cr_assert_eq(near_distance("abc", "abd"), 1);
    cr_assert_eq(near_distance("kitten", "sitting"), 3);
}

Test(near, long_words_that_begin_alike_are_not_the_same)
{
    char a[65], b[65];
    memset(a, 'x', sizeof a);
    memset(b, 'x', sizeof b);
    a[64] = b[40] = '\0';
    cr_assert_eq(near_distance(a, b), 64);
    cr_assert_eq(near_guess(a, b), NEAR_NOT);
}

Test(near, guesses_what_is_close_or_begun)
{
    cr_assert_eq(near_guess("aling", "align"), 1);
    cr_assert_eq(near_guess("memory", "memory-mib"), 0);
    cr_assert_eq(near_guess("colour", "cores"), NEAR_NOT);
    cr_assert_eq(near_guess("", "a"), 1);
}
