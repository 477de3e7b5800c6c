#include "lib/http/httpd_upgrade.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "tests/lib/http/h2rig.h"
#include "tests/lib/http/rawclient.h"

enum { UPGRADES_MAX = 64, MUCH = 4 << 20 };

#define ASK                                                        \
    "GET /upgrade HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, " \
    "Upgrade\r\nUpgrade: biga-test\r\n"

/* --- a server that hands connections over --------------------------------- */

struct rig {
    struct h2_server *certs;
    struct httpd *httpd;
    bool tls;
    struct httpd_upgraded *_Atomic upgraded[UPGRADES_MAX];
    atomic_uint n, n_101;
};

static void on_upgrade(struct httpd_request *rq, void *ctx)
{
    struct rig *rig = ctx;
    httpd_set_header(rq, "X-Chosen", "v5");
    struct httpd_upgraded *u = httpd_upgrade(rq, "biga-test");
    if (!u)
        return;
    unsigned n = atomic_load(&rig->n);
    atomic_store(&rig->upgraded[n], u);
    atomic_store(&rig->n, n + 1);
}

static void on_short(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    str_add(httpd_reply(rq), "{}");
}

static const struct httpd_route routes[] = {
    {HTTPD_GET, "/upgrade", on_upgrade, 0, "upgrade"},
    {HTTPD_GET, "/short", on_short, 0, "short"},
};

static void on_observe(void *ctx, const struct httpd_observation *o)
{
    struct rig *rig = ctx;
    if (o->status == 101)
        atomic_fetch_add(&rig->n_101, 1);
}

static void rig_begin(struct rig *rig, bool tls, struct httpd_config config)
{
    struct error err;
    *rig = (struct rig){.tls = tls, .certs = h2_server_create(0, 0)};
    config.name = "test";
    config.listen = "127.0.0.1:0";
    config.routes = routes;
    config.n_routes = ARRAY_LEN(routes);
    config.ctx = rig;
    config.observe = on_observe;
    config.tls = tls ? rig->certs->tls : NULL;
    config.http2 = tls;
    cr_assert_eq(httpd_start(&config, &rig->httpd, &err), 0, "%s", err.text);
}

static void rig_end(struct rig *rig)
{
    httpd_stop(rig->httpd);
    h2_server_destroy(rig->certs);
}

static const struct httpd_config patient = {.request_ms = 600000,
                                            .reply_ms = 600000};

static struct httpd_upgraded *await_upgrade(struct rig *rig, unsigned n)
{
    while (atomic_load(&rig->n) < n)
        (void)poll(NULL, 0, 1);
    return atomic_load(&rig->upgraded[n - 1]);
}

/* Wait for what may be read or written. */
static void owner_wait(struct stream_conn *c, short events)
{
    struct pollfd p = {.fd = c->fd, .events = (short)(events | POLLRDHUP)};
    cr_assert_geq(poll(&p, 1, -1), 0);
    uint32_t happened = (p.revents & POLLIN ? EPOLLIN : 0) |
                        (p.revents & POLLOUT ? EPOLLOUT : 0) |
                        (p.revents & POLLRDHUP ? EPOLLRDHUP : 0) |
                        (p.revents & (POLLHUP | POLLERR) ? EPOLLHUP : 0);
    stream_conn_happened(c, happened);
}

/* At most `size`, as they come; 0 or -errno at the end. */
static ssize_t owner_read(struct httpd_upgraded *u, char *data, size_t size)
{
    struct stream_conn *c = httpd_upgraded_conn(u);
    ssize_t n;
    while ((n = stream_conn_read(c, data, size)) == -EAGAIN)
        owner_wait(c, POLLIN);
    return n;
}

static bool owner_write(struct httpd_upgraded *u, const char *data, size_t size)
{
    struct stream_conn *c = httpd_upgraded_conn(u);
    while (size > 0) {
        ssize_t n = stream_conn_write(c, data, size);
        if (n == -EAGAIN) {
            owner_wait(c, POLLOUT);
            continue;
        }
        if (n < 0)
            return false;
        data += n;
        size -= (size_t)n;
    }
    return true;
}

static void *echo_run(void *arg)
{
    struct httpd_upgraded *u = arg;
    cleanup_free char *buffer = xmalloc(64 << 10);
    ssize_t n;
    while ((n = owner_read(u, buffer, 64 << 10)) > 0)
        if (!owner_write(u, buffer, (size_t)n))
            break;
    httpd_upgraded_close(u);
    return NULL;
}

/* --- a client ------------------------------------------------------------- */

struct client {
    struct tls_client tls; /* or else */
    int fd;
};

static struct client client_open(const struct rig *rig)
{
    struct client c = {.fd = -1};
    struct tls_client_config how = h2_server_me(rig->certs);
    how.port = httpd_port(rig->httpd);
    how.alpn = NULL;
    if (rig->tls) {
        cr_assert(tls_client_open(&c.tls, &how));
        c.fd = c.tls.fd;
    } else {
        c.fd = raw_connect(how.port);
    }
    return c;
}

static void client_close(struct client *c)
{
    if (c->tls.session)
        tls_client_close(&c->tls);
    else
        (void)close(c->fd);
}

static bool client_send(struct client *c, const char *data, size_t size)
{
    return c->tls.session ? tls_client_send(&c->tls, data, size)
                          : raw_send_n(c->fd, data, size);
}

static bool client_take(struct client *c, char *data, size_t size)
{
    if (c->tls.session)
        return tls_client_take(&c->tls, data, size);
    while (size > 0) {
        ssize_t n = read(c->fd, data, size);
        if (n <= 0)
            return false;
        data += n;
        size -= (size_t)n;
    }
    return true;
}

/* Byte by byte: what follows the head is left. */
static void client_head(struct client *c, char head[1024])
{
    size_t n = 0;
    for (head[0] = '\0'; !strstr(head, "\r\n\r\n"); head[++n] = '\0')
        cr_assert(n < 1023 && client_take(c, &head[n], 1), "after: %s", head);
}

static struct client upgraded_client(struct rig *rig, char head[1024])
{
    struct client c = client_open(rig);
    cr_assert(client_send(&c, ASK "\r\n", strlen(ASK "\r\n")));
    client_head(&c, head);
    return c;
}

/* --- what it carries ------------------------------------------------------ */

TestSuite(httpd_upgrade, .timeout = 300);

static void carries(bool tls)
{
    struct rig rig;
    char head[1024], text[5];
    pthread_t owner;
    rig_begin(&rig, tls, patient);
    struct client c = upgraded_client(&rig, head);
    cr_expect(strstr(head, "HTTP/1.1 101 Switching Protocols\r\n"), "%s", head);
    cr_expect(strstr(head, "\r\nUpgrade: biga-test\r\n"), "%s", head);
    cr_expect(strstr(head, "\r\nConnection: Upgrade\r\n"), "%s", head);
    cr_expect(strstr(head, "\r\nX-Chosen: v5\r\n"), "%s", head);
    struct httpd_upgraded *u = await_upgrade(&rig, 1);
    cr_expect(owner_write(u, "hello", 5), "we may be the first to speak");
    cr_expect(client_take(&c, text, 5));
    cr_expect_eq(memcmp(text, "hello", 5), 0);
    cr_assert_eq(pthread_create(&owner, NULL, echo_run, u), 0);
    for (int i = 0; i < 20; i++) {
        cr_assert(client_send(&c, "1234\n", 5));
        cr_assert(client_take(&c, text, 5));
        cr_expect_eq(memcmp(text, "1234\n", 5), 0);
    }
    client_close(&c);
    cr_assert_eq(pthread_join(owner, NULL), 0, "it has seen the end");
    while (atomic_load(&rig.n_101) == 0)
        (void)poll(NULL, 0, 1);
    rig_end(&rig);
}

Test(httpd_upgrade, carries_plain)
{
    carries(false);
}

Test(httpd_upgrade, carries_tls)
{
    carries(true);
}

struct sending {
    struct client *c;
    const char *data;
};

static void *send_run(void *arg)
{
    const struct sending *s = arg;
    cr_expect(client_send(s->c, s->data, MUCH));
    return NULL;
}

/* Both ways at once, and the client does not read before it has sent more than
 * sockets hold; others are served meanwhile. */
static void carries_much(bool tls)
{
    struct rig rig;
    char head[1024];
    pthread_t owner, sender;
    cleanup_free char *data = xmalloc(MUCH), *back = xcalloc(1, MUCH);
    struct raw_reply reply = {0};
    for (size_t i = 0; i < MUCH; i++)
        data[i] = (char)(i * 31 + i / 4096);
    rig_begin(&rig, tls, patient);
    struct client c = upgraded_client(&rig, head);
    struct httpd_upgraded *u = await_upgrade(&rig, 1);
    cr_assert_eq(pthread_create(&owner, NULL, echo_run, u), 0);
    struct sending s = {&c, data};
    cr_assert_eq(pthread_create(&sender, NULL, send_run, &s), 0);
    if (!tls)
        cr_expect_eq(
            raw_call(httpd_port(rig.httpd), "GET", "/short", "", NULL, &reply),
            200);
    cr_expect(client_take(&c, back, MUCH));
    cr_expect_eq(memcmp(data, back, MUCH), 0);
    cr_assert_eq(pthread_join(sender, NULL), 0);
    client_close(&c);
    cr_assert_eq(pthread_join(owner, NULL), 0);
    raw_reply_fini(&reply);
    rig_end(&rig);
}

Test(httpd_upgrade, carries_much_plain)
{
    carries_much(false);
}

Test(httpd_upgrade, carries_much_tls)
{
    carries_much(true);
}

/* --- ends ----------------------------------------------------------------- */

static void *stop_run(void *arg)
{
    struct rig *rig = arg;
    httpd_stop(rig->httpd);
    return NULL;
}

static void ends(bool tls)
{
    const struct httpd_config soon = {
        .request_ms = 600000, .reply_ms = 20, .idle_ms = 20};
    struct rig rig;
    char head[1024], byte;
    pthread_t stopper;
    rig_begin(&rig, tls, soon);
    struct client c = upgraded_client(&rig, head);
    httpd_upgraded_close(await_upgrade(&rig, 1));
    cr_expect_not(client_take(&c, &byte, 1), "closed by the owner");
    client_close(&c);
    struct client idle = client_open(&rig); /* without a request */
    c = upgraded_client(&rig, head);
    struct httpd_upgraded *u = await_upgrade(&rig, 2);
    cr_expect(raw_closed_within(idle.fd, RAW_PATIENCE_MS));
    client_close(&idle);
    cr_expect(owner_write(u, "x", 1), "no deadline has ended this one");
    cr_expect(client_take(&c, &byte, 1));
    cr_assert_eq(pthread_create(&stopper, NULL, stop_run, &rig), 0);
    cr_expect_leq(owner_read(u, &byte, 1), 0, "the server stops");
    httpd_upgraded_close(u);
    cr_assert_eq(pthread_join(stopper, NULL), 0);
    cr_expect_not(client_take(&c, &byte, 1));
    client_close(&c);
    rig.httpd = NULL;
    rig_end(&rig);
}

Test(httpd_upgrade, ends_plain)
{
    ends(false);
}

Test(httpd_upgrade, ends_tls)
{
    ends(true);
}

/* Clients that hang up at once, or after the head. */
static void survives_who_goes(bool tls)
{
    enum { N = 20 };
    struct rig rig;
    char head[1024], byte;
    rig_begin(&rig, tls, patient);
    for (unsigned i = 0; i < N; i++) {
        struct client c = client_open(&rig);
        cr_assert(client_send(&c, ASK "\r\n", strlen(ASK "\r\n")));
        if (i % 2 == 0)
            client_head(&c, head);
        client_close(&c);
    }
    for (unsigned i = 0; i < N; i++) {
        struct httpd_upgraded *u = await_upgrade(&rig, i + 1);
        cr_expect_leq(owner_read(u, &byte, 1), 0);
        httpd_upgraded_close(u);
    }
    while (httpd_held(rig.httpd).n_requests > 0)
        (void)poll(NULL, 0, 1);
    rig_end(&rig);
}

Test(httpd_upgrade, survives_who_goes_plain)
{
    survives_who_goes(false);
}

Test(httpd_upgrade, survives_who_goes_tls)
{
    survives_who_goes(true);
}

/* --- refusals ------------------------------------------------------------- */

Test(httpd_upgrade, refuses)
{
    static const struct {
        const char *headers;
        int status;
        const char *text;
    } cases[] = {
        {"", 426, "\\\"Upgrade: biga-test\\\""},
        {"Connection: Upgrade\r\n", 426, "Upgrade"},
        {"Upgrade: biga-test\r\n", 426, "Connection: Upgrade"},
        {"Connection: Upgrade\r\nUpgrade: biga-test2\r\n", 426, "biga-test"},
        {"Connection: Upgraded\r\nUpgrade: biga-test\r\n", 426, "biga-test"},
        {"Connection: upgrade\r\nUpgrade: x, BIGA-test\r\nOrigin: http://x\r\n",
         403, "pages of http://x"},
    };
    struct httpd_config one = patient;
    struct rig rig;
    struct raw_reply reply = {0};
    char value[64], head[1024];
    one.streams_max = 1;
    rig_begin(&rig, false, one);
    uint16_t port = httpd_port(rig.httpd);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cr_expect_eq(
            raw_call(port, "GET", "/upgrade", cases[i].headers, NULL, &reply),
            cases[i].status, "%zu", i);
        cr_expect(strstr(str_text(&reply.body), cases[i].text), "%zu: %s", i,
                  str_text(&reply.body));
        if (cases[i].status == 426)
            cr_expect_str_eq(raw_header(&reply, "Upgrade", value, sizeof value),
                             "biga-test");
    }
    struct client c = upgraded_client(&rig, head), more = client_open(&rig);
    cr_assert(client_send(&more, ASK "\r\n", strlen(ASK "\r\n")));
    cr_expect_eq(raw_read(more.fd, false, &reply), 503);
    cr_expect(strstr(reply.body.data, "1 streams are open already"));
    httpd_upgraded_close(await_upgrade(&rig, 1));
    cr_assert(client_send(&more, ASK "\r\n", strlen(ASK "\r\n")));
    client_head(&more, head);
    cr_expect(strstr(head, " 101 "), "there is place again: %s", head);
    httpd_upgraded_close(await_upgrade(&rig, 2));
    client_close(&c);
    client_close(&more);
    raw_reply_fini(&reply);
    rig_end(&rig);
}

Test(httpd_upgrade, is_not_for_http2)
{
    struct rig rig;
    struct h2_client c;
    rig_begin(&rig, true, patient);
    struct tls_client_config how = h2_server_me(rig.certs);
    how.port = httpd_port(rig.httpd);
    cr_assert(h2_client_open(&c, &how, true));
    cr_assert(h2_client_get(&c, 1, "/upgrade"));
    cr_assert(h2_client_read_to(&c, NGHTTP2_DATA, 1));
    cr_expect_eq(c.status, 505);
    cr_expect(strstr(c.payload.data, "needs HTTP/1.1"), "%s", c.payload.data);
    h2_client_close(&c);
    rig_end(&rig);
}
