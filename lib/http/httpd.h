/* httpd - a server of HTTP/1.1, on libmicrohttpd, and of HTTP/2 over TLS, on
 * libnghttp2: one listener, one or more threads of its own, a table of routes.
 * A handler does not see which of the two its request came by.
 *
 * What it adds: a cap on every body, a total deadline on every request (a
 * client that trickles is cut off, wherever it trickles), answers with
 * Content-Length from a reused buffer, error bodies of one form, requests
 * that wait for another thread without holding this one, and 400 to heads
 * that others could read otherwise (httpd_layout.h), with the connection's
 * end; it also ends with a request in chunks. */
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
 * status 0 and nothing else but the refusal. */
struct httpd_observation {
    const char *listener;            /* httpd_config.name */
    const struct httpd_route *route; /* NULL: refused before a route */
    unsigned status;
    /* Why the client was refused, one word: "handshake"; of its certificate
     * missing, foreign, expired, not-yet-valid, purpose, weak, unreadable; of
     * a unix socket's client "uid"; or what httpd_refusal() said.  NULL: it was not. */
    const char *refusal;
    uint64_t nanoseconds; /* from whole request to whole reply ready */
    size_t body_size, reply_size;
};

/* How many requests one HTTP/2 connection may have at a time. */
enum { HTTPD_STREAMS = 128 };

/* Connections above connections_max that each thread may have for the moment
 * it takes to close another one. */
enum { HTTPD_SPARE = 64 };

/* May this request be answered?  Called on the listener's thread before its
 * route's handler. */
enum httpd_admission {
    HTTPD_ADMIT,
    HTTPD_REFUSE, /* the reply is filled in: 401, 403 … */
    HTTPD_LATER,  /* suspended; httpd_then() was given a function that calls
                   * httpd_admit() or httpd_fail() */
};
/* Go on with the handler of a request that was HTTPD_LATER; on the listener's
 * thread. */
void httpd_admit(struct httpd_request *rq);

struct httpd_config {
    const char *name;   /* for metrics: "scheduler" */
    const char *listen; /* "127.0.0.1:8701", "[::1]:0"; port 0: any free.  Or
                         * "unix:/path": a socket of mode 0600 whose clients
                         * must be root or our own user (403); a request line
                         * that trickles there ends with idle_ms alone */
    const struct httpd_route *routes; /* outlives the server */
    size_t n_routes;
    void *ctx;                /* given to every handler */
    unsigned threads;         /* 1… */
    unsigned connections_max; /* default 1024; beyond, the longest idle
                               * connection is closed for a new one */
    unsigned request_ms;      /* total time for a request to arrive whole, from
                          * its first byte: default 10000 */
    unsigned reply_ms;        /* total time for a reply to be taken: 30000 */
    unsigned idle_ms;  /* keep-alive: default 300000 (Go closes at 90 s) */
    size_t memory_max; /* bytes held by bodies that are arriving or being
                          * worked on; beyond, 503: default 512 MiB */
    /* NULL: plain HTTP.  Otherwise HTTPS; with a client authority, a client
     * without a certificate, or with one that is foreign, expired or not meant
     * for clients, gets 403 and the reason on every route; outlives the
     * server */
    struct tls *tls;
    /* with tls: HTTP/2 too, for clients that offer it (ALPN "h2"), on one more
     * thread, whatever `threads` is.  There a deadline is of each request and
     * not of its connection. */
    bool http2;
    bool anonymous; /* with tls: ask no client for a certificate */
    bool loopback;  /* refuse (-EPERM) to listen anywhere else */
    /* NULL: everybody */
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
/* What connections hold: the requests that came and are not answered whole,
 * and the bytes of their bodies.  None is left of a connection that closed,
 * however it did.  Any thread. */
struct httpd_held {
    size_t n_requests, body_bytes;
};
struct httpd_held httpd_held(const struct httpd *h);
/* Stop accepting, wait for requests in flight (suspended ones must be
 * resumed by their owner first), free. NULL allowed. */
void httpd_stop(struct httpd *h);

#endif
