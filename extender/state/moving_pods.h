/* moving_pods - pods on their way: nominated to a node where kube-scheduler makes room
 * for them (status.nominatedNodeName), or about to leave theirs
 * (metadata.deletionTimestamp).  Immutable; ref-counted; part of the snapshot.
 * An empty one is NULL. */
#ifndef BIGA_EXTENDER_STATE_MOVING_PODS_H
#define BIGA_EXTENDER_STATE_MOVING_PODS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/mem.h"
#include "model/pod/demand.h"

enum { MOVING_PODS_MAX = 4096 }; /* of each; of others nothing is known */

struct moving_pods;
struct moving_pods *moving_pods_ref(struct moving_pods *m); /* NULL allowed */
void moving_pods_unref(struct moving_pods *m);              /* the same */
DEFINE_CLEANUP(moving_pods, struct moving_pods *, moving_pods_unref)

/* `old` with the pod (by its uid) coming to `node`, leaving, or, with neither,
 * staying where it is; the caller's to release. */
struct moving_pods *moving_pods_with(const struct moving_pods *old,
                                     const struct demand *pod, const char *node,
                                     bool leaving);

/* The node that another pod of the pair with that key comes to, the host pod
 * before others, then by uid; NULL: none does.  Borrowed. */
const char *moving_pods_pair_node(const struct moving_pods *m,
                                  const char *pair_key, const char *uid);
/* Does any pod of that pod's job come to `node` (NULL: any node)? */
bool moving_pods_has_job(const struct moving_pods *m, const struct demand *pod,
                         const char *node);
/* The pairs of that pod's job that come to nodes, one after the other: begin
 * with *pos 0; NULL at the end.  Borrowed. */
const char *moving_pods_next_of_job(const struct moving_pods *m,
                                    const struct demand *pod, size_t *pos,
                                    int32_t *ret_pair);
bool moving_pods_is_leaving(const struct moving_pods *m, const char *uid);

#endif
