/* cookies - what stands in a Cookie header (RFC 6265, 4.2).  Pure. */
#ifndef BIGA_LIB_HTTP_COOKIES_H
#define BIGA_LIB_HTTP_COOKIES_H

#include <stdbool.h>
#include <string.h>

#include "lib/base/str.h"

/* Append the value of the first cookie of that name of "a=1; b=2", as it
 * stands; false: there is none, or `out` is full. */
static inline bool cookies_find(const char *header, const char *name,
                                struct str *out)
{
    size_t size = strlen(name);
    for (const char *p = header; *p;) {
        p += strspn(p, " \t;");
        size_t pair = strcspn(p, ";");
        if (pair > size && strncmp(p, name, size) == 0 && p[size] == '=') {
            str_add_n(out, p + size + 1, pair - size - 1);
            return !out->overflow;
        }
        p += pair;
    }
    return false;
}

#endif
