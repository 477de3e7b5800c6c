/* grpc - calls of gRPC over HTTP/2 to one server, on libcurl: a deadline on
 * every call, a cap on every reply, status and message from the trailers.
 *
 * The server is taken for hostile: no frame length, header, trailer or stream
 * of it costs more than the caps below, and every fault is a named error of
 * that one call. */
#ifndef BIGA_LIB_GRPC_GRPC_H
#define BIGA_LIB_GRPC_GRPC_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/grpc/grpc_counts.h"
#include "lib/h2/grpc_code.h"

enum {
    GRPC_REPLY_MAX = 16 << 20,   /* bytes of one message */
    GRPC_HEADERS_MAX = 16 << 10, /* bytes of all headers and trailers */
    GRPC_MESSAGE_MAX = 512,      /* of grpc-message what is kept */
    GRPC_CONNECT_MS = 3000,      /* of a handshake by TCP */
};

/* Texts are borrowed and must outlive it; files are read again for each new
 * connection. */
struct grpc_config {
    const char *endpoint;        /* "tcp://HOST:PORT" or "unix:///PATH" */
    const char *ca, *cert, *key; /* paths; all three for tcp://, else
                                  * -EINVAL, unless: */
    bool plaintext;     /* the operator's file says so, for a lab; unix:// is
                         * plaintext anyway */
    size_t reply_max;   /* 0: GRPC_REPLY_MAX */
    unsigned listen_ms; /* for a refusal of our certificate, where a call found
                         * the connection lost; 0: LISTEN_MS */
    struct grpc_counts *counts; /* of calls and streams that have ended; NULL:
                                 * nobody counts */
};

struct grpc; /* one connection; use from one thread at a time */
int grpc_create(const struct grpc_config *config, struct grpc **ret_grpc,
                struct error *err);
void grpc_destroy(struct grpc *g); /* NULL allowed */
DEFINE_CLEANUP(grpc, struct grpc *, grpc_destroy)

/* Drop the connection: the next call begins a new one, with what the files
 * say then. */
void grpc_reconnect(struct grpc *g);

/* From any thread while `g` is there: its calls end with -ECANCELED, the one
 * of now and, from then on, all.  A server on TLS or a socket learns of it as
 * the connection closes. */
void grpc_cancel(struct grpc *g);
/* The same for one call, that of now; when there is none, for the next.  A call
 * that has its answer already is not ended: then it waits for the next one,
 * unless grpc_resume() forgets it, which the thread that calls does. */
void grpc_interrupt(struct grpc *g);
void grpc_resume(struct grpc *g);

/* Our own address on the newest connection to a tcp:// endpoint, as text; ""
 * before the first. */
enum { GRPC_ADDRESS_MAX = 64 };
void grpc_local_address(const struct grpc *g, char ret_text[GRPC_ADDRESS_MAX]);

/* How a call ended. */
struct grpc_end {
    int code; /* enum grpc_code as the server sent it; -1: none came */
    char message[GRPC_MESSAGE_MAX]; /* decoded; printable */
    bool unsent; /* no connection was made: the server has seen nothing */
};

/* One unary call: `method` is "/runtime.v1.RuntimeService/Version".
 * 0 with the reply's message in `ret_reply` (reset first); else -errno with a
 * text that names the endpoint and the method: the server's code (-EREMOTEIO,
 * look at ret_end->code), no answer in time (-ETIMEDOUT), no connection
 * (-ECONNREFUSED and the like), a certificate refused on either side
 * (-EKEYREJECTED), a reply against the protocol (-EPROTO), too big a reply
 * (-EMSGSIZE), ended by us (-ECANCELED). `ret_end` is always filled in. */
int grpc_call(struct grpc *g, const char *method, const void *request,
              size_t size, unsigned deadline_ms, struct str *ret_reply,
              struct grpc_end *ret_end, struct error *err);

/* --- streams of many servers on one thread ------------------------------- */

/* Each has a connection of its own, which is closed with it; none can keep
 * the others waiting.  Use from one thread at a time, but for wake(). */
enum { GRPC_HUB_MAX = 64 }; /* streams of one hub */
struct grpc_hub;
struct grpc_hub *grpc_hub_create(void);
/* Ends all streams, and tells nobody. NULL allowed. */
void grpc_hub_destroy(struct grpc_hub *h);

typedef int grpc_message_f(void *ctx, const void *message, size_t size);
struct grpc_flow_config {
    const char *method; /* both outlive the stream */
    const void *request;
    size_t size;
    /* For each message; a nonzero return ends it with that value.  Within
     * either, nothing is opened or closed. */
    grpc_message_f *visit;
    /* It has ended, and is freed after this: 0 by the server, and well; else
     * as grpc_call() says it, or what `visit` returned. */
    void (*ended)(void *ctx, int code, const struct grpc_end *end,
                  const struct error *err);
    void *ctx;
};
struct grpc_flow; /* one stream */
/* What `config` points to must outlive it.  -ENOSPC: too many. */
int grpc_hub_open(struct grpc_hub *h, const struct grpc_config *config,
                  const struct grpc_flow_config *what,
                  struct grpc_flow **ret_flow, struct error *err);
/* Without a word to `ended`. */
void grpc_hub_close(struct grpc_hub *h, struct grpc_flow *flow);
/* The connection is there, and the request on its way. */
bool grpc_flow_stands(const struct grpc_flow *flow);
/* Takes what has come; when that is nothing, waits for it, at most `ms`. */
void grpc_hub_turn(struct grpc_hub *h, unsigned ms);
/* From any thread: end the wait, of now or of the next turn. */
void grpc_hub_wake(struct grpc_hub *h);

#endif
