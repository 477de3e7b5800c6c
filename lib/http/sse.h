/* sse - server-sent events as they come (text/event-stream of the HTML
 * standard).  Bytes in, events out; no I/O. */
#ifndef BIGA_LIB_HTTP_SSE_H
#define BIGA_LIB_HTTP_SSE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/str.h"

enum { SSE_MAX = 1 << 20 /* bytes of a line, and of an event's data */ };

struct sse_event {
    const char *event; /* its type; "message" when it says none */
    const char *id;    /* the last that was said; "" none yet */
    const char *data;  /* lines with "\n" between */
};
/* False: no more of them. */
typedef bool sse_event_f(void *ctx, const struct sse_event *event);

struct sse {
    sse_event_f *each;
    void *ctx;
    struct str line, event, data, id;
    bool cr; /* the last byte was one: a "\n" is of the same end */
    bool has_data;
};
void sse_init(struct sse *s, sse_event_f *each, void *ctx);
void sse_fini(struct sse *s);

/* False when `each` wants no more, or something is over SSE_MAX. */
bool sse_feed(struct sse *s, const char *data, size_t size);

#endif
