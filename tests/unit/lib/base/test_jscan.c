#include "lib/base/jscan.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "tests/lib/badjson.h"

/* Does the scanner take the whole document, skipping it? */
static bool takes(const char *data, size_t size, struct error *err)
{
    struct jscan s;
    /* a copy of just that size, so that a sanitizer sees its end */
    cleanup_free char *copy = xmemdup(data, size);
    jscan_init(&s, copy, size);
    if (jscan_skip(&s) && jscan_end(&s))
        return true;
    cr_expect_eq(jscan_error(&s, err), -EINVAL);
    cr_expect_leq(s.fault_at, size);
    return false;
}

Test(jscan, refuses_every_class_of_fault_with_its_position)
{
    size_t n;
    const struct badjson *list = badjson_syntax(&n);
    cr_assert_geq(n, 188);
    for (size_t i = 0; i < n; i++) {
        struct error err = {0};
        cr_expect_not(takes(list[i].data, list[i].size, &err), "%s",
                      list[i].name);
        cr_expect(strstr(err.text, " at line "), "%s: %s", list[i].name,
                  err.text);
        cr_expect(strstr(err.text, "(byte "), "%s", err.text);
    }
}

Test(jscan, takes_what_is_right)
{
    size_t n;
    const struct badjson *list = badjson_good(&n);
    for (size_t i = 0; i < n; i++) {
        struct error err = {0};
        cr_expect(takes(list[i].data, list[i].size, &err), "%s: %s",
                  list[i].name, err.text);
    }
}

Test(jscan, depth_64_is_the_last_one_taken)
{
    struct error err;
    char text[2 * JSCAN_DEPTH_MAX];
    memset(text, '[', JSCAN_DEPTH_MAX);
    memset(text + JSCAN_DEPTH_MAX, ']', JSCAN_DEPTH_MAX);
    cr_expect(takes(text, sizeof text, &err), "%s", err.text);
}

/* Every proper prefix of an array or object is refused. */
Test(jscan, no_prefix_is_taken)
{
    static const char text[] = "{\"a\":[1,-2.5e3,\"x\\u20ac\\n\"],\"b\":"
                               "{\"c\":true,\"d\":[null,false,{}]}}";
    struct error err;
    cr_assert(takes(text, sizeof text - 1, &err));
    for (size_t size = 0; size < sizeof text - 1; size++)
        cr_expect_not(takes(text, size, &err), "%.*s", (int)size, text);
}

static void expect_fault(const char *text, const char *expected)
{
    struct error err = {0};
    cr_expect_not(takes(text, strlen(text), &err), "%s", text);
    cr_expect_str_eq(err.text, expected);
}

Test(jscan, says_where_and_what)
{
    expect_fault("{\"k\": 007}",
                 "leading zero in number at line 1 column 7 (byte 6)");
    expect_fault("[1,\n 2,\n  x]",
                 "unexpected character at line 3 column 3 (byte 10)");
    expect_fault("[\"a\\ud800\"]",
                 "lone surrogate in string at line 1 column 4 (byte 3)");
    expect_fault("[1 2]", "expected ',' or ']' at line 1 column 4 (byte 3)");
    expect_fault("{\"k\":1 2}",
                 "expected ',' or '}' at line 1 column 8 (byte 7)");
    expect_fault("{} x", "trailing garbage at line 1 column 4 (byte 3)");
    expect_fault("[\"\n\"]",
                 "control character in string at line 1 column 3 (byte 2)");
    expect_fault("[", "unexpected end of text at line 1 column 2 (byte 1)");
    expect_fault("[\"\\u0000\"]", "NUL in string at line 1 column 3 (byte 2)");
}

Test(jscan, reads_a_document)
{
    static const char text[] =
        "{\"names\":[\"a\",\"b\\tc\"],\"n\":-7,\"yes\":true,\"no\":false,"
        "\"nil\":null,\"raw\": {\"x\":[1]} ,\"end\":9223372036854775807}";
    struct jscan s;
    struct jtext key, value;
    int64_t number;
    bool flag;
    char decoded[8];

    jscan_init(&s, text, sizeof text - 1);
    cr_assert(jscan_object(&s));
    cr_assert(jscan_member(&s, &key) && jtext_is(&key, "names"));
    cr_assert(jscan_array(&s));
    cr_assert(jscan_element(&s) && jscan_string(&s, &value));
    cr_expect(jtext_is(&value, "a"));
    cr_assert(jscan_element(&s) && jscan_string(&s, &value));
    cr_expect(value.escaped);
    cr_expect_eq(jtext_decode(&value, decoded), 3);
    cr_expect_str_eq(decoded, "b\tc");
    cr_assert_not(jscan_element(&s));
    cr_assert(jscan_member(&s, &key) && jscan_int64(&s, &number));
    cr_expect_eq(number, -7);
    cr_assert(jscan_member(&s, &key) && jscan_bool(&s, &flag) && flag);
    cr_assert(jscan_member(&s, &key) && jscan_bool(&s, &flag) && !flag);
    cr_assert(jscan_member(&s, &key) && jscan_null(&s));
    cr_assert(jscan_member(&s, &key) && !jscan_null(&s) && !s.fault);
    cr_assert(jscan_raw(&s, &value));
    cr_expect_eq(value.size, strlen("{\"x\":[1]}"));
    cr_expect_eq(value.data[0], '{');
    cr_assert(jscan_member(&s, &key) && jscan_int64(&s, &number));
    cr_expect_eq(number, INT64_MAX);
    cr_assert_not(jscan_member(&s, &key));
    cr_assert(jscan_end(&s));
}

Test(jscan, integers_of_64_bits)
{
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"92233720368547758070", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
        {"\"1\"", false, 0},
        {"true", false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct jscan s;
        int64_t value = 77;
        jscan_init(&s, cases[i].text, strlen(cases[i].text));
        cr_expect_eq(jscan_int64(&s, &value), cases[i].good, "%s",
                     cases[i].text);
        cr_expect_eq(value, cases[i].good ? cases[i].value : 77, "%s",
                     cases[i].text);
        cr_expect_eq(jscan_end(&s), cases[i].good);
    }
}

Test(jscan, the_first_fault_sticks)
{
    struct jscan s;
    struct jtext text;
    bool flag;
    jscan_init(&s, "{\"k\":1}", 7);
    cr_expect_not(jscan_array(&s));
    cr_expect_not(jscan_object(&s));
    cr_expect_not(jscan_member(&s, &text));
    cr_expect_not(jscan_bool(&s, &flag));
    cr_expect_not(jscan_skip(&s));
    cr_expect_not(jscan_raw(&s, &text));
    cr_expect_not(jscan_end(&s));
    cr_expect_str_eq(s.fault, "expected an array");
    jscan_fail(&s, "another", 3);
    cr_expect_str_eq(s.fault, "expected an array");
    cr_expect_eq(s.fault_at, 0);
}

Test(jscan, texts_compare_decoded)
{
    struct jtext plain = {"Name", 4, false};
    struct jtext escaped = {"N\\u0061me", 9, true};
    struct jtext longer = {"Namex", 5, false};
    cr_expect(jtext_is(&plain, "Name"));
    cr_expect_not(jtext_is(&plain, "name"));
    cr_expect(jtext_is_nocase(&plain, "nAMe"));
    cr_expect(jtext_is(&escaped, "Name"));
    cr_expect(jtext_is_nocase(&escaped, "NAME"));
    cr_expect_not(jtext_is(&longer, "Name"));
    cr_expect_not(jtext_is_nocase(&longer, "Name"));
}

Test(jscan, decodes_every_escape)
{
    static const char in[] = "\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9"
                             "\\u20AC\\ud83d\\udc0e.";
    struct jtext t = {in, sizeof in - 1, true};
    char out[sizeof in];
    cr_expect_eq(jtext_decode(&t, out), strlen(out));
    cr_expect_str_eq(out, "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac"
                          "\xf0\x9f\x90\x8e.");
}

Test(jscan, takes_a_nul_of_an_api_server)
{
    static const char text[] =
        "{\"a\\u0000\":\"\\u0000b\",\"c\":[\"\\u0000\"]}";
    struct jscan s;
    struct jtext key, value;
    char decoded[16];
    jscan_init_kube(&s, text, sizeof text - 1);
    cr_assert(jscan_object(&s));
    cr_assert(jscan_member(&s, &key));
    cr_expect_not(jtext_is(&key, "a"));
    cr_assert(jscan_string(&s, &value));
    cr_expect_eq(jtext_decode(&value, decoded), 4);
    cr_expect_str_eq(decoded, "\xef\xbf\xbd"
                              "b");
    cr_assert(jscan_member(&s, &key) && jscan_skip(&s));
    cr_expect_not(jscan_member(&s, &key));
    cr_expect(jscan_end(&s));
}

/* The vector path and the bytewise path agree at every offset. */
Test(jscan, an_odd_byte_is_found_at_every_offset)
{
    static const char odd[] = {'\\', '\n', '\x01', '\x1f', '\x80', '\xff'};
    char text[72];
    struct error err;
    for (size_t o = 0; o < ARRAY_LEN(odd); o++) {
        for (size_t at = 1; at < sizeof text - 1; at++) {
            memset(text, 'k', sizeof text);
            text[0] = text[sizeof text - 1] = '"';
            cr_assert(takes(text, sizeof text, &err));
            text[at] = odd[o];
            cr_expect_not(takes(text, sizeof text, &err),
                          "byte %u at %zu taken", (unsigned char)odd[o], at);
        }
    }
}

/* Reading strings in bulk is reading them one by one, whatever the room. */
Test(jscan, strings_in_bulk)
{
    static const char *const texts[] = {
        "[]",
        "[\"a\"]",
        "[\"a\",\"b\" , \"c\\n\",\"\",\"e\"]",
        "[\"a\",\"b\",]",
        "[\"a\",,\"b\"]",
        "[\"a\",\"b\",3]",
        "[\"a\",\"b",
        "[\"a\",\"b\"",
        "[\"a\",\"\x80\"]",
        "[,\"a\"]",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        for (size_t room = 1; room < 7; room++) {
            struct jscan one, bulk;
            struct jtext text, list[8] = {{0}};
            size_t n_one = 0, n_bulk = 0, got;
            jscan_init(&one, texts[i], strlen(texts[i]));
            jscan_init(&bulk, texts[i], strlen(texts[i]));
            cr_assert(jscan_array(&one) && jscan_array(&bulk));
            while (jscan_element(&one) && jscan_string(&one, &text))
                n_one++;
            do {
                got = jscan_strings(&bulk, list, room);
                cr_assert_leq(got, room);
                n_bulk += got;
            } while (got == room && !bulk.fault);
            cr_expect_eq(n_one, n_bulk, "%s", texts[i]);
            cr_expect_eq(one.fault_at, bulk.fault_at, "%s", texts[i]);
            cr_expect_eq(jscan_end(&one), jscan_end(&bulk), "%s", texts[i]);
        }
    }
}

/* A list of strings of all lengths, with something odd here and there. */
static void random_list(struct str *out, uint32_t *seed)
{
    static const char *const odd[] = {"\\n",  "\\\"", "\xc3\xa9", "\\u0041",
                                      "\x01", "\x80", "\\x"};
    static const char *const between[] = {",",   ",",   ",",  ",", ",",
                                          " , ", ",\n", ",,", ""};
    str_reset(out);
    str_add_c(out, '[');
    for (unsigned i = 0; i < 40; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        unsigned len = *seed >> 8 & 127, at = *seed >> 16 & 127;
        bool rare = *seed >> 26 == 0;
        if (i > 0)
            str_add(out, between[rare ? (*seed >> 5) % 9 : 0]);
        str_add_c(out, '"');
        for (unsigned k = 0; k < len; k++)
            if (k == at && *seed >> 28 == 1)
                str_add(out, odd[(*seed >> 10) % (*seed & 1 ? 4 : 7)]);
            else
                str_add_c(out, (char)('a' + k % 26));
        str_add_c(out, '"');
    }
    str_add(out, "]  ");
}

Test(jscan, long_strings_in_bulk_are_the_same_one_by_one)
{
    cleanup_str struct str text = STR_INIT(1 << 20);
    uint32_t seed = 7;
    size_t whole = 0;
    for (unsigned round = 0; round < 20000; round++) {
        struct jscan one, bulk;
        struct jtext list[64], next;
        random_list(&text, &seed);
        size_t size = text.size - (round % 3 ? 0 : round % text.size);
        jscan_init(&one, text.data, size);
        jscan_init(&bulk, text.data, size);
        cr_assert_eq(jscan_array(&one), jscan_array(&bulk));
        size_t n = jscan_strings(&bulk, list, ARRAY_LEN(list)), i = 0;
        while (jscan_element(&one) && jscan_string(&one, &next)) {
            cr_assert_lt(i, n);
            cr_assert_eq(list[i].data, next.data);
            cr_assert_eq(list[i].size, next.size);
            cr_assert_eq(list[i++].escaped, next.escaped);
        }
        cr_assert_eq(i, n);
        cr_assert_eq(one.fault_at, bulk.fault_at);
        cr_assert_eq(jscan_end(&one), jscan_end(&bulk));
        whole += one.fault == NULL;
    }
    cr_assert_gt(whole, 1000, "%zu", whole);
}
