/* told - what nodes have said since this extender started: where their pods
 * are in their lives, how their places fare, and when they last asked for
 * their pods.  In memory alone: nodes say it again after a start.  Any
 * thread. */
#ifndef BIGA_EXTENDER_PODS_TOLD_H
#define BIGA_EXTENDER_PODS_TOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/pods/nodestatus.h"
#include "extender/pods/pods.h"

/* Nodes of whom somebody has spoken at all: as many as have certificates, and
 * in a lab not more than this; others are not remembered. */
enum { TOLD_NODES_MAX = 200000 };

struct told;
struct told *told_create(void);
void told_destroy(struct told *t); /* NULL allowed */

/* --- nodes -------------------------------------------------------------- */

/* Remember the places that a node speaks of. */
void told_places(struct told *t, const char *node, const struct nodestatus *s);
/* It asks for its pods now; and how long ago it did: -1 never. */
void told_asked(struct told *t, const char *node, int64_t now_ms);
int64_t told_asked_ago(struct told *t, const char *node, int64_t now_ms);
/* A pod of which nothing is known here is there, or is not any more.  With more
 * than NODESTATUS_PODS_MAX of them told_all() stays false. */
void told_stranger(struct told *t, const char *node, const char *uid,
                   bool there);
/* With what was said since the last time it has told of all there is.  Such
 * pods that it did not name twice in a row are not there any more: once is not
 * enough, as a telling that was given up may arrive amid the parts of the
 * next.  Before the node has asked for its pods it counts for nothing: the
 * first parts may have been told to the extender before this start. */
void told_whole(struct told *t, const char *node);
/* Has it told of all there is, and no such pod is left? */
bool told_all(struct told *t, const char *node);
/* How a place of a node fares; false when that was never said. */
bool told_place(struct told *t, const char *node, const char *place,
                struct place_told *ret_place);
/* Grows when a place is not said to fare as before. */
uint64_t told_version(struct told *t);
void told_count_places(struct told *t, size_t ret_counts[PLACE_HEALTHS]);

/* --- pods --------------------------------------------------------------- */

struct told_pod {
    enum pod_state state; /* PODS_PENDING: nothing was said yet */
    bool was_ready;       /* since the start */
    bool was_other;       /* was it ever in a state before it failed? */
};
/* A pod that has a place on that node: what was said from another place is
 * forgotten. */
void told_put(struct told *t, const char *uid, const char *node,
              struct pod_status *status);
void told_get(struct told *t, const char *uid, const char *node,
              struct told_pod *ret_pod);
/* All that was said last; NULL: nothing.  The caller owns the reference. */
struct pod_status *told_status(struct told *t, const char *uid,
                               const char *node);
/* It has no place any more. */
void told_forget(struct told *t, const char *uid);
/* Of how many pods something was said. */
size_t told_n_pods(struct told *t);
/* Forget all those that have no place there any more.  `has_place` is called
 * with the lock held: what it finds out must be newer than the call. */
void told_prune(struct told *t,
                bool (*has_place)(void *ctx, const char *uid, const char *node),
                void *ctx);

#endif
