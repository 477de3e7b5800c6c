#include "lib/base/base64.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"

static void expect_pair(const char *plain, const char *coded)
{
    cleanup_str struct str out = STR_INIT(64), back = STR_INIT(64);
    base64_add(&out, plain, strlen(plain));
    cr_expect_str_eq(str_text(&out), coded);
    cr_expect(base64_decode(coded, strlen(coded), &back));
    cr_expect_str_eq(str_text(&back), plain);
}

/* RFC 4648 section 10. */
Test(base64, vectors)
{
    expect_pair("", "");
    expect_pair("f", "Zg==");
    expect_pair("fo", "Zm8=");
    expect_pair("foo", "Zm9v");
    expect_pair("foob", "Zm9vYg==");
    expect_pair("fooba", "Zm9vYmE=");
    expect_pair("foobar", "Zm9vYmFy");
}

Test(base64, every_byte_there_and_back)
{
    unsigned char all[256];
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (unsigned char)(i * 7);
    for (size_t n = 0; n <= sizeof all; n++) {
        cleanup_str struct str out = STR_INIT(512), back = STR_INIT(512);
        base64_add(&out, all, n);
        cr_assert(base64_decode(str_text(&out), out.size, &back));
        cr_assert_eq(back.size, n);
        cr_assert_eq(n ? memcmp(back.data, all, n) : 0, 0);
    }
}

Test(base64, anything_else_is_refused)
{
    static const char *const bad[] = {"Z",
                                      "Zg",
                                      "Zg=",
                                      "Z===",
                                      "====",
                                      "Zg==Zg==",
                                      "Zm9v\n",
                                      "Zm 9",
                                      "Zm9-",
                                      "=Zm9",
                                      "Zh==" /* unused bits */,
                                      "Zm9=Zm9v",
                                      "Zm9v====",
                                      "\0\0\0\0"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cleanup_str struct str out = STR_INIT(64);
        size_t size = i + 1 == ARRAY_LEN(bad) ? 4 : strlen(bad[i]);
        cr_expect(!base64_decode(bad[i], size, &out), "%s", bad[i]);
        cr_expect_eq(out.size, 0);
    }
}

/* A reader of pieces has room for a piece, and for no byte more. */
Test(base64, needs_no_more_room_than_there_are_bytes)
{
    for (size_t n = 1; n <= 6; n++) {
        cleanup_str struct str out = STR_INIT(16), back = STR_INIT(n);
        base64_add(&out, "foobar", n);
        cr_expect(base64_decode(str_text(&out), out.size, &back), "%zu", n);
        cr_expect_eq(back.size, n);
        cr_expect_eq(memcmp(str_text(&back), "foobar", n), 0);
        cleanup_str struct str less = STR_INIT(n - 1);
        cr_expect(!base64_decode(str_text(&out), out.size, &less), "%zu", n);
        cr_expect_eq(less.size, 0);
    }
}

Test(base64, stays_below_the_cap)
{
    cleanup_str struct str out = STR_INIT(5);
    cr_expect(!base64_decode("Zm9vYmFy", 8, &out));
}

Test(hex, digits_and_nothing_else)
{
    static const char lower[] = "0123456789abcdef", upper[] = "ABCDEF";
    for (int i = 0; i < 256; i++) {
        char c = (char)i;
        const char *at = c ? strchr(lower, c) : NULL;
        const char *up = c ? strchr(upper, c) : NULL;
        int want = at ? (int)(at - lower) : up ? 10 + (int)(up - upper) : -1;
        cr_expect_eq(hex_digit(c), want, "%d", i);
    }
}
