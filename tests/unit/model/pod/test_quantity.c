#include "model/pod/quantity.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"

Test(quantity, amounts)
{
    static const struct {
        const char *text;
        int64_t milli;
    } cases[] = {
        {"0", 0},
        {"2", 2000},
        {"+2", 2000},
        {"-2", 0},
        {"1.5", 1500},
        {".5", 500},
        {"5.", 5000},
        {"500m", 500},
        {"100u", 1}, /* finer ones count up */
        {"1n", 1},
        {"0n", 0},
        {"1500000u", 1500},
        {"1e3", 1000000},
        {"1E3", 1000000},
        {"12e-1", 1200},
        {"1k", 1000000},
        {"1M", INT64_C(1000000000)},
        {"1Ki", 1024000},
        {"1.5Gi", INT64_C(1610612736000)},
        {"64Gi", INT64_C(68719476736000)},
        {"128974848000m", INT64_C(128974848000)},
        {"129e6", INT64_C(129000000000)},
        {"2Ti", INT64_C(2199023255552000)},
        {"1E", INT64_MAX},
        {"9Ei", INT64_MAX},
        {"0Ei", 0},
        {"1e99", INT64_MAX},
        {"1e-99", 1},
        {"100000000000000000000000000000", INT64_MAX},
        {"0.000000000000000000000000000001", 1},
        {"00000000000000000000000000000001", 1000},
        {"1.0000000000000000000000000000", 1000},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t milli = -1;
        cr_expect(quantity_parse(cases[i].text, strlen(cases[i].text), &milli),
                  "%s", cases[i].text);
        cr_expect_eq(milli, cases[i].milli, "%s: %lld", cases[i].text,
                     (long long)milli);
    }
}

Test(quantity, what_is_none)
{
    static const char *const texts[] = {"",   "m",   "-",    ".",   "1.2.3",
                                        "1x", "1 k", "1KiB", "1e",  "1e+",
                                        "e3", "1K",  "1ki",  "1e3m"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        int64_t milli = -1;
        cr_expect_not(quantity_parse(texts[i], strlen(texts[i]), &milli), "%s",
                      texts[i]);
        cr_expect_eq(milli, -1, "%s", texts[i]);
    }
}

Test(quantity, kib_round_up)
{
    cr_expect_eq(quantity_kib(0), 0);
    cr_expect_eq(quantity_kib(1), 1);
    cr_expect_eq(quantity_kib(1024000), 1);
    cr_expect_eq(quantity_kib(1024001), 2);
    cr_expect_eq(quantity_kib(INT64_MAX), INT64_C(9007199254741));
}
