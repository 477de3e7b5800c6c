/* tool - runs a command of the system and reads what it prints. */
#ifndef BIGA_ADVERTISER_ACT_PREP_TOOL_H
#define BIGA_ADVERTISER_ACT_PREP_TOOL_H

#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

enum {
    TOOL_OUT_MAX = 1 << 20, /* bytes that it may print */
    TOOL_LOOK_MS = 50,      /* its deadline is looked at that often */
};

/* Run argv[0], as the shell finds it, and wait for its end.  0 when it ended
 * well: `*ret_out`, which is empty before, has what it printed.  -ENOENT: there
 * is none; -ETIMEDOUT: it was killed after `limit_ms`; -EREMOTEIO: it failed,
 * and `err` has its last words; else -errno, as -EFBIG: it printed too much. */
int tool_run(const char *const *argv, int64_t limit_ms, struct str *ret_out,
             struct error *err);

#endif
