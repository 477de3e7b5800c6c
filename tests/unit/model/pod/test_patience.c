#include <criterion/criterion.h>

#include "lib/base/mem.h"
#include "model/pod/patience.h"

Test(patience, texts)
{
    static const struct {
        const char *text;
        int64_t s;
    } good[] = {
        {"0", 0},
        {"300", 300},
        {"300s", 300},
        {"5m", 300},
        {"1h30m", 5400},
        {"1h0m5s", 3605},
        {"007", 7},
        {"8784h", 31622400},
        {"31622400", 31622400},
        {"never", PATIENCE_NEVER},
    };
    static const char *const bad[] = {
        "",        "s",
        "-1",      "+1",
        "1.5h",    "5 m",
        "1h30",    "300ms",
        "1d",      "Never",
        "8785h",   "31622401",
        "8784h1s", "99999999999999999999",
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        int64_t s = -1;
        cr_assert(patience_parse(good[i].text, &s), "%s", good[i].text);
        cr_assert_eq(s, good[i].s, "%s", good[i].text);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int64_t s = -1;
        cr_assert_not(patience_parse(bad[i], &s), "%s", bad[i]);
        cr_assert_eq(s, -1, "%s", bad[i]);
    }
}
