/* grpcd - a server of gRPC on a unix socket, for programs of this host.
 *
 * One thread, the server's own, has all connections and relays (grpcd_relay.h)
 * and never waits for a handler: calls that may block run on worker threads
 * (grpcd_call.h).  HTTP/2 is libnghttp2's, in cleartext.
 *
 * The socket has mode 0600, and of who connects all the same only root and the
 * user of this process are answered; others get PERMISSION_DENIED.
 *
 * Caps; what goes beyond is refused by name, and memory stays within them:
 *   connections     GRPCD_CONNECTIONS; beyond, the one that is idle for
 *                   longest is closed, and while none is, nothing is accepted
 *   streams         GRPCD_STREAMS of a connection (SETTINGS), GRPCD_CALLS of
 *                   all; then RESOURCE_EXHAUSTED
 *   header list     GRPCD_FIELDS_MAX, as SETTINGS counts, of a call, of a
 *                   reply's headers, of its trailers; then RESOURCE_EXHAUSTED
 *   one message     GRPCD_MESSAGE_MAX, of those that a handler reads or an
 *                   edit sees (RESOURCE_EXHAUSTED); one that is only relayed
 *                   may have any size
 *   bytes held      GRPCD_WINDOW per direction of each relayed call;
 *                   GRPCD_QUEUE_MAX and a message of each answer that is sent;
 *                   GRPCD_MEMORY of all, then RESOURCE_EXHAUSTED for calls
 *                   that begin, and a message later for those that send
 *   frames that carry no call: as h2_meter.h has it; then ENHANCE_YOUR_CALM
 * A client that sends one frame for GRPCD_FRAME_MS is cut off; an idle
 * connection may stay for ever. */
#ifndef BIGA_LIB_GRPCD_GRPCD_H
#define BIGA_LIB_GRPCD_GRPCD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/h2/grpc_code.h"

enum {
    GRPCD_CONNECTIONS = 64,
    GRPCD_STREAMS = 512,
    GRPCD_CALLS = 1024,
    GRPCD_FIELDS_MAX = 32 << 10,
    GRPCD_METHOD_MAX = 256,       /* bytes of "/SERVICE/METHOD" */
    GRPCD_MESSAGE_MAX = 16 << 20, /* bytes */
    GRPCD_WINDOW = 128 << 10,     /* bytes */
    GRPCD_MEMORY = 128 << 20,     /* bytes */
    GRPCD_BRIEF_THREADS = 16,
    GRPCD_LONG_THREADS = 256,
    GRPCD_FRAME_MS = 10000,
};

struct grpcd_call;
struct grpcd_relay;

/* What becomes of a call whose headers are there.  All but GRPCD_RELAY begin
 * when its first message is there as well, or the client has said that there
 * is none. */
enum grpcd_how {
    GRPCD_RELAY, /* to `relay`, at once, and undecoded */
    GRPCD_HERE,  /* `handle` on the server's thread: must not block */
    /* `handle` on a worker.  The two kinds have threads of their own, so that
     * long calls never keep brief ones waiting; a call for which there is no
     * thread waits for one, until its deadline at most. */
    GRPCD_BRIEF, /* up to GRPCD_BRIEF_THREADS: done within a bounded time */
    GRPCD_LONG,  /* up to GRPCD_LONG_THREADS: may wait for others for long */
};

/* Has the call from now on; see grpcd_call.h for what it owes. */
typedef void grpcd_handler_f(void *ctx, struct grpcd_call *call);

struct grpcd_route {
    enum grpcd_how how;
    grpcd_handler_f *handle; /* NULL: UNIMPLEMENTED, whatever `how` says */
    void *ctx;
    struct grpcd_relay *relay; /* of GRPCD_RELAY, which needs no handler */
};
/* On the server's thread, once for each call: must not block.  It may ask for
 * method and metadata of `call`, and for nothing else. */
typedef void grpcd_route_f(void *ctx, const struct grpcd_call *call,
                           struct grpcd_route *ret_route);

/* How a call ended; on the server's thread, exactly once for each that was
 * routed, after its client has all of it or is gone and its handler has
 * finished.  Must not block. */
struct grpcd_end {
    const char *method;
    int code; /* enum grpc_code, also of a relayed one; CANCELLED when
                       * the client went first; -1: its trailers had none */
    bool relayed;
    int64_t took_ms;
    uint64_t received, sent; /* bytes of messages and their prefixes */
};
typedef void grpcd_ended_f(void *ctx, const struct grpcd_end *end);

struct grpcd_config {
    const char *path; /* of the socket, absolute; copied */
    /* Another process serves that path, or did: bind beside it and rename over
     * its socket, so that there is no moment without one; without, -EADDRINUSE
     * when somebody answers there.  Who is replaced has to be told by others
     * to stop, and does not remove our socket then. */
    bool take_over;
    grpcd_route_f *route;
    grpcd_ended_f *ended; /* NULL: nobody asks */
    void *ctx;            /* of both */
    /* 0: as above */
    unsigned connections, calls, brief_threads, long_threads;
    size_t message_max, memory_max;
};

struct grpcd;
/* It listens: clients may connect, and wait. Does not wait itself. */
int grpcd_create(const struct grpcd_config *config, struct grpcd **ret_server,
                 struct error *err);
/* Serve them, on a thread of its own; relays are there now. */
int grpcd_start(struct grpcd *s, struct error *err);
/* Takes what has connected already, then no more; tells all clients with
 * GOAWAY to call elsewhere, and removes the socket if it still is ours.  Calls
 * have `drain_ms` to end; those that are left are cancelled, and their clients
 * told UNAVAILABLE.  Waits for that, and for every handler: one that heeds
 * cancellation (grpcd_call.h) makes it end.  Not from the server's thread or
 * a handler. */
void grpcd_stop(struct grpcd *s, unsigned drain_ms);
/* Stops it with no time to drain, if it runs; frees its relays too. NULL
 * allowed. */
void grpcd_destroy(struct grpcd *s);
DEFINE_CLEANUP(grpcd, struct grpcd *, grpcd_destroy)

/* Any thread. */
struct grpcd_stats {
    size_t n_connections, n_calls; /* now */
    size_t held;                   /* bytes of messages that wait, of all */
    uint64_t n_routed, n_ended;    /* calls, ever */
    uint64_t n_not_accepted;       /* tries that failed for want of files or
                                    * memory; they are some ms apart */
};
void grpcd_stats(struct grpcd *s, struct grpcd_stats *ret_stats);

#endif
