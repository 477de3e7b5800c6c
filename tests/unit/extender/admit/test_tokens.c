#include "extender/admit/tokens.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/str.h"

static int parse(const char *text, struct tokens **ret_tokens,
                 struct error *err)
{
    return tokens_parse(text, strlen(text), ret_tokens, err);
}

Test(tokens, says_whose_a_token_is)
{
    struct tokens *t = NULL;
    struct error err = {0};
    cr_assert_eq(parse("# people\n"
                       "\n"
                       "0123456789abcdef,alice\r\n"
                       "tooth-._~+/=ABCDEF,system:serviceaccount:ns:name\n"
                       "zzzzzzzzzzzzzzzz,alice",
                       &t, &err),
                 0, "%s", err.text);
    cr_expect_eq(tokens_count(t), 3);
    cr_expect_str_eq(tokens_user(t, "0123456789abcdef"), "alice");
    cr_expect_str_eq(tokens_user(t, "zzzzzzzzzzzzzzzz"), "alice");
    cr_expect_str_eq(tokens_user(t, "tooth-._~+/=ABCDEF"),
                     "system:serviceaccount:ns:name");
    cr_expect_null(tokens_user(t, ""));
    cr_expect_null(tokens_user(t, "0123456789abcde"));
    cr_expect_null(tokens_user(t, "0123456789abcdef0"));
    cr_expect_null(tokens_user(t, "0123456789abcdef,alice"));
    tokens_destroy(t);
}

Test(tokens, refuses_what_is_no_list)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "holds no token"},
        {"# nobody\n", "holds no token"},
        {"0123456789abcdef\n", "line 1: must be TOKEN,USER"},
        {"0123456789abcdef,\n", "line 1: the user's name has 0"},
        {"\n0123456789abcde,alice\n", "line 2: the token has 15"},
        {",alice\n", "line 1: the token has 0"},
        {"0123456789 abcdef,alice\n", "character 11 of the token"},
        {" 0123456789abcdef,alice\n", "character 1 of the token"},
        {"0123456789abcd\xc3\xa9,alice\n", "character 15 of the token"},
        {"0123456789abcdef, alice\n", "character 1 of the user's name"},
        {"0123456789abcdef,alice,0123456789abcdef\n", "line 1: right 1 is"},
        {"0123456789abcdef,alice,log:*,run:a\n", "right 2 is not allowed"},
        {"0123456789abcdef,alice,log:*,\n", "right 2 is not allowed"},
        {"0123456789abcdef,alice,log:\n", "right 1 is not allowed"},
        {"0123456789abcdef,alice,log:A\n", "right 1 is not allowed"},
        {"0123456789abcdef,alice,:a\n", "right 1 is not allowed"},
        {"0123456789abcdef,alice,**:a\n", "right 1 is not allowed"},
        {"0123456789abcdef,alice\n0123456789abcdef,bob\n",
         "line 2: the token stands above"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tokens *t = NULL;
        struct error err = {0};
        cr_expect_eq(parse(cases[i].text, &t, &err), -EINVAL, "%zu", i);
        cr_expect(strstr(err.text, cases[i].error), "%zu: %s", i, err.text);
        cr_expect_null(strstr(err.text, "0123"), "%zu: shows it", i);
    }
}

Test(tokens, says_what_a_token_may)
{
    struct tokens *t = NULL;
    struct error err = {0};
    cr_assert_eq(parse("0123456789abcdef,alice\n"
                       "bbbbbbbbbbbbbbbb,bob,exec:team-a,log:team-a\n"
                       "cccccccccccccccc,carol,*:team-a,portforward:*\n",
                       &t, &err),
                 0, "%s", err.text);
    static const struct {
        const char *token, *verb, *namespace;
        bool may;
    } cases[] = {
        {"0123456789abcdef", "log", "any", true},
        {"0123456789abcdef", "exec", "any", false},
        {"bbbbbbbbbbbbbbbb", "exec", "team-a", true},
        {"bbbbbbbbbbbbbbbb", "exec", "team-b", false},
        {"bbbbbbbbbbbbbbbb", "exec", "team-", false},
        {"bbbbbbbbbbbbbbbb", "log", "team-a", true},
        {"bbbbbbbbbbbbbbbb", "log", "team-b", false},
        {"bbbbbbbbbbbbbbbb", "attach", "team-a", false},
        {"cccccccccccccccc", "attach", "team-a", true},
        {"cccccccccccccccc", "exec", "team-b", false},
        {"cccccccccccccccc", "portforward", "team-b", true},
        {"cccccccccccccccc", "fly", "team-a", false},
        {"dddddddddddddddd", "log", "team-a", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_expect_eq(
            tokens_may(t, cases[i].token, cases[i].verb, cases[i].namespace),
            cases[i].may, "%zu", i);
    cr_expect_str_eq(tokens_user(t, "bbbbbbbbbbbbbbbb"), "bob");
    tokens_destroy(t);
}

Test(tokens, says_what_a_token_sees)
{
    static const struct {
        const char *token, *sees; /* "": all */
    } cases[] = {
        {"0123456789abcdef", ""}, {"bbbbbbbbbbbbbbbb", "team-a, team-b"},
        {"cccccccccccccccc", ""}, {"dddddddddddddddd", "team-a"},
        {"eeeeeeeeeeeeeeee", ""}, {"nobody-nobody-no", ""},
    };
    struct tokens *t = NULL;
    struct error err = {0};
    cr_assert_eq(parse("0123456789abcdef,alice\n"
                       "bbbbbbbbbbbbbbbb,bob,exec:team-a,log:team-a,*:team-b\n"
                       "cccccccccccccccc,carol,*:team-a,log:*\n"
                       "dddddddddddddddd,dora,view:team-a\n"
                       "eeeeeeeeeeeeeeee,eve,exec:team-a,view:*\n",
                       &t, &err),
                 0, "%s", err.text);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct str text = STR_INIT(256);
        scope_write(tokens_scope(t, cases[i].token), &text);
        cr_expect_str_eq(str_text(&text), cases[i].sees, "%s", cases[i].token);
        str_fini(&text);
    }
    cr_expect_not(tokens_may(t, "eeeeeeeeeeeeeeee", "log", "team-a"),
                  "to view is no right to a log");
    tokens_destroy(t);
}

Test(tokens, has_a_limit)
{
    struct str text = STR_INIT(1 << 20);
    struct tokens *t = NULL;
    struct error err = {0};
    for (unsigned i = 0; i < TOKENS_MAX; i++)
        str_addf(&text, "%016u,user%u\n", i * 7919 % 100003, i);
    cr_assert_eq(tokens_parse(text.data, text.size, &t, &err), 0, "%s",
                 err.text);
    cr_expect_str_eq(tokens_user(t, "0000000000007919"), "user1");
    tokens_destroy(t);
    str_add(&text, "one-more-than-can-be,x\n");
    cr_expect_eq(tokens_parse(text.data, text.size, &t, &err), -EINVAL);
    cr_expect(strstr(err.text, "more than 1024"), "%s", err.text);
    str_fini(&text);
}
