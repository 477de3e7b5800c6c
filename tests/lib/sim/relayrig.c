#include "tests/lib/sim/relayrig.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "extender/app/app_metrics.h"
#include "lib/base/mem.h"
#include "tests/lib/virtual.h"

enum { HANGS_MS = 600000 };

/* --- the two listeners ------------------------------------------------------ */

static void on_ask(struct httpd_request *rq, void *ctx)
{
    struct relay_rig *rig = ctx;
    const char *what = httpd_route_name(rq), *name = httpd_arg(rq, 1);
    const char *client = httpd_header(rq, "X-Client");
    cleanup_free char *node = xstrndup(name, strcspn(name, "-"));
    const struct relay_pod pod = {.namespace = httpd_arg(rq, 0),
                                  .name = name,
                                  .uid = "u-1",
                                  .node = node,
                                  .silent_since_ms = rig->silent_since_ms};
    enum relay_kind kind = RELAY_LOG;
    while (strcmp(relay_kind_name(kind), what) != 0)
        kind++;
    struct relay_stream *s = relay_open(rig->relay, rq, kind);
    if (s)
        relay_ask(s, rq, &pod, client ? strtoull(client, NULL, 10) : 0);
}

static void on_feed(struct httpd_request *rq, void *ctx)
{
    struct relay_rig *rig = ctx;
    const char *wait = httpd_query(rq, "wait");
    relay_feed(rig->relay, rq, wait ? strtoll(wait, NULL, 10) * 1000 : 0);
}

static void on_come(struct httpd_request *rq, void *ctx)
{
    struct relay_rig *rig = ctx;
    relay_take(rig->relay, rq);
}

static const struct httpd_route read_table[] = {
    {HTTPD_GET, "/v1/pods/:/:/log", on_ask, 0, "log"},
    {HTTPD_GET, "/v1/pods/:/:/exec", on_ask, 0, "exec"},
    {HTTPD_GET, "/v1/pods/:/:/attach", on_ask, 0, "attach"},
    {HTTPD_GET, "/v1/pods/:/:/portforward", on_ask, 0, "portforward"},
};
static const struct httpd_route publish_table[] = {
    {HTTPD_GET, "/v1/nodes/:/streams", on_feed, 0, "feed"},
    {HTTPD_GET, "/v1/nodes/:/streams/:", on_come, 0, "come"},
};

static struct httpd *listener(struct relay_rig *rig, const char *name,
                              const struct httpd_route *routes, size_t n)
{
    const struct httpd_config config = {
        .name = name,
        .listen = "127.0.0.1:0",
        .routes = routes,
        .n_routes = n,
        .ctx = rig,
        .request_ms = HANGS_MS,
        .reply_ms = virtual_is_on() ? HANGS_MS : 400,
        .idle_ms = HANGS_MS,
        .tls = rig->tls ? rig->certs->tls : NULL,
        .http2 = rig->tls,
        .repeats = "command",
    };
    struct httpd *h;
    struct error err;
    if (httpd_start(&config, &h, &err) < 0)
        abort();
    return h;
}

void relay_rig_start(struct relay_rig *rig, bool tls)
{
    struct error err;
    *rig = (struct relay_rig){.tls = tls, .silent_since_ms = -1};
    rig->certs = tls ? h2_server_create(0, 0) : NULL;
    rig->metrics = app_metrics_create();
    if (relay_start(rig->metrics, &rig->relay, &err) < 0)
        abort();
    rig->read = listener(rig, "read", read_table, ARRAY_LEN(read_table));
    rig->publish = listener(rig, "publish", publish_table,
                            ARRAY_LEN(publish_table));
}

void relay_rig_stop(struct relay_rig *rig)
{
    relay_quiesce(rig->relay);
    httpd_stop(rig->read);
    httpd_stop(rig->publish);
    relay_stop(rig->relay);
    metrics_destroy(rig->metrics);
    if (rig->certs)
        h2_server_destroy(rig->certs);
}

/* --- connections -------------------------------------------------------------- */

static struct relay_peer peer_open(const struct relay_rig *rig,
                                   const struct httpd *to)
{
    struct relay_peer p = {.fd = -1};
    if (rig->tls) {
        struct tls_client_config how = h2_server_me(rig->certs);
        how.port = httpd_port(to);
        how.alpn = NULL;
        if (!tls_client_open(&p.tls, &how))
            abort();
        p.fd = p.tls.fd;
    } else {
        p.fd = raw_connect(httpd_port(to));
    }
    return p;
}

void relay_peer_close(struct relay_peer *p)
{
    if (p->tls.session)
        tls_client_close(&p->tls);
    else if (p->fd >= 0)
        (void)close(p->fd);
    p->fd = -1;
}

void relay_peer_end(struct relay_peer *p)
{
    if (p->tls.session)
        (void)gnutls_bye(p->tls.session, GNUTLS_SHUT_WR);
    relay_peer_close(p);
}

bool relay_peer_send(struct relay_peer *p, const void *data, size_t size)
{
    return p->tls.session ? tls_client_send(&p->tls, data, size)
                          : raw_send_n(p->fd, data, size);
}

bool relay_peer_take(struct relay_peer *p, void *ret_data, size_t size)
{
    char *to = ret_data;
    if (p->tls.session)
        return tls_client_take(&p->tls, ret_data, size);
    for (ssize_t n; size > 0; to += n, size -= (size_t)n)
        if ((n = read(p->fd, to, size)) <= 0)
            return false;
    return true;
}

int relay_peer_head(struct relay_peer *p, struct str *ret_head)
{
    int status = 0;
    char c;
    str_reset(ret_head);
    while (ret_head->size < 4 ||
           memcmp(ret_head->data + ret_head->size - 4, "\r\n\r\n", 4) != 0) {
        if (!relay_peer_take(p, &c, 1))
            return 0;
        str_add_c(ret_head, c);
    }
    (void)sscanf(ret_head->data, "HTTP/1.1 %d", &status);
    return status;
}

static bool chunk(struct relay_peer *p, struct str *out, size_t *ret_size)
{
    char line[32], c, end[2];
    size_t n = 0;
    do {
        if (n == sizeof line || !relay_peer_take(p, &line[n], 1))
            return false;
    } while (line[n++] != '\n');
    *ret_size = strtoul(line, NULL, 16);
    for (size_t i = 0; i < *ret_size; i++) {
        if (!relay_peer_take(p, &c, 1))
            return false;
        str_add_c(out, c);
    }
    return relay_peer_take(p, end, 2);
}

bool relay_peer_rest(struct relay_peer *p, bool chunked, struct str *out)
{
    size_t size = 1;
    char c;
    while (chunked && size > 0)
        if (!chunk(p, out, &size))
            return false;
    while (!chunked && relay_peer_take(p, &c, 1))
        str_add_c(out, c);
    return true;
}

/* --- clients, and the node ------------------------------------------------------ */

struct relay_peer relay_rig_ask(struct relay_rig *rig, const char *pod,
                                const char *what, const char *headers)
{
    struct relay_peer p = peer_open(rig, rig->read);
    cleanup_free char *text =
        xasprintf("GET /v1/pods/ns/%s/%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
                  pod, what, headers);
    if (!relay_peer_send(&p, text, strlen(text)))
        abort();
    return p;
}

bool relay_rig_feed(struct relay_rig *rig, const char *node, int wait_s,
                    struct str *body, char ret_id[65])
{
    struct relay_peer p = peer_open(rig, rig->publish);
    cleanup_str struct str head = STR_INIT(8192);
    cleanup_free char *text = xasprintf(
        "GET /v1/nodes/%s/streams?wait=%d HTTP/1.1\r\nHost: localhost\r\n"
        "Connection: close\r\n\r\n",
        node, wait_s);
    str_reset(body);
    if (!relay_peer_send(&p, text, strlen(text)) ||
        relay_peer_head(&p, &head) != 200)
        abort();
    (void)relay_peer_rest(&p, false, body);
    relay_peer_close(&p);
    const char *id = strstr(str_text(body), "{\"id\":\"");
    return id && sscanf(id, "{\"id\":\"%64[0-9a-f]\"", ret_id) == 1;
}

int relay_rig_come(struct relay_rig *rig, const char *node, const char *id,
                   struct relay_peer *ret_peer)
{
    cleanup_str struct str head = STR_INIT(8192);
    cleanup_free char *text =
        xasprintf("GET /v1/nodes/%s/streams/%s HTTP/1.1\r\nHost: localhost\r\n"
                  "Connection: Upgrade\r\nUpgrade: biga-stream\r\n\r\n",
                  node, id);
    *ret_peer = peer_open(rig, rig->publish);
    if (!relay_peer_send(ret_peer, text, strlen(text)))
        abort();
    return relay_peer_head(ret_peer, &head);
}

void relay_rig_join(struct relay_rig *rig, const char *node,
                    struct relay_peer *ret_peer)
{
    static const char good[] = "{\"status\":200}\n";
    cleanup_str struct str body = STR_INIT(1 << 20);
    char id[65];
    while (!relay_rig_feed(rig, node, 30, &body, id))
        ;
    if (relay_rig_come(rig, node, id, ret_peer) != 101 ||
        !relay_peer_send(ret_peer, good, sizeof good - 1))
        abort();
}

void relay_rig_until(struct relay_rig *rig, int64_t n)
{
    for (int64_t sum = -1; sum != n; (void)poll(NULL, 0, 1)) {
        sum = 0;
        relay_gauge(rig->relay);
        for (unsigned i = 0; i < RELAY_KINDS; i++) {
            const char *kind = relay_kind_name((enum relay_kind)i);
            sum += metrics_get(rig->metrics, APP_STREAMS, &kind);
        }
    }
}
