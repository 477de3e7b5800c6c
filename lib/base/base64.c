#include "lib/base/base64.h"

#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "abcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_add(struct str *out, const void *data, size_t size)
{
    const unsigned char *p = data;
    for (; size > 0; p += 3) {
        size_t n = size < 3 ? size : 3;
        unsigned bits = (unsigned)p[0] << 16;
        if (n > 1)
            bits |= (unsigned)p[1] << 8;
        if (n > 2)
            bits |= p[2];
        const char four[] = {
            alphabet[bits >> 18],
            alphabet[bits >> 12 & 63],
            n > 1 ? alphabet[bits >> 6 & 63] : '=',
            n > 2 ? alphabet[bits & 63] : '=',
        };
        str_add_n(out, four, sizeof four);
        size -= n;
    }
}

static int value_of(char c)
{
    const char *at = c ? strchr(alphabet, c) : NULL;
    return at ? (int)(at - alphabet) : -1;
}

/* The bits of four characters, of which the last `pad` are '='; -1 when one of
 * them is something else. */
static int bits_of(const char *four, size_t pad)
{
    int bits = 0;
    for (size_t i = 0; i < 4; i++) {
        int v = i < 4 - pad ? value_of(four[i]) : 0;
        if (v < 0)
            return -1;
        bits = bits << 6 | v;
    }
    return bits;
}

bool base64_decode(const char *text, size_t size, struct str *out)
{
    size_t before = out->size;
    if (size % 4 != 0)
        return false;
    if (size == 0)
        return true;
    size_t pads = text[size - 1] != '=' ? 0 : text[size - 2] != '=' ? 1 : 2;
    if (!str_reserve(out, size / 4 * 3 - pads))
        return false;
    for (size_t at = 0; at < size; at += 4) {
        size_t pad = at + 4 == size ? pads : 0;
        int bits = bits_of(text + at, pad);
        bool unused = pad && bits & ((1 << 8 * (int)pad) - 1);
        if (bits < 0 || unused) {
            out->size = before;
            out->data[before] = '\0';
            return false;
        }
        const char three[] = {(char)(bits >> 16 & 255), (char)(bits >> 8 & 255),
                              (char)(bits & 255)};
        str_add_n(out, three, 3 - pad);
    }
    return !out->overflow;
}
