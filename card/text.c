#include "card/card.h"

#include <string.h>

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int card_decode(const char *text, size_t size, unsigned char *out,
                size_t *ret_size)
{
    size_t n = 0;
    if (size % 4 != 0)
        return -EINVAL;
    for (size_t i = 0; i < size; i += 4) {
        unsigned padding = 0;
        uint32_t bits = 0;
        /* padding ends the last group alone */
        if (i + 4 == size)
            padding = text[i + 3] != '=' ? 0 : text[i + 2] != '=' ? 1 : 2;
        for (unsigned k = 0; k < 4 - padding; k++) {
            int digit = digit_of(text[i + k]);
            if (digit < 0)
                return -EINVAL;
            bits |= (uint32_t)digit << (18 - 6 * k);
        }
        for (unsigned k = 0; k < 3 - padding; k++)
            out[n++] = (unsigned char)(bits >> (16 - 8 * k));
        /* bits that no byte takes would give two texts for one content */
        if (padding && (bits & (padding == 1 ? 0xff : 0xffff)) != 0)
            return -EINVAL;
    }
    *ret_size = n;
    return 0;
}

bool card_name_ok(const char *name)
{
    for (const char *part = name;; part++) {
        size_t len = strcspn(part, "/");
        if (len == 0 || len > 255 || (len == 1 && part[0] == '.') ||
            (len == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part += len;
        if (!*part)
            return part - name < 4096;
    }
}
