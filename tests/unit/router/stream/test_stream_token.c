#include "router/stream/stream_token.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/io/clock.h"

static unsigned n_destroyed;

static void count(void *value)
{
    (void)value;
    n_destroyed++;
}

static struct stream_tokens *tokens;

static void set_up(void)
{
    clock_set_fake(1000);
    tokens = stream_tokens_create(count);
}

static void tear_down(void)
{
    stream_tokens_destroy(tokens);
    clock_set_fake(-1);
}

TestSuite(stream_token, .init = set_up, .fini = tear_down);

static void add(int *value, char text[STREAM_TOKEN_LEN + 1])
{
    struct error err = {0};
    cr_assert_eq(stream_tokens_add(tokens, value, text, &err), 0, "%s",
                 err.text);
    cr_assert_eq(strspn(text, "0123456789abcdef"), STREAM_TOKEN_LEN);
    cr_assert_eq(text[STREAM_TOKEN_LEN], '\0');
}

Test(stream_token, is_good_once)
{
    int a, b;
    char ta[STREAM_TOKEN_LEN + 1], tb[STREAM_TOKEN_LEN + 1];
    add(&a, ta);
    add(&b, tb);
    cr_expect_str_neq(ta, tb);
    cr_expect_eq(stream_tokens_take(tokens, ta, STREAM_TOKEN_LEN), &a);
    cr_expect_eq(stream_tokens_take(tokens, ta, STREAM_TOKEN_LEN), NULL);
    cr_expect_eq(stream_tokens_take(tokens, tb, STREAM_TOKEN_LEN), &b);
    cr_expect_eq(stream_tokens_n(tokens), 0);
    cr_expect_eq(n_destroyed, 0, "what was taken is the taker's");
}

Test(stream_token, another_text_is_none)
{
    int a;
    char text[STREAM_TOKEN_LEN + 1];
    add(&a, text);
    cr_expect_eq(stream_tokens_take(tokens, "", 0), NULL);
    cr_expect_eq(stream_tokens_take(tokens, text, STREAM_TOKEN_LEN - 1), NULL);
    text[STREAM_TOKEN_LEN - 1] ^= 1;
    cr_expect_eq(stream_tokens_take(tokens, text, STREAM_TOKEN_LEN), NULL);
    cr_expect_eq(stream_tokens_n(tokens), 1);
}

Test(stream_token, gets_too_old)
{
    int a, b;
    char ta[STREAM_TOKEN_LEN + 1], tb[STREAM_TOKEN_LEN + 1];
    cr_expect_eq(stream_tokens_expire(tokens), INT64_MAX);
    add(&a, ta);
    clock_set_fake(2000);
    add(&b, tb);
    cr_expect_eq(stream_tokens_expire(tokens), 1000 + STREAM_TOKEN_MS);
    clock_set_fake(1000 + STREAM_TOKEN_MS);
    cr_expect_eq(stream_tokens_take(tokens, ta, STREAM_TOKEN_LEN), NULL);
    cr_expect_eq(n_destroyed, 1);
    cr_expect_eq(stream_tokens_expire(tokens), 2000 + STREAM_TOKEN_MS);
    cr_expect_eq(stream_tokens_take(tokens, tb, STREAM_TOKEN_LEN), &b);
}

Test(stream_token, their_number_has_a_cap)
{
    int a;
    char text[STREAM_TOKEN_LEN + 1];
    struct error err = {0};
    for (int i = 0; i < STREAM_TOKENS_MAX; i++)
        add(&a, text);
    cr_expect_eq(stream_tokens_add(tokens, &a, text, &err), -ENOSPC);
    cr_expect_eq(n_destroyed, 0, "what is refused stays the caller's");
    clock_set_fake(1000 + STREAM_TOKEN_MS);
    add(&a, text);
    cr_expect_eq(stream_tokens_n(tokens), 1);
}

static bool is(const void *value, const void *ctx)
{
    return value == ctx;
}

Test(stream_token, can_be_revoked)
{
    int a, b;
    char ta[STREAM_TOKEN_LEN + 1], tb[STREAM_TOKEN_LEN + 1];
    add(&a, ta);
    add(&b, tb);
    add(&a, ta);
    stream_tokens_revoke(tokens, is, &a);
    cr_expect_eq(n_destroyed, 2);
    cr_expect_eq(stream_tokens_take(tokens, ta, STREAM_TOKEN_LEN), NULL);
    cr_expect_eq(stream_tokens_take(tokens, tb, STREAM_TOKEN_LEN), &b);
}
