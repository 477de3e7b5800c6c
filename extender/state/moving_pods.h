/* moving_pods - pods that are nominated to a node (status.nominatedNodeName) or
 * leave theirs (metadata.deletionTimestamp).  Immutable; ref-counted; part of
 * the snapshot.  NULL when there are none.
 *
 * kube-scheduler asks whom to evict before it nominates, and the nomination is
 * seen some time after it was made.  In between the pod has an offer: it comes
 * to one of the nodes that were answered.  An offer ends with the nomination,
 * with the pod, or after a time: kube-scheduler need not take it up. */
#ifndef BIGA_EXTENDER_STATE_MOVING_PODS_H
#define BIGA_EXTENDER_STATE_MOVING_PODS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/mem.h"
#include "model/pod/demand.h"

enum {
    MOVING_PODS_MAX = 4096,       /* of each kind; others are ignored */
    MOVING_PODS_OFFER_MS = 30000, /* far more than a watch is behind */
};
/* The node of a pod that comes to one of several. */
#define MOVING_PODS_UNSETTLED ""

struct moving_pods;
struct moving_pods *moving_pods_ref(struct moving_pods *m); /* NULL allowed */
void moving_pods_unref(struct moving_pods *m);              /* the same */
DEFINE_CLEANUP(moving_pods, struct moving_pods *, moving_pods_unref)

/* A copy of `old` in which the pod comes to `node`, leaves, or (with neither)
 * is not moving; the caller releases it. */
struct moving_pods *moving_pods_with(const struct moving_pods *old,
                                     const struct demand *pod, const char *node,
                                     bool leaving);
/* A copy in which the pod has an offer: `node`, or MOVING_PODS_UNSETTLED. */
struct moving_pods *moving_pods_offer(const struct moving_pods *old,
                                      const struct demand *pod,
                                      const char *node, int64_t until_ms);
/* Does any offer end: that of the pod `uid`, or one whose time is over?  And a
 * copy without those. */
bool moving_pods_offer_ends(const struct moving_pods *m, const char *uid,
                            int64_t now_ms);
struct moving_pods *moving_pods_end_offers(const struct moving_pods *old,
                                           const char *uid, int64_t now_ms);

/* The node that a pod of the pair other than `uid` comes to, the host pod's
 * first; MOVING_PODS_UNSETTLED; NULL: none does.  Borrowed. */
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
