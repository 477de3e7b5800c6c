#include "lib/base/str.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/jscan.h"
#include "lib/base/mem.h"
#include "lib/base/utf8.h"

Test(str, grows)
{
    cleanup_str struct str s = STR_INIT(1 << 20);
    cr_expect_str_eq(str_text(&s), "");
    str_add(&s, "a");
    str_add_n(&s, "bcd", 2);
    str_add_c(&s, 'd');
    str_addf(&s, "-%03d", 7);
    cr_expect_str_eq(str_text(&s), "abcd-007");
    cr_expect_eq(s.size, 8);
    for (int i = 0; i < 10000; i++)
        str_add(&s, "0123456789");
    cr_expect_eq(s.size, 100008);
    cr_expect_eq(strlen(s.data), s.size);
    str_reset(&s);
    cr_expect_str_eq(str_text(&s), "");
}

Test(str, never_passes_its_cap)
{
    cleanup_str struct str s = STR_INIT(8);
    str_add(&s, "12345678");
    cr_expect_not(s.overflow);
    str_add(&s, "");
    cr_expect_not(s.overflow);
    str_add_c(&s, '9');
    cr_expect(s.overflow);
    cr_expect_str_eq(str_text(&s), "12345678");
    str_reset(&s);
    cr_expect_not(s.overflow);
    str_addf(&s, "%s", "123456789");
    cr_expect(s.overflow);
    str_add(&s, "x");
    cr_expect_str_eq(str_text(&s), "", "nothing after an overflow");
    cr_expect_not(str_reserve(&s, SIZE_MAX));
}

Test(str, a_soft_one_does_without_memory)
{
    struct str s = STR_INIT(SIZE_MAX / 2);
    s.soft = true;
    str_add(&s, "text");
    cr_expect(!str_reserve(&s, (size_t)1 << 50));
    cr_expect(s.overflow && s.starved);
    str_add(&s, " and more");
    cr_expect_str_eq(s.data, "text");
    str_reset(&s);
    cr_expect(!s.overflow && !s.starved);
    str_add(&s, "again");
    cr_expect_str_eq(s.data, "again");
    str_fini(&s);
    cr_expect(s.soft);
}

Test(str, can_be_given_away)
{
    struct str s = STR_INIT(64);
    cleanup_free char *empty = str_steal(&s);
    cr_expect_str_eq(empty, "");
    str_add(&s, "text");
    cleanup_free char *text = str_steal(&s);
    cr_expect_str_eq(text, "text");
    cr_expect_null(s.data);
    str_fini(&s);
    str_fini(NULL);
}

Test(str, integers_print_as_printf_does)
{
    static const int64_t values[] = {
        0, 1, -1, 9, 10, 99, 100, 12345678901, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        cleanup_str struct str s = STR_INIT(64);
        char expected[32];
        str_add_i64(&s, values[i]);
        (void)snprintf(expected, sizeof expected, "%" PRId64, values[i]);
        cr_expect_str_eq(str_text(&s), expected);
        str_reset(&s);
        str_add_u64(&s, (uint64_t)values[i]);
        (void)snprintf(expected, sizeof expected, "%" PRIu64,
                       (uint64_t)values[i]);
        cr_expect_str_eq(str_text(&s), expected);
    }
}

Test(str, json_strings_are_escaped)
{
    cleanup_str struct str s = STR_INIT(256);
    str_add_json(&s, "a\"b\\c\n\t\r\x01\x1f\x7f/\xc3\xa9");
    cr_expect_str_eq(str_text(&s),
                     "\"a\\\"b\\\\c\\n\\t\\r\\u0001\\u001f\x7f/\xc3\xa9\"");
    str_reset(&s);
    str_add_json_n(&s, "\xff\xe2\x82.\xed\xa0\x80", 7);
    cr_expect_str_eq(str_text(&s),
                     "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd.\xef\xbf\xbd"
                     "\xef\xbf\xbd\xef\xbf\xbd\"");
    str_reset(&s);
    str_add_json_n(&s, "a\0b", 3);
    cr_expect_str_eq(str_text(&s), "\"a\\u0000b\"");
}

/* Whatever the bytes (but NUL, which the scanner refuses by design), the
 * scanner takes what was written; and valid UTF-8 comes back as it was. */
Test(str, json_strings_are_read_back)
{
    uint64_t state = 88172645463325252;
    for (int round = 0; round < 20000; round++) {
        cleanup_str struct str s = STR_INIT(1024);
        char bytes[24], decoded[sizeof bytes * 3 + 1];
        bool valid = true;
        for (size_t i = 0; i < sizeof bytes; i++) {
            state = state * UINT64_C(6364136223846793005) + 1442695040888963;
            unsigned char c = (unsigned char)(state >> 56);
            bytes[i] = (char)(c ? c & (round % 2 ? 0xff : 0x7f) : 1);
            bytes[i] = bytes[i] ? bytes[i] : 1;
        }
        for (size_t i = 0; i < sizeof bytes && valid;) {
            size_t n = utf8_sequence(bytes + i, sizeof bytes - i);
            valid = n > 0;
            i += n;
        }
        struct jscan scan;
        struct jtext text;
        str_add_json_n(&s, bytes, sizeof bytes);
        jscan_init(&scan, s.data, s.size);
        cr_assert(jscan_string(&scan, &text) && jscan_end(&scan));
        cr_assert_leq(text.size, sizeof bytes * 6);
        if (!valid)
            continue;
        cleanup_free char *room = xmalloc(text.size + 1);
        cr_assert_eq(jtext_decode(&text, room), sizeof bytes);
        memcpy(decoded, room, sizeof bytes);
        cr_assert_eq(memcmp(decoded, bytes, sizeof bytes), 0);
    }
}

Test(str, moves_what_it_has)
{
    struct str a = STR_INIT(64), b = STR_INIT(64), small = STR_INIT(4);
    str_add(&b, "hello");
    const char *data = b.data;
    str_move(&a, &b);
    cr_expect_eq(a.data, data, "without a copy");
    cr_expect_str_eq(str_text(&a), "hello");
    cr_expect_str_eq(str_text(&b), "");
    cr_expect_eq(a.max, 64);
    str_add(&b, " you");
    str_move(&a, &b);
    cr_expect_str_eq(str_text(&a), "hello you");
    cr_expect_eq(b.size, 0);
    str_move(&small, &a);
    cr_expect(small.overflow && small.size == 0, "its cap stays");
    str_fini(&a);
    str_fini(&b);
    str_fini(&small);
}

Test(str, drops_its_first_bytes)
{
    struct str s = STR_INIT(100);
    str_drop(&s, 0); /* nothing of nothing */
    str_add(&s, "abcdef");
    str_drop(&s, 0);
    cr_expect_str_eq(str_text(&s), "abcdef");
    str_drop(&s, 2);
    cr_expect_str_eq(str_text(&s), "cdef");
    str_add(&s, "g");
    cr_expect_str_eq(str_text(&s), "cdefg");
    str_drop(&s, s.size);
    cr_expect_str_eq(str_text(&s), "");
    cr_expect_eq(s.size, 0);
    str_fini(&s);
}
