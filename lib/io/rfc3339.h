/* rfc3339 - a moment as text: "2026-11-01T14:05:07.123Z".  Pure.
 *
 * Moments are milliseconds since 1970, of the years 1970 to 9999; or
 * nanoseconds, to 2262. */
#ifndef BIGA_LIB_IO_RFC3339_H
#define BIGA_LIB_IO_RFC3339_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RFC3339_MAX_MS INT64_C(253402300799999)
enum { RFC3339_SIZE = 32 };

/* With or without a fraction, of which three digits count; in UTC ("Z") or with
 * an offset ("+02:00").  False: it is no such text. */
bool rfc3339_parse(const char *text, int64_t *ret_ms);
/* The same of so many bytes, of whose fraction nine digits count. */
bool rfc3339_parse_ns(const char *text, size_t size, int64_t *ret_ns);

/* In UTC, with three digits; one that is out of range is the nearest that is
 * not. */
void rfc3339_format(int64_t ms, char ret_text[RFC3339_SIZE]);

#endif
