#include "lib/base/nearest_word.h"

#include <criterion/criterion.h>
#include <string.h>

Test(nearest_word, distance)
{
    cr_assert_eq(nearest_word_distance("", ""), 0);
    cr_assert_eq(nearest_word_distance("abc", ""), 3);
    cr_assert_eq(nearest_word_distance("abc", "acb"), 1);
    cr_assert_eq(nearest_word_distance("abc", "abd"), 1);
    cr_assert_eq(nearest_word_distance("kitten", "sitting"), 3);
}

Test(nearest_word, long_words_that_begin_alike_are_not_the_same)
{
    char a[129], b[129];
    memset(a, 'x', sizeof a);
    memset(b, 'x', sizeof b);
    a[128] = b[80] = '\0';
    cr_assert_eq(nearest_word_distance(a, b), 128);
    cr_assert_eq(nearest_word_guess(a, b), NEAREST_WORD_NOT);
}

Test(nearest_word, guesses_what_is_close_or_begun)
{
    cr_assert_eq(nearest_word_guess("aling", "align"), 1);
    cr_assert_eq(nearest_word_guess("memory", "memory-mib"), 0);
    cr_assert_eq(nearest_word_guess("colour", "cores"), NEAREST_WORD_NOT);
    cr_assert_eq(nearest_word_guess("", "a"), 1);
}
