/* node_reports - what nodes have said since this extender started: where their pods
 * are in their lives, how their places fare, and when they last asked for
 * their pods.  In memory alone: nodes say it again after a start.  Any
 * thread. */
#ifndef BIGA_EXTENDER_PODS_NODE_REPORTS_H
#define BIGA_EXTENDER_PODS_NODE_REPORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/pods/applied.h"
#include "extender/pods/node_report.h"

/* Nodes of whom somebody has spoken at all: as many as have certificates, and
 * in a lab not more than this; others are not remembered. */
enum { NODE_REPORTS_NODES_MAX = 200000 };

struct node_reports;
struct node_reports *node_reports_create(void);
void node_reports_destroy(struct node_reports *t); /* NULL allowed */

/* --- nodes -------------------------------------------------------------- */

/* Remember the places that a node speaks of. */
void node_reports_places(struct node_reports *t, const char *node,
                         const struct node_report *s);
/* It asks for its pods now; and how long ago it did: -1 never. */
void node_reports_asked(struct node_reports *t, const char *node,
                        int64_t now_ms);
int64_t node_reports_asked_ago(struct node_reports *t, const char *node,
                               int64_t now_ms);
/* A pod of which nothing is known here is there, or is not any more.  With more
 * than NODE_REPORT_PODS_MAX of them node_reports_all() stays false. */
void node_reports_stranger(struct node_reports *t, const char *node,
                           const char *uid, bool there);
/* With what was said since the last time it has told of all there is.  Such
 * pods that it did not name twice in a row are not there any more: once is not
 * enough, as a telling that was given up may arrive amid the parts of the
 * next.  Before the node has asked for its pods it counts for nothing: the
 * first parts may have been told to the extender before this start. */
void node_reports_whole(struct node_reports *t, const char *node);
/* Has it told of all there is, and no such pod is left? */
bool node_reports_all(struct node_reports *t, const char *node);
/* How a place of a node fares; false when that was never said. */
bool node_reports_place(struct node_reports *t, const char *node,
                        const char *place, struct place_told *ret_place);
/* Grows when a place is not said to fare as before. */
uint64_t node_reports_version(struct node_reports *t);
void node_reports_count_places(struct node_reports *t,
                               size_t ret_counts[PLACE_HEALTHS]);

/* --- pods --------------------------------------------------------------- */

struct node_reports_pod {
    enum pod_state state; /* POD_STATE_PENDING: nothing was said yet */
    bool was_ready;       /* since the start */
    bool was_other;       /* was it ever in a state before it failed? */
};
/* A pod that has a place on that node: what was said from another place is
 * forgotten. */
void node_reports_put(struct node_reports *t, const char *uid, const char *node,
                      struct pod_status *status);
void node_reports_get(struct node_reports *t, const char *uid, const char *node,
                      struct node_reports_pod *ret_pod);
/* All that was said last; NULL: nothing.  The caller owns the reference. */
struct pod_status *node_reports_status(struct node_reports *t, const char *uid,
                                       const char *node);
/* It has no place any more. */
void node_reports_forget(struct node_reports *t, const char *uid);
/* Of how many pods something was said. */
size_t node_reports_n_pods(struct node_reports *t);
/* Forget all those that have no place there any more.  `has_place` is called
 * with the lock held: what it finds out must be newer than the call. */
void node_reports_prune(struct node_reports *t,
                        bool (*has_place)(void *ctx, const char *uid,
                                          const char *node),
                        void *ctx);

#endif
