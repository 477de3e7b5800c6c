/* relay_want - what a client wants of a pod, as its query says it, and as its
 * node is told.  Pure. */
#ifndef BIGA_EXTENDER_RELAY_RELAY_WANT_H
#define BIGA_EXTENDER_RELAY_RELAY_WANT_H

#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

enum relay_kind {
    RELAY_LOG,
    RELAY_EXEC,
    RELAY_ATTACH,
    RELAY_PORTFORWARD,
    RELAY_KINDS
};
/* "log", "exec", "attach", "portforward": as Kubernetes' subresources. */
const char *relay_kind_name(enum relay_kind kind);

enum {
    RELAY_CONTAINER_MAX = 63,
    RELAY_COMMAND_MAX = 256, /* words */
    RELAY_PORTS_MAX = 16,
    RELAY_WANT_MAX = 64 << 10, /* bytes of what the node is told of one */
};

/* The query's parameters: the n-th of a name, NULL when there is none. */
struct relay_query {
    const char *(*get)(const void *ctx, const char *name, size_t n);
    const void *ctx;
};

/* The names that a kind has, NULL-terminated. */
const char *const *relay_want_params(enum relay_kind kind);
/* Append them as members of a JSON object; -EINVAL with the parameter, its
 * value and what is allowed. */
int relay_want_read(enum relay_kind kind, const struct relay_query *query,
                    struct str *out, struct error *err);

#endif
