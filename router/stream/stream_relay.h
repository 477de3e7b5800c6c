/* stream_relay - exec, attach and port-forward of remote containers.
 *
 * The kubelet dials by itself the URL that a runtime returns, and a remote's
 * is of no use to it.  So it gets one of this host's loopback with a ticket;
 * whoever comes with that is joined to the remote's streaming server.  One
 * thread carries the bytes of all streams, and no stream can keep another
 * waiting: buffers are bounded, what is not read is not fetched.
 *
 * Descriptors: two for each stream, one for each client whose request has not
 * come yet: stream_relay_files() in all, for which RLIMIT_NOFILE must have
 * room beside the rest of the program. */
#ifndef BIGA_ROUTER_STREAM_STREAM_RELAY_H
#define BIGA_ROUTER_STREAM_STREAM_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/stream/stream_plan.h"

enum {
    STREAM_RELAY_MAX = 256,       /* streams at one time, by default */
    STREAM_RELAY_MOST = 4096,     /* that can be configured */
    STREAM_HEADS_MAX = 64,        /* clients without a request: then the one
                                   * that has waited longest is closed */
    STREAM_HEAD_MS = 10 * 1000,   /* for a client's request to come */
    STREAM_ANSWER_MS = 30 * 1000, /* to connect, TLS, and the answer's head */
    STREAM_LINGER_MS = 30 * 1000, /* without a byte, when one side has ended */
    STREAM_IDLE_MS = 4 * 3600 * 1000, /* without a byte; as the kubelet's */
    STREAM_BUFFER_MAX = 64 << 10,     /* bytes that wait for a slow reader, each
                                   * way; none are held by who keeps up */
    STREAM_OWN_URL_MAX = 128,
};

#define STREAM_STOPPING "biga-cri is stopping" /* the word of one that stops */

/* 0: as above. */
struct stream_relay_config {
    unsigned streams_max;
    unsigned head_ms, answer_ms, linger_ms, idle_ms;
};

struct stream_relay; /* any thread may call all of it */
/* Listens on a free port of 127.0.0.1 and starts the thread. */
int stream_relay_start(const struct stream_relay_config *config,
                       struct stream_relay **ret_relay, struct error *err);
/* Ends all streams, with a word where their protocol allows one (and 503 to
 * who waits for an answer); waits for the thread, never for a peer.  NULL
 * allowed.  Nobody else may be calling any more. */
void stream_relay_stop(struct stream_relay *r);
DEFINE_CLEANUP(stream_relay, struct stream_relay *, stream_relay_stop)
/* Descriptors that it has open at most. */
unsigned stream_relay_files(const struct stream_relay_config *config);

/* The URL for the kubelet, good once within STREAM_TOKEN_MS.  May block as
 * stream_plan_create(), of which errors are, and of stream_tokens_add(). */
int stream_relay_open(struct stream_relay *r,
                      const struct stream_plan_ask *what,
                      char ret_url[STREAM_OWN_URL_MAX], struct error *err);

/* End the streams of a remote that is away or withdrawn, or of a container
 * (sandbox) that is removed, those that were only announced included.  `why`
 * is told to clients: "card-0000-17-00 does not answer".  Does not wait: new
 * tickets are good again at once. */
void stream_relay_cut_remote(struct stream_relay *r, const char *remote,
                             const char *why);
void stream_relay_cut_container(struct stream_relay *r, const char *container,
                                const char *why);

/* For metrics. */
struct stream_relay_state {
    unsigned heads, streams, tickets; /* now */
    uint64_t opened, refused, cut;    /* so far */
    uint64_t bytes_in, bytes_out;     /* to clients, to remotes */
};
void stream_relay_state(struct stream_relay *r,
                        struct stream_relay_state *ret_state);

#endif
