/* httpd - an HTTP server with one listener, its own threads and a table of
 * routes: HTTP/1.1 by libmicrohttpd, and HTTP/2 over TLS by libnghttp2.
 *
 * It adds a cap on every body, a deadline for every request, uniform error
 * bodies, requests that wait without holding a thread, and 400 for ambiguous
 * heads (httpd_layout.h).  Such heads, and chunked bodies, end a connection. */
#ifndef BIGA_LIB_HTTP_HTTPD_H
#define BIGA_LIB_HTTP_HTTPD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/http/httpd_request.h"

typedef void httpd_handler_f(struct httpd_request *rq, void *ctx);

/* `path` is matched whole; a segment ":" matches any one segment and a last
 * segment "::" any rest (as sent): "/v1/nodes/:", "/apis/::".  HEAD is
 * served as GET.  First match wins. */
struct httpd_route {
    unsigned methods; /* enum httpd_method, or'd */
    const char *path;
    httpd_handler_f *handle;
    size_t body_max;  /* bytes; 0: no body is accepted */
    const char *name; /* for metrics: "filter" */
};

/* One finished request, for metrics; or a TLS handshake that failed, with
 * status 0 and only the refusal set. */
struct httpd_observation {
    const char *listener;            /* httpd_config.name */
    const struct httpd_route *route; /* NULL: refused before a route */
    unsigned status;
    /* Why the client was refused, NULL if it was not: "handshake"; of its
     * certificate missing, foreign, expired, not-yet-valid, purpose, weak,
     * unreadable; "uid" on a unix socket; or what httpd_refusal() said. */
    const char *refusal;
    uint64_t nanoseconds; /* from whole request to whole reply ready */
    size_t body_size, reply_size;
};

enum {
    HTTPD_STREAMS = 400, /* simultaneous requests of an HTTP/2 connection;
                          * kube-scheduler binds without a limit of its own, and
                          * opens connections for those that exceed it.  A client
                          * may cancel them all at once (H2_BUDGET_MAX) */
    HTTPD_SPARE = 64,    /* connections above connections_max of each thread,
                          * while it closes another one */
};

/* The verdict on a request, before its handler; on the listener's thread. */
enum httpd_admission {
    HTTPD_ADMIT,
    HTTPD_REFUSE, /* the reply is filled in: 401, 403 … */
    HTTPD_LATER,  /* suspended; httpd_then() was given a function that calls
                   * httpd_admit() or httpd_fail() */
};
/* Run the handler after HTTPD_LATER; on the listener's thread. */
void httpd_admit(struct httpd_request *rq);

struct httpd_config {
    const char *name;   /* for metrics: "scheduler" */
    const char *listen; /* "127.0.0.1:8701", "[::1]:0" (any port); "unix:/path":
                         * mode 0600, others than root and this user get 403,
                         * and only idle_ms ends a slow request line */
    const struct httpd_route *routes; /* outlives the server */
    size_t n_routes;
    void *ctx;                /* given to every handler */
    unsigned threads;         /* 1…, of HTTP/1.1 */
    unsigned connections_max; /* default 1024; one more closes a connection
                               * whose client has gone, else the one that was
                               * idle longest */
    unsigned
        request_ms;    /* for a request to arrive, from its first byte: 10000 */
    unsigned reply_ms; /* for the client to take a reply: 30000 */
    unsigned idle_ms;  /* keep-alive: default 300000 (Go closes at 90 s) */
    size_t memory_max; /* bytes of all bodies being received or handled, then
                          * 503: default 512 MiB */
    unsigned streams_max; /* replies that are written bit by bit at the same
                           * time (httpd_stream.h), then 503: default 512 */
    /* NULL: plain HTTP.  Outlives the server.  With a client authority,
     * clients without a valid certificate get 403 on every route */
    struct tls *tls;
    /* with tls: HTTP/2 for clients that offer it (ALPN "h2"), on one more
     * thread for all their connections: one that sends all its requests over
     * one connection, as kube-scheduler does, would gain nothing by several.
     * Deadlines then apply to requests, not to connections */
    bool http2;
    bool anonymous;      /* with tls: ask no client for a certificate */
    bool loopback;       /* refuse (-EPERM) to listen anywhere else */
    const char *repeats; /* the one query parameter that may be there more than
                          * once, with tabs and newlines in it; NULL: none */
    /* NULL: admits everybody */
    enum httpd_admission (*admit)(struct httpd_request *rq, void *ctx);
    /* how error bodies look (they are JSON); NULL: as httpd_fail() says */
    void (*write_error)(struct str *out, unsigned status, const char *text);
    /* called after each reply, any thread; may be NULL */
    void (*observe)(void *ctx, const struct httpd_observation *o);
};

struct httpd;
/* Starts listening.  On failure says which address and why. */
int httpd_start(const struct httpd_config *config, struct httpd **ret_httpd,
                struct error *err);
/* The port actually bound; 0 for a unix socket. */
uint16_t httpd_port(const struct httpd *h);
/* Requests of open connections that are not answered completely, and the bytes
 * of their bodies.  Any thread. */
struct httpd_held {
    size_t n_requests, body_bytes;
};
struct httpd_held httpd_held(const struct httpd *h);
/* Stop accepting, wait for requests in flight (suspended ones must be
 * resumed by their owner first), free. NULL allowed. */
void httpd_stop(struct httpd *h);

#endif
