/* utf8 - one well-formed UTF-8 sequence (RFC 3629: no overlong forms, no
 * surrogates, nothing above U+10FFFF). */
#ifndef BIGA_LIB_BASE_UTF8_H
#define BIGA_LIB_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Is this a byte within a character, and not its first? */
static inline bool utf8_inside(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* The length in bytes (1 to 4) of the sequence at `data`, or 0 when it is
 * malformed or cut off by `size`. */
static inline size_t utf8_sequence(const char *data, size_t size)
{
    const unsigned char *u = (const unsigned char *)data;
    if (size == 0)
        return 0;
    unsigned c = u[0];
    if (c < 0x80)
        return 1;
    size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (c < 0xc2 || c > 0xf4 || size < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if (!utf8_inside(data[i]))
            return 0;
    if ((c == 0xe0 && u[1] < 0xa0) || (c == 0xed && u[1] > 0x9f) ||
        (c == 0xf0 && u[1] < 0x90) || (c == 0xf4 && u[1] > 0x8f))
        return 0;
    return n;
}

#endif
