/* feed - operations of the writer that nobody waits for, as the reflector's
 * handlers post them.
 *
 * Each is one block of memory with all its texts, freed when the writer is
 * done with it.  With more than FEED_MAX bytes on the way the poster waits,
 * so that a list of any length takes bounded memory. */
#ifndef BIGA_EXTENDER_CLUSTER_FEED_H
#define BIGA_EXTENDER_CLUSTER_FEED_H

#include <stddef.h>

#include "extender/keep/writer.h"

enum { FEED_MAX = 64 << 20 };

struct feed;
struct feed *feed_create(struct writer *w);
/* Waits until the writer is done with all of it. NULL allowed */
void feed_destroy(struct feed *f);

struct feed_op {
    struct writer_op op; /* op.ctx is free for the poster */
    /* Called on the writer's thread before it is freed; may be NULL. */
    void (*then)(struct feed_op *o);
    struct feed *feed;
    size_t size, used;
    char texts[];
};
/* `room`: bytes of all its texts, NULs included. */
struct feed_op *feed_new(struct feed *f, enum writer_kind kind, size_t room);
/* A copy of a text, NUL-terminated, or of anything that needs no more
 * alignment than a char. */
const char *feed_text(struct feed_op *o, const char *data, size_t size);
/* Gives the operation away.  References that it holds (allocation, fabric,
 * claim, bars) are released with it. */
void feed_post(struct feed_op *o);
size_t feed_n_waiting(struct feed *f);

#endif
