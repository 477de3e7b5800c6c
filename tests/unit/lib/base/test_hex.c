#include "lib/base/hex.h"

#include <criterion/criterion.h>
#include <string.h>

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
