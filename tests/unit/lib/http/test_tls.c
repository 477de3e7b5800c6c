#include "lib/http/tls.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/http/httpd.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/await.h"
#include "tests/lib/http/certs.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/http/tlsclient.h"
#include "tests/lib/tmpdir.h"
#include "tests/lib/virtual.h"

enum {
    REQUEST_MS = 2000, /* while time is virtual */
    HANGS_MS = 600000, /* else: a slow machine is no slow client */
    BODY_MAX = 4 << 20,
};

/* --- a place with files, and a server on it ----------------------------- */

struct place {
    char *dir;
    char *cert, *key, *ca; /* of the server */
    char *my_cert, *my_key;
    struct cert *authority;
    struct tls *tls;
    struct httpd *httpd;
    atomic_uint refused; /* observations with a refusal */
    const char *refusal; /* the last one */
    atomic_uint n_large; /* large replies that were begun with */
};

static void on_who(struct httpd_request *rq, void *ctx)
{
    const struct tls_peer *peer = httpd_peer(rq);
    size_t size;
    (void)httpd_body(rq, &size);
    (void)ctx;
    str_addf(httpd_reply(rq), "%s %zu", peer ? peer->common_name : "-", size);
}

static void on_large(struct httpd_request *rq, void *ctx)
{
    struct place *p = ctx;
    atomic_fetch_add(&p->n_large, 1);
    for (int i = 0; i < 1 << 16; i++)
        str_add(httpd_reply(rq), "0123456789abcdef0123456789abcdef");
}

static void *resume_soon(void *arg)
{
    (void)usleep(20000);
    httpd_resume(arg);
    return NULL;
}

static void after_wait(struct httpd_request *rq, void *arg)
{
    (void)arg;
    str_add(httpd_reply(rq), "waited");
}

static void on_wait(struct httpd_request *rq, void *ctx)
{
    pthread_t thread;
    (void)ctx;
    httpd_then(rq, after_wait, NULL);
    httpd_suspend(rq);
    cr_assert_eq(pthread_create(&thread, NULL, resume_soon, rq), 0);
    (void)pthread_detach(thread);
}

static void on_observe(void *ctx, const struct httpd_observation *o)
{
    struct place *p = ctx;
    if (!o->refusal)
        return;
    p->refusal = o->refusal;
    atomic_fetch_add(&p->refused, 1);
}

static const struct httpd_route routes[] = {
    {HTTPD_GET | HTTPD_POST, "/", on_who, BODY_MAX, "who"},
    {HTTPD_GET, "/large", on_large, 0, "large"},
    {HTTPD_GET, "/wait", on_wait, 0, "wait"},
};

static const struct cert_spec server_spec = {
    .name = "server", .purposes = CERT_SERVER, .local = true};

static void serve(struct place *p, unsigned connections_max, bool anonymous)
{
    struct error err = {0};
    const struct tls_config config = {p->cert, p->key, p->ca};
    const unsigned limit = virtual_is_on() ? REQUEST_MS : HANGS_MS;
    cr_assert_eq(tls_create(&config, &p->tls, &err), 0, "%s", err.text);
    const struct httpd_config http = {
        .name = "test",
        .listen = "127.0.0.1:0",
        .routes = routes,
        .n_routes = ARRAY_LEN(routes),
        .ctx = p,
        .connections_max = connections_max,
        .request_ms = limit,
        .reply_ms = limit,
        .tls = p->tls,
        .anonymous = anonymous,
        .observe = on_observe,
    };
    cr_assert_eq(httpd_start(&http, &p->httpd, &err), 0, "%s", err.text);
}

/* Files, and a certificate of "me" for the client. */
static void place_files(struct place *p)
{
    const struct cert_spec me = {.name = "me", .purposes = CERT_CLIENT};
    log_set_level(LOG_ERROR);
    p->dir = tmpdir_create();
    p->cert = xasprintf("%s/server.crt", p->dir);
    p->key = xasprintf("%s/server.key", p->dir);
    p->ca = xasprintf("%s/ca.crt", p->dir);
    p->my_cert = xasprintf("%s/me.crt", p->dir);
    p->my_key = xasprintf("%s/me.key", p->dir);
    p->authority = cert_authority("authority");
    cert_write(p->authority, p->ca);
    cert_issue(p->authority, &server_spec, p->cert, p->key);
    cert_issue(p->authority, &me, p->my_cert, p->my_key);
}

static struct place *place_create(void)
{
    struct place *p = xcalloc(1, sizeof *p);
    place_files(p);
    serve(p, 0, false);
    return p;
}

static void place_destroy(struct place *p)
{
    httpd_stop(p->httpd);
    tls_destroy(p->tls);
    cert_destroy(p->authority);
    free(p->cert);
    free(p->key);
    free(p->ca);
    free(p->my_cert);
    free(p->my_key);
    tmpdir_remove(p->dir);
    free(p);
}

/* How the client "me" connects. */
static struct tls_client_config me(const struct place *p)
{
    return (struct tls_client_config){.port = httpd_port(p->httpd),
                                      .ca_file = p->ca,
                                      .cert_file = p->my_cert,
                                      .key_file = p->my_key};
}

/* --- who is let in ------------------------------------------------------ */

/* A reply is observed once it is sent, so it may have been read before. */
static void expect_refused(struct place *p, unsigned n)
{
    AWAIT(atomic_load(&p->refused) >= n);
    cr_expect_eq(atomic_load(&p->refused), n);
}

static const struct {
    struct cert_spec spec;
    bool foreign;
    int status;
    const char *refusal, *text;
} clients[] = {
    {{.name = "a", .purposes = CERT_CLIENT}, false, 200, NULL, "a 0"},
    {{.name = "b"}, false, 200, NULL, "b 0"},
    {{.name = "c", .purposes = CERT_CLIENT | CERT_SERVER},
     false,
     200,
     NULL,
     "c 0"},
    {{.dns = {"d"}, .purposes = CERT_CLIENT}, false, 200, NULL, " 0"},
    {{.name = "e", .purposes = CERT_CLIENT},
     true,
     403,
     "foreign",
     "of no authority"},
    {{.name = "f", .purposes = CERT_CLIENT, .until_s = -2},
     false,
     403,
     "expired",
     "has expired"},
    {{.name = "g", .purposes = CERT_CLIENT, .from_s = 600},
     false,
     403,
     "not-yet-valid",
     "not valid yet"},
    {{.name = "h", .purposes = CERT_SERVER},
     false,
     403,
     "purpose",
     "not meant for clients"},
    {{.name = "i", .second_name = "j"},
     false,
     403,
     "unreadable",
     "two common names"},
    {{.name = "\n"}, false, 403, "unreadable", "printable"},
};

Test(tls, judges_clients)
{
    struct place *p = place_create();
    struct cert *foreign = cert_authority("authority"); /* the same name */
    struct tls_client_config how = me(p);
    cleanup_str struct str body = STR_INIT(4096);
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        cert_issue(clients[i].foreign ? foreign : p->authority,
                   &clients[i].spec, p->my_cert, p->my_key);
        unsigned refused = atomic_load(&p->refused);
        for (int version = 0; version < 2; version++) {
            how.priorities = version ? "NORMAL:-VERS-ALL:+VERS-TLS1.2" : NULL;
            cr_expect_eq(tls_client_once(&how, "/", &body), clients[i].status,
                         "%zu: %s", i, str_text(&body));
            cr_expect(strstr(str_text(&body), clients[i].text), "%zu: %s", i,
                      str_text(&body));
        }
        expect_refused(p, refused + (clients[i].refusal ? 2 : 0));
        if (clients[i].refusal)
            cr_expect_str_eq(p->refusal, clients[i].refusal, "%zu", i);
    }
    how.cert_file = NULL;
    cr_expect_eq(tls_client_once(&how, "/", &body), 403);
    cr_expect_eq(tls_client_once(&how, "/nothing", &body), 403, "every route");
    cr_expect(strstr(body.data, "certificate is needed"), "%s", body.data);
    cert_destroy(foreign);
    place_destroy(p);
}

Test(tls, refuses_old_versions_and_weak_ciphers)
{
    struct place *p = place_create();
    static const char *const refused[] = {
        "NORMAL:-VERS-ALL:+VERS-TLS1.1:+VERS-TLS1.0",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+AES-128-CBC",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+RSA",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:-SIGN-ALL:+SIGN-ECDSA-SHA1",
    };
    struct tls_client_config how = me(p);
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        how.priorities = refused[i];
        cr_expect_eq(tls_client_once(&how, "/", NULL), -1, "%s", refused[i]);
    }
    how.priorities = NULL;
    cr_expect_eq(tls_client_once(&how, "/", NULL), 200);
    int fd = raw_connect(how.port);
    cr_assert(raw_send(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    cr_expect(raw_closed_within(fd, RAW_PATIENCE_MS), "no TLS at all");
    (void)close(fd);
    httpd_stop(steal(&p->httpd)); /* all are closed: so they are counted */
    cr_expect_eq(atomic_load(&p->refused), 5);
    cr_expect_str_eq(p->refusal, "handshake");
    place_destroy(p);
}

Test(tls, asks_nobody_on_an_anonymous_listener)
{
    struct place *p = xcalloc(1, sizeof *p);
    cleanup_str struct str body = STR_INIT(4096);
    place_files(p);
    serve(p, 0, true);
    struct tls_client_config how = me(p);
    cr_expect_eq(tls_client_once(&how, "/", &body), 200);
    cr_expect_str_eq(body.data, "- 0", "what nobody asked for proves nothing");
    how.cert_file = NULL;
    cr_expect_eq(tls_client_once(&how, "/", &body), 200);
    place_destroy(p);
}

Test(tls, carries_whatever_http_does)
{
    struct place *p = place_create();
    struct tls_client c;
    const struct tls_client_config how = me(p);
    cleanup_free char *body = xmalloc(3 << 20);
    memset(body, 'x', 3 << 20);
    body[(3 << 20) - 1] = '\0';
    cr_assert(tls_client_open(&c, &how));
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(tls_client_call(&c, "POST", "/", "", body), 200);
        cr_expect_str_eq(c.body.data, "me 3145727");
        cr_expect_eq(tls_client_call(&c, "GET", "/wait", "", NULL), 200);
        cr_expect_str_eq(c.body.data, "waited");
        cr_expect_eq(tls_client_call(&c, "GET", "/large", "", NULL), 200);
        cr_expect_eq(c.body.size, 1 << 21);
    }
    /* several in one record */
    static const char many[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
                               "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"
                               "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    cr_assert(tls_client_send(&c, many, sizeof many - 1));
    for (int i = 0; i < 3; i++)
        cr_expect_eq(tls_client_read(&c), 200, "%d", i);
    tls_client_close(&c);
    place_destroy(p);
}

/* --- clients that take their time --------------------------------------- */

static int64_t processor_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* While a handshake waits for its client, so does its thread. */
Test(tls, unfinished_handshakes_cost_nothing)
{
    static const unsigned char half_a_hello[] = {0x16, 3, 1, 0,   0xfa,
                                                 1,    0, 0, 0xf6};
    struct place *p = place_create();
    int fd = raw_connect(httpd_port(p->httpd));
    cr_assert(raw_send_n(fd, half_a_hello, sizeof half_a_hello));
    (void)usleep(50000);
    int64_t before = processor_us();
    (void)usleep(400000);
    cr_expect_lt(processor_us() - before, 200000);
    (void)close(fd);
    place_destroy(p);
}

/* Each time the one that cuts connections off has looked. */
static void pass_time(int64_t ms)
{
    for (int64_t end = clock_ms() + ms; clock_ms() < end;)
        virtual_step(1, REQUEST_MS / 10);
}

static void pass_until_ended(int fd)
{
    struct pollfd end = {.fd = fd, .events = POLLRDHUP};
    while (poll(&end, 1, 1) == 0)
        pass_time(REQUEST_MS / 10);
}

Test(tls, cuts_handshakes_that_do_not_end)
{
    virtual_begin();
    struct place *p = place_create();
    /* the head of a record of 256 bytes that never come */
    static const char hello[] = {0x16, 3, 1, 1, 0, 1, 0, 0};
    int64_t begun = clock_ms();
    int silent = raw_connect(httpd_port(p->httpd));
    int half = raw_connect(httpd_port(p->httpd));
    cr_assert(raw_send_n(half, hello, sizeof hello));
    pass_until_ended(silent);
    pass_until_ended(half);
    cr_expect(raw_closed_within(silent, RAW_PATIENCE_MS));
    cr_expect(raw_closed_within(half, RAW_PATIENCE_MS));
    cr_expect_geq(clock_ms() - begun, REQUEST_MS);
    (void)close(silent);
    (void)close(half);
    place_destroy(p);
    virtual_end();
}

/* When the one thread of the server has served somebody else, it is done with
 * all that came before, and with its replies. */
static void serve_another(const struct tls_client_config *how)
{
    cr_assert_eq(tls_client_once(how, "/", NULL), 200);
}

/* Until it waits for a client that does not read: it has served others, and has
 * begun with no further request. */
static void until_stuck(struct place *p, const struct tls_client_config *how)
{
    unsigned before;
    do {
        before = atomic_load(&p->n_large);
        serve_another(how);
    } while (atomic_load(&p->n_large) != before);
}

Test(tls, cuts_clients_that_do_not_read)
{
    virtual_begin();
    enum { REPLIES = 64 }; /* of 2 MiB: more than any socket holds */
    struct place *p = place_create();
    struct tls_client c;
    const struct tls_client_config how = me(p);
    int taken = 0;
    cr_assert(tls_client_open(&c, &how));
    for (int i = 0; i < REPLIES; i++)
        cr_assert(tls_client_send(&c,
                                  "GET /large HTTP/1.1\r\n"
                                  "Host: x\r\n\r\n",
                                  32));
    /* it takes one now and then; a reply that waits may be any of them */
    while (taken < REPLIES && tls_client_read(&c) == 200) {
        taken++;
        until_stuck(p, &how);
        pass_time(3 * REQUEST_MS);
    }
    cr_expect_lt(taken, REPLIES);
    tls_client_close(&c);
    place_destroy(p);
    virtual_end();
}

/* What came before the server has looked may be the end of the handshake, so
 * more of the request comes now and then. */
Test(tls, keeps_idle_connections_and_cuts_slow_requests)
{
    virtual_begin();
    struct place *p = place_create();
    struct tls_client idle, slow;
    const struct tls_client_config how = me(p);
    cr_assert(tls_client_open(&idle, &how));
    cr_assert(tls_client_open(&slow, &how));
    cr_assert(tls_client_send(&slow, "GET / HT", 8));
    serve_another(&how);
    struct pollfd end = {.fd = slow.fd, .events = POLLRDHUP};
    int64_t begun = clock_ms();
    do
        pass_time(REQUEST_MS / 10);
    while (poll(&end, 1, 1) == 0 && tls_client_send(&slow, "T", 1));
    cr_expect_eq(tls_client_read(&slow), 0);
    cr_expect(slow.ended, "cut off");
    cr_expect_gt(clock_ms() - begun, REQUEST_MS);
    for (int i = 0; i < 2; i++) {
        pass_time(2 * REQUEST_MS);
        cr_expect_eq(tls_client_call(&idle, "GET", "/", "", NULL), 200);
        serve_another(&how);
    }
    tls_client_close(&idle);
    tls_client_close(&slow);
    place_destroy(p);
    virtual_end();
}

/* Those who have shown nothing are closed before those who are known. */
Test(tls, crowd_without_certificates_does_not_push_out_others)
{
    enum { MAX = 8 };
    struct place *p = xcalloc(1, sizeof *p);
    struct tls_client known, crowd[3 * MAX];
    place_files(p);
    serve(p, MAX, false);
    struct tls_client_config how = me(p);
    cr_assert(tls_client_open(&known, &how));
    cr_assert_eq(tls_client_call(&known, "GET", "/", "", NULL), 200);
    how.cert_file = NULL;
    for (size_t i = 0; i < ARRAY_LEN(crowd); i++)
        cr_assert(tls_client_open(&crowd[i], &how), "%zu", i);
    cr_expect_eq(tls_client_call(&known, "GET", "/", "", NULL), 200);
    for (size_t i = 0; i < ARRAY_LEN(crowd); i++)
        tls_client_close(&crowd[i]);
    tls_client_close(&known);
    place_destroy(p);
}
