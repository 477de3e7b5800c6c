/* Requests that others could read otherwise than libmicrohttpd does: no handler
 * sees them, and nothing that follows them is read. */
#include <criterion/criterion.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "tests/lib/http/h2rig.h"
#include "tests/lib/http/rawclient.h"

#define GET "GET / HTTP/1.1\r\n"
#define POST "POST / HTTP/1.1\r\nHost: x\r\n"
#define END "\r\n\r\n"
#define CHUNKED POST "Transfer-Encoding: chunked" END
#define BYTES(text) text, sizeof(text) - 1

/* What follows in the same packet, and must not be answered. */
static const char next[] = "GET /header HTTP/1.1\r\nHost: smuggled\r\n\r\n";

static const struct {
    const char *bytes;
    size_t size;
    const char *why; /* in the answer; NULL: it is MHD's own */
} bad[] = {
    /* the request line */
    {BYTES("GET  / HTTP/1.1\r\nHost: x" END), "request line"},
    {BYTES("GET /  HTTP/1.1\r\nHost: x" END), NULL},
    {BYTES("GET /a b HTTP/1.1\r\nHost: x" END), NULL},
    {BYTES("GET\t/ HTTP/1.1\r\nHost: x" END), NULL},
    {BYTES(" GET / HTTP/1.1\r\nHost: x" END), NULL},
    {BYTES("G\rT / HTTP/1.1\r\nHost: x" END), "request line"},
    {BYTES("G\0T / HTTP/1.1\r\nHost: x" END), "request line"},
    {BYTES("GET /\0 HTTP/1.1\r\nHost: x" END), "request line"},
    {BYTES("GET /\0/b HTTP/1.1\r\nHost: x" END), "request line"},
    {BYTES("GET /?a=\0b HTTP/1.1\r\nHost: x" END), "request line"},
    {BYTES("GET /\ra HTTP/1.1\r\nHost: x" END), "the target has a control"},
    {BYTES("GET /?a=\x01 HTTP/1.1\r\nHost: x" END), "the target has a control"},
    {BYTES("GET / HTTP/1.1\r\r\nHost: x" END), NULL},
    {BYTES("GET / HTTP/1.1\0\r\nHost: x" END), NULL},
    {BYTES("GET / HTTP/1.1\nHost: x" END), "a line has no name"},
    {BYTES("GET / HTTP/1.10\r\nHost: x" END), NULL},
    /* lines and their ends */
    {BYTES(GET "Host: x\nA: b" END), "a line has no name"},
    {BYTES(GET "Host: x\n\nA: b" END), "a line has no name"},
    {BYTES(GET "Host: x\r\n\n"), "a line has no name"},
    {BYTES(GET "Host: x\n\r\n"), "a line has no name"},
    {BYTES(GET "Host: x\rA: b" END), "control character"},
    {BYTES(GET "Host: x\r\r\nA: b" END), "control character"},
    {BYTES(GET "Host: x\r\nA: b\r\n c" END), "a line has no name"},
    {BYTES(GET "Host: x\r\nA: b\r\n\tc: d" END), "a line has no name"},
    {BYTES(GET "Host: x\r\nA: b\r\n \r\nC: d" END), "a line has no name"},
    {BYTES(GET "Host: x\r\nA: b\r\n " END), "a line has no name"},
    {BYTES(GET "Host:\r\n x" END), NULL},
    {BYTES(GET " Host: x" END), NULL},
    {BYTES(GET " A: b\r\nHost: x" END), "not a token"},
    {BYTES(GET "Host: x\r\nA" END), NULL},
    /* names */
    {BYTES(GET "Host: x\r\nA : b" END), "not a token, after the header"},
    {BYTES(GET "Host : x" END), NULL},
    {BYTES(GET "Host: x\r\nA\t: b" END), "not a token"},
    {BYTES(GET "Host: x\r\n: b" END), "a line has no name"},
    {BYTES(GET "Host: x\r\nA\r: b" END), "not a token"},
    {BYTES(GET "Host: x\r\nA B: b" END), "not a token"},
    {BYTES(GET "Host: x\r\nA\x80: b" END), "not a token"},
    {BYTES(GET "Host: x\r\nA\0: b" END), NULL},
    {BYTES(POST "Content-Length : 3" END "abc"), "not a token"},
    {BYTES(POST "Content-Length\t: 3" END "abc"), "not a token"},
    {BYTES(POST "Transfer-Encoding : chunked" END "0" END), "not a token"},
    /* values */
    {BYTES(GET "Host: x\0\r\nA: b" END), "a line has no name"},
    {BYTES(GET "Host: x\r\nA: b\0c" END), "a line has no name"},
    {BYTES(GET "Host: x\r\nA:\0b" END), "a line has no name"},
    {BYTES(GET "Host: x\r\nA: b\x01" END), "control character"},
    {BYTES(GET "Host: x\r\nA: b\x7f" END), "control character"},
    {BYTES(GET "Host: x\r\nA: b\vc" END), "control character"},
    /* hosts */
    {BYTES(GET "A: b" END), NULL},
    {BYTES(GET "Host: x\r\nHost: y" END), "there are 2 Host headers"},
    {BYTES(GET "Host: x\r\nA: b\r\nhost: x" END), "there are 2 Host headers"},
    {BYTES("GET / HTTP/1.0\r\nHost: x\r\nHost: y" END), "there are 2 Host"},
    {BYTES(GET "Host: x, y" END), "Host is \\\"x, y\\\""},
    {BYTES(GET "Host: x y" END), "Host is"},
    {BYTES(GET "Host: http://x/" END), "Host is"},
    {BYTES(GET "Host: u@x" END), "Host is"},
    {BYTES(GET "Host: x:80:90" END), "Host is"},
    {BYTES(GET "Host: x:a" END), "Host is"},
    {BYTES(GET "Host: [::1" END), "Host is"},
    {BYTES(GET "Host: [x]" END), "Host is"},
    /* lengths */
    {BYTES(POST "Content-Length: 3\r\nContent-Length: 3" END "abc"), "length"},
    {BYTES(POST "Content-Length: 3\r\ncontent-length: 4" END "abc"), "length"},
    {BYTES(POST "Content-Length: 3, 3" END "abc"), NULL},
    {BYTES(POST "Content-Length: +3" END "abc"), NULL},
    {BYTES(POST "Content-Length: -3" END "abc"), NULL},
    {BYTES(POST "Content-Length: 3 " END "abc"), NULL},
    {BYTES(POST "Content-Length: 0x3" END "abc"), NULL},
    {BYTES(POST "Content-Length:" END "abc"), NULL},
    {BYTES(POST "Content-Length: 18446744073709551619" END "abc"), NULL},
    {BYTES(POST "Content-Length: 3\r\nTransfer-Encoding: chunked" END "0" END),
     "length"},
    {BYTES(POST "Transfer-Encoding: chunked\r\nContent-Length: 3" END "0" END),
     "length"},
    {BYTES(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked" END
                "0" END),
     "length"},
    {BYTES(POST "Transfer-Encoding: identity" END "0" END), "length"},
    {BYTES(POST "Transfer-Encoding: chunked, chunked" END "0" END), "length"},
    {BYTES(POST "Transfer-Encoding: gzip, chunked" END "0" END), "length"},
    {BYTES(POST "Transfer-Encoding: chunked " END "0" END), "length"},
    {BYTES(POST "Transfer-Encoding: \"chunked\"" END "0" END), "length"},
    {BYTES(POST "Transfer-Encoding:" END "0" END), "length"},
    {BYTES(POST "Transfer-Encoding: \vchunked" END "0" END), "control"},
    {BYTES("POST / HTTP/1.0\r\nTransfer-Encoding: chunked" END "0" END),
     "length"},
};

/* Read alike by all: 200. */
static const char *const good[] = {
    GET "Host: x" END,
    GET "Host:x" END,
    GET "Host: \t x \t" END,
    GET "Host:" END,
    GET "host: 127.0.0.1:8701" END,
    GET "HOST: [::1]:8701" END,
    GET "Host: biga.kube-system.svc:443" END,
    GET "Host: x\r\nA:\r\nB: \r\nC: \t\r\nD: \tb\tc d \x80\xff" END,
    GET "Host: x\r\n!#$%&'*+-.^_`|~09azAZ: b" END,
    "\r\n" GET "Host: x" END,
    "GET /?a=b&c=d+e&f HTTP/1.1\r\nHost: x" END,
    "GET / HTTP/1.0\r\n\r\n",
    POST "Content-Length: 3" END "abc",
    POST "Content-Length: 003" END "abc",
    CHUNKED "3\r\nabc\r\n0" END,
};

/* --- plain and by TLS ----------------------------------------------------- */

/* A client of either kind. */
struct client {
    int fd;
    struct tls_client tls; /* when it has a session */
    struct raw_reply reply;
};

static struct httpd *plain;
static struct h2_server *secure;
static atomic_uint n_handled;

static void on_any(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    (void)rq;
    atomic_fetch_add(&n_handled, 1);
}

static const struct httpd_route routes[] = {
    {HTTPD_GET | HTTPD_POST, "/", on_any, 100, "root"},
    {HTTPD_GET, "/header", on_any, 0, "header"},
};

static struct httpd *plain_start(void)
{
    const struct httpd_config config = {.name = "test",
                                        .listen = "127.0.0.1:0",
                                        .routes = routes,
                                        .n_routes = ARRAY_LEN(routes)};
    struct httpd *h = NULL;
    struct error err = {0};
    cr_assert_eq(httpd_start(&config, &h, &err), 0, "%s", err.text);
    return h;
}

static void client_open(struct client *c)
{
    memset(c, 0, sizeof *c);
    if (plain) {
        c->fd = raw_connect(httpd_port(plain));
        return;
    }
    struct tls_client_config how = h2_server_me(secure);
    how.alpn = "http/1.1";
    cr_assert(tls_client_open(&c->tls, &how));
}

static void client_send(struct client *c, const struct str *bytes)
{
    cr_assert(plain ? raw_send_n(c->fd, bytes->data, bytes->size)
                    : tls_client_send(&c->tls, bytes->data, bytes->size));
}

/* The status, 0: the server closed. */
static int client_read(struct client *c)
{
    return plain ? raw_read(c->fd, false, &c->reply) : tls_client_read(&c->tls);
}

static const char *client_body(const struct client *c)
{
    return str_text(plain ? &c->reply.body : &c->tls.body);
}

static void client_close(struct client *c)
{
    if (plain)
        (void)close(c->fd);
    tls_client_close(&c->tls);
    raw_reply_fini(&c->reply);
}

/* --- the table ------------------------------------------------------------ */

/* After `before` whole requests on the same connection, in the same packet. */
static void try_bad(size_t i, unsigned before)
{
    struct client c;
    cleanup_str struct str bytes = STR_INIT(1 << 16);
    for (unsigned n = 0; n < before; n++)
        str_add(&bytes, POST "Content-Length: 3" END "abc");
    str_add_n(&bytes, bad[i].bytes, bad[i].size);
    str_add(&bytes, next);
    client_open(&c);
    client_send(&c, &bytes);
    for (unsigned n = 0; n < before; n++)
        cr_expect_eq(client_read(&c), 200, "case %zu", i);
    int status = client_read(&c);
    cr_expect(status == 400 || (!bad[i].why && (status == 413 || status == 0)),
              "case %zu: %d", i, status);
    if (bad[i].why)
        cr_expect(strstr(client_body(&c), bad[i].why), "case %zu: %s: %s", i,
                  bad[i].bytes, client_body(&c));
    if (status)
        cr_expect_eq(client_read(&c), 0, "case %zu: goes on", i);
    client_close(&c);
}

static void try_good(size_t i)
{
    struct client c;
    cleanup_str struct str bytes = STR_INIT(1 << 16);
    for (int n = 0; n < 2; n++)
        str_add(&bytes, good[i]);
    client_open(&c);
    client_send(&c, &bytes);
    cr_expect_eq(client_read(&c), 200, "case %zu: %s", i, client_body(&c));
    client_close(&c);
}

static void try_all(void)
{
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        for (unsigned before = 0; before < 3; before++)
            try_bad(i, before);
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        try_good(i);
}

Test(httpd_head, plain)
{
    plain = plain_start();
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        try_bad(i, 0);
    cr_expect_eq(atomic_load(&n_handled), 0);
    try_all();
    httpd_stop(plain);
}

Test(httpd_head, tls)
{
    secure = h2_server_create(0, 0);
    try_all();
    h2_server_destroy(secure);
}

/* --- what follows chunks -------------------------------------------------- */

/* MHD reads these as a whole body; others may see its end elsewhere. */
Test(httpd_head, nothing_follows_chunks)
{
    static const char *const bodies[] = {
        "3\r\nabc\r\n0\r\n\r\n",
        "3\nabc\n0\n\n",
        "3;a=b\r\nabc\r\n0\r\n\r\n",
        "3;a=\nabc\r\n0\r\n\r\n",
        "3\r\nabc\r\n0\r\nA: b\r\n\r\n",
        "3\r\nabc\r\n0\r\nA: b\r\n c\r\n\r\n",
        "3\r\nabc\r\n0\r\nContent-Length: 9\r\n\r\n",
        "003\r\nabc\r\n00\r\n\n",
    };
    plain = plain_start();
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        struct client c;
        cleanup_str struct str bytes = STR_INIT(1 << 10);
        str_addf(&bytes, "%s%s%s", CHUNKED, bodies[i], next);
        client_open(&c);
        client_send(&c, &bytes);
        cr_expect_eq(client_read(&c), 200, "case %zu", i);
        cr_expect_eq(client_read(&c), 0, "case %zu", i);
        client_close(&c);
    }
    cr_expect_eq(atomic_load(&n_handled), ARRAY_LEN(bodies));
    httpd_stop(plain);
}

/* A head that fills more than one read, and MHD's first buffer. */
Test(httpd_head, reads_large_and_torn_heads)
{
    struct client c;
    cleanup_str struct str bytes = STR_INIT(1 << 16);
    plain = plain_start();
    str_add(&bytes, GET "Host: x\r\n");
    for (int i = 0; i < 20; i++)
        str_addf(&bytes, "X-%d: %02000d\r\n", i, i);
    str_add(&bytes, "\r\n");
    client_open(&c);
    for (int n = 0; n < 3; n++) {
        client_send(&c, &bytes);
        cr_expect_eq(client_read(&c), 200);
    }
    for (const char *p = good[7]; *p; p++) {
        struct str byte = {.data = (char *)p, .size = 1};
        client_send(&c, &byte);
    }
    cr_expect_eq(client_read(&c), 200);
    client_close(&c);
    httpd_stop(plain);
}
