/* node_pods - which applied pods a node is to have, and all that it needs to
 * run them: its part of GET /v1/nodes/NODE/pods.  Pure. */
#ifndef BIGA_EXTENDER_PODS_NODE_PODS_H
#define BIGA_EXTENDER_PODS_NODE_PODS_H

#include <stdint.h>

#include "extender/pods/applied.h"
#include "extender/state/snapshot.h"
#include "lib/base/str.h"

/* The number of the newest allocation that node_pods_write() speaks of; 0: of
 * none. */
uint64_t node_pods_newest(const struct pod_set *set, const struct snapshot *s,
                          const char *node);
/* A number that changes when what node_pods_write() says of the node may have
 * changed. */
uint64_t node_pods_sum(const struct pod_set *set, const struct snapshot *s,
                       const char *node);

/* The items, as a JSON array: every applied pod with a place on the node,
 * those that are to end (`"stop":true`) included, until the node says that
 * nothing of them is left.  In the order of uids, beginning with the first
 * that is not below `from`, and from the beginning again.  Of more than
 * PODFEED_PODS_MAX those that came first.
 *
 * An answer never has more than PODFEED_ANSWER_MAX bytes: once they are used
 * up, items are `"later":true`, without what they run with.  `ret_next` is
 * where the next answer is to begin then, and "" when nothing was left out.
 * An item that a node would not take says why, as its `fault`; a pod that we
 * do not understand is `later`, too: a node that has it goes on with it. */
void node_pods_write(const struct pod_set *set, const struct snapshot *s,
                     const char *node, const char *from, struct str *out,
                     char ret_next[APPLIED_UID_SIZE]);
/* Of these uids, at most PODFEED_KEPT_MAX with commas between, those of pods
 * that are still to be seen, as a JSON array. */
void node_pods_write_kept(const struct pod_set *set, const char *uids,
                          struct str *out);

#endif
