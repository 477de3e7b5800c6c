#include "lib/http/uri.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *value(const struct uri *u, size_t n)
{
    const char *text = uri_param_n(u, "command", n);
    return text ? text : "(none)";
}

Test(uri, one_parameter_may_repeat)
{
    struct uri u = {.repeats = "command"};
    struct error err;
    cr_assert_eq(uri_parse("/x?command=sh&a=1&command=-c&command=echo%0A%09+b"
                           "&command=",
                           &u, &err),
                 0);
    cr_expect_str_eq(value(&u, 0), "sh");
    cr_expect_str_eq(value(&u, 1), "-c");
    cr_expect_str_eq(value(&u, 2), "echo\n\t b");
    cr_expect_str_eq(value(&u, 3), "");
    cr_expect_str_eq(value(&u, 4), "(none)");
    cr_expect_str_eq(uri_param(&u, "a"), "1");
}

Test(uri, others_stand_once_and_hold_no_lines)
{
    static const char *const bad[] = {"/x?a=1&a=2",      "/x?command=sh&a=%0A",
                                      "/x?command=%00",  "/x?command=%1B",
                                      "/x?command%0A=1", "/x?command=%7f"};
    struct uri u = {.repeats = "command"}, plain = {.repeats = NULL};
    struct error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect_eq(uri_parse(bad[i], &u, &err), -EINVAL, "%s", bad[i]);
    cr_expect_eq(uri_parse("/x?command=a&command=b", &plain, &err), -EINVAL);
    cr_expect(strstr(err.text, "\"command\" is given twice"), "%s", err.text);
    cr_expect_eq(uri_parse("/x?command=%0A", &plain, &err), -EINVAL);
}
