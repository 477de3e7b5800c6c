/* stream_status - a failure as clients of Kubernetes read it: from an HTTP
 * answer, and from the error stream of exec and attach.  Pure. */
#ifndef BIGA_LIB_STREAM_STREAM_STATUS_H
#define BIGA_LIB_STREAM_STREAM_STATUS_H

#include "lib/base/str.h"

enum {
    STREAM_STATUS_TEXT = 256, /* bytes of the text that are told */
    /* and what that comes to, at most: six bytes for each, and the rest */
    STREAM_STATUS_MAX = 6 * STREAM_STATUS_TEXT + 160,
};

/* A v1 Status of that HTTP code, as JSON. */
void stream_status_add(int code, const char *text, struct str *out);

#endif
