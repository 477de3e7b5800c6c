/* httpd_h2 - HTTP/2 for the HTTPS listeners of httpd.
 *
 * httpd_h2.c is a thread with an epoll of its own that accepts for the whole
 * listener: it looks at the first bytes of a connection (httpd_hello.h) and
 * keeps those that offer HTTP/2, others go on to libmicrohttpd.
 * httpd_h2_conn.c is one connection, in TLS by GnuTLS; httpd_h2_stream.c turns
 * nghttp2's callbacks into requests.  But for struct httpd_request's resume
 * everything happens on that thread.
 *
 * Deadlines: request_ms for the first record of a handshake and its end
 * together, and for each request to arrive whole; a frame that takes longer
 * ends the connection.  reply_ms for a reply to be taken; idle_ms without a
 * request.  Caps: HTTPD_STREAMS requests at once, H2_FIELDS_MAX bytes of
 * headers (431), H2_REPLIES_MAX bytes of replies that the client does not take
 * (503), a budget for frames that are no requests (h2_meter.h), beyond
 * which the connection ends with ENHANCE_YOUR_CALM. */
#ifndef BIGA_LIB_HTTP_HTTPD_H2_H
#define BIGA_LIB_HTTP_HTTPD_H2_H

#include <nghttp2/nghttp2.h>
#include <sys/types.h>

#include "lib/h2/h2_meter.h"
#include "lib/http/httpd_private.h"

enum {
    H2_WINDOW = 1 << 20,       /* of a stream: bytes that need not wait */
    H2_WINDOW_ALL = 8 << 20,   /* of a connection */
    H2_REPLIES_MAX = 32 << 20, /* beyond, further requests get 503 */
    H2_READ = 32 << 10,        /* bytes of one recv */
    H2_LINGER_MS = 1000, /* for the client to see why a connection ended */
};

enum h2_stage {
    H2_HELLO,   /* the first record is looked at, and not taken */
    H2_SHAKING, /* the rest of the handshake */
    H2_OPEN,
    H2_LINGER, /* all is said; what still comes is dropped */
    H2_ENDED,  /* closed but for suspended requests */
};

struct h2_conn {
    struct h2_conn *prev, *next;
    struct h2_conn *next_dirty;
    bool dirty; /* in that list */
    struct h2_loop *loop;
    struct conn *conn;
    int fd;
    enum h2_stage stage;
    int64_t since_ms; /* accepted; lingering */
    uint32_t events;  /* of epoll */

    gnutls_session_t session;
    nghttp2_session *h2;
    struct h2_meter meter;
    struct str out; /* frames that are to be sent */
    size_t n_out;   /* of them, those that were */
    size_t n_stuck; /* those that GnuTLS has taken and not sent */
    int64_t stuck_ms;

    struct httpd_request *streams;
    unsigned n_in[CONN_STREAMING + 1]; /* of them in each state */
    unsigned n_suspended;              /* also those without a stream now */
    size_t reply_bytes;
    int64_t idle_ms;     /* since when it has no stream */
    bool leave;          /* GOAWAY has to be sent, or was */
    bool goodbye;        /* nghttp2 has it */
    bool goaway_waiting; /* for nghttp2 to send it: nothing is read, since it
                          * says what was */
    bool flood;          /* ENHANCE_YOUR_CALM has to be sent */
    bool over;           /* was, or will be at once */
};

struct h2_loop {
    struct httpd *h;
    int epoll, wake;
    bool paused;    /* nothing is accepted */
    bool leaving;   /* the server stops */
    int64_t due_ms; /* when the deadlines are looked at */
    pthread_t thread;
    gnutls_priority_t priorities;
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    struct h2_conn *first, *dirty;

    pthread_mutex_t lock;
    struct httpd_request *resumed, *last_resumed; /* by `next` */

    /* what a connection that is read has from its socket */
    uint8_t in[H2_READ];
    size_t in_at, in_size;
    bool may_read;
    uint8_t plain[H2_READ];
};

/* httpd_h2.c: the listener's socket is h->fd and stays the caller's. */
int h2_create(struct httpd *h, struct h2_loop **ret_loop, struct error *err);
/* h->daemon is there now. */
int h2_start(struct h2_loop *loop, struct error *err);
/* Accept no more, answer what is at work, end all connections. */
void h2_stop(struct h2_loop *loop);
void h2_destroy(struct h2_loop *loop); /* NULL allowed */
void h2_watch(struct h2_conn *c, uint32_t events);
/* To MHD, as it is. */
void h2_hand_over(struct h2_conn *c);

/* The connection is flushed at the end of this round, or freed. */
void h2_dirty(struct h2_conn *c);
/* Any thread. */
void h2_wake(struct h2_loop *loop);

/* httpd_h2_conn.c */
void h2_conn_create(struct h2_loop *loop, int fd);
void h2_conn_event(struct h2_conn *c, uint32_t events);
/* Look at the deadlines. */
void h2_conn_tick(struct h2_conn *c, int64_t now);
/* The server stops: take no more requests. */
void h2_conn_leave(struct h2_conn *c);
/* Send what there is.  Frees a connection that has ended. */
void h2_conn_flush(struct h2_conn *c);
void h2_conn_end(struct h2_conn *c);

/* httpd_h2_stream.c */
int h2_session_create(struct h2_conn *c);
nghttp2_session_callbacks *h2_callbacks(void);
/* A suspended request goes on; its connection may have ended. */
void h2_stream_resumed(struct httpd_request *rq);
/* It took too long, or is not wanted: tell the client so. */
void h2_stream_reset(struct httpd_request *rq, uint32_t why);
/* What its reply has is all there will be, and not whole. */
void h2_stream_break(struct httpd_request *rq);
/* All that is not suspended is gone, with its connection. */
void h2_streams_drop(struct h2_conn *c);

#endif
