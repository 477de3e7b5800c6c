/* moment - a time as people say it, of now or before.
 *
 *   2026-11-01T14:05:07Z   RFC 3339, with any offset
 *   2026-11-01 14:05[:07]  on this computer's clock
 *   14:05[:07]             the last time that it was that
 *   -90s -10m -2h -3d      before now; without the minus, too
 *   now */
#ifndef BIGA_CLI_BASE_MOMENT_H
#define BIGA_CLI_BASE_MOMENT_H

#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

/* In milliseconds since 1970. -EINVAL, with what is allowed. */
int moment_parse(const char *text, int64_t now_ms, int64_t *ret_ms,
                 struct error *err);

/* Append "&key=" and the moment as a server reads it; nothing when there is no
 * text.  A CLI_USAGE, after saying so on stderr, when the option is wrong. */
int moment_add_query(struct str *path, const char *key, const char *option,
                     const char *text);

#endif
