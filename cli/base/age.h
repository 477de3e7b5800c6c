/* age - how long ago something was, as kubectl tells it: "90s", "5m10s", "3h20m",
 * "2d4h", "40d". */
#ifndef BIGA_CLI_BASE_AGE_H
#define BIGA_CLI_BASE_AGE_H

#include <stdint.h>

#include "lib/base/table.h"

enum { AGE_SIZE = 32 };

void age_format(int64_t seconds, char ret_text[AGE_SIZE]);

/* A cell with the time since a moment (RFC 3339, UTC), "-" when there is none;
 * or with a time. */
void age_add(struct table *t, const char *moment);
void age_add_seconds(struct table *t, double seconds);

#endif
