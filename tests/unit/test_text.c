#include "model/base/text.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "tests/lib/randnode.h"

Test(text, a_character_takes_one_column)
{
    cr_expect_eq(text_width("◀ pair"), 6);
    cr_expect_eq(text_width(""), 0);
    cr_expect_eq(text_width_n("ab◀", 2), 2);
}

Test(text, control_characters_reach_nobody)
{
    static const struct {
        const char *text, *clean;
    } cases[] = {
        {"plain ◀ \xc2\xa0 é", "plain ◀ \xc2\xa0 é"},
        {"\033[31mred", "?[31mred"},
        {"a\n\tb\x7f", "a??b?"},
        {"\xc2\x9b"
         "31m\xc2\x80",
         "?31m?"},
        {"cut \xc2", "cut \xc2"},
        {"<&>\"'", "<&>\"'"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup_str struct str out = STR_INIT(100);
        text_clean(cases[i].text, &out);
        cr_expect_str_eq(str_text(&out), cases[i].clean, "case %zu", i);
    }
}

Test(text, markup_is_escaped)
{
    cleanup_str struct str out = STR_INIT(100);
    text_escape("<b a='1' c=\"2\">&\033 ◀\xc2\x9b", &out);
    cr_expect_str_eq(str_text(&out),
                     "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;? ◀?");
    str_reset(&out);
    text_escape_n("a<b", 2, &out);
    cr_expect_str_eq(str_text(&out), "a&lt;");
}

static int sign(int n)
{
    return (n > 0) - (n < 0);
}

Test(text, numbers_are_in_order)
{
    static const char *const sorted[] = {"",
                                         "-",
                                         "0",
                                         "00",
                                         "1",
                                         "2",
                                         "10",
                                         "a",
                                         "a-b",
                                         "a0",
                                         "a01",
                                         "a1",
                                         "a1b2",
                                         "a1b10",
                                         "a1c",
                                         "a2",
                                         "a9",
                                         "a010",
                                         "a10",
                                         "a10-2",
                                         "leaf06",
                                         "leaf6",
                                         "leaf10",
                                         "leaf10/a-2",
                                         "leaf10/a-10",
                                         "leaf6144",
                                         "leaf99999999999999999999",
                                         "leaf100000000000000000000",
                                         "node",
                                         "node-",
                                         "\xc3\xa4"};
    size_t n = ARRAY_LEN(sorted);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            const char *a = sorted[i], *b = sorted[k];
            int want = i < k ? -1 : i > k;
            int got = sign(text_order(a, b));
            cr_expect_eq(got, want, "\"%s\" and \"%s\"", a, b);
        }
}

/* It is one of all texts: sorting never depends on how they came. */
Test(text, order_is_total)
{
    static const char letters[] = "0012a-";
    enum { TEXTS = 60, ROUNDS = 40 };
    printf("seed %llu\n", (unsigned long long)chance_init());
    for (unsigned round = 0; round < ROUNDS; round++) {
        char texts[TEXTS][8];
        for (size_t i = 0; i < TEXTS; i++) {
            size_t size = roll(7);
            for (size_t c = 0; c < size; c++)
                texts[i][c] = letters[roll(sizeof letters - 1)];
            texts[i][size] = '\0';
        }
        for (size_t i = 0; i < TEXTS; i++)
            for (size_t k = 0; k < TEXTS; k++) {
                int order = sign(text_order(texts[i], texts[k]));
                cr_assert_eq(order, -sign(text_order(texts[k], texts[i])));
                cr_assert_eq(order == 0, strcmp(texts[i], texts[k]) == 0);
                for (size_t m = 0; m < TEXTS && order < 0; m++)
                    cr_assert(text_order(texts[k], texts[m]) > 0 ||
                                  text_order(texts[i], texts[m]) < 0,
                              "%s %s %s", texts[i], texts[k], texts[m]);
            }
    }
}
