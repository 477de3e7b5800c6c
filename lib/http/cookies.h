/* cookies - what stands in a Cookie header (RFC 6265, 4.2).  Pure. */
#ifndef BIGA_LIB_HTTP_COOKIES_H
#define BIGA_LIB_HTTP_COOKIES_H

#include <stdbool.h>

#include "lib/base/str.h"

/* Append the value of the first cookie of that name of "a=1; b=2", as it
 * stands; false: there is none, or `out` is full. */
bool cookies_find(const char *header, const char *name, struct str *out);

#endif
