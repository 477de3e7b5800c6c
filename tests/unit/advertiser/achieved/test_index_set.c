/* Sets of CPUs, as the kernel writes them. */
#include "advertiser/achieved/index_set.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"

static void expect_same(const char *text, const char *wanted, size_t count)
{
    struct index_set s;
    struct error err = {0};
    cleanup_str struct str out = STR_INIT(INDEX_SET_TEXT_MAX);
    cr_assert_eq(index_set_parse(text, strlen(text), &s, &err), 0, "%s",
                 err.text);
    index_set_format(&s, &out);
    cr_expect_str_eq(str_text(&out), wanted);
    cr_expect_eq(index_set_count(&s), count);
    cr_expect_eq(index_set_is_empty(&s), count == 0);
}

Test(index_set, reads_and_writes_what_the_kernel_does)
{
    expect_same("", "", 0);
    expect_same("\n", "", 0);
    expect_same("0\n", "0", 1);
    expect_same("0-3,8\n", "0-3,8", 5);
    expect_same("8,0-3,4", "0-4,8", 6);
    expect_same("63-64,127-128,8191", "63-64,127-128,8191", 5);
}

Test(index_set, refuses_what_is_none)
{
    static const char *const bad[] = {"a",       "-1",  "1-",   "3-1",
                                      ",1",      "1,",  "1,,2", "8192",
                                      "0-99999", "1 2", "\n\n"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct index_set s;
        struct error err = {0};
        cr_expect_eq(index_set_parse(bad[i], strlen(bad[i]), &s, &err), -EINVAL,
                     "%s", bad[i]);
        cr_expect_neq(strstr(err.text, "must be numbers"), NULL);
    }
}

Test(index_set, holds_and_unites)
{
    struct index_set all, part, other = {0};
    cr_assert_eq(index_set_parse("0-7", 3, &all, NULL), 0);
    cr_assert_eq(index_set_parse("2,7", 3, &part, NULL), 0);
    cr_expect(index_set_holds(&all, &part));
    cr_expect(!index_set_holds(&part, &all));
    cr_expect(index_set_add(&other, 100));
    cr_expect(!index_set_add(&other, INDEX_SET_MAX));
    index_set_unite(&part, &other);
    cr_expect(!index_set_holds(&all, &part));
    cr_expect(index_set_has(&part, 100) && !index_set_has(&part, 99));
    cr_expect(!index_set_equal(&all, &part));
    cr_expect_eq(index_set_next(&part, 8), 100u);
}
