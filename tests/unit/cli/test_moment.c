#include "cli/base/moment.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/mem.h"

/* 2026-11-01T14:05:07Z, which is 15:05:07 in Berlin. */
#define NOW INT64_C(1793541907123)

static void berlin(void)
{
    cr_assert_eq(setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1), 0);
    tzset();
}

Test(moment, is_read_as_people_say_it)
{
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"now", NOW},
        {"-0s", NOW},
        {"-90s", NOW - 90000},
        {"-10m", NOW - 600000},
        {"-2h", NOW - 7200000},
        {"-3d", NOW - 3 * INT64_C(86400000)},
        {"5m ago", NOW - 5 * 60000},
        {"2026-11-01T14:05:07.123Z", NOW},
        {"2026-11-01T15:05:07+01:00", NOW - 123},
        {"15:05", NOW - 7123},
        {"15:05:07", NOW - 123},
        {"15:06", NOW - 7123 + 60000 - INT64_C(86400000)}, /* yesterday */
        {"2026-11-01 15:05", NOW - 7123},
        {"2026-11-01T15:05:07", NOW - 123},
        {"2026-07-01 15:05", INT64_C(1782911100000)}, /* in summer */
    };
    berlin();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err = {0};
        int64_t ms = -1;
        cr_expect_eq(moment_parse(cases[i].text, NOW, &ms, &err), 0, "%s: %s",
                     cases[i].text, err.text);
        cr_expect_eq(ms, cases[i].ms, "%s: %" PRId64, cases[i].text, ms);
    }
}

Test(moment, what_is_none_is_refused_with_what_is_allowed)
{
    static const char *const texts[] = {
        "",
        "-",
        "-2",
        "-2w",
        "-2h30",
        "-1e9s",
        "25:00",
        "14:60",
        "14:5",
        "1:05",
        "14:05x",
        "14",
        "yesterday",
        "2026-11-01",
        "-99999999999d",
        "2026-13-01 14:05",
        "2026-11-01 25:00",
        "-999999d",
    };
    berlin();
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct error err = {0};
        int64_t ms = 77;
        cr_expect_lt(moment_parse(texts[i], NOW, &ms, &err), 0, "%s", texts[i]);
        cr_expect(strstr(err.text, "-2h"), "%s", err.text);
        cr_expect_eq(ms, 77, "%s", texts[i]);
    }
}
