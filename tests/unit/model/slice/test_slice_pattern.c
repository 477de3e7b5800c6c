/* Slices that are read by comparing them with another. */
#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "model/slice/slice.h"
#include "tests/lib/patterncheck.h"
#include "tests/lib/sim/benchhost.h"

#define SERIAL "MT2344XZ00000500" /* of the first card of host 5 */

static char *body(const char *node, size_t host, const char *boot_id,
                  int64_t generation)
{
    struct slice_epoch epoch = {.generation = generation};
    struct str text = STR_INIT(SLICE_BODY_MAX);
    cleanup_with(topo) struct topo *topo = benchhost_create(node, host);
    memcpy(epoch.boot_id, boot_id, strlen(boot_id) + 1);
    slice_encode(topo, &epoch, 0, &text);
    return text.data;
}

static enum patterncheck try(const char *of, const char *other)
{
    const struct patterncheck_text a = {of, strlen(of)};
    const struct patterncheck_text b = {other, strlen(other)};
    return patterncheck(&a, &b);
}

/* `text` with another text in place of `from`, the first time or always. */
static char *edited(const char *text, const char *from, const char *to,
                    bool always)
{
    struct str out = STR_INIT(SLICE_BODY_MAX);
    const char *at;
    cr_assert_not_null(strstr(text, from), "%s", from);
    while ((at = strstr(text, from))) {
        str_add_n(&out, text, (size_t)(at - text));
        str_add(&out, to);
        text = at + strlen(from);
        if (!always)
            break;
    }
    str_add(&out, text);
    return out.data;
}

Test(slice_pattern, reads_hosts_of_one_model)
{
    char most[SLICE_NAME_MAX - 20];
    memset(most, 'n', sizeof most);
    most[sizeof most - 1] = '\0';
    for (size_t i = 50; i < sizeof most - 2; i += 51)
        most[i] = '.';
    for (size_t shape = 0; shape < BENCHHOST_SHAPES; shape++) {
        cleanup_free char *of = body("node-1", shape, "boot", 1);
        cleanup_free char *other = body("x.example", shape + 400, "other.boot",
                                        INT64_C(999999999999999));
        cleanup_free char *longer = body(most, shape + 40000, "b", 20);
        cr_expect_eq(try(of, of), PATTERN_READ);
        cr_expect_eq(try(of, other), PATTERN_READ);
        cr_expect_eq(try(other, of), PATTERN_READ);
        cr_expect_eq(try(of, longer), PATTERN_READ);
        cr_expect_eq(try(longer, of), PATTERN_READ);
    }
}

Test(slice_pattern, does_not_fit_another_model)
{
    cleanup_free char *of = body("n", 0, "boot", 1);
    for (size_t shape = 1; shape < BENCHHOST_SHAPES; shape++) {
        cleanup_free char *other = body("n", shape, "boot", 1);
        cr_expect_eq(try(of, other), PATTERN_OTHER);
    }
}

/* Whatever is not as it always is, decoding has to look at. */
Test(slice_pattern, leaves_the_unexpected_to_decoding)
{
    static const struct {
        const char *from, *to;
    } edits[] = {
        {"\"int\":0", "\"int\":1"},
        {"dev/healthy\"", "dev/claims\""},
        {":{", ": {"},
        {SERIAL, "\\u004dT"},
        {SERIAL, "\xc3\xa4"},
        {SERIAL, "\x01"},
        {SERIAL, "0123456789012345678901234567890123456789012345678901234567"
                 "8901234"},
        {"{\"string\":\"" SERIAL "\"}", "{\"string\":null}"},
        {"{\"string\":\"" SERIAL "\"}", "{\"version\":\"" SERIAL "\"}"},
        {"\"name\":\"node-5\"", "\"name\":\"node-6\""},
        {"\"nodeName\":\"node-5\"", "\"nodeName\":\"node-6\""},
        {"\"string\":\"node-5\"", "\"string\":\"node-6\""},
        {"\"name\":\"node-5-", "\"name\":\"Node-5-"},
        {"\"name\":\"node-5-", "\"name\":\".node-5-"},
        {"\"generation\":3", "\"generation\":0"},
        {"\"generation\":3", "\"generation\":03"},
        {"\"generation\":3", "\"generation\":-3"},
        {"\"generation\":3", "\"generation\":3.5"},
        {"\"generation\":3", "\"generation\":\"3\""},
        {"\"generation\":3", "\"generation\":1000000000000000"},
        {"\"boot-5\"", "\"\""},
        {"\"boot-5\"", "\"a/b\""},
        {"\"boot-5\"", "\"01234567890123456789012345678901234567890123456789"
                       "01234567890123\""},
        {"content-hash\":\"", "content-hash\":\"0"},
        {"\"resourceSliceCount\":1", "\"resourceSliceCount\":2"},
        {"\"card-0000-14-00\"", "\"card-0000-14-01\""},
        {"]}}", "]}} x"},
        {"]}}", "]}"},
    };
    cleanup_free char *of = body("node-4", 1, "boot", 1);
    cleanup_free char *other = body("node-5", 5, "boot-5", 3);
    cr_assert_eq(try(of, other), PATTERN_READ);
    for (size_t i = 0; i < ARRAY_LEN(edits); i++) {
        cleanup_free char *wrong = edited(other, edits[i].from, edits[i].to,
                                          false);
        cr_expect_eq(try(of, wrong), PATTERN_OTHER, "%s: %s", edits[i].from,
                     edits[i].to);
    }
}

/* What one has and the other has not is a difference. */
Test(slice_pattern, has_the_same_members)
{
    cleanup_free char *a = body("a", 0, "boot", 1);
    cleanup_free char *b = body("b", 4, "boot", 1);
    cleanup_free char *none_a = edited(a, "biga.dev/serial", "x.dev/serial",
                                       true);
    cleanup_free char *none_b = edited(b, "biga.dev/serial", "x.dev/serial",
                                       true);
    cr_expect_eq(try(none_a, none_a), PATTERN_READ);
    cr_expect_eq(try(none_a, none_b), PATTERN_OTHER,
                 "what is not ours has to be the same");
    cr_expect_eq(try(none_a, b), PATTERN_OTHER);
}

Test(slice_pattern, is_not_made_of_what_has_escapes)
{
    cleanup_free char *plain = body("node-5", 5, "boot", 3);
    cleanup_free char *serial = edited(plain, SERIAL, "\\u004dT", false);
    cleanup_free char *number = edited(plain, "\"generation\":3",
                                       "\"generation\":3.0", false);
    cleanup_free char *id = edited(plain, "\"card-0000-14-00\"",
                                   "\"c\\u0061rd-0000-14-00\"", false);
    cleanup_free char *key = edited(plain, "biga.dev/serial",
                                    "biga.dev\\/serial", true);
    cr_expect_eq(try(serial, plain), PATTERN_NONE);
    cr_expect_eq(try(number, plain), PATTERN_NONE);
    cr_expect_eq(try(id, plain), PATTERN_NONE);
    cleanup_free char *most = body("node-5", 5, "boot", INT64_C(1) << 53);
    cr_expect_eq(try(most, most), PATTERN_NONE, "it would not read itself");
    cr_expect_eq(try(key, key), PATTERN_READ, "keys are always the same");
    cr_expect_eq(try("{}", plain), PATTERN_NONE);
}
