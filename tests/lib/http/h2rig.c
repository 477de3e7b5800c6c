#include "tests/lib/http/h2rig.h"
#include "tests/lib/await.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <poll.h>
#include <sys/epoll.h>

#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/tmpdir.h"
#include "tests/lib/virtual.h"

enum {
    LOOP_EVENTS = 64, /* as httpd_h2.c asks for, and no library does */
    TURN_MS = 5,      /* of real time: at most how long a turn is */
    IDLE_TURNS = 5,   /* without anything to do */
    PASS_MS = 100,
    HANGS_MS = 600000,
};

/* --- virtual time --------------------------------------------------------- */

static atomic_uint n_turns, n_idle; /* n_idle: in a row, the last ones */
static atomic_bool asleep;          /* there is no connection */

/* The loop of HTTP/2 waits with a time-out while it has connections; it would
 * not see that virtual time went on. */
int epoll_wait(int fd, struct epoll_event *events, int max, int ms)
{
    static void *_Atomic found; /* servers share it */
    int (*real)(int, struct epoll_event *, int, int);
    if (!atomic_load(&found))
        atomic_store(&found, dlsym(RTLD_NEXT, "epoll_wait"));
    *(void **)&real = atomic_load(&found);
    if (!virtual_is_on() || max != LOOP_EVENTS)
        return real(fd, events, max, ms);
    atomic_store(&asleep, ms < 0);
    int n = real(fd, events, max, ms < TURN_MS ? ms : TURN_MS);
    atomic_store(&asleep, false);
    atomic_store(&n_idle, n == 0 ? atomic_load(&n_idle) + 1 : 0);
    atomic_fetch_add(&n_turns, 1);
    return n;
}

static void turns(unsigned n)
{
    for (unsigned from = atomic_load(&n_turns);
         atomic_load(&n_turns) - from < n && !atomic_load(&asleep);)
        (void)poll(NULL, 0, 1);
}

void h2_server_idle(void)
{
    do
        turns(IDLE_TURNS);
    while (atomic_load(&n_idle) < IDLE_TURNS && !atomic_load(&asleep));
}

void h2_server_pass(int64_t ms)
{
    for (int64_t end = clock_ms() + ms; clock_ms() < end;) {
        virtual_take(PASS_MS);
        turns(2);
    }
}

/* --- the server ----------------------------------------------------------- */

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
    (void)ctx;
    for (int i = 0; i < H2_LARGE / 32; i++)
        str_add(httpd_reply(rq), "0123456789abcdef0123456789abcdef");
    httpd_content_type(rq, "text/plain");
}

static void after_wait(struct httpd_request *rq, void *arg)
{
    const char *n = httpd_query(rq, "n");
    (void)arg;
    str_addf(httpd_reply(rq), "%s of %s", n ? n : "-",
             httpd_peer(rq)->common_name);
}

static void on_wait(struct httpd_request *rq, void *ctx)
{
    struct h2_server *s = ctx;
    httpd_then(rq, after_wait, NULL);
    httpd_suspend(rq);
    unsigned n = atomic_load(&s->n_waiting);
    if (n - atomic_load(&s->n_resumed) == H2_WAITING_MAX)
        abort();
    atomic_store(&s->waiting[n % H2_WAITING_MAX], rq);
    atomic_store(&s->n_waiting, n + 1);
}

static void on_close(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    httpd_close_after(rq);
    httpd_set_header(rq, "X-Left", "yes");
}

static void on_header(struct httpd_request *rq, void *ctx)
{
    const char *test = httpd_header(rq, "X-Test"),
               *host = httpd_header(rq, "Host");
    (void)ctx;
    str_addf(httpd_reply(rq), "%s %s", test ? test : "-", host ? host : "-");
}

static const struct httpd_route routes[] = {
    {HTTPD_GET | HTTPD_POST, "/", on_who, H2_BODY_MAX, "who"},
    {HTTPD_GET, "/large", on_large, 0, "large"},
    {HTTPD_GET, "/wait", on_wait, 0, "wait"},
    {HTTPD_GET, "/close", on_close, 0, "close"},
    {HTTPD_GET, "/header", on_header, 0, "header"},
};

static void on_observe(void *ctx, const struct httpd_observation *o)
{
    struct h2_server *s = ctx;
    atomic_fetch_add(&s->observed, 1);
    if (!o->refusal)
        return;
    s->refusal = o->refusal;
    atomic_fetch_add(&s->refused, 1);
}

struct h2_server *h2_server_create(unsigned connections_max, int64_t until_s)
{
    struct h2_server *s = xcalloc(1, sizeof *s);
    struct error err = {0};
    const struct cert_spec server = {
        .name = "server", .purposes = CERT_SERVER, .local = true};
    const struct cert_spec me = {
        .name = "me", .purposes = CERT_CLIENT, .until_s = until_s};
    const unsigned limit = virtual_is_on() ? H2_REQUEST_MS : HANGS_MS;
    log_set_level(LOG_ERROR);
    s->dir = tmpdir_create();
    s->cert = xasprintf("%s/server.crt", s->dir);
    s->key = xasprintf("%s/server.key", s->dir);
    s->ca = xasprintf("%s/ca.crt", s->dir);
    s->my_cert = xasprintf("%s/me.crt", s->dir);
    s->my_key = xasprintf("%s/me.key", s->dir);
    s->authority = cert_authority("authority");
    cert_write(s->authority, s->ca);
    cert_issue(s->authority, &server, s->cert, s->key);
    cert_issue(s->authority, &me, s->my_cert, s->my_key);
    const struct tls_config config = {s->cert, s->key, s->ca};
    const struct httpd_config http = {
        .name = "test",
        .listen = "127.0.0.1:0",
        .routes = routes,
        .n_routes = ARRAY_LEN(routes),
        .ctx = s,
        .connections_max = connections_max,
        .request_ms = limit,
        .reply_ms = limit,
        .http2 = true,
        .observe = on_observe,
    };
    struct httpd_config with_tls = http;
    if (tls_create(&config, &s->tls, &err) < 0)
        abort();
    with_tls.tls = s->tls;
    if (httpd_start(&with_tls, &s->httpd, &err) < 0)
        abort();
    return s;
}

void h2_server_destroy(struct h2_server *s)
{
    httpd_stop(s->httpd);
    tls_destroy(s->tls);
    cert_destroy(s->authority);
    free(s->cert);
    free(s->key);
    free(s->ca);
    free(s->my_cert);
    free(s->my_key);
    tmpdir_remove(s->dir);
    free(s);
}

struct tls_client_config h2_server_me(const struct h2_server *s)
{
    return (struct tls_client_config){.port = httpd_port(s->httpd),
                                      .ca_file = s->ca,
                                      .cert_file = s->my_cert,
                                      .key_file = s->my_key,
                                      .alpn = "h2"};
}

void h2_server_await(struct h2_server *s, unsigned n)
{
    AWAIT(atomic_load(&s->n_waiting) >= n);
    if (atomic_load(&s->n_waiting) < n)
        abort();
}

/* --- the client ----------------------------------------------------------- */

bool h2_client_open(struct h2_client *c, const struct tls_client_config *how,
                    bool greet)
{
    gnutls_datum_t chosen = {NULL, 0};
    memset(c, 0, sizeof *c);
    str_init(&c->payload, 1 << 24);
    if (nghttp2_hd_inflate_new(&c->inflater) != 0)
        abort();
    if (tls_client_open(&c->tls, how) &&
        gnutls_alpn_get_selected_protocol(c->tls.session, &chosen) == 0 &&
        chosen.size == 2 && memcmp(chosen.data, "h2", 2) == 0 &&
        (!greet || (tls_client_send(&c->tls, NGHTTP2_CLIENT_MAGIC,
                                    NGHTTP2_CLIENT_MAGIC_LEN) &&
                    h2_client_frame(c, NGHTTP2_SETTINGS, 0, 0, "", 0))))
        return true;
    h2_client_close(c);
    return false;
}

void h2_client_close(struct h2_client *c)
{
    tls_client_close(&c->tls);
    str_fini(&c->payload);
    if (c->inflater)
        nghttp2_hd_inflate_del(steal(&c->inflater));
}

bool h2_client_frame(struct h2_client *c, uint8_t type, uint8_t flags,
                     int32_t id, const void *payload, size_t size)
{
    cleanup_str struct str frame = STR_INIT(1 << 24);
    const uint32_t number = htonl((uint32_t)id);
    const char head[] = {(char)(size >> 16), (char)(size >> 8), (char)size,
                         (char)type, (char)flags};
    str_add_n(&frame, head, sizeof head);
    str_add_n(&frame, (const char *)&number, sizeof number);
    str_add_n(&frame, payload, size);
    return tls_client_send(&c->tls, frame.data, frame.size);
}

/* A length as HPACK has it (RFC 7541, 5.1), with a prefix of seven bits. */
static void add_size(struct str *block, size_t size)
{
    if (size < 127) {
        str_add_c(block, (char)size);
        return;
    }
    str_add_c(block, 127);
    for (size -= 127; size >= 128; size /= 128)
        str_add_c(block, (char)(size % 128 | 128));
    str_add_c(block, (char)size);
}

void h2_field(struct str *block, const char *name, const char *value)
{
    str_add_c(block, 0); /* literal, not indexed */
    add_size(block, strlen(name));
    str_add(block, name);
    add_size(block, strlen(value));
    str_add(block, value);
}

void h2_request(struct str *block, const char *method, const char *path)
{
    h2_field(block, ":method", method);
    h2_field(block, ":scheme", "https");
    h2_field(block, ":authority", "localhost");
    h2_field(block, ":path", path);
}

bool h2_client_get(struct h2_client *c, int32_t id, const char *path)
{
    cleanup_str struct str block = STR_INIT(1 << 20);
    h2_request(&block, "GET", path);
    return h2_client_frame(c, NGHTTP2_HEADERS,
                           NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM,
                           id, block.data, block.size);
}

static void read_status(struct h2_client *c)
{
    const uint8_t *at = (const uint8_t *)c->payload.data;
    size_t left = c->payload.size;
    int flags;
    do {
        nghttp2_nv nv;
        flags = 0;
        ssize_t n = nghttp2_hd_inflate_hd2(c->inflater, &nv, &flags, at, left,
                                           1);
        if (n < 0)
            abort();
        at += n;
        left -= (size_t)n;
        if (flags & NGHTTP2_HD_INFLATE_EMIT && nv.namelen == 7 &&
            memcmp(nv.name, ":status", 7) == 0)
            c->status = (int)strtol((const char *)nv.value, NULL, 10);
    } while (!(flags & NGHTTP2_HD_INFLATE_FINAL) && (left > 0 || flags));
    (void)nghttp2_hd_inflate_end_headers(c->inflater);
}

bool h2_client_read(struct h2_client *c)
{
    uint8_t head[9];
    uint32_t id;
    if (!tls_client_take(&c->tls, head, sizeof head))
        return false;
    size_t size = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
    memcpy(&id, head + 5, sizeof id);
    c->type = head[3];
    c->flags = head[4];
    c->id = (int32_t)ntohl(id);
    str_reset(&c->payload);
    if (!str_reserve(&c->payload, size) ||
        !tls_client_take(&c->tls, c->payload.data, size))
        return false;
    c->payload.size = size;
    c->payload.data[size] = '\0';
    if (c->type == NGHTTP2_HEADERS)
        read_status(c);
    return true;
}

bool h2_client_read_to(struct h2_client *c, uint8_t type, int32_t id)
{
    while (h2_client_read(c))
        if (c->type == type && (id == -1 || c->id == id))
            return true;
    return false;
}

int h2_client_goaway(struct h2_client *c)
{
    uint32_t code;
    if (!h2_client_read_to(c, NGHTTP2_GOAWAY, 0) || c->payload.size < 8)
        return -1;
    memcpy(&code, c->payload.data + 4, sizeof code);
    return (int)ntohl(code);
}

bool h2_client_closed(struct h2_client *c)
{
    while (h2_client_read(c))
        ;
    return c->tls.ended;
}
