/* heard - which bodies are stored, so that a publish that only repeats one
 * is known without the writer.  Any thread; kept by the writer. */
#ifndef BIGA_EXTENDER_KEEP_HEARD_H
#define BIGA_EXTENDER_KEEP_HEARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/state/snapshot.h"
#include "model/slice/slice.h"

struct heard;
struct heard *heard_create(void);
void heard_destroy(struct heard *h); /* NULL allowed */

/* What is stored under `name` now, and for which node (a reference to its
 * liveness is taken). */
void heard_put(struct heard *h, const char *name, const char *body, size_t size,
               uint64_t version, const struct node *node);
void heard_remove(struct heard *h, const char *name);

/* True when `body` is what is stored under `name`, for the node `owner`
 * (NULL: for any): its node was heard from at `now_ms`, unless that is
 * negative. */
struct heard_body {
    const char *name, *owner;
    const char *body;
    size_t size;
};
bool heard_repeat(struct heard *h, const struct heard_body *body,
                  int64_t now_ms, uint64_t *ret_version);

/* The node that the slice belongs to; false when it is not known. */
bool heard_node(struct heard *h, const char *name,
                char ret_node[DEMAND_NAME_MAX + 1]);

#endif
