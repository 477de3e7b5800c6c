#include "model/topo/device_set.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"

Test(device_set, names_come_in_order_and_once)
{
    static const struct {
        const char *text, *sets;
    } cases[] = {
        {"", ""},
        {"rdma", "rdma"},
        {"rdma,hugepages", "hugepages rdma"},
        {"b, a ,b,c", "a b c"},
        {"rdma2,rdma", "rdma rdma2"},
        {"b,c,a", "a b c"},
        {"h,g,f,e,d,c,b,a", "a b c d e f g h"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct device_sets sets;
        struct error err = {0};
        cr_assert_eq(device_sets_parse(cases[i].text, ',', &sets, &err), 0,
                     "%s: %s", cases[i].text, err.text);
        cr_expect_str_eq(sets.text, cases[i].sets);
        struct device_sets again;
        cr_assert_eq(device_sets_parse(sets.text, ' ', &again, &err), 0, "%s",
                     err.text);
        cr_expect_str_eq(again.text, sets.text);
    }
}

Test(device_set, refuses_what_is_no_name_or_too_much)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {",", "\"\" must be the name"},
        {"a,", "ends with ','"},
        {"a,,b", "\"\" must be the name"},
        {"a,-b", "\"-b\" must be"},
        {"b-", "must be"},
        {"RDMA", "must be"},
        {"a\x1b[1m", "\"a\" must be"},
        {"a b", "must be"},
        {"a_b", "must be"},
        {"a2345678901234567890123456789012", "1 to 31"},
        {"a,b,c,d,e,f,g,h,i", "at \"i\": at most 8 sets"},
        {"a234567890123456789012345678901,b23456789012345678901234567890,c2",
         "at \"c2\": at most 8 sets are allowed, whose names together"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct device_sets sets = {"x"};
        struct error err = {0};
        cr_expect_eq(device_sets_parse(cases[i].text, ',', &sets, &err),
                     -EINVAL, "%s", cases[i].text);
        cr_expect(strstr(err.text, cases[i].why), "%s: %s", cases[i].text,
                  err.text);
        cr_expect_str_eq(sets.text, "x");
    }
}

Test(device_set, as_many_bytes_as_a_slice_holds)
{
    struct device_sets sets;
    cr_assert_eq(device_sets_parse("b234567890123456789012345678901,"
                                   "a234567890123456789012345678901,c",
                                   ',', &sets, NULL),
                 -EINVAL);
    cr_assert_eq(device_sets_parse("b234567890123456789012345678901,"
                                   "a23456789012345678901234567890,c",
                                   ',', &sets, NULL),
                 0);
    cr_expect_eq(strlen(sets.text), (size_t)DEVICE_SETS_TEXT_MAX);
}

Test(device_set, names_are_told_one_by_one)
{
    char name[DEVICE_SET_NAME_MAX + 1];
    const char *at = device_sets_next("a rdma2 z", name);
    cr_expect_str_eq(name, "a");
    at = device_sets_next(at, name);
    cr_expect_str_eq(name, "rdma2");
    at = device_sets_next(at, name);
    cr_expect_str_eq(name, "z");
    cr_expect_str_eq(at, "");
}

Test(device_set, all_that_is_wanted_has_to_be_there)
{
    cr_expect(device_sets_have("", ""));
    cr_expect(device_sets_have("rdma", ""));
    cr_expect(device_sets_have("hugepages rdma storage", "rdma"));
    cr_expect(device_sets_have("hugepages rdma storage", "hugepages storage"));
    cr_expect(!device_sets_have("", "rdma"));
    cr_expect(!device_sets_have("rdma", "rdma storage"));
    cr_expect(!device_sets_have("rdma2", "rdma"));
    cr_expect(!device_sets_have("rdm", "rdma"));
}
