/* stream_way - bytes on their way from one connection to another, with the end
 * of what the one sends, and no more of them held than STREAM_WAY_MAX.
 *
 * A way of a reader that keeps up holds no memory. */
#ifndef BIGA_LIB_STREAM_STREAM_WAY_H
#define BIGA_LIB_STREAM_STREAM_WAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/stream/stream_conn.h"

enum {
    STREAM_WAY_MAX = 64 << 10, /* bytes that wait; and of one read */
    STREAM_WAY_READS = 4,      /* in one turn, for others to have theirs */
};

struct stream_way {
    char *data;
    size_t at, n;   /* in `data`: read, and not yet taken */
    uint64_t moved; /* bytes that were taken */
    uint64_t limit; /* bytes that are still to be read; then it ends */
    bool ended;     /* nothing more is read */
    bool shut;      /* all is taken, and the other side knows that */
    bool from_lost; /* the connection is broken, */
    bool to_lost;   /* or that one */
};

void stream_way_init(struct stream_way *w); /* no limit */
void stream_way_fini(struct stream_way *w);

/* Move what can be moved.  False: there may be more, and the turn is used up.
 * `scratch` has STREAM_WAY_MAX bytes; `saw` (NULL allowed) is shown what was
 * read, and NULL at the end, before the other side knows: it may put more. */
typedef void stream_way_saw_f(void *ctx, const void *data, size_t size);
struct stream_way_ends {
    struct stream_conn *from, *to;
    stream_way_saw_f *saw;
    void *ctx;
};
bool stream_way_turn(struct stream_way *w, const struct stream_way_ends *ends,
                     char *scratch);
/* Bytes that were read before; at most STREAM_WAY_MAX, and none wait yet. */
void stream_way_put(struct stream_way *w, const void *data, size_t size);
/* Only what waits; true: nothing does any more. */
bool stream_way_flush(struct stream_way *w, struct stream_conn *to);

#endif
