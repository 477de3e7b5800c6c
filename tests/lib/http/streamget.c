#include "tests/lib/http/streamget.h"

#include <poll.h>
#include <stdlib.h>

#include "lib/base/mem.h"

const char *const stream_way_names[] = {"plain", "TLS", "HTTP/2"};

/* --- the server ----------------------------------------------------------- */

static void on_change(void *ctx)
{
    const struct streamd_ctx *of = ctx;
    atomic_fetch_add(&of->server->n_changed[of->n], 1);
}

static void on_stream(struct httpd_request *rq, void *ctx)
{
    struct streamd *s = ctx;
    unsigned n = atomic_load(&s->n);
    if (n == STREAM_GET_MAX)
        abort();
    s->ctx[n].server = s;
    s->ctx[n].n = n;
    httpd_content_type(rq, "text/event-stream");
    httpd_set_header(rq, "Cache-Control", "no-store");
    atomic_store(&s->streams[n], httpd_stream_begin(rq, STREAM_WAITS_MAX,
                                                    on_change, &s->ctx[n]));
    atomic_store(&s->n, n + 1);
}

static void on_short(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    str_add(httpd_reply(rq), "{}");
}

static const struct httpd_route routes[] = {
    {HTTPD_GET, "/stream", on_stream, 0, "stream"},
    {HTTPD_GET, "/short", on_short, 0, "short"},
};

static void on_observe(void *ctx, const struct httpd_observation *o)
{
    struct streamd *s = ctx;
    atomic_store(&s->reply_size, o->reply_size);
    atomic_fetch_add(&s->n_observed, 1);
}

struct streamd *streamd_open(enum stream_way way,
                             const struct httpd_config *config)
{
    struct streamd *s = xcalloc(1, sizeof *s);
    struct httpd_config c = {.request_ms = 600000, .reply_ms = 600000};
    struct error err;
    if (config)
        c = *config;
    s->way = way;
    s->certs = h2_server_create(0, 0);
    c.name = "streams";
    c.listen = "127.0.0.1:0";
    c.routes = routes;
    c.n_routes = ARRAY_LEN(routes);
    c.ctx = s;
    c.observe = on_observe;
    c.tls = way == STREAM_PLAIN ? NULL : s->certs->tls;
    c.http2 = way == STREAM_H2;
    if (httpd_start(&c, &s->httpd, &err) < 0)
        abort();
    s->port = httpd_port(s->httpd);
    return s;
}

void streamd_close(struct streamd *s)
{
    httpd_stop(s->httpd);
    h2_server_destroy(s->certs);
    free(s);
}

struct httpd_stream *streamd_await(struct streamd *s, unsigned n)
{
    while (atomic_load(&s->n) < n)
        (void)poll(NULL, 0, 1);
    return n > 0 ? atomic_load(&s->streams[n - 1]) : NULL;
}

void streamd_await_change(struct streamd *s, unsigned n, unsigned since)
{
    while (atomic_load(&s->n_changed[n]) == since)
        (void)poll(NULL, 0, 1);
}

/* --- a client ------------------------------------------------------------- */

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
    str_add_n(arg, data, size * n);
    return size * n;
}

#define SET(option, value)                                        \
    do {                                                          \
        if (curl_easy_setopt(g->curl, option, value) != CURLE_OK) \
            abort();                                              \
    } while (0)

void stream_get_begin(struct stream_get *g, struct streamd *s)
{
    char url[64];
    (void)snprintf(url, sizeof url, "%s://localhost:%u/stream",
                   s->way == STREAM_PLAIN ? "http" : "https", s->port);
    *g = (struct stream_get){.curl = curl_easy_init(),
                             .multi = curl_multi_init()};
    if (!g->curl || !g->multi)
        abort();
    str_init(&g->body, 64 << 20);
    SET(CURLOPT_URL, url);
    SET(CURLOPT_CAINFO, s->certs->ca);
    SET(CURLOPT_SSLCERT, s->certs->my_cert);
    SET(CURLOPT_SSLKEY, s->certs->my_key);
    SET(CURLOPT_HTTP_VERSION,
        (long)(s->way == STREAM_H2 ? CURL_HTTP_VERSION_2TLS
                                   : CURL_HTTP_VERSION_1_1));
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_NOPROXY, "*");
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, &g->body);
    if (curl_multi_add_handle(g->multi, g->curl) != CURLM_OK)
        abort();
}

static void go_on(struct stream_get *g)
{
    int running, left;
    (void)curl_multi_perform(g->multi, &running);
    const CURLMsg *m = curl_multi_info_read(g->multi, &left);
    if (m && m->msg == CURLMSG_DONE) {
        g->done = true;
        g->code = m->data.result;
    }
    (void)curl_easy_getinfo(g->curl, CURLINFO_RESPONSE_CODE, &g->status);
    (void)curl_easy_getinfo(g->curl, CURLINFO_HTTP_VERSION, &g->version);
}

static void await_more(struct stream_get *g)
{
    (void)curl_multi_poll(g->multi, NULL, 0, 1000, NULL);
}

void stream_get_until(struct stream_get *g, size_t size)
{
    for (go_on(g); !g->done && g->body.size < size; go_on(g))
        await_more(g);
}

void stream_get_head(struct stream_get *g)
{
    for (go_on(g); !g->done && !g->status; go_on(g))
        await_more(g);
}

void stream_get_close(struct stream_get *g)
{
    (void)curl_multi_remove_handle(g->multi, g->curl);
    curl_easy_cleanup(g->curl);
    (void)curl_multi_cleanup(g->multi);
    str_fini(&g->body);
}
