/* Selectors as kubectl -l takes them: what they select, and what is none. */
#include <criterion/criterion.h>
#include <string.h>

#include "cli/base/label_selector.h"
#include "lib/base/str.h"

/* What has role=host, tier="", n=12 and "a b"="c d". */
static const char *value_of(void *ctx, const char *key)
{
    static const char *const labels[][2] = {
        {"role", "host"}, {"tier", ""}, {"n", "12"}, {"pci", "0000:17:00.0"}};
    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(labels); i++)
        if (strcmp(labels[i][0], key) == 0)
            return labels[i][1];
    return NULL;
}

static int selects(const char *text)
{
    cleanup_with(label_selector) struct label_selector *s = NULL;
    struct error err = {0};
    cr_assert_eq(label_selector_parse(text, &s, &err), 0, "%s: %s", text,
                 err.text);
    return label_selector_matches(s, value_of, NULL);
}

Test(label_selector, selects_as_kubectl_does)
{
    static const struct {
        const char *text;
        int selects;
    } cases[] = {
        {"", 1},
        {"  ", 1},
        {"role=host", 1},
        {"role==host", 1},
        {" role = host , n=12", 1},
        {"role=xpu", 0},
        {"role!=xpu", 1},
        {"none!=x", 1},
        {"none=x", 0},
        {"none=", 0},
        {"tier=", 1},
        {"tier", 1},
        {"!tier", 0},
        {"!none", 1},
        {"none", 0},
        {"role in (xpu, host)", 1},
        {"role in(host)", 1},
        {"role notin (xpu,service)", 1},
        {"role notin (xpu,host),n", 0},
        {"none notin (a)", 1},
        {"none in (a)", 0},
        {"n>11", 1},
        {"n>12", 0},
        {"n < 12.5", 1},
        {"none<5", 0},
        {"role>1", 0},
        {"pci=0000:17:00.0", 1},
        {"role=host,tier=x", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        cr_expect_eq(selects(cases[i].text), cases[i].selects, "%s",
                     cases[i].text);
}

Test(label_selector, what_is_none_is_refused_with_its_place)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"=x", "byte 1: a key is missing"},
        {"a=b,", "byte 5: a key is missing"},
        {",a", "byte 1: a key is missing"},
        {"!", "byte 2: a key is missing"},
        {"a in b", "\"(\" is missing"},
        {"a in (b", "\")\" is missing"},
        {"a=b=c", "\",\" is missing"},
        {"a b", "\",\" is missing"},
        {"!a=b", "\",\" is missing"},
        {"a>b", "is no number"},
        {"a<", "is no number"},
        {"a>nan", "is no number"},
        {"a inner (b)", "\",\" is missing"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct label_selector *s = NULL;
        struct error err = {0};
        cr_expect_eq(label_selector_parse(cases[i].text, &s, &err), -EINVAL,
                     "%s", cases[i].text);
        cr_expect_null(s);
        cr_expect(strstr(err.text, cases[i].says), "%s: %s", cases[i].text,
                  err.text);
    }
}

Test(label_selector, has_limits)
{
    cleanup_str struct str text = STR_INIT(65536);
    struct label_selector *s = NULL;
    struct error err = {0};
    str_add(&text, "a in (b");
    for (int i = 0; i < LABEL_SELECTOR_VALUES_MAX; i++)
        str_add(&text, ",b");
    cr_expect_eq(label_selector_parse(str_text(&text), &s, &err), -EINVAL);
    cr_expect(strstr(err.text, "over 256 values"), "%s", err.text);
    str_reset(&text);
    for (int i = 0; i <= LABEL_SELECTOR_REQUIRES_MAX; i++)
        str_add(&text, i ? ",a" : "a");
    cr_expect_eq(label_selector_parse(str_text(&text), &s, &err), -EINVAL);
    cr_expect(strstr(err.text, "over 64 requirements"), "%s", err.text);
    while (text.size <= LABEL_SELECTOR_SIZE_MAX)
        str_add(&text, ",a");
    cr_expect_eq(label_selector_parse(str_text(&text), &s, &err), -EINVAL);
    cr_expect(strstr(err.text, "over 4096 bytes"), "%s", err.text);
}
