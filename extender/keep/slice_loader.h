/* slice_loader - decodes stored slices on all CPUs, and gives them out in their
 * order.  For one start; one thread uses it. */
#ifndef BIGA_EXTENDER_KEEP_SLICE_LOADER_H
#define BIGA_EXTENDER_KEEP_SLICE_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/keep/slice_cache.h"
#include "lib/base/error.h"
#include "model/slice/slice.h"

/* A slice that was added; borrowed for the call. */
struct stored_slice {
    const char *name, *json;
    size_t size;
    uint64_t resource_version;
    struct slice_digest digest; /* of the JSON */
    struct slice *slice;        /* NULL: it was refused, with: */
    struct error error;
    bool is_new; /* it was not like one that was learnt */
};
typedef void slice_loader_f(void *ctx, const struct stored_slice *s);

/* What is added is visited on the thread that adds, a while later. */
struct slice_loader;
struct slice_loader *slice_loader_create(slice_loader_f *visit, void *ctx);
void slice_loader_add(struct slice_loader *l, const char *name,
                      const char *json, size_t size, uint64_t resource_version);
/* To be called while a slice is visited that is the topology's only one: others
 * of hosts like this are compared with it instead of being decoded. */
void slice_loader_learn(struct slice_loader *l, const struct stored_slice *s,
                        const struct topo *topo);
/* Visits the rest. */
void slice_loader_destroy(struct slice_loader *l);

#endif
