#include "lib/base/error.h"

#include <criterion/criterion.h>
#include <string.h>

Test(error, set_returns_the_code_and_keeps_errno)
{
    struct error err;
    errno = EBUSY;
    cr_expect_eq(error_set(&err, EINVAL, "%s is %d", "x", 3), -EINVAL);
    cr_expect_eq(errno, EBUSY);
    cr_expect_eq(err.code, EINVAL);
    cr_expect_str_eq(err.text, "x is 3");
    cr_expect_eq(error_set(NULL, ENOENT, "nobody listens"), -ENOENT);
}

Test(error, errno_appends_its_words)
{
    struct error err;
    cr_expect_eq(error_errno(&err, ENOENT, "%s", "/f"), -ENOENT);
    cr_expect_str_eq(err.text, "/f: No such file or directory");
    cr_expect_eq(error_errno(NULL, ENOENT, "/f"), -ENOENT);
}

Test(error, wrap_puts_the_context_first)
{
    struct error err;
    (void)error_set(&err, ERANGE, "too large");
    cr_expect_eq(error_wrap(&err, "card %d", 2), -ERANGE);
    cr_expect_eq(error_wrap(&err, "host %s", "h1"), -ERANGE);
    cr_expect_str_eq(err.text, "host h1: card 2: too large");
    cr_expect_eq(err.code, ERANGE);
    cr_expect_eq(error_wrap(NULL, "x"), -EINVAL);
}

Test(error, long_texts_are_cut_not_overrun)
{
    struct {
        struct error err;
        char guard[16];
    } box;
    memset(&box, 'g', sizeof box);
    (void)error_set(&box.err, EINVAL, "%01000d", 7);
    cr_expect_eq(strlen(box.err.text), ERROR_TEXT_MAX - 1);
    (void)error_wrap(&box.err, "%0600d", 7);
    cr_expect_eq(strlen(box.err.text), ERROR_TEXT_MAX - 1);
    (void)error_errno(&box.err, EINVAL, "%0600d", 7);
    cr_expect_eq(strlen(box.err.text), ERROR_TEXT_MAX - 1);
    for (size_t i = 0; i < sizeof box.guard; i++)
        cr_assert_eq(box.guard[i], 'g');
}

Test(error, control_characters_do_not_reach_a_terminal)
{
    struct error err = {0};
    (void)error_set(&err, EINVAL, "is \"%s\"", "a\x1b[31mb\x7f\tc\nd");
    cr_assert_str_eq(err.text, "is \"a?[31mb?\tc\nd\"");
    (void)error_wrap(&err, "file %s", "x\x1by");
    cr_assert_str_eq(err.text, "file x?y: is \"a?[31mb?\tc\nd\"");
}
