/* moving_pods - pods that are nominated to a node (status.nominatedNodeName) or
 * leave theirs (metadata.deletionTimestamp).  Immutable; ref-counted; part of
 * the snapshot.  NULL when there are none. */
#ifndef BIGA_EXTENDER_STATE_MOVING_PODS_H
#define BIGA_EXTENDER_STATE_MOVING_PODS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/mem.h"
#include "model/pod/demand.h"

enum { MOVING_PODS_MAX = 4096 }; /* of each kind; others are ignored */

struct moving_pods;
struct moving_pods *moving_pods_ref(struct moving_pods *m); /* NULL allowed */
void moving_pods_unref(struct moving_pods *m);              /* the same */
DEFINE_CLEANUP(moving_pods, struct moving_pods *, moving_pods_unref)

/* A copy of `old` in which the pod comes to `node`, leaves, or (with neither)
 * is not moving; the caller releases it. */
struct moving_pods *moving_pods_with(const struct moving_pods *old,
                                     const struct demand *pod, const char *node,
                                     bool leaving);

/* The node that a pod of the pair other than `uid` comes to, the host pod's
 * first; NULL: none does.  Borrowed. */
const char *moving_pods_pair_node(const struct moving_pods *m,
                                  const char *pair_key, const char *uid);
/* Whether any pod of that pod's job comes to `node` (NULL: to any node). */
bool moving_pods_has_job(const struct moving_pods *m, const struct demand *pod,
                         const char *node);
/* Iterates over the pairs of that pod's job that come to nodes: begin with *pos
 * 0; returns the node, NULL at the end.  Borrowed. */
const char *moving_pods_next_of_job(const struct moving_pods *m,
                                    const struct demand *pod, size_t *pos,
                                    int32_t *ret_pair);
bool moving_pods_is_leaving(const struct moving_pods *m, const char *uid);

#endif
