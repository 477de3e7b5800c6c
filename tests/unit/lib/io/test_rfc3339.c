#include "lib/io/rfc3339.h"

#include <criterion/criterion.h>
#include <inttypes.h>

#include "lib/base/mem.h"

Test(rfc3339, reads_what_the_standard_allows)
{
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2026-11-01T14:05:07.123Z", INT64_C(1793541907123)},
        {"2026-11-01T14:05:07.1234567Z", INT64_C(1793541907123)},
        {"2026-11-01T14:05:07.1Z", INT64_C(1793541907100)},
        {"2026-11-01t14:05:07z", INT64_C(1793541907000)},
        {"2026-11-01 16:05:07+02:00", INT64_C(1793541907000)},
        {"2026-11-01T08:35:07-05:30", INT64_C(1793541907000)},
        {"2024-02-29T00:00:00Z", INT64_C(1709164800000)},
        {"9999-12-31T23:59:59.999Z", RFC3339_MAX_MS},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t ms = -1;
        cr_expect(rfc3339_parse(cases[i].text, &ms), "%s", cases[i].text);
        cr_expect_eq(ms, cases[i].ms, "%s: %" PRId64, cases[i].text, ms);
    }
}

Test(rfc3339, refuses_everything_else_and_writes_nothing)
{
    static const char *const texts[] = {
        "",
        "now",
        "2026-11-01",
        "14:05",
        "2026-11-01T14:05Z",
        "2026-11-01T14:05:07",
        "2026-11-01T14:05:07.Z",
        "2026-11-01T24:05:07Z",
        "2026-13-01T14:05:07Z",
        "2026-11-31T14:05:07Z",
        "2025-02-29T14:05:07Z",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-00:01",
        "2026-11-01T14:05:07Zx",
        "2026-11-01T14:05:07+2:00",
        "2026-11-01T14:05:07+0200",
        "-026-11-01T14:05:07Z",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        int64_t ms = 77;
        cr_expect_not(rfc3339_parse(texts[i], &ms), "%s", texts[i]);
        cr_expect_eq(ms, 77, "%s", texts[i]);
    }
}

Test(rfc3339, reads_nanoseconds)
{
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01T01:00:00+01:00", 0},
        {"2026-01-02T03:04:05.123456789Z", 1767323045123456789},
        {"2026-01-02T03:04:05.1234567891Z", 1767323045123456789},
        {"2024-02-29T00:00:00-00:30", 1709166600000000000},
        {"2000-03-01t00:00:00z", 951868800000000000},
        {"2262-01-01T00:00:00Z", 9214646400000000000},
    };
    int64_t ns = 1;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t size = strlen(cases[i].text);
        cr_expect(rfc3339_parse_ns(cases[i].text, size, &ns), "%s",
                  cases[i].text);
        cr_expect_eq(ns, cases[i].ns, "%s: %" PRId64, cases[i].text, ns);
        cr_expect_not(rfc3339_parse_ns(cases[i].text, size - 1, &ns));
    }
    static const char *const others[] = {"9999-01-02T03:04:05Z",
                                         "2263-01-01T00:00:00Z",
                                         "1969-12-31T23:59:59.5Z"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        cr_expect_not(rfc3339_parse_ns(others[i], strlen(others[i]), &ns));
    cr_expect_eq(ns, 9214646400000000000);
    cr_expect_not(rfc3339_parse_ns("1970-01-01T00:00:00\0", 20, &ns));
}

Test(rfc3339, writes_what_it_reads)
{
    char text[RFC3339_SIZE];
    for (int64_t ms = 0; ms < RFC3339_MAX_MS; ms = ms * 5 / 4 + 7919) {
        int64_t back = -1;
        rfc3339_format(ms, text);
        cr_assert(rfc3339_parse(text, &back), "%s", text);
        cr_assert_eq(back, ms, "%s", text);
    }
    rfc3339_format(-1, text);
    cr_expect_str_eq(text, "1970-01-01T00:00:00.000Z");
    rfc3339_format(INT64_MAX, text);
    cr_expect_str_eq(text, "9999-12-31T23:59:59.999Z");
}
