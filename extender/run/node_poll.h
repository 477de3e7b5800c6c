/* node_poll - nodes that wait for a change of their pods: requests that are
 * suspended until there is one, or until their time is over.
 *
 * A node's pods have a version, which another content raises; after a start
 * of the extender versions begin elsewhere, so that none is taken for an
 * older one. */
#ifndef BIGA_EXTENDER_RUN_NODE_POLL_H
#define BIGA_EXTENDER_RUN_NODE_POLL_H

#include <stdbool.h>
#include <stdint.h>

#include "extender/pods/applied.h"
#include "extender/pods/node_reports.h"
#include "extender/state/snapshot.h"
#include "lib/base/error.h"
#include "lib/http/httpd.h"

struct pod_store;

enum {
    NODE_POLL_MAX_S = 30,
    NODE_POLL_NODES_MAX =
        NODE_REPORTS_NODES_MAX, /* whose versions are counted: of any
                                          * other the version is one of a
                                          * million, by the content alone */
};

struct node_poll;
/* The store outlives its thread. */
int node_poll_start(const struct pod_store *store, struct node_poll **ret_wait,
                    struct error *err);
/* Whoever waits is answered, and nobody waits any more: before the listener is
 * stopped. NULL allowed. */
void node_poll_stop(struct node_poll *w);
/* After the writer and the pods are gone, too, which call it. NULL allowed. */
void node_poll_destroy(struct node_poll *w);

/* The version of the node's pods as they are in these two. Any thread. */
uint64_t node_poll_version(struct node_poll *w, const struct pod_set *set,
                           const struct snapshot *s, const char *node);

/* Is the version one of this start? */
bool node_poll_knows(const struct node_poll *w, uint64_t version);

/* Suspend a request (`then` has been set) until the node's version is not
 * `version` any more, or `wait_ms` are over. False when there is no waiting:
 * it stops. */
bool node_poll_suspend(struct node_poll *w, struct httpd_request *rq,
                       const char *node, uint64_t version, int64_t wait_ms);

#endif
