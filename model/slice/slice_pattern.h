/* slice_pattern - reads slices by comparing them with one that was decoded.
 *
 * Hosts of one model publish slices that differ in a few texts: names, boot
 * ids, hashes, serial numbers, addresses.  Where all else is the same byte for
 * byte, only these are read and checked, and the hardware is that of the
 * pattern.  Immutable: any thread.  Pure. */
#ifndef BIGA_MODEL_SLICE_SLICE_PATTERN_H
#define BIGA_MODEL_SLICE_SLICE_PATTERN_H

#include "lib/base/mem.h"
#include "model/slice/slice.h"
#include "model/topo/topo.h"

struct slice_pattern;
/* Of a slice that is all of its pool, and of the topology that it was joined
 * to.  NULL: it is no pattern, as it has escapes in what others have different,
 * or is not alone. */
struct slice_pattern *slice_pattern_create(const char *json, size_t size,
                                           const struct slice *slice,
                                           const struct topo *topo);
void slice_pattern_destroy(struct slice_pattern *p); /* NULL allowed */
DEFINE_CLEANUP(slice_pattern, struct slice_pattern *, slice_pattern_destroy)

/* What slice_decode() would make of it, to be asked and joined, but for the
 * devices.  NULL: it is another, or wrong; slice_decode() tells. */
struct slice *slice_pattern_read(const struct slice_pattern *p,
                                 const char *json, size_t size);

#endif
