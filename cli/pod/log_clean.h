/* log_clean - what a terminal may be shown of what pods write. */
#ifndef BIGA_CLI_POD_LOG_CLEAN_H
#define BIGA_CLI_POD_LOG_CLEAN_H

#include <stddef.h>

#include "lib/base/str.h"

/* Append to `out` what a terminal may be shown of a log: line feeds, tabs and
 * carriage returns stay, what else is hidden (hidden_text.h) becomes '?'.  A
 * character of which only the first bytes are there waits in `cut` for the
 * next call. */
struct log_cut {
    char bytes[3];
    size_t n;
};
void log_clean(const char *data, size_t size, struct log_cut *cut,
               struct str *out);

#endif
