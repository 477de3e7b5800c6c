/* h2_fields - the header fields of a message of HTTP/2, in their order, each
 * as often as it came; names in lower case, pseudo-headers too. */
#ifndef BIGA_LIB_H2_H2_FIELDS_H
#define BIGA_LIB_H2_H2_FIELDS_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/str.h"

enum { H2_FIELD_OVERHEAD = 32 }; /* of SETTINGS_MAX_HEADER_LIST_SIZE */

struct h2_fields {
    struct str text; /* "name\0value\0" each */
    size_t n;
    size_t size; /* of all that came, as SETTINGS counts them */
    size_t max;  /* what is beyond is only counted */
};
void h2_fields_init(struct h2_fields *f, size_t max);
void h2_fields_fini(struct h2_fields *f);
void h2_fields_reset(struct h2_fields *f); /* empties, keeps the buffer */

/* False: it was left out, there would be more than `max` bytes, or there is
 * no memory (text.starved). Neither has a NUL in it. */
bool h2_fields_add(struct h2_fields *f, const char *name, size_t name_size,
                   const char *value, size_t value_size);
bool h2_fields_add_text(struct h2_fields *f, const char *name,
                        const char *value);
/* Did any have to be left out? */
bool h2_fields_are_cut(const struct h2_fields *f);
/* The first value, in either case of letters; NULL: none. */
const char *h2_fields_get(const struct h2_fields *f, const char *name);
/* The next one after `*at`, which begins with 0; false at the end. */
bool h2_fields_next(const struct h2_fields *f, size_t *at,
                    const char **ret_name, const char **ret_value);
/* Borrows both; nghttp2 copies them. */
nghttp2_nv h2_nv(const char *name, const char *value);

#endif
