/* node_streams - exec, attach, port-forward and logs of this node's pods for whoever
 * asks the extender (docs/streams.md).
 *
 * One thread asks `GET /v1/nodes/NODE/streams` again and again; some, which come
 * and go, call runtimes and read logs, so that a card that does not answer
 * keeps only its own streams waiting; and one carries the bytes of all: from
 * the runtime's streaming server to a connection of ours to the extender,
 * `GET /v1/nodes/NODE/streams/ID` with Upgrade: biga-stream.  Buffers are
 * bounded: what one side does not read is not fetched from the other. */
#ifndef BIGA_ADVERTISER_ACT_STREAM_NODE_STREAMS_H
#define BIGA_ADVERTISER_ACT_STREAM_NODE_STREAMS_H

#include "advertiser/act/core/actuator.h"
#include "lib/base/error.h"
#include "lib/http/http.h"

enum {
    STREAMS_MAX = 256,         /* at one time; */
    STREAMS_SPARE = 32,        /* and so many more that are being refused */
    STREAMS_WORKERS = 8,       /* threads that may wait for a runtime, */
    STREAMS_LANE = 3,          /* of these for one place */
    STREAMS_BUFFER = 64 << 10, /* bytes that wait for a slow reader, each way */
    STREAMS_ANSWER_MS = 10000, /* to connect, TLS, and the answer's head */
    STREAMS_LINGER_MS = 5000,  /* for the last bytes to be read */
    STREAMS_IDLE_MS = 4 * 3600 * 1000, /* without a byte; as the kubelet's */
    STREAMS_POLL_MIN_MS = 250,  /* between looks at a log that is followed, */
    STREAMS_POLL_MAX_MS = 2000, /* while nothing is written there */
};

struct node_streams_config {
    struct http_config http; /* the extender's publish listener; texts outlive
                              * the streams */
    const char *node;
    /* 0: as said; tests are in a hurry */
    unsigned wait_s;                        /* 25: of one question */
    int64_t backoff_min_ms, backoff_max_ms; /* 500, 10000 */
};

struct node_streams;
/* `config` is copied. */
int node_streams_start(struct actuator *a,
                       const struct node_streams_config *config,
                       struct node_streams **ret_streams, struct error *err);
/* A pod or a place has changed.  Any thread; does not block, nor call back.
 * NULL allowed. */
void node_streams_poke(struct node_streams *s);
/* Ends all of them.  False when calls of runtimes are still under way after a
 * second: they go on using the actuator, and the process is to end without
 * destroying it.  NULL allowed. */
bool node_streams_stop(struct node_streams *s);

/* Now, and so far. */
struct node_streams_state {
    unsigned open;
    uint64_t begun, failed;
};
void node_streams_state(struct node_streams *s,
                        struct node_streams_state *ret_state);

#endif
