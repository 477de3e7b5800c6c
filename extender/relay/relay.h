/* relay - logs, exec, attach and port-forward of pods from anywhere: a client
 * of the read listener and the node that has the pod, joined.
 *
 *   client                          extender                            node
 *     GET …/pods/NS/NAME/exec        waits                 GET …/nodes/N/streams
 *                                    relay_ask ───── told by relay_feed ───────►
 *                                    relay_take ◄─ GET …/streams/ID, Upgrade ───
 *                                    thread ◄────────────────── {"status":200} ─
 *     ◄─ 101, or 200 for a log       httpd_upgrade, httpd_stream
 *     ◄────────── bytes, unread, at most RELAY_WAITS of them each way ──────────►
 *
 * A stream is told to its node once: what may have been started is not started
 * again.  One thread carries all bytes, one more sees to the time-outs; whoever
 * does not read holds up its own stream alone. */
#ifndef BIGA_EXTENDER_RELAY_RELAY_H
#define BIGA_EXTENDER_RELAY_RELAY_H

#include <stdint.h>

#include "extender/relay/relay_want.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/http/httpd.h"
#include "lib/io/metrics.h"

enum {
    RELAY_STREAMS_MAX = 512, /* at once: in all, */
    RELAY_NODE_MAX = 256,    /* of one node, */
    RELAY_CLIENT_MAX = 256,  /* of one token */
    RELAY_FEED_MAX_S = 30,   /* that a node's question may wait */
    RELAY_COME_MS = 10000,   /* for a node to come for a stream, and then for
                              * its first line */
    RELAY_AWAY_MS = 3000,    /* between two questions; or else it is away */
    RELAY_START_MS = 15000,  /* for nodes to ask for the first time */
    RELAY_LINGER_MS = 10000, /* for the second side to end after the first */
};

struct relay;
/* `metrics` may be NULL. */
int relay_start(struct metrics *metrics, struct relay **ret_relay,
                struct error *err);
/* All that waits is answered, all streams end, and none begins any more: before
 * the listeners are stopped, which wait for that. */
void relay_quiesce(struct relay *r); /* NULL allowed */
/* After the listeners. */
void relay_stop(struct relay *r); /* NULL allowed */
DEFINE_CLEANUP(relay, struct relay *, relay_stop)

/* --- in handlers of the read listener --------------------------------------- */

struct relay_pod {
    const char *namespace, *name, *uid, *node;
    /* when the node was heard last, in ms of the monotonic clock, if it is known
     * to be away; else -1 */
    int64_t silent_since_ms;
};
/* What the request asks, by its query and headers; NULL: that cannot be, and it
 * was failed. */
struct relay_stream;
struct relay_stream *relay_open(struct relay *r, struct httpd_request *rq,
                                enum relay_kind kind);
void relay_close(struct relay_stream *s); /* there is no such pod */
DEFINE_CLEANUP(relay_stream, struct relay_stream *, relay_close)
/* Answers the request, at once or later; `s` is the relay's then.  `client`:
 * whose token it is, 0: of nobody that is known. */
void relay_ask(struct relay_stream *s, struct httpd_request *rq,
               const struct relay_pod *pod, uint64_t client);

/* --- in those of the publish listener, whose path begins /v1/nodes/NODE ------- */

/* What is wanted of the node, within `wait_ms`; the path's first variable part is
 * its name. */
void relay_feed(struct relay *r, struct httpd_request *rq, int64_t wait_ms);
/* The node comes for the stream that is the path's second. */
void relay_take(struct relay *r, struct httpd_request *rq);

/* Brings the gauges up to date. */
void relay_gauge(struct relay *r);

#endif
