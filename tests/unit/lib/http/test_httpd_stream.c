#include "lib/http/httpd_stream.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>

#include "lib/base/mem.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/http/streamget.h"

enum { PIECE = 1000 };

static int write_text(struct httpd_stream *s, const char *text)
{
    return httpd_stream_write(s, text, strlen(text));
}

/* All of `size` bytes, as there is room. */
static void write_much(struct streamd *server, unsigned n, size_t size)
{
    struct httpd_stream *s = atomic_load(&server->streams[n]);
    char piece[PIECE];
    for (size_t at = 0; at < size;) {
        size_t k = size - at < PIECE ? size - at : PIECE;
        unsigned changed = atomic_load(&server->n_changed[n]);
        for (size_t i = 0; i < k; i++)
            piece[i] = (char)('a' + (at + i) % 23);
        int r = httpd_stream_write(s, piece, k);
        if (r == 0)
            at += k;
        else if (r == -EAGAIN)
            streamd_await_change(server, n, changed);
        else
            cr_assert_fail("write: %d", r);
    }
}

static void expect_much(const struct str *body, size_t size)
{
    cr_expect_eq(body->size, size);
    for (size_t i = 0; i < body->size; i++)
        if (body->data[i] != (char)('a' + i % 23))
            cr_assert_fail("byte %zu is wrong", i);
}

/* --- what it carries ------------------------------------------------------ */

TestSuite(httpd_stream, .timeout = 300);

static void carries(enum stream_way way)
{
    struct streamd *server = streamd_open(way, NULL);
    struct stream_get get;
    stream_get_begin(&get, server);
    stream_get_head(&get);
    cr_expect_eq(get.status, 200, "%s: before any byte of the body",
                 stream_way_names[way]);
    struct httpd_stream *s = streamd_await(server, 1);
    cr_expect_eq(httpd_stream_room(s), STREAM_WAITS_MAX);
    for (int i = 0; i < 5; i++) {
        cr_expect_eq(write_text(s, "data: 7\n\n"), 0);
        stream_get_until(&get, (size_t)(i + 1) * 9);
        cr_expect_eq(get.body.size, (size_t)(i + 1) * 9);
    }
    cr_expect_eq(write_text(s, "the last"), 0);
    cr_expect_not(httpd_stream_gone(s));
    httpd_stream_end(s);
    stream_get_until(&get, SIZE_MAX);
    cr_expect(get.done);
    cr_expect_eq(get.code, CURLE_OK, "%s", curl_easy_strerror(get.code));
    cr_expect_eq(get.version, way == STREAM_H2 ? CURL_HTTP_VERSION_2_0
                                               : CURL_HTTP_VERSION_1_1);
    cr_expect_str_eq(get.body.data + 45, "the last");
    stream_get_close(&get);
    streamd_close(server);
}

static void carries_much(enum stream_way way)
{
    const size_t size = 3 << 20;
    struct streamd *server = streamd_open(way, NULL);
    struct stream_get get;
    stream_get_begin(&get, server);
    stream_get_head(&get);
    struct httpd_stream *s = streamd_await(server, 1);
    cr_expect_eq(httpd_stream_write(s, "", 0), 0);
    cleanup_free char *huge = xcalloc(1, STREAM_WAITS_MAX + 1);
    cr_expect_eq(httpd_stream_write(s, huge, STREAM_WAITS_MAX + 1), -EMSGSIZE);
    size_t done = 0;
    /* the client takes as the writer goes on, in turns: both wait */
    while (done < size) {
        size_t k = STREAM_WAITS_MAX - PIECE;
        k = k < size - done ? k : size - done;
        char piece[PIECE];
        for (size_t at = 0; at < k; at += PIECE) {
            size_t m = k - at < PIECE ? k - at : PIECE;
            for (size_t i = 0; i < m; i++)
                piece[i] = (char)('a' + (done + at + i) % 23);
            cr_assert_eq(httpd_stream_write(s, piece, m), 0);
        }
        done += k;
        stream_get_until(&get, done);
    }
    httpd_stream_end(s);
    stream_get_until(&get, SIZE_MAX);
    expect_much(&get.body, size);
    stream_get_close(&get);
    while (atomic_load(&server->n_observed) == 0)
        (void)poll(NULL, 0, 1);
    cr_expect_eq(atomic_load(&server->reply_size), size);
    streamd_close(server);
}

#define EACH_WAY(name)               \
    Test(httpd_stream, name##_plain) \
    {                                \
        name(STREAM_PLAIN);          \
    }                                \
    Test(httpd_stream, name##_tls)   \
    {                                \
        name(STREAM_TLS);            \
    }                                \
    Test(httpd_stream, name##_http2) \
    {                                \
        name(STREAM_H2);             \
    }

EACH_WAY(carries)
EACH_WAY(carries_much)

/* --- clients that are slow, or go ----------------------------------------- */

struct writing {
    struct streamd *server;
    size_t size;
};

static void *write_run(void *arg)
{
    const struct writing *w = arg;
    write_much(w->server, 0, w->size);
    httpd_stream_end(atomic_load(&w->server->streams[0]));
    return NULL;
}

/* One that takes nothing for a while: no more than `max` waits for it, the
 * writer is told when there is room, and others are served. */
static void waits_for_the_slow(enum stream_way way)
{
    struct streamd *server = streamd_open(way, NULL);
    struct writing w = {server, 16 << 20};
    struct stream_get slow, quick;
    pthread_t thread;
    stream_get_begin(&slow, server);
    stream_get_head(&slow);
    struct httpd_stream *s = streamd_await(server, 1);
    cr_assert_eq(pthread_create(&thread, NULL, write_run, &w), 0);
    while (httpd_stream_room(s) >= PIECE)
        (void)poll(NULL, 0, 1);
    stream_get_begin(&quick, server);
    stream_get_head(&quick);
    struct httpd_stream *other = streamd_await(server, 2);
    cr_expect_eq(write_text(other, "quick"), 0);
    stream_get_until(&quick, 5);
    cr_expect_str_eq(quick.body.data, "quick");
    httpd_stream_end(other);
    stream_get_close(&quick);
    stream_get_until(&slow, SIZE_MAX);
    cr_expect_eq(slow.code, CURLE_OK);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    expect_much(&slow.body, w.size);
    stream_get_close(&slow);
    streamd_close(server);
}

static void notices_who_goes(enum stream_way way)
{
    const struct httpd_config often = {.request_ms = 600000, .reply_ms = 80};
    struct streamd *server = streamd_open(way, &often);
    struct stream_get get;
    stream_get_begin(&get, server);
    stream_get_head(&get);
    struct httpd_stream *s = streamd_await(server, 1);
    stream_get_close(&get);
    streamd_await_change(server, 0, 0); /* though nothing is written */
    cr_expect(httpd_stream_gone(s));
    cr_expect_eq(write_text(s, "nobody is there"), -EPIPE);
    httpd_stream_end(s);
    /* and in the middle, while it lacks room */
    stream_get_begin(&get, server);
    stream_get_head(&get);
    s = streamd_await(server, 2);
    cleanup_free char *much = xcalloc(1, STREAM_WAITS_MAX);
    while (httpd_stream_write(s, much, STREAM_WAITS_MAX) == 0)
        ;
    stream_get_close(&get);
    while (!httpd_stream_gone(s))
        (void)poll(NULL, 0, 1);
    httpd_stream_end(s);
    streamd_close(server);
}

/* A connection without a request, until idle_ms has ended it. */
static void await_idle_end(const struct streamd *server)
{
    struct tls_client_config how = h2_server_me(server->certs);
    how.port = server->port;
    if (server->way == STREAM_PLAIN) {
        int fd = raw_connect(how.port);
        cr_expect(raw_closed_within(fd, RAW_PATIENCE_MS));
        (void)close(fd);
    } else if (server->way == STREAM_TLS) {
        struct tls_client c;
        cr_assert(tls_client_open(&c, &how));
        cr_expect(raw_closed_within(c.fd, RAW_PATIENCE_MS));
        tls_client_close(&c);
    } else {
        struct h2_client c;
        cr_assert(h2_client_open(&c, &how, true));
        cr_expect(h2_client_closed(&c));
        h2_client_close(&c);
    }
}

/* Neither reply_ms nor idle_ms ends it. */
static void may_be_idle(enum stream_way way)
{
    const struct httpd_config soon = {
        .request_ms = 600000, .reply_ms = 20, .idle_ms = 20};
    struct streamd *server = streamd_open(way, &soon);
    struct stream_get get;
    stream_get_begin(&get, server);
    stream_get_head(&get);
    struct httpd_stream *s = streamd_await(server, 1);
    await_idle_end(server);
    cr_expect_eq(write_text(s, "still here"), 0);
    stream_get_until(&get, 10);
    cr_expect_str_eq(str_text(&get.body), "still here");
    httpd_stream_end(s);
    stream_get_close(&get);
    streamd_close(server);
}

static void shows_that_it_is_not_whole(enum stream_way way)
{
    struct streamd *server = streamd_open(way, NULL);
    struct stream_get get;
    stream_get_begin(&get, server);
    stream_get_head(&get);
    struct httpd_stream *s = streamd_await(server, 1);
    cr_expect_eq(write_text(s, "one"), 0);
    stream_get_until(&get, 3);
    cr_expect_eq(write_text(s, "two"), 0);
    httpd_stream_break(s);
    stream_get_until(&get, SIZE_MAX);
    cr_expect_neq(get.code, CURLE_OK);
    cr_expect_str_eq(str_text(&get.body), "onetwo");
    stream_get_close(&get);
    streamd_close(server);
}

/* libcurl drops what came together with RST_STREAM. */
Test(httpd_stream, resets_behind_what_was_read)
{
    struct streamd *server = streamd_open(STREAM_H2, NULL);
    struct tls_client_config how = h2_server_me(server->certs);
    struct h2_client c;
    uint8_t mark[8];
    how.port = server->port;
    cr_assert(h2_client_open(&c, &how, true));
    cr_assert(h2_client_get(&c, 1, "/stream"));
    struct httpd_stream *s = streamd_await(server, 1);
    cr_expect_eq(write_text(s, "all"), 0);
    httpd_stream_break(s);
    cr_assert(h2_client_read_to(&c, NGHTTP2_DATA, 1));
    cr_expect_str_eq(str_text(&c.payload), "all");
    cr_assert(h2_client_read(&c));
    cr_assert_eq(c.type, NGHTTP2_PING);
    memcpy(mark, c.payload.data, sizeof mark);
    cr_assert(h2_client_read(&c));
    cr_assert_eq(c.type, NGHTTP2_PING, "not answered, it comes again");
    cr_assert_eq(memcmp(c.payload.data, mark, sizeof mark), 0);
    cr_assert(h2_client_frame(&c, NGHTTP2_PING, 0, 0, "whatever", 8));
    do /* nothing else comes before that is answered */
        cr_assert(h2_client_read(&c) && c.type == NGHTTP2_PING);
    while (!(c.flags & NGHTTP2_FLAG_ACK));
    cr_assert(h2_client_frame(&c, NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, mark, 8));
    do
        cr_assert(h2_client_read(&c));
    while (c.type == NGHTTP2_PING);
    cr_expect_eq(c.type, NGHTTP2_RST_STREAM);
    cr_expect_eq(c.id, 1);
    h2_client_close(&c);
    streamd_close(server);
}

EACH_WAY(waits_for_the_slow)
EACH_WAY(notices_who_goes)
EACH_WAY(may_be_idle)
EACH_WAY(shows_that_it_is_not_whole)

/* --- the server's own ends ------------------------------------------------ */

static void *stop(void *server)
{
    httpd_stop(((struct streamd *)server)->httpd);
    return NULL;
}

static void ends_with_the_server(enum stream_way way)
{
    struct streamd *server = streamd_open(way, NULL);
    struct stream_get idle, stuck;
    pthread_t thread;
    stream_get_begin(&idle, server);
    stream_get_head(&idle);
    struct httpd_stream *a = streamd_await(server, 1);
    stream_get_begin(&stuck, server);
    stream_get_head(&stuck);
    struct httpd_stream *b = streamd_await(server, 2);
    cleanup_free char *much = xcalloc(1, STREAM_WAITS_MAX);
    while (httpd_stream_write(b, much, STREAM_WAITS_MAX) == 0)
        ;
    cr_assert_eq(pthread_create(&thread, NULL, stop, server), 0);
    stream_get_until(&idle, SIZE_MAX);
    cr_expect_neq(idle.code, CURLE_OK, "it sees that this is not all");
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_expect_eq(write_text(a, "x"), -EPIPE);
    cr_expect_eq(write_text(b, "x"), -EPIPE);
    cr_expect(httpd_stream_gone(b));
    cr_expect_gt(atomic_load(&server->n_changed[0]), 0);
    httpd_stream_end(a);
    httpd_stream_end(b);
    server->httpd = NULL;
    stream_get_close(&idle);
    stream_get_close(&stuck);
    streamd_close(server);
}

static void refuses_too_many(enum stream_way way)
{
    enum { MAX = 3 };
    const struct httpd_config few = {
        .request_ms = 600000, .reply_ms = 80, .streams_max = MAX};
    struct streamd *server = streamd_open(way, &few);
    struct stream_get clients[MAX], more;
    for (unsigned i = 0; i < MAX; i++) {
        stream_get_begin(&clients[i], server);
        stream_get_head(&clients[i]);
        cr_expect_not_null(streamd_await(server, i + 1));
    }
    stream_get_begin(&more, server);
    stream_get_until(&more, SIZE_MAX);
    cr_expect_eq(more.status, 503);
    cr_expect(strstr(str_text(&more.body), "3 streams are open already"), "%s",
              str_text(&more.body));
    stream_get_close(&more);
    for (unsigned i = 0; i < MAX; i++) {
        httpd_stream_end(atomic_load(&server->streams[i]));
        stream_get_until(&clients[i], SIZE_MAX);
        cr_expect_eq(clients[i].code, CURLE_OK);
        stream_get_close(&clients[i]);
    }
    while (atomic_load(&server->n_observed) < MAX + 1)
        (void)poll(NULL, 0, 1);
    stream_get_begin(&more, server);
    stream_get_head(&more);
    cr_expect_eq(more.status, 200, "there is place again");
    httpd_stream_end(streamd_await(server, MAX + 2));
    stream_get_close(&more);
    streamd_close(server);
}

EACH_WAY(ends_with_the_server)
EACH_WAY(refuses_too_many)

/* --- what only HTTP/1.1 has ----------------------------------------------- */

Test(httpd_stream, gives_a_head_alone_and_no_chunks_to_the_old)
{
    struct streamd *server = streamd_open(STREAM_PLAIN, NULL);
    uint16_t port = server->port;
    struct raw_reply reply = {0};
    char value[64];
    int fd = raw_connect(port);
    cr_assert(raw_send(fd, "HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n"));
    cr_expect_eq(raw_read(fd, true, &reply), 200);
    cr_expect_str_eq(raw_header(&reply, "Cache-Control", value, sizeof value),
                     "no-store");
    struct httpd_stream *s = streamd_await(server, 1);
    streamd_await_change(server, 0, 0);
    cr_expect_eq(write_text(s, "x"), -EPIPE);
    httpd_stream_end(s);
    cr_expect(raw_closed_within(fd, RAW_PATIENCE_MS));
    (void)close(fd);
    fd = raw_connect(port);
    cr_assert(raw_send(fd, "GET /stream HTTP/1.0\r\n\r\n"));
    s = streamd_await(server, 2);
    cr_expect_eq(write_text(s, "plain"), 0);
    httpd_stream_end(s);
    char all[4096];
    size_t n = 0;
    for (ssize_t k; (k = read(fd, all + n, sizeof all - 1 - n)) > 0;)
        n += (size_t)k;
    all[n] = '\0';
    cr_expect(strstr(all, "\r\n\r\nplain"), "%s", all);
    (void)close(fd);
    raw_reply_fini(&reply);
    streamd_close(server);
}
