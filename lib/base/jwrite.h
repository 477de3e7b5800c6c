/* jwrite - JSON text, one member after the other.
 *
 *     jwrite_object(out, NULL);
 *     jwrite_text(out, "name", name);
 *     jwrite_array(out, "cards");
 *     jwrite_uint(out, NULL, 7);
 *     jwrite_end_array(out);
 *     jwrite_end_object(out);          {"name":"n","cards":[7]}
 *
 * Whether a comma is due follows from the last byte of `out`: none after an
 * opening bracket, a colon, a comma, a line's end, or at the beginning.  So
 * functions that know nothing of one another may add members in turn, also
 * beside text that was put together otherwise.  A `key` is plain ASCII; NULL
 * for an element of an array, or the whole text. */
#ifndef BIGA_LIB_BASE_JWRITE_H
#define BIGA_LIB_BASE_JWRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/str.h"

/* The comma, if one is due, and the key: its value is added next. */
void jwrite_key(struct str *out, const char *key);

void jwrite_object(struct str *out, const char *key);
void jwrite_end_object(struct str *out);
void jwrite_array(struct str *out, const char *key);
void jwrite_end_array(struct str *out);

void jwrite_text(struct str *out, const char *key, const char *text);
void jwrite_int(struct str *out, const char *key, int64_t value);
void jwrite_uint(struct str *out, const char *key, uint64_t value);
void jwrite_bool(struct str *out, const char *key, bool value);
void jwrite_null(struct str *out, const char *key);

/* What is not known: a text that is NULL and a number below 0 are null. */
void jwrite_text_or_null(struct str *out, const char *key, const char *text);
void jwrite_int_or_null(struct str *out, const char *key, int64_t value);
/* The same, but a text that is "" and a number that is 0 are left out. */
void jwrite_known_text(struct str *out, const char *key, const char *text);
void jwrite_known(struct str *out, const char *key, uint64_t value);

#endif
