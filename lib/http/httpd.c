#include "lib/http/httpd.h"

#include <assert.h>

#include "lib/base/mem.h"
#include "lib/base/text.h"
#include "lib/http/httpd_h2.h"
#include "lib/http/httpd_private.h"
#include "lib/io/clock.h"

enum { STOP_POLL_MS = 2 };

/* --- what both protocols do with a request -------------------------------- */

void request_take_body(struct httpd_request *rq, const char *data, size_t size)
{
    if (rq->refused)
        return;
    if (request_reserve(rq, size))
        str_add_n(&rq->body, data, size);
    else
        request_drop_body(rq); /* the rest goes as it comes */
}

void httpd_admit(struct httpd_request *rq)
{
    rq->route->handle(rq, rq->h->config.ctx);
}

/* Hand the request to its handler, if the listener lets it in. */
static void request_admit(struct httpd_request *rq)
{
    const struct httpd_config *c = &rq->h->config;
    if (!c->admit || c->admit(rq, c->ctx) == HTTPD_ADMIT)
        httpd_admit(rq);
}

bool request_begin(struct httpd_request *rq)
{
    rq->phase = PHASE_HANDLING;
    rq->started_ns = (uint64_t)clock_ns();
    /* httpd_stop() sees either that the connection is busy or a refused
     * request: it must not end the daemon while one is suspended */
    if (!rq->refused && atomic_load(&rq->h->stopping))
        request_refuse(rq, 503, "the server is stopping");
    if (!rq->refused)
        request_admit(rq);
    return !rq->suspended;
}

bool request_go_on(struct httpd_request *rq)
{
    void (*then)(struct httpd_request * rq, void *arg) = rq->then;
    rq->then = NULL;
    rq->suspended = false;
    if (then)
        then(rq, rq->then_arg);
    return !rq->suspended;
}

void request_seal(struct httpd_request *rq)
{
    if (strcmp(rq->type, HTTPD_TEXT) == 0)
        text_clean_lines(&rq->reply); /* it is for a terminal */
    size_t size = rq->reply.size;
    if (rq->reply.starved)
        httpd_fail(rq, 503,
                   "there is no memory for a reply of more than %zu bytes",
                   size);
    else if (rq->reply.overflow)
        httpd_fail(rq, 500, "the reply is larger than %zu bytes",
                   rq->reply.max);
    rq->phase = PHASE_REPLIED;
    if (rq->started_ns)
        rq->took_ns = (uint64_t)clock_ns() - rq->started_ns;
}

/* --- observations --------------------------------------------------------- */

static void observe(struct httpd *h, const struct httpd_observation *o)
{
    if (h->config.observe)
        h->config.observe(h->config.ctx, o);
}

void request_observe(const struct httpd_request *rq)
{
    if (rq->phase != PHASE_REPLIED)
        return;
    const struct httpd_observation o = {
        .listener = rq->h->config.name,
        .route = rq->route,
        .status = rq->status,
        .refusal = rq->refusal,
        .nanoseconds = rq->took_ns,
        .body_size = rq->body.size,
        .reply_size = rq->stream ? stream_taken(rq->stream) : rq->reply.size,
    };
    observe(rq->h, &o);
}

void conn_observe(struct httpd *h, const struct conn *conn)
{
    const struct httpd_observation o = {.listener = h->config.name,
                                        .refusal = "handshake"};
    if (conn_shaking(conn))
        observe(h, &o);
}

/* --- starting and stopping ------------------------------------------------ */

static void config_complete(struct httpd_config *c)
{
    if (!c->name)
        c->name = "http";
    if (!c->threads)
        c->threads = 1;
    if (!c->connections_max)
        c->connections_max = 1024;
    if (!c->request_ms)
        c->request_ms = 10000;
    if (!c->reply_ms)
        c->reply_ms = 30000;
    if (!c->idle_ms)
        c->idle_ms = 300000;
    if (!c->memory_max)
        c->memory_max = (size_t)512 << 20;
    if (!c->streams_max)
        c->streams_max = 512;
}

static void httpd_free(struct httpd *h)
{
    assert(atomic_load(&h->n_requests) == 0);
    while (h->pool) {
        struct httpd_request *rq = h->pool;
        h->pool = rq->next;
        request_destroy(rq);
    }
    if (h->fd >= 0)
        (void)close(h->fd);
    unix_file_fini(&h->file);
    streams_fini(&h->streams);
    (void)pthread_mutex_destroy(&h->pool_lock);
    free(h);
}

/* HTTP/1.1, and HTTP/2 where it is asked for: that accepts for both then. */
static int serve(struct httpd *h, struct error *err)
{
    int r = 0;
    if (h->config.tls && h->config.http2)
        r = h2_create(h, &h->h2, err);
    if (r < 0)
        return r;
    h->daemon = mhd_start(h);
    if (!h->daemon) {
        if (!h->h2)
            h->fd = -1; /* MHD may have closed it */
        r = error_set(err, EIO, "cannot start to serve \"%s\"",
                      h->config.listen);
    } else if (h->h2) {
        r = h2_start(h->h2, err);
    }
    if (r == 0)
        return 0;
    if (h->daemon)
        MHD_stop_daemon(h->daemon);
    h2_destroy(h->h2);
    return r;
}

int httpd_start(const struct httpd_config *config, struct httpd **ret_httpd,
                struct error *err)
{
    struct httpd *h = xcalloc(1, sizeof *h);
    h->config = *config;
    h->fd = -1;
    config_complete(&h->config);
    streams_init(&h->streams, h->config.streams_max);
    (void)pthread_mutex_init(&h->pool_lock, NULL);
    const char *path = address_unix(config->listen);
    int r = path
                ? unix_listen(path, false, &h->fd, &h->file, err)
                : address_listen(config->listen, config->loopback, &h->fd, err);
    if (!r) {
        h->port = path ? 0 : address_port(h->fd);
        r = conns_start(&h->conns, &h->config, &h->streams, err);
    }
    if (r) {
        httpd_free(h);
        return r;
    }
    r = serve(h, err);
    if (r) {
        conns_stop(&h->conns);
        httpd_free(h);
        return r;
    }
    *ret_httpd = h;
    return 0;
}

uint16_t httpd_port(const struct httpd *h)
{
    return h->port;
}

struct httpd_held httpd_held(const struct httpd *h)
{
    return (struct httpd_held){.n_requests = atomic_load(&h->n_requests),
                               .body_bytes = atomic_load(&h->memory_used)};
}

void httpd_stop(struct httpd *h)
{
    if (!h)
        return;
    atomic_store(&h->stopping, true);
    streams_stop(&h->streams);
    if (h->h2)
        h2_stop(h->h2); /* first: it hands connections to the other */
    else
        h->fd = MHD_quiesce_daemon(h->daemon);
    const struct timespec nap = {0, STOP_POLL_MS * 1000000L};
    while (conns_busy(&h->conns) > 0)
        (void)nanosleep(&nap, NULL);
    /* MHD 0.9.75 queues no answer once it stops, and looks for it all the same
     * when it refuses a request: none may be left to it */
    conns_drain(&h->conns);
    MHD_stop_daemon(h->daemon);
    h2_destroy(h->h2);
    conns_stop(&h->conns);
    httpd_free(h);
}
