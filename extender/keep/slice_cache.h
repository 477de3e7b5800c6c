/* slice_cache - hashes of the stored bodies, so that a repeated publish is
 * recognized without the writer.  Any thread; the writer updates it. */
#ifndef BIGA_EXTENDER_KEEP_SLICE_CACHE_H
#define BIGA_EXTENDER_KEEP_SLICE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/state/snapshot.h"
#include "model/slice/slice.h"

struct slice_cache;
struct slice_cache *slice_cache_create(void);
void slice_cache_destroy(struct slice_cache *h); /* NULL allowed */

/* Kept instead of a body: its size and 128 bits of hash.  A publisher that
 * makes two bodies collide can only misreport a slice of its own. */
struct slice_digest {
    uint64_t a, b;
    size_t size;
};
struct slice_digest slice_digest(const char *body, size_t size);

/* `body` is now stored under `name` for this node (takes a reference to its
 * liveness). */
void slice_cache_put(struct slice_cache *h, const char *name,
                     const struct slice_digest *body, uint64_t version,
                     const struct node *node);
void slice_cache_remove(struct slice_cache *h, const char *name);

/* True when `body` is stored under `name` for the node `owner` (NULL: for any).
 * The node then counts as heard from at `now_ms`, unless that is negative. */
struct slice_cache_body {
    const char *name, *owner;
    const char *body;
    size_t size;
};
bool slice_cache_repeat(struct slice_cache *h,
                        const struct slice_cache_body *body, int64_t now_ms,
                        uint64_t *ret_version);

/* The node that the slice belongs to; false when it is not known. */
bool slice_cache_node(struct slice_cache *h, const char *name,
                      char ret_node[DEMAND_NAME_MAX + 1]);

#endif
