/* What a connection holds is given back when it closes, however it does. */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "tests/lib/http/h2rig.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/virtual.h"

enum {
    ROUNDS_MAX = 1000,
    COOKIES = 1000,    /* two records of MHD's each: its pool is full */
    LARGE = 100000,    /* more than its pool has */
    REQUEST_MS = 1000, /* while time is virtual */
    HANGS_MS = 600000, /* else: a slow machine is no slow client */
};

/* --- a plain listener ----------------------------------------------------- */

static void on_size(struct httpd_request *rq, void *ctx)
{
    size_t size;
    (void)ctx;
    (void)httpd_body(rq, &size);
    str_addf(httpd_reply(rq), "%zu", size);
}

static const struct httpd_route routes[] = {
    {HTTPD_GET | HTTPD_POST, "/", on_size, 1 << 20, "size"},
};

static struct httpd *plain_server(void)
{
    const struct httpd_config config = {
        .name = "test",
        .listen = "127.0.0.1:0",
        .routes = routes,
        .n_routes = ARRAY_LEN(routes),
        .request_ms = virtual_is_on() ? REQUEST_MS : HANGS_MS};
    struct httpd *h = NULL;
    struct error err = {0};
    cr_assert_eq(httpd_start(&config, &h, &err), 0, "%s", err.text);
    return h;
}

static bool holds_nothing(const struct httpd *h)
{
    const struct httpd_held held = httpd_held(h);
    return held.n_requests == 0 && held.body_bytes == 0;
}

/* --- requests that come to nothing ---------------------------------------- */

/* `head`, then `n` times `piece`, then `tail`. */
static const struct request {
    const char *name, *head, *piece;
    int n;
    const char *tail;
} requests[] = {
#define GET "GET / HTTP/1.1\r\nHost: x\r\n"
#define POST "POST / HTTP/1.1\r\nHost: x\r\n"
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
    {"cookies", GET "Cookie: ", "a=b;", COOKIES, "\r\n\r\n"},
    {"a cookie too large to copy", GET "Cookie: ", "a", LARGE / 2, "\r\n\r\n"},
    {"headers too large", GET, "X: 0123456789\r\n", LARGE / 16, "\r\n"},
    {"headers too many", GET, "X:\r\n", LARGE / 8, "\r\n"},
    {"a header too large", GET "X: ", "x", LARGE, "\r\n\r\n"},
    {"a target too long", "GET /", "x", LARGE, " HTTP/1.1\r\nHost: x\r\n\r\n"},
    {"parameters", "GET /?", "a&", LARGE / 8, " HTTP/1.1\r\nHost: x\r\n\r\n"},
    {"a line without colon", GET "X\r\n\r\n", "", 0, ""},
    {"no host", "GET / HTTP/1.1\r\n\r\n", "", 0, ""},
    {"an unknown method",
     "GOT / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "", 0, ""},
    {"an unknown version", "GET / HTTP/3.0\r\nHost: x\r\n\r\n", "", 0, ""},
    {"a space in the target", "GET /a b HTTP/1.1\r\n\r\n", "", 0, ""},
    {"half a head", GET "X: y\r\n", "", 0, ""},
    {"half a second head", GET "\r\n" GET "X: y\r\n", "", 0, ""},
    {"half a body", POST "Content-Length: 500000\r\n\r\n", "x", LARGE, ""},
    {"a length too large", POST "Content-Length: 2", "0", 30, "\r\n\r\n"},
    {"a length that is none", POST "Content-Length: x\r\n\r\n", "", 0, ""},
    {"an unknown encoding", POST "Transfer-Encoding: x\r\n\r\n", "", 0, ""},
    {"a wrong chunk", CHUNKED "3\r\nabc\r\nx\r\n", "", 0, ""},
    {"a chunk too large", CHUNKED "3\r\nabc\r\n1", "0", 16, "\r\n"},
    {"half a chunk", CHUNKED "ffff\r\n", "x", 1000, ""},
    {"trailers too large", CHUNKED "0\r\n", "X: y\r\n", LARGE / 4, "\r\n"},
    {"half of the trailers", CHUNKED "3\r\nabc\r\n0\r\nX: y\r\n", "", 0, ""},
    {"a wrong trailer", CHUNKED "3\r\nabc\r\n0\r\nX\r\n\r\n", "", 0, ""},
    {"cookies, of a second request", GET "\r\n" GET "Cookie: ", "a=b;", COOKIES,
     "\r\n\r\n"},
    {"no 100 waited for",
     POST "Expect: 100-continue\r\nContent-Length: 9\r\n"
          "\r\n",
     "x", 3, ""},
};

static void request_write(const struct request *r, struct str *ret_text)
{
    str_init(ret_text, 1 << 20);
    str_add(ret_text, r->head);
    for (int i = 0; i < r->n; i++)
        str_add(ret_text, r->piece);
    str_add(ret_text, r->tail);
}

/* How the client goes: it waits for the server, or it does not. */
enum leave { LEAVE_HALF, LEAVE_NOT, LEAVE_RESET };

/* Where time is virtual, it goes on whenever the server has read what came. */
static void pass_until_ended(struct httpd *h, int fd)
{
    struct pollfd end = {.fd = fd, .events = POLLRDHUP};
    struct raw_reply reply = {0};
    while (poll(&end, 1, 1) == 0) {
        cr_assert_eq(raw_call(httpd_port(h), "GET", "/", "", NULL, &reply),
                     200);
        virtual_step(1, REQUEST_MS / 10);
    }
    raw_reply_fini(&reply);
}

static void leave(struct httpd *h, int fd, enum leave how, const char *name)
{
    const struct linger at_once = {.l_onoff = 1};
    if (how == LEAVE_HALF)
        (void)shutdown(fd, SHUT_WR);
    if (how == LEAVE_RESET)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    if (how != LEAVE_RESET && virtual_is_on())
        pass_until_ended(h, fd);
    if (how != LEAVE_RESET)
        cr_expect(raw_closed_within(fd, RAW_PATIENCE_MS), "%s", name);
}

/* Each answer means that the thread has gone round once more. */
static void plain_expect_nothing(struct httpd *h, const char *name)
{
    struct raw_reply reply = {0};
    int rounds = 0;
    do
        cr_assert_eq(raw_call(httpd_port(h), "GET", "/", "", NULL, &reply),
                     200);
    while (!holds_nothing(h) && ++rounds < ROUNDS_MAX);
    raw_reply_fini(&reply);
    cr_expect(holds_nothing(h), "%s: %zu requests with %zu bytes", name,
              httpd_held(h).n_requests, httpd_held(h).body_bytes);
}

/* MHD may not see that half of a connection has ended, as in the middle of a
 * body: such ones are cut off. */
static void plain_try(enum leave how)
{
    virtual_begin();
    struct httpd *h = plain_server();
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        cleanup_str struct str text;
        request_write(&requests[i], &text);
        int fd = raw_connect(httpd_port(h));
        (void)raw_send_n(fd, text.data, text.size); /* refused on the way */
        leave(h, fd, how, requests[i].name);
        (void)close(fd);
        plain_expect_nothing(h, requests[i].name);
    }
    httpd_stop(h);
    virtual_end();
}

Test(httpd_held, nothing_by_a_client_that_is_done)
{
    plain_try(LEAVE_HALF);
}

Test(httpd_held, nothing_by_a_client_that_vanishes)
{
    plain_try(LEAVE_RESET);
}

Test(httpd_held, nothing_by_a_client_that_is_cut_off)
{
    static const char half[] = POST "Content-Length: 9\r\n\r\nabc";
    virtual_begin();
    struct httpd *h = plain_server();
    int fd = raw_connect(httpd_port(h));
    cr_assert(raw_send(fd, half));
    leave(h, fd, LEAVE_NOT, "slow");
    (void)close(fd);
    plain_expect_nothing(h, "slow");
    httpd_stop(h);
    virtual_end();
}

Test(httpd_held, nothing_by_clients_that_the_server_leaves)
{
    struct httpd *h = plain_server();
    int fds[ARRAY_LEN(requests)];
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        cleanup_str struct str text;
        request_write(&requests[i], &text);
        fds[i] = raw_connect(httpd_port(h));
        (void)raw_send_n(fds[i], text.data, text.size);
    }
    httpd_stop(h); /* which looks */
    for (size_t i = 0; i < ARRAY_LEN(requests); i++)
        (void)close(fds[i]);
}

struct crowd {
    atomic_bool begun;
    int fds[300];
};

static void *crowd_run(void *arg)
{
    static const char bad[] = GET "no colon\r\n\r\n";
    struct crowd *c = arg;
    for (size_t i = 0; i < ARRAY_LEN(c->fds); i++) {
        (void)raw_send(c->fds[i], bad);
        if (i == ARRAY_LEN(c->fds) / 3)
            atomic_store(&c->begun, true);
    }
    return NULL;
}

/* MHD 0.9.75 dies of a request that it refuses while it stops. */
Test(httpd_held, stops_among_requests_that_are_refused)
{
    for (int round = 0; round < 30; round++) {
        struct httpd *h = plain_server();
        struct crowd crowd = {.begun = false};
        pthread_t thread;
        for (size_t i = 0; i < ARRAY_LEN(crowd.fds); i++)
            crowd.fds[i] = raw_connect(httpd_port(h));
        plain_expect_nothing(h, "crowd"); /* all are accepted */
        pthread_create(&thread, NULL, crowd_run, &crowd);
        while (!atomic_load(&crowd.begun))
            ;
        httpd_stop(h);
        pthread_join(thread, NULL);
        for (size_t i = 0; i < ARRAY_LEN(crowd.fds); i++)
            (void)close(crowd.fds[i]);
    }
}

/* --- the same by TLS ------------------------------------------------------ */

static void tls_expect_nothing(struct h2_server *s, const char *alpn,
                               const char *name)
{
    struct tls_client_config how = h2_server_me(s);
    int rounds = 0;
    how.alpn = NULL;
    do {
        struct h2_client c;
        const struct tls_client_config h2 = h2_server_me(s);
        if (!alpn) {
            cr_assert_eq(tls_client_once(&how, "/", NULL), 200);
            continue;
        }
        cr_assert(h2_client_open(&c, &h2, true));
        cr_assert(h2_client_get(&c, 1, "/"));
        cr_assert(h2_client_read_to(&c, NGHTTP2_DATA, 1));
        h2_client_close(&c);
    } while (!holds_nothing(s->httpd) && ++rounds < ROUNDS_MAX);
    cr_expect(holds_nothing(s->httpd), "%s: %zu requests with %zu bytes", name,
              httpd_held(s->httpd).n_requests, httpd_held(s->httpd).body_bytes);
}

static void tls_try(bool certificate, enum leave goes)
{
    struct h2_server *s = h2_server_create(0, 0);
    struct tls_client_config how = h2_server_me(s);
    how.alpn = NULL;
    if (!certificate)
        how.cert_file = how.key_file = NULL;
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        cleanup_str struct str text;
        struct tls_client c;
        request_write(&requests[i], &text);
        cr_assert(tls_client_open(&c, &how));
        (void)tls_client_send(&c, text.data, text.size);
        leave(s->httpd, c.fd, goes, requests[i].name);
        tls_client_close(&c);
        tls_expect_nothing(s, NULL, requests[i].name);
    }
    h2_server_destroy(s);
}

Test(httpd_held, nothing_over_tls)
{
    tls_try(true, LEAVE_HALF);
}

Test(httpd_held, nothing_over_tls_without_a_certificate)
{
    tls_try(false, LEAVE_HALF);
}

Test(httpd_held, nothing_over_tls_that_is_torn)
{
    tls_try(true, LEAVE_RESET);
}

/* --- HTTP/2, in each phase of a request ----------------------------------- */

enum phase_of { HEAD, BODY, BODY_REFUSED, WAITING, REPLYING, PHASES };

static const char *const phases[] = {"head", "body", "refused body", "waiting",
                                     "replying"};

/* Bring a request there. */
static void h2_bring(struct h2_server *s, struct h2_client *c,
                     enum phase_of phase)
{
    static const char *const paths[] = {"/", "/", "/nothing", "/wait",
                                        "/large"};
    cleanup_str struct str block = STR_INIT(1 << 10);
    bool post = phase == BODY || phase == BODY_REFUSED;
    unsigned flags = (phase == HEAD ? 0 : NGHTTP2_FLAG_END_HEADERS) |
                     (post ? 0 : NGHTTP2_FLAG_END_STREAM);
    h2_request(&block, post ? "POST" : "GET", paths[phase]);
    cr_assert(h2_client_frame(c, NGHTTP2_HEADERS, (uint8_t)flags, 1, block.data,
                              block.size));
    if (post)
        cr_assert(h2_client_frame(c, NGHTTP2_DATA, 0, 1, "body", 4));
    if (phase == WAITING)
        h2_server_await(s, 1);
    if (phase == REPLYING)
        cr_assert(h2_client_read_to(c, NGHTTP2_DATA, 1));
}

/* What ends it: the request alone, the connection in good order, or by its
 * frames' breaking the rules, or without a word. */
enum ending { RESET, GOAWAY, BROKEN, GONE, ENDINGS };

static void h2_end(struct h2_server *s, struct h2_client *c, enum ending ending)
{
    static const char zeros[8];
    if (ending == RESET)
        (void)h2_client_frame(c, NGHTTP2_RST_STREAM, 0, 1, zeros, 4);
    else if (ending == GOAWAY)
        (void)h2_client_frame(c, NGHTTP2_GOAWAY, 0, 0, zeros, 8);
    else if (ending == BROKEN)
        (void)h2_client_frame(c, NGHTTP2_PING, 0, 0, zeros, 1);
    leave(s->httpd, c->tls.fd, ending == GONE ? LEAVE_RESET : LEAVE_HALF,
          "HTTP/2");
}

Test(httpd_held, nothing_of_http2_in_any_phase)
{
    for (int phase = 0; phase < PHASES; phase++)
        for (int ending = 0; ending < ENDINGS; ending++) {
            struct h2_server *s = h2_server_create(0, 0);
            const struct tls_client_config how = h2_server_me(s);
            struct h2_client c;
            cr_assert(h2_client_open(&c, &how, true));
            h2_bring(s, &c, (enum phase_of)phase);
            h2_end(s, &c, (enum ending)ending);
            h2_client_close(&c);
            if (phase == WAITING)
                httpd_resume(atomic_load(&s->waiting[0]));
            tls_expect_nothing(s, "h2", phases[phase]);
            h2_server_destroy(s);
        }
}
