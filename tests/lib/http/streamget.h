/* streamget - a listener whose replies are written bit by bit by the test, and
 * clients of it, all over HTTP/1.1, HTTP/1.1 over TLS, or HTTP/2. */
#ifndef BIGA_TESTS_LIB_HTTP_STREAMGET_H
#define BIGA_TESTS_LIB_HTTP_STREAMGET_H

#include <curl/curl.h>

#include "lib/http/httpd_stream.h"
#include "tests/lib/http/h2rig.h"

enum stream_way { STREAM_PLAIN, STREAM_TLS, STREAM_H2, STREAM_WAYS };
extern const char *const stream_way_names[STREAM_WAYS];

enum { STREAM_GET_MAX = 1024, STREAM_WAITS_MAX = 64 << 10 };

/* The route is GET /stream; the n-th request that came has `streams[n]`, NULL
 * when none could be had. */
struct streamd;
struct streamd_ctx {
    struct streamd *server;
    unsigned n;
};
struct streamd {
    enum stream_way way;
    struct h2_server *certs;
    struct httpd *httpd;
    uint16_t port;
    struct httpd_stream *_Atomic streams[STREAM_GET_MAX];
    atomic_uint n, n_observed;
    atomic_uint n_changed[STREAM_GET_MAX]; /* calls of `changed` */
    atomic_size_t reply_size;              /* of the last that was observed */
    struct streamd_ctx ctx[STREAM_GET_MAX];
};
/* `config` may set limits; NULL: none.  Aborts when something fails. */
struct streamd *streamd_open(enum stream_way way,
                             const struct httpd_config *config);
void streamd_close(struct streamd *s);
/* Wait until so many requests came; the stream of the last of them. */
struct httpd_stream *streamd_await(struct streamd *s, unsigned n);
/* Wait until `changed` of the n-th has been called again since it had been
 * called `since` times. */
void streamd_await_change(struct streamd *s, unsigned n, unsigned since);

struct stream_get {
    CURL *curl;
    CURLM *multi; /* own */
    struct str body;
    long status, version;
    CURLcode code; /* once `done` */
    bool done;
};
void stream_get_begin(struct stream_get *g, struct streamd *s);
/* Go on until `size` bytes of the body are there, or it has ended. */
void stream_get_until(struct stream_get *g, size_t size);
/* Go on until the head is there, and the status known. */
void stream_get_head(struct stream_get *g);
/* Hang up. */
void stream_get_close(struct stream_get *g);

#endif
