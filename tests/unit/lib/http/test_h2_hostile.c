/* Clients of HTTP/2 that break the rules, or keep them to no good end. */
#include <criterion/criterion.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/h2/h2_meter.h"
#include "lib/io/clock.h"
#include "tests/lib/http/h2rig.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/virtual.h"

enum { LOOK_MS = 500 }; /* the server looks each H2_REQUEST_MS / 4 */

TestSuite(h2_hostile, .timeout = 180);

static struct h2_server *server(struct h2_client *ret_client)
{
    struct h2_server *s = h2_server_create(0, 0);
    const struct tls_client_config how = h2_server_me(s);
    cr_assert(h2_client_open(ret_client, &how, true));
    return s;
}

/* Others are served meanwhile, and so is the next one. */
static void done(struct h2_server *s, struct h2_client *c)
{
    const struct tls_client_config how = h2_server_me(s);
    struct h2_client other;
    h2_client_close(c);
    cr_assert(h2_client_open(&other, &how, true));
    cr_assert(h2_client_get(&other, 1, "/"));
    cr_expect(h2_client_read_to(&other, NGHTTP2_DATA, 1));
    h2_client_close(&other);
    virtual_end(); /* if it was on */
    h2_server_destroy(s);
}

/* --- floods --------------------------------------------------------------- */

static const struct {
    const char *name;
    uint8_t type, flags;
    int32_t id;
    size_t size;
} floods[] = {
    {"PING", NGHTTP2_PING, 0, 0, 8},
    {"acknowledged PING", NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, 8},
    {"SETTINGS", NGHTTP2_SETTINGS, 0, 0, 0},
    {"PRIORITY", NGHTTP2_PRIORITY, 0, 5, 5},
    {"WINDOW_UPDATE", NGHTTP2_WINDOW_UPDATE, 0, 0, 4},
    {"unknown", 77, 0, 0, 9},
    {"empty DATA", NGHTTP2_DATA, 0, 1, 0},
};

/* Time stands: their budget would fill up while a slow machine sends them. */
Test(h2_hostile, floods_end)
{
    enum { N = 4 * H2_BUDGET_MAX };
    for (size_t i = 0; i < ARRAY_LEN(floods); i++) {
        struct h2_client c;
        virtual_begin();
        struct h2_server *s = server(&c);
        const char payload[16] = {0, 0, 0, 1};
        cleanup_str struct str block = STR_INIT(1 << 10);
        bool open = true;
        h2_request(&block, "POST", "/");
        if (floods[i].id == 1)
            cr_assert(h2_client_frame(&c, NGHTTP2_HEADERS,
                                      NGHTTP2_FLAG_END_HEADERS, 1, block.data,
                                      block.size));
        for (int n = 0; n < N && open; n++)
            open = h2_client_frame(&c, floods[i].type, floods[i].flags,
                                   floods[i].id, payload, floods[i].size);
        cr_expect_eq(h2_client_goaway(&c), NGHTTP2_ENHANCE_YOUR_CALM, "%s",
                     floods[i].name);
        done(s, &c);
    }
}

/* Requests that are taken back at once (CVE-2023-44487), each in one record with
 * its end: an answer that went out between them would be paid for. */
Test(h2_hostile, rapid_reset_ends)
{
    enum { N = 4 * H2_BUDGET_MAX };
    struct h2_client c;
    virtual_begin();
    struct h2_server *s = server(&c);
    const uint32_t cancel = 0x08000000;
    bool open = true;
    for (int i = 0; i < N && open; i++) {
        gnutls_record_cork(c.tls.session);
        open = h2_client_get(&c, 2 * i + 1, "/") &&
               h2_client_frame(&c, NGHTTP2_RST_STREAM, 0, 2 * i + 1, &cancel,
                               4) &&
               gnutls_record_uncork(c.tls.session, GNUTLS_RECORD_WAIT) > 0;
    }
    cr_expect_eq(h2_client_goaway(&c), NGHTTP2_ENHANCE_YOUR_CALM);
    done(s, &c);
}

/* A header block without an end (CVE-2024-27316). */
Test(h2_hostile, endless_headers_end)
{
    struct h2_client c;
    struct h2_server *s = server(&c);
    cleanup_str struct str block = STR_INIT(1 << 20);
    cleanup_free char *value = xcalloc(1, 16001);
    bool open;
    h2_request(&block, "GET", "/");
    open = h2_client_frame(&c, NGHTTP2_HEADERS, 0, 1, block.data, block.size);
    memset(value, 'x', 16000);
    str_reset(&block);
    h2_field(&block, "x", value);
    for (int i = 0; i < 1000 && open; i++)
        open = h2_client_frame(&c, NGHTTP2_CONTINUATION, 0, 1, block.data,
                               block.size);
    cr_expect(h2_client_closed(&c));
    cr_expect_eq(atomic_load(&s->observed), 0);
    done(s, &c);
}

static bool send_fields(struct h2_client *c, int32_t id, unsigned n)
{
    cleanup_str struct str block = STR_INIT(1 << 20);
    char name[16];
    h2_request(&block, "GET", "/");
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(name, sizeof name, "x-%u", i);
        h2_field(&block, name, "0123456789012345678901234567890123456789");
    }
    return h2_client_frame(c, NGHTTP2_HEADERS,
                           NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM,
                           id, block.data, block.size);
}

/* Too many headers; and few bytes that stand for many. */
Test(h2_hostile, refuses_large_headers)
{
    struct h2_client c;
    struct h2_server *s = server(&c);
    cleanup_str struct str block = STR_INIT(1 << 20);
    cleanup_free char *value = xcalloc(1, 3001);
    cr_assert(send_fields(&c, 1, 100));
    cr_assert(h2_client_read_to(&c, NGHTTP2_DATA, 1));
    cr_expect_eq(c.status, 200);
    memset(value, 'x', 3000);
    h2_request(&block, "GET", "/");
    h2_field(&block, "x", value);
    block.data[block.size - 3000 - 6] = 0x40; /* to be indexed: entry 62 */
    cr_assert_eq(block.data[block.size - 3000 - 4], 'x');
    for (int i = 0; i < 10000; i++)
        str_add_c(&block, (char)(0x80 | 62));
    cr_assert(h2_client_frame(
        &c, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM,
        3, block.data, block.size));
    cr_assert(h2_client_read_to(&c, NGHTTP2_DATA, 3));
    cr_expect_eq(c.status, 431);
    cr_assert(send_fields(&c, 5, 2));
    cr_assert(h2_client_read_to(&c, NGHTTP2_DATA, 5));
    cr_expect_eq(c.status, 200);
    done(s, &c);
}

/* --- what is wrong -------------------------------------------------------- */

Test(h2_hostile, wrong_frames_end)
{
    static const struct {
        const char *name;
        uint8_t type, flags;
        int32_t id;
        const char *payload;
        size_t size;
    } frames[] = {
        {"DATA of no stream", NGHTTP2_DATA, 0, 9, "x", 1},
        {"DATA of the connection", NGHTTP2_DATA, 0, 0, "x", 1},
        {"HEADERS of an even stream", NGHTTP2_HEADERS, 5, 2, "\x82", 1},
        {"CONTINUATION of nothing", NGHTTP2_CONTINUATION, 4, 1, "\x82", 1},
        {"PUSH_PROMISE", NGHTTP2_PUSH_PROMISE, 4, 1, "\0\0\0\2\x82", 5},
        {"half a PING", NGHTTP2_PING, 0, 0, "1234", 4},
        {"a broken SETTINGS", NGHTTP2_SETTINGS, 0, 0, "12345", 5},
        {"a broken header block", NGHTTP2_HEADERS, 5, 1, "\xff\xff\xff\xff", 4},
        {"an index that is not there", NGHTTP2_HEADERS, 5, 1, "\xfe", 1},
        {"a window beyond all", NGHTTP2_WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff",
         4},
        {"RST_STREAM of no stream", NGHTTP2_RST_STREAM, 0, 7, "\0\0\0\0", 4},
    };
    for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
        struct h2_client c;
        struct h2_server *s = server(&c);
        cr_assert(h2_client_frame(&c, frames[i].type, frames[i].flags,
                                  frames[i].id, frames[i].payload,
                                  frames[i].size));
        cr_expect_gt(h2_client_goaway(&c), 0, "%s", frames[i].name);
        cr_expect(h2_client_closed(&c), "%s", frames[i].name);
        done(s, &c);
    }
}

Test(h2_hostile, survives_what_is_no_http2)
{
    static const char *const texts[] = {
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSN\r\n\r\n and more of that kind",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct h2_server *s = h2_server_create(0, 0);
        const struct tls_client_config how = h2_server_me(s);
        struct h2_client c;
        cr_assert(h2_client_open(&c, &how, false));
        for (int n = 0; n < 4; n++)
            (void)tls_client_send(&c.tls, texts[i], strlen(texts[i]));
        cr_expect(h2_client_closed(&c), "%zu", i);
        done(s, &c);
    }
}

/* Of one request only: the connection goes on. */
#define GET_ROOT                              \
    {":method", "GET"}, {":scheme", "https"}, \
    {                                         \
        ":path", "/"                          \
    }
Test(h2_hostile, wrong_requests_are_reset)
{
    static const struct {
        const char *fields[6][2];
    } requests[] = {
        {{{":method", "GET"}}},
        {{{":method", "GET"}, {":scheme", "https"}}},
        {{{":method", "GET"}, {":scheme", "https"}, {":path", ""}}},
        {{{":method", "G T"}, {":scheme", "https"}, {":path", "/"}}},
        {{GET_ROOT, {"connection", "close"}}},
        {{GET_ROOT, {"X-Upper", "no"}}},
        {{GET_ROOT, {"origin", "a\r\nb"}}},
        {{GET_ROOT, {"a", "b"}, {":authority", "late"}}},
        {{GET_ROOT, {"content-length", "5"}}},
        {{GET_ROOT, {":authority", "x"}, {":authority", "x"}}},
        {{GET_ROOT, {"host", "x"}, {"host", "x"}}},
        {{GET_ROOT, {"content-length", "0"}, {"content-length", "0"}}},
        {{GET_ROOT, {"content-length", "+0"}}},
        {{GET_ROOT, {"transfer-encoding", "chunked"}}},
        {{GET_ROOT, {"a ", "b"}}},
    };
    struct h2_client c;
    struct h2_server *s = server(&c);
    int32_t id = 1;
    for (size_t i = 0; i < ARRAY_LEN(requests); i++, id += 2) {
        cleanup_str struct str block = STR_INIT(1 << 10);
        for (int k = 0; k < 6 && requests[i].fields[k][0]; k++)
            h2_field(&block, requests[i].fields[k][0],
                     requests[i].fields[k][1]);
        cr_assert(
            h2_client_frame(&c, NGHTTP2_HEADERS,
                            NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM,
                            id, block.data, block.size));
        cr_expect(h2_client_read_to(&c, NGHTTP2_RST_STREAM, id), "%zu", i);
    }
    cr_assert(h2_client_get(&c, id, "/"));
    cr_expect(h2_client_read_to(&c, NGHTTP2_DATA, id));
    cr_expect_str_eq(c.payload.data, "me 0");
    done(s, &c);
}

/* A body that is not as long as its content-length says is no request. */
Test(h2_hostile, wrong_lengths_are_reset)
{
    struct h2_client c;
    struct h2_server *s = server(&c);
    for (int32_t id = 1; id <= 3; id += 2) {
        cleanup_str struct str block = STR_INIT(1 << 10);
        h2_request(&block, "POST", "/");
        h2_field(&block, "content-length", "3");
        cr_assert(h2_client_frame(&c, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS,
                                  id, block.data, block.size));
        cr_assert(h2_client_frame(&c, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, id,
                                  "abcd", id == 1 ? 4 : 2));
        cr_expect(h2_client_read_to(&c, NGHTTP2_RST_STREAM, id), "%d", id);
    }
    cr_expect_eq(atomic_load(&s->observed), 0);
    done(s, &c);
}

/* Whom the request is for must be clear. */
Test(h2_hostile, refuses_unclear_hosts)
{
    static const struct {
        const char *authority, *host;
        int status;
    } cases[] = {
        {"x", NULL, 200},      {NULL, "x", 200},     {NULL, NULL, 400},
        {"x:80", "X:80", 200}, {"[::1]", NULL, 200}, {"x", "y", 400},
        {"x", "x:80", 400},    {"u@x", NULL, 400},   {NULL, "x y", 400},
        {"x/y", NULL, 400},    {NULL, "x, y", 400},
    };
    struct h2_client c;
    struct h2_server *s = server(&c);
    int32_t id = 1;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++, id += 2) {
        cleanup_str struct str block = STR_INIT(1 << 10);
        h2_field(&block, ":method", "GET");
        h2_field(&block, ":scheme", "https");
        h2_field(&block, ":path", "/");
        if (cases[i].authority)
            h2_field(&block, ":authority", cases[i].authority);
        if (cases[i].host)
            h2_field(&block, "host", cases[i].host);
        cr_assert(
            h2_client_frame(&c, NGHTTP2_HEADERS,
                            NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM,
                            id, block.data, block.size));
        c.status = 0;
        while (c.status == 0 && h2_client_read(&c) &&
               c.type != NGHTTP2_RST_STREAM)
            ;
        if (c.type == NGHTTP2_RST_STREAM) /* nghttp2's own answer */
            c.status = 400;
        cr_expect_eq(c.status, cases[i].status, "%zu: %d", i, c.status);
    }
    done(s, &c);
}

Test(h2_hostile, caps_streams)
{
    struct h2_client c;
    struct h2_server *s = server(&c);
    for (int i = 0; i < HTTPD_STREAMS + 1; i++)
        cr_assert(h2_client_get(&c, 2 * i + 1, "/wait?n=a"));
    h2_server_await(s, HTTPD_STREAMS);
    cr_expect(h2_client_read_to(&c, NGHTTP2_RST_STREAM, 2 * HTTPD_STREAMS + 1));
    cr_expect_eq(c.payload.data[3], NGHTTP2_REFUSED_STREAM);
    for (int i = 0; i < HTTPD_STREAMS; i++)
        httpd_resume(atomic_load(&s->waiting[i]));
    for (int i = 0; i < HTTPD_STREAMS; i++)
        cr_expect(h2_client_read_to(&c, NGHTTP2_DATA, -1), "%d", i);
    done(s, &c);
}

/* As many requests as may be at once, and some PINGs, before any answer could
 * be sent: that is much, and no flood. */
Test(h2_hostile, answers_as_many_as_may_be_in_one_record)
{
    enum { PINGS = 20 };
    /* GET https://x/, as entries of HPACK's table: "x" is the first to come */
    static const char first[] = "\x82\x87\x84\x41\x01x";
    static const char other[] = "\x82\x87\x84\xbe";
    struct h2_client c;
    struct h2_server *s = server(&c);
    bool open = true;
    gnutls_record_cork(c.tls.session);
    for (int i = 0; i < HTTPD_STREAMS && open; i++)
        open = h2_client_frame(
            &c, NGHTTP2_HEADERS,
            NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 2 * i + 1,
            i ? other : first, i ? sizeof other - 1 : sizeof first - 1);
    for (int i = 0; i < PINGS && open; i++)
        open = h2_client_frame(&c, NGHTTP2_PING, 0, 0, "12345678", 8);
    cr_assert(open);
    cr_assert_gt(gnutls_record_uncork(c.tls.session, GNUTLS_RECORD_WAIT), 0);
    for (int i = 0; i < HTTPD_STREAMS; i++)
        cr_assert(h2_client_read_to(&c, NGHTTP2_DATA, -1), "%d", i);
    cr_expect_eq(c.status, 200);
    done(s, &c);
}

/* --- those that take their time ------------------------------------------- */

Test(h2_hostile, cuts_handshakes_that_do_not_end)
{
    /* the head of a record of 256 bytes that never come */
    static const char hello[] = {0x16, 3, 1, 1, 0, 1, 0, 0};
    virtual_begin();
    struct h2_server *s = h2_server_create(0, 0);
    struct h2_client none = {.tls = {.fd = -1}};
    int silent = raw_connect(httpd_port(s->httpd));
    int half = raw_connect(httpd_port(s->httpd));
    cr_assert(raw_send_n(half, hello, sizeof hello));
    h2_server_idle();
    h2_server_pass(H2_REQUEST_MS - LOOK_MS);
    cr_expect_eq(atomic_load(&s->refused), 0, "too soon");
    while (atomic_load(&s->refused) < 2)
        h2_server_pass(LOOK_MS);
    cr_expect(raw_closed_within(silent, RAW_PATIENCE_MS));
    cr_expect(raw_closed_within(half, RAW_PATIENCE_MS));
    (void)close(silent);
    (void)close(half);
    done(s, &none);
}

/* The loop would have a turn again and again, for bytes that it does not take
 * yet. */
Test(h2_hostile, unfinished_handshakes_cost_nothing)
{
    static const char half_a_hello[] = {0x16, 3, 1, 1, 0, 1, 0, 0, 0x7f};
    virtual_begin();
    struct h2_server *s = h2_server_create(0, 0);
    struct h2_client none = {.tls = {.fd = -1}};
    int fd = raw_connect(httpd_port(s->httpd));
    cr_assert(raw_send_n(fd, half_a_hello, sizeof half_a_hello));
    h2_server_idle();
    (void)close(fd);
    done(s, &none);
}

Test(h2_hostile, resets_a_body_that_trickles)
{
    virtual_begin();
    struct h2_client c;
    struct h2_server *s = server(&c);
    cleanup_str struct str block = STR_INIT(1 << 10);
    h2_request(&block, "POST", "/");
    cr_assert(h2_client_frame(&c, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1,
                              block.data, block.size));
    for (int64_t ms = 0; ms < H2_REQUEST_MS + 1000; ms += LOOK_MS) {
        cr_assert(h2_client_frame(&c, NGHTTP2_DATA, 0, 1, "x", 1));
        h2_server_idle();
        h2_server_pass(LOOK_MS);
    }
    cr_assert(h2_client_frame(&c, NGHTTP2_PING, 0, 0, "12345678", 8));
    while (h2_client_read(&c) && c.type != NGHTTP2_RST_STREAM &&
           c.type != NGHTTP2_PING)
        ;
    cr_expect_eq(c.type, NGHTTP2_RST_STREAM, "it was reset long before");
    cr_expect_eq(c.id, 1);
    cr_assert(h2_client_get(&c, 3, "/"));
    cr_expect(h2_client_read_to(&c, NGHTTP2_DATA, 3), "others go on");
    done(s, &c);
}

Test(h2_hostile, cuts_frames_and_headers_that_trickle)
{
    virtual_begin();
    struct h2_client c;
    struct h2_server *s = server(&c);
    const struct tls_client_config how = h2_server_me(s);
    struct h2_client other;
    cleanup_str struct str block = STR_INIT(1 << 10);
    cr_assert(h2_client_open(&other, &how, true));
    h2_request(&block, "GET", "/");
    cr_assert(
        h2_client_frame(&other, NGHTTP2_HEADERS, 0, 1, block.data, block.size));
    cr_assert(tls_client_send(&c.tls, "\0\0\x10\6", 4), "half a head");
    h2_server_idle();
    h2_server_pass(H2_REQUEST_MS + 2000);
    cr_expect(h2_client_closed(&c));
    cr_expect(h2_client_closed(&other), "without CONTINUATION");
    h2_client_close(&other);
    done(s, &c);
}

/* The windows are closed; or the socket is full. */
Test(h2_hostile, drops_replies_that_are_not_taken)
{
    virtual_begin();
    struct h2_client c;
    struct h2_server *s = server(&c);
    cr_assert(h2_client_get(&c, 1, "/large"));
    h2_server_idle();
    h2_server_pass(H2_REQUEST_MS + 1000);
    cr_assert(h2_client_read_to(&c, NGHTTP2_RST_STREAM, 1));
    static const char wide[] = "\x7f\xff\0\0", settings[] = "\0\4\x7f\xff\0\0";
    cr_assert(h2_client_frame(&c, NGHTTP2_WINDOW_UPDATE, 0, 0, wide, 4));
    cr_assert(h2_client_frame(&c, NGHTTP2_SETTINGS, 0, 0, settings, 6));
    for (int i = 0; i < 16; i++)
        cr_assert(h2_client_get(&c, 2 * i + 3, "/large"));
    h2_server_idle();
    h2_server_pass(3 * H2_REQUEST_MS);
    size_t taken = 0;
    while (h2_client_read(&c))
        taken += c.type == NGHTTP2_DATA ? c.payload.size : 0;
    cr_expect_lt(taken, (size_t)16 * H2_LARGE);
    cr_expect(c.tls.ended);
    done(s, &c);
}

Test(h2_hostile, caps_replies_that_wait)
{
    enum { N = 40 };
    struct h2_client c;
    struct h2_server *s = server(&c);
    int n_refused = 0;
    static const char wide[] = "\x7f\xff\0\0", settings[] = "\0\4\x7f\xff\0\0";
    for (int i = 0; i < N; i++)
        cr_assert(h2_client_get(&c, 2 * i + 1, "/large"));
    cr_assert(h2_client_frame(&c, NGHTTP2_WINDOW_UPDATE, 0, 0, wide, 4));
    cr_assert(h2_client_frame(&c, NGHTTP2_SETTINGS, 0, 0, settings, 6));
    for (int i = 0; i < N; i++) {
        cr_assert(h2_client_read_to(&c, NGHTTP2_HEADERS, -1), "%d", i);
        n_refused += c.status == 503;
    }
    cr_expect_gt(n_refused, 20);
    cr_expect_lt(n_refused, N - 5);
    done(s, &c);
}

/* HTTP/2's connections are counted with the others. */
Test(h2_hostile, crowd_without_certificates_does_not_push_out_others)
{
    enum { MAX = 8 };
    struct h2_server *s = h2_server_create(MAX, 0);
    struct tls_client_config how = h2_server_me(s);
    struct h2_client known, crowd[3 * MAX];
    cr_assert(h2_client_open(&known, &how, true));
    cr_assert(h2_client_get(&known, 1, "/"));
    cr_assert(h2_client_read_to(&known, NGHTTP2_DATA, 1));
    how.cert_file = NULL;
    for (size_t i = 0; i < ARRAY_LEN(crowd); i++) {
        how.alpn = i % 3 ? "h2" : "http/1.1";
        bool h2 = h2_client_open(&crowd[i], &how, true);
        cr_assert(h2 || i % 3 == 0, "%zu", i);
    }
    cr_assert(h2_client_get(&known, 3, "/"));
    cr_assert(h2_client_read_to(&known, NGHTTP2_DATA, 3));
    unsigned ended = 0;
    for (size_t i = 0; i < ARRAY_LEN(crowd); i++)
        if (crowd[i].inflater) {
            ended += !h2_client_get(&crowd[i], 1, "/") ||
                     !h2_client_read_to(&crowd[i], NGHTTP2_DATA, 1);
            h2_client_close(&crowd[i]);
        }
    cr_expect_geq(ended, 3 * MAX - MAX - MAX);
    done(s, &known);
}
