/* cluster_parts - what the parts of cluster tell each other: how the handlers
 * of the reflector's collections reach the writer, and who else wants to know
 * what they were told.
 *
 * All handlers run on the reflector's thread. */
#ifndef BIGA_EXTENDER_CLUSTER_PARTS_H
#define BIGA_EXTENDER_CLUSTER_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "extender/podobj.h"
#include "extender/writer.h"
#include "model/kube/reflector.h"

/* --- feed: operations that nobody waits for -------------------------------
 *
 * Each is one block of memory with all its texts, freed when the writer is
 * done with it.  With more than FEED_MAX bytes on the way the poster waits,
 * so that a list of any length takes bounded memory. */
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
/* Gives the operation away.  References that it holds (allocation, fabric)
 * are released with it. */
void feed_post(struct feed_op *o);
size_t feed_n_waiting(struct feed *f);

/* --- pods with a role ------------------------------------------------------- */

/* Told of every pod with a role label, bound or not, broken or not. `pod` is
 * borrowed for the call.  After a gap, pods that are not there any more are
 * gone before `listed`. */
struct cluster_pod_listener {
    void (*put)(void *ctx, const struct podobj *pod);
    void (*gone)(void *ctx, const char *uid);
    void (*listed)(void *ctx); /* may be NULL */
    void *ctx;
};
enum { CLUSTER_LISTENERS_MAX = 4 };

#endif
