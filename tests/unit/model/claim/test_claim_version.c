#include "model/claim/claim_version.h"

#include <criterion/criterion.h>
#include <string.h>

static struct claim_version version_of(const char *text)
{
    struct claim_version v = {0};
    cr_assert(claim_version_parse(text, strlen(text), &v), "%s", text);
    return v;
}

/* The order of semver.org, item 11; each is below the next. */
Test(claim_version, order)
{
    static const char *const rising[] = {
        "0.0.1",
        "0.9.0",
        "1.0.0-1",
        "1.0.0-2",
        "1.0.0-10",
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0-rc.1",
        "1.0.0",
        "1.0.1",
        "18446744073709551615.0.0",
    };
    enum { N = sizeof rising / sizeof *rising };
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            struct claim_version a = version_of(rising[i]);
            struct claim_version b = version_of(rising[j]);
            cr_expect_eq(claim_version_compare(&a, &b), (i > j) - (i < j),
                         "%s %s", rising[i], rising[j]);
        }
    struct claim_version a = version_of("1.0.0+a.01"), b = version_of("1.0.0");
    cr_expect_eq(claim_version_compare(&a, &b), 0);
}

Test(claim_version, none)
{
    static const char *const bad[] = {
        "",
        "1",
        "1.2",
        "1.2.3.4",
        "v1.2.3",
        "01.2.3",
        "1.2.x",
        "1.2.3-",
        "1.2.3-a..b",
        "1.2.3-01",
        "1.2.3+",
        "1.2.3-\xc3\xa9",
        "18446744073709551616.0.0",
        " 1.2.3",
        "1.2.3 ",
    };
    struct claim_version v;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect(!claim_version_parse(bad[i], strlen(bad[i]), &v), "%s",
                  bad[i]);
}

Test(claim_version, loose)
{
    static const struct {
        const char *text, *same;
    } rows[] = {
        {"v1", "1.0.0"},         {"1.2", "1.2.0"}, {"v01.002.0003", "1.2.3"},
        {"1.2.03-a", "1.2.3-a"}, {"1.2-a", NULL},  {"1.2+b", NULL},
        {"vv1", NULL},           {"1.", NULL},     {"", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct claim_version v, same;
        bool ok = claim_version_parse_loose(rows[i].text, strlen(rows[i].text),
                                            &v);
        cr_expect_eq(ok, rows[i].same != NULL, "%s", rows[i].text);
        if (!ok || !rows[i].same)
            continue;
        same = version_of(rows[i].same);
        cr_expect_eq(claim_version_compare(&v, &same), 0, "%s", rows[i].text);
    }
}
