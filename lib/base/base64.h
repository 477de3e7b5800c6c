/* base64 - bytes as text: by base64 (RFC 4648 section 4, with padding), for JSON,
 * and by hexadecimal digits. */
#ifndef BIGA_LIB_BASE_BASE64_H
#define BIGA_LIB_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/str.h"

void base64_add(struct str *out, const void *data, size_t size);

/* Append what `text` stands for; false, with nothing appended, when it is not
 * the one text that base64_add() makes of some bytes (no line feeds, no
 * missing padding), or is larger than the room that is left in `out`. */
bool base64_decode(const char *text, size_t size, struct str *out)
    __attribute__((warn_unused_result));

/* What a digit stands for, in either case; -1: it is none. */
static inline int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

#endif
