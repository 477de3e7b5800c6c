#include "lib/base/utf8.h"

#include <criterion/criterion.h>

/* RFC 3629, section 4, as code points: encode each and cut it. */
static size_t encode(unsigned cp, char out[4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    static const unsigned lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; cp >>= 6)
        out[i] = (char)(0x80 | (cp & 0x3f));
    out[0] = (char)(lead[n] | cp);
    return n;
}

Test(utf8, every_code_point_but_surrogates)
{
    for (unsigned cp = 0; cp <= 0x10ffff; cp++) {
        char text[4];
        size_t n = encode(cp, text);
        bool surrogate = cp >= 0xd800 && cp <= 0xdfff;
        cr_assert_eq(utf8_sequence(text, n), surrogate ? 0 : n, "U+%04X", cp);
        cr_assert_eq(utf8_sequence(text, n - 1), 0);
    }
}

/* All two-byte texts: valid ones are exactly those that encode gives. */
Test(utf8, every_pair_of_bytes)
{
    for (unsigned a = 0; a < 256; a++) {
        for (unsigned b = 0; b < 256; b++) {
            char text[2] = {(char)a, (char)b};
            size_t expected = a < 0x80 ? 1
                              : a >= 0xc2 && a <= 0xdf && (b & 0xc0) == 0x80
                                  ? 2
                                  : 0;
            cr_assert_eq(utf8_sequence(text, 2), expected, "%02x %02x", a, b);
        }
    }
}

Test(utf8, malformed_sequences)
{
    static const char *const bad[] = {
        "\xc0\x80\x80\x80", "\xc1\xbf\x80\x80", "\xe0\x9f\xbf\x80",
        "\xf0\x8f\xbf\xbf", "\xed\xa0\x80\x80", "\xed\xbf\xbf\x80",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xfe\x80\x80\x80",
        "\xff\xbf\xbf\xbf", "\x80\x80\x80\x80", "\xe2\x82.\x80",
        "\xf0\x9f\x90.",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect_eq(utf8_sequence(bad[i], 4), 0, "case %zu", i);
}
