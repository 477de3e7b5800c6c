#include "model/claim/claim_regex.h"

#include <criterion/criterion.h>
#include <string.h>

/* '1' found, '0' not, 'N' not read, 'C' no expression. */
static char judge(const char *pattern, const char *text)
{
    cleanup_with(claim_regex) struct claim_regex *regex = NULL;
    struct error err = {0};
    int rc = claim_regex_compile(pattern, strlen(pattern), &regex, &err);
    if (rc < 0) {
        cr_expect(err.text[0]);
        return rc == -ENOTSUP ? 'N' : 'C';
    }
    rc = claim_regex_search(regex, text, strlen(text));
    return rc < 0 ? 'N' : rc ? '1' : '0';
}

Test(claim_regex, as_re2)
{
    static const struct {
        const char *pattern, *text;
        char wanted;
    } rows[] = {
        {"", "", '1'},
        {"b", "abc", '1'},
        {"^b", "abc", '0'},
        {"^abc$", "abc", '1'},
        {"a.c", "abc", '1'},
        {"a\\.c", "abc", '0'},
        {"(a|b)c", "bc", '1'},
        {"^a*$", "aaa", '1'},
        {"^a+$", "", '0'},
        {"^ab?c$", "ac", '1'},
        {"^[a-c]{2}$", "ab", '1'},
        {"^[a-c]{2}$", "abc", '0'},
        {"^[a-c]{2,}$", "abc", '1'},
        {"^[^0-9]+$", "a1", '0'},
        {"\\d\\d", "a12", '1'},
        {"^\\w+$", "a_1", '1'},
        {"a\\sb", "a b", '1'},
        {"[-a]", "-", '1'},
        {"[a-]", "-", '1'},
        {"\\^", "^", '1'},
        {"a\\{1\\}", "a{1}", '1'},
        {"(?i)a", "A", 'N'},
        {"a*?", "a", 'N'},
        {"a**", "a", 'N'},
        {"*a", "a", 'N'},
        {"\\bx", "x", 'N'},
        {"(a)\\1", "aa", 'N'},
        {"a{", "a{", 'N'},
        {"a{,2}", "a", 'N'},
        {"a{33}", "a", 'N'},
        {"(a){2}", "aa", 'N'},
        {"[[:digit:]]", "1", 'N'},
        {"[\\d]", "1", 'N'},
        {"[+--]", "-", 'N'},
        {"\xc3\xa9", "\xc3\xa9", 'N'},
        {"a",
         "\xc3\xa9"
         "a",
         'N'},
        {"a", "a\n", 'N'},
        {"(a", "a", 'C'},
        {"a)", "a", 'C'},
        {"[a", "a", 'C'},
        {"[c-a]", "b", 'C'},
        {"a{3,2}", "a", 'C'},
        {"a\\", "a", 'C'},
        {"\\<a", "a", 'N'},
        {"(*a)", "a", 'N'},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char is = judge(rows[i].pattern, rows[i].text);
        cr_expect_eq(is, rows[i].wanted, "%s in %s: is %c, wanted %c",
                     rows[i].pattern, rows[i].text, is, rows[i].wanted);
    }
}

Test(claim_regex, cap)
{
    char pattern[CLAIM_REGEX_MAX + 2];
    memset(pattern, 'a', sizeof pattern);
    pattern[CLAIM_REGEX_MAX + 1] = '\0';
    cr_expect_eq(judge(pattern, "a"), 'N');
    pattern[CLAIM_REGEX_MAX] = '\0';
    cr_expect_eq(judge(pattern, "a"), '0');
}
