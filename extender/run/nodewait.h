/* nodewait - nodes that wait for a change of their pods: requests that are
 * suspended until there is one, or until their time is over.
 *
 * A node's pods have a version, which another content raises; after a start
 * of the extender versions begin elsewhere, so that none is taken for an
 * older one. */
#ifndef BIGA_EXTENDER_RUN_NODEWAIT_H
#define BIGA_EXTENDER_RUN_NODEWAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "extender/pods/applied.h"
#include "extender/pods/node_reports.h"
#include "extender/state/snapshot.h"
#include "lib/base/error.h"
#include "lib/http/httpd.h"

struct app;

enum {
    NODEWAIT_MAX_S = 30,
    NODEWAIT_NODES_MAX =
        NODE_REPORTS_NODES_MAX, /* whose versions are counted: of any
                                          * other the version is one of a
                                          * million, by the content alone */
};

struct nodewait;
/* `app` has a writer and pods, which outlive its thread. */
int nodewait_start(struct app *app, struct nodewait **ret_wait,
                   struct error *err);
/* Whoever waits is answered, and nobody waits any more: before the listener is
 * stopped. NULL allowed. */
void nodewait_stop(struct nodewait *w);
/* After the writer and the pods are gone, too, which call it. NULL allowed. */
void nodewait_destroy(struct nodewait *w);

/* The version of the node's pods as they are in these two. Any thread. */
uint64_t nodewait_version(struct nodewait *w, const struct pod_set *set,
                          const struct snapshot *s, const char *node);

/* Is the version one of this start? */
bool nodewait_knows(const struct nodewait *w, uint64_t version);

/* Suspend a request (`then` has been set) until the node's version is not
 * `version` any more, or `wait_ms` are over. False when there is no waiting:
 * it stops. */
bool nodewait_suspend(struct nodewait *w, struct httpd_request *rq,
                      const char *node, uint64_t version, int64_t wait_ms);

#endif
