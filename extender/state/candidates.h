/* candidates - the nodes that a request named, which can be found again in a
 * later snapshot with other nodes.  Immutable; ref-counted. */
#ifndef BIGA_EXTENDER_STATE_CANDIDATES_H
#define BIGA_EXTENDER_STATE_CANDIDATES_H

#include <stddef.h>
#include <stdint.h>

#include "extender/state/snapshot.h"
#include "lib/base/mem.h"

struct candidates;
/* Of n node indexes (NODE_NONE allowed); `like` (or NULL) itself when it is
 * the same.  NULL when they are all nodes of the snapshot. */
struct candidates *candidates_create(const struct snapshot *s,
                                     const int32_t *indexes, size_t n,
                                     struct candidates *like);
struct candidates *candidates_ref(struct candidates *c); /* NULL allowed */
void candidates_unref(struct candidates *c);             /* NULL allowed */
DEFINE_CLEANUP(candidates, struct candidates *, candidates_unref)

/* Those of them that `s` has, ascending, in the caller's array (free it);
 * NULL when `c` is NULL: all. */
int32_t *candidates_indexes(const struct candidates *c,
                            const struct snapshot *s, size_t *ret_n);

#endif
