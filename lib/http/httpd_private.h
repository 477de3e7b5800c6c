/* httpd_private - what the files of httpd share.
 *
 * httpd.c starts, stops and calls handlers; httpd_request.c is what handlers
 * use, httpd_head.c judges a request by its head, httpd_layout.c whether that
 * was read as others read it, httpd_conn.c knows the connections and closes
 * those that take too long, httpd_tls.c is what HTTPS adds to them,
 * httpd_listen.c opens the socket, httpd_unix.c one that is a file, and knows
 * who its clients are.  httpd_mhd.c is HTTP/1.1 by
 * libmicrohttpd; httpd_h2*.c are HTTP/2 by libnghttp2 (httpd_h2.h).
 * httpd_stream.c is a reply that goes on, httpd_upgrade.c a connection that is
 * handed to others, httpd_streams.c all of both. */
#ifndef BIGA_LIB_HTTP_HTTPD_PRIVATE_H
#define BIGA_LIB_HTTP_HTTPD_PRIVATE_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "lib/h2/h2_fields.h"
#include "lib/http/httpd_conn.h"
#include "lib/http/httpd_layout.h"
#include "lib/http/httpd_listen.h"
#include "lib/http/httpd_streams.h"
#include "lib/http/uri.h"
#include "lib/io/unix_socket.h"

enum {
    /* A refused body of up to this much is read and dropped, so that the
     * connection lives on; a longer one is answered at once and cut. */
    DROP_MAX = 1 << 20,
    HEADERS_MAX = 12,
    H2_FIELDS_MAX = 32 << 10, /* of a request, as SETTINGS counts them */
};

/* How a request travels. */
struct transport {
    const char *(*header)(const struct httpd_request *rq, const char *name);
    void (*suspend)(struct httpd_request *rq);
    void (*resume)(struct httpd_request *rq);
};

/* What HTTP/2 knows of a request; see httpd_h2.h. */
struct h2_stream {
    struct h2_conn *c;
    int32_t id; /* 0: the client has gone, or no longer wants it */
    struct httpd_request *prev, *next; /* of the connection */
    enum conn_state state;
    int64_t since_ms; /* when it entered the state, or was broken */
    bool broken;      /* a PING is under way, behind which it is reset */
    struct h2_fields fields;
    size_t dropped; /* bytes of the body */
    size_t sent;    /* of the reply */
};

enum phase { PHASE_NEW, PHASE_BODY, PHASE_HANDLING, PHASE_REPLIED };

struct httpd_request {
    struct httpd_request *next; /* in the pool */
    struct httpd *h;
    const struct transport *transport;
    struct MHD_Connection *connection; /* HTTP/1.1 */
    const char *target;                /* the same; while its head is read */
    size_t target_size;
    struct h2_stream h2; /* HTTP/2 */
    struct conn *conn;
    const struct httpd_route *route;
    enum httpd_method method;
    enum phase phase;
    bool refused; /* answered without its handler */
    bool suspended;
    void (*then)(struct httpd_request *rq, void *arg);
    void *then_arg;
    void (*lost)(void *arg);     /* instead of `then` */
    struct httpd_stream *stream; /* the reply, NULL: it is in `reply` */
    bool close;                  /* the connection ends with the reply */
    bool at_once;                /* refused: its body is not waited for */
    unsigned status;
    const char *type;
    const char *args[URI_ARGS_MAX];
    struct str body, reply;
    char no_body[1]; /* what a handler reads when there is none */
    size_t length;   /* of the body as announced, 0: not known */
    size_t charged;  /* of h->memory_used */
    uint64_t started_ns, took_ns;
    unsigned n_headers;
    struct {
        const char *name;
        char *value; /* ours */
    } headers[HEADERS_MAX];
    int uri_fault; /* 0 or -errno of uri_parse */
    struct error err;
    struct uri uri;
    const char *refusal; /* of httpd_observation */
    char user[HTTPD_USER_MAX + 1];
    void *kept; /* by admit */
    void (*drop_kept)(void *kept);
};

struct httpd {
    struct httpd_config config;
    struct unix_file file;
    struct MHD_Daemon *daemon;
    struct conns conns;
    struct streams streams;
    uint16_t port;
    struct h2_loop *h2; /* NULL: HTTP/1.1 alone */
    int fd;             /* MHD's while it runs, or of h2 */
    atomic_bool stopping;
    atomic_size_t memory_used; /* by the bodies of requests at work */
    atomic_size_t n_requests;  /* taken, and not given back */

    pthread_mutex_t pool_lock;
    struct httpd_request *pool;
    size_t pool_bytes;
};

/* A request object from the pool, with nothing known of it but the server. */
struct httpd_request *request_take(struct httpd *h);
/* Back to the pool, buffers and all unless they have grown large. */
void request_give(struct httpd_request *rq);
void request_destroy(struct httpd_request *rq);

/* What of a head decides over its request besides target and method. */
struct head {
    unsigned n_lengths, n_encodings, n_hosts;
    const char *length, *encoding, *origin, *host;
    const char *authority; /* of HTTP/2 */
    bool old;              /* HTTP/1.0 */
    struct layout layout;  /* of HTTP/1.1 */
};
/* Find the route, or refuse the request: from then on its body is dropped
 * and its reply is written. */
void request_judge(struct httpd_request *rq, const char *method,
                   const struct head *head);
/* A piece of the body. */
void request_take_body(struct httpd_request *rq, const char *data, size_t size);
/* All of it is there: call the handler.  False when the reply has to wait. */
bool request_begin(struct httpd_request *rq);
/* It was resumed: the same. */
bool request_go_on(struct httpd_request *rq);
/* The reply is about to be sent; has been sent, or was not wanted. */
void request_seal(struct httpd_request *rq);
void request_observe(const struct httpd_request *rq);
void request_refuse(struct httpd_request *rq, unsigned status, const char *fmt,
                    ...) __attribute__((format(printf, 3, 4)));

/* Make room for `size` more bytes of the body; false when it would be too
 * large, or all bodies together would be, or there is no memory: then the
 * request is refused. */
bool request_reserve(struct httpd_request *rq, size_t size);
/* Of a request that was refused. */
void request_drop_body(struct httpd_request *rq);

/* A connection ended: a handshake that came to nothing is told. */
void conn_observe(struct httpd *h, const struct conn *conn);
/* Of httpd_mhd.c.  NULL: it cannot be started. */
struct MHD_Daemon *mhd_start(struct httpd *h);
/* Refuse a request whose client has no good certificate. */
bool request_verify(struct httpd_request *rq);

/* Refuse a request of a unix socket's client who is neither root nor us. */
bool request_trust(struct httpd_request *rq);

#endif
