/* served_slice - a stored slice as an API server gives it. Pure. */
#ifndef BIGA_EXTENDER_KEEP_SERVED_SLICE_H
#define BIGA_EXTENDER_KEEP_SERVED_SLICE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"

/* The stored slice `json` with resource version and uid in its metadata,
 * whatever the publisher wrote there.  It has been accepted once, so it can be
 * read. */
struct served_slice {
    const char *name;
    const char *json;
    size_t size;
    uint64_t resource_version;
};
void served_slice_write(struct str *out, const struct served_slice *slice);

#endif
