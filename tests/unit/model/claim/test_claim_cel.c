#include "model/claim/claim_cel.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/str.h"
#include "tests/lib/testdata.h"

#define DEVICE                                                                 \
    "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":\"gpu.example.com\"," \
    "\"nodeName\":\"n\",\"pool\":{\"name\":\"n\",\"generation\":1,"            \
    "\"resourceSliceCount\":1},\"devices\":[{\"name\":\"d\","                  \
    "\"allowMultipleAllocations\":true,\"attributes\":{"                       \
    "\"model\":{\"string\":\"A100\"},\"index\":{\"int\":3},"                   \
    "\"healthy\":{\"bool\":true},\"broken\":{\"bool\":false},"                 \
    "\"driverVersion\":{\"version\":\"1.2.3\"},"                               \
    "\"pre\":{\"version\":\"1.0.0-rc.1+b2\"},"                                 \
    "\"utf\":{\"string\":\"é→x\"},"                                         \
    "\"odd\":{\"string\":\"a\\\"b\\\\c\\nd\"}," EXTRA                          \
    "\"resource.kubernetes.io/pciBusID\":{\"string\":\"0000:17:00.0\"},"       \
    "\"resource.kubernetes.io/pcieRoot\":{\"string\":\"pci0000:16\"}},"        \
    "\"capacity\":{\"memory\":{\"value\":\"40Gi\"},"                           \
    "\"biga.dev/cores\":{\"value\":\"16\"},"                                   \
    "\"biga.dev/milli\":{\"value\":\"1500m\"}}}]}}"

#define EXTRA
static const char device_json[] = DEVICE;
#undef EXTRA
#define EXTRA "\"list\":{\"strings\":[\"a\"]},"
static const char list_json[] = DEVICE;

static struct claim_slice *slice_of(const char *json)
{
    struct claim_slice *slice = NULL;
    struct error err = {0};
    cr_assert_eq(claim_slice_read(json, strlen(json), &slice, &err), 0, "%s",
                 err.text);
    return slice;
}

/* '1', '0', 'E' runtime error, 'C' no CEL, 'N' not read; `err` has the text. */
static char judge(const struct claim_slice *slice, const char *text,
                  size_t size, struct error *err)
{
    cleanup_with(claim_cel) struct claim_cel *cel = NULL;
    bool match = false;
    int rc = claim_cel_compile(text, size, &cel, err);
    if (rc < 0) {
        cr_assert(rc == -EINVAL || rc == -ENOTSUP);
        return rc == -ENOTSUP ? 'N' : 'C';
    }
    rc = claim_cel_eval(cel, &slice->devices[0], slice->driver, &match, err);
    if (rc < 0) {
        cr_assert(rc == -EDOM || rc == -ENOTSUP);
        return rc == -ENOTSUP ? 'N' : 'E';
    }
    return match ? '1' : '0';
}

/* Where Kubernetes takes a selector, Biga gives the same or says that it
 * does not read it. */
Test(claim_cel, agrees_with_kubernetes)
{
    cleanup_with(claim_slice) struct claim_slice *slice = slice_of(device_json);
    size_t size, n = 0;
    cleanup_free char *table = testdata_read("tests/data/cel.tsv", &size);
    for (char *line = table, *next; *line; line = next) {
        next = strchrnul(line, '\n');
        size_t len = (size_t)(next - line);
        next += *next != '\0';
        if (*line == '#')
            continue;
        struct error err = {0};
        char kubernetes = line[0], biga = line[2];
        char is = judge(slice, line + 4, len - 4, &err);
        cr_expect_eq(is, biga, "%.*s: is %c, wanted %c (%s)", (int)len, line,
                     is, biga, err.text);
        cr_expect(biga == 'N' || kubernetes == 'C' || biga == kubernetes ||
                      strncmp(line + 4, "\"a\" in [,]", 10) == 0,
                  "%.*s", (int)len, line);
        n++;
    }
    cr_assert_gt(n, 200);
}

static void check_text(const char *cel, char wanted, const char *text)
{
    cleanup_with(claim_slice) struct claim_slice *slice = slice_of(device_json);
    struct error err = {0};
    char is = judge(slice, cel, strlen(cel), &err);
    cr_expect_eq(is, wanted, "%s: is %c", cel, is);
    cr_expect_str_eq(err.text, text, "%s", cel);
}

Test(claim_cel, names_the_word_and_its_place)
{
    check_text("device.driver == nope", 'N',
               "at 18: \"nope\": is CEL that Biga does not read");
    check_text("true && device.attributes[\"x\"].all(a, true)", 'N',
               "at 32: \"all\": is CEL that Biga does not read");
    check_text("device.new == 1", 'N',
               "at 8: \"new\": Biga knows no such member of device");
    check_text("(true", 'C', "at 6: the end: must be )");
    check_text("true true", 'C',
               "at 6: \"true\": must be an operator or the end");
    check_text("\"a", 'C', "at 1: \"\"a\": is a text without its end");
    check_text("1.5 > 1", 'N',
               "at 1: \"1\": Biga reads integers with a sign, and no others");
    check_text("device.attributes[\"d\"].x == 1", 'E', "at 24: no such key: x");
    check_text("device.attributes[\"gpu.example.com\"].index.contains(\"3\")",
               'E', "at 44: no such overload");
    check_text("device.driver.matches(\"a(?:b)\")", 'N',
               "at 23: \"a(?:b)\": the regular expression has (?, which Biga "
               "does not read");
}

/* A list is there, and can be asked for, but not compared. */
Test(claim_cel, lists_are_not_read)
{
    cleanup_with(claim_slice) struct claim_slice *slice = slice_of(list_json);
    static const struct {
        const char *cel;
        char wanted;
    } rows[] = {
        {"has(device.attributes[\"gpu.example.com\"].list)", '1'},
        {"\"list\" in device.attributes[\"gpu.example.com\"]", '1'},
        {"device.attributes[\"gpu.example.com\"].list == \"a\"", 'N'},
        {"\"a\" in device.attributes[\"gpu.example.com\"].list", 'N'},
        {"device.attributes[\"gpu.example.com\"].list", 'N'},
        {"device.attributes[\"gpu.example.com\"].list == \"a\" || true", '1'},
        {"device.attributes[\"gpu.example.com\"].list != \"a\"", 'N'},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err = {0};
        char is = judge(slice, rows[i].cel, strlen(rows[i].cel), &err);
        cr_expect_eq(is, rows[i].wanted, "%s: is %c (%s)", rows[i].cel, is,
                     err.text);
    }
}

static char judge_many(const char *before, const char *what, size_t n,
                       const char *behind)
{
    cleanup_with(claim_slice) struct claim_slice *slice = slice_of(device_json);
    cleanup_str struct str text = STR_INIT(1 << 20);
    struct error err = {0};
    str_add(&text, before);
    for (size_t i = 0; i < n; i++)
        str_add(&text, what);
    str_add(&text, behind);
    return judge(slice, str_text(&text), text.size, &err);
}

Test(claim_cel, caps)
{
    cr_expect_eq(judge_many("", "(", 60, ""), 'C');
    cr_expect_eq(judge_many("", "!", 60, "true"), '1');
    cr_expect_eq(judge_many("", "!", 70, "true"), 'C');
    cr_expect_eq(judge_many("true", " || true", 900, ""), '1');
    cr_expect_eq(judge_many("false", " || false", 1100, ""), '0');
    cr_expect_eq(judge_many("true", " == true", 70, ""), 'C');
    cr_expect_eq(judge_many("1 in [", "2,", 2040, "1]"), '1');
    cr_expect_eq(judge_many("1 in [", "2,", 2048, "1]"), 'C');
    cr_expect_eq(judge_many("true //", "x", CLAIM_CEL_MAX - 7, ""), '1');
    cr_expect_eq(judge_many("true //", "x", CLAIM_CEL_MAX - 6, ""), 'C');
    cr_expect_eq(
        judge_many("device.attributes[\"d\"]", ".?x", 70, ".hasValue()"), 'C');
}
