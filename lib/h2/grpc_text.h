/* grpc_text - what gRPC's headers have to say in words and times. */
#ifndef BIGA_LIB_H2_GRPC_TEXT_H
#define BIGA_LIB_H2_GRPC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"

/* Foreign text as a person may see it: what is hidden (hidden_text.h) becomes
 * '?', line ends and tabs a space; cut between characters. */
void grpc_text(const char *data, size_t size, char *ret_text, size_t text_size);

/* grpc-message: percent-encoded but for printable ASCII without '%'.  What is
 * no such pair is left as it is; returns the bytes, at most `max`. */
size_t grpc_text_decode(const char *value, size_t size, char *ret_data,
                        size_t max);
void grpc_text_encode(const char *data, size_t size, struct str *out);

/* grpc-timeout: "100m", one to eight digits and a unit, as milliseconds,
 * rounded up.  False: it is none. */
bool grpc_timeout_read(const char *text, int64_t *ret_ms);
enum { GRPC_TIMEOUT_MAX = 10 }; /* "99999999H" */
/* As exact as eight digits allow; never less than `ms`, at least 1. */
void grpc_timeout_write(int64_t ms, char ret_text[GRPC_TIMEOUT_MAX]);

#endif
