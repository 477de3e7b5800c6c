#include "model/base/text.h"

#include <criterion/criterion.h>

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
