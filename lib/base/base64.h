/* base64 - bytes as text (RFC 4648 section 4, with padding), for JSON. */
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

#endif
