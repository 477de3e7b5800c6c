/* relay_line - the first line that a node sends on a stream: whether it is one.
 *
 *     {"status":200}
 *     {"status":404,"error":"the pod has no container \"x\""}
 *
 * Members that are not here are skipped, for the node may be newer.  Pure. */
#ifndef BIGA_EXTENDER_RELAY_RELAY_LINE_H
#define BIGA_EXTENDER_RELAY_RELAY_LINE_H

#include <stddef.h>

#include "lib/base/error.h"

enum {
    RELAY_LINE_MAX = 4 << 10, /* bytes, with its end */
    RELAY_ERROR_MAX = 1023,   /* bytes of the text */
};

struct relay_line {
    unsigned status;                 /* 200, or 400 to 599 */
    char error[RELAY_ERROR_MAX + 1]; /* "" when there is none */
};
/* Without its end; -EINVAL. */
int relay_line_read(const char *data, size_t size, struct relay_line *ret_line,
                    struct error *err);

#endif
