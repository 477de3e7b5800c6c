/* uri - a request target taken apart: path segments and query parameters,
 * percent-decoded, in fixed buffers of its own.  Pure.
 *
 * The path is split before it is decoded, so "%2f" is a slash inside a
 * segment and never a separator. */
#ifndef BIGA_LIB_HTTP_URI_H
#define BIGA_LIB_HTTP_URI_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"

enum {
    URI_MAX = 8192, /* bytes of a whole target */
    URI_SEGMENTS_MAX = 16,
    URI_PARAMS_MAX = 128,
    URI_ARGS_MAX = 4, /* variable parts of a pattern */
};

struct uri {
    const char *repeats;    /* the caller's: a parameter that may be given more
                             * than once, with tabs and newlines; NULL: none */
    char path[URI_MAX + 1]; /* as sent, without the query */
    char text[URI_MAX + 2]; /* the decoded pieces, each NUL-terminated */
    unsigned n_segments;
    const char *segments[URI_SEGMENTS_MAX];
    size_t offsets[URI_SEGMENTS_MAX]; /* of each segment in `path` */
    unsigned n_params;
    struct uri_param {
        const char *name, *value;
    } params[URI_PARAMS_MAX];
};

/* -ENAMETOOLONG when longer than URI_MAX; -EINVAL for a path that does not
 * begin with '/', a bad or control-character escape, too many pieces, or a
 * parameter given twice.  On failure the content of `ret_uri` is undefined
 * but for `path`, which is always a text. */
int uri_parse(const char *target, struct uri *ret_uri, struct error *err);

/* Does the path match?  A ":" segment takes any one non-empty segment, a last
 * "::" any non-empty rest (which stays as sent).  The variable parts land in
 * `ret_args`, in order; unused ones are "". */
bool uri_match(const struct uri *u, const char *pattern,
               const char *ret_args[URI_ARGS_MAX]);

/* NULL when absent. */
const char *uri_param(const struct uri *u, const char *name);
/* The n-th of those of this name. */
const char *uri_param_n(const struct uri *u, const char *name, size_t n);

#endif
