#include "model/io/httpd.h"

#include "model/base/mem.h"
#include "model/io/clock.h"
#include "model/io/httpd_private.h"

enum {
    CONNECTION_MEMORY = 64 << 10, /* measured best for 5,000 names */
    STOP_POLL_MS = 2,
};

/* --- MHD's callbacks ------------------------------------------------------ */

struct conn *httpd_conn(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection,
                                   MHD_CONNECTION_INFO_SOCKET_CONTEXT)
        ->socket_context;
}

/* The request line is here, undecoded: the only place that shows it so. */
static void *on_target(void *cls, const char *target,
                       struct MHD_Connection *connection)
{
    struct httpd_request *rq = request_take(cls);
    rq->connection = connection;
    rq->conn = httpd_conn(connection);
    conn_enter(rq->conn, CONN_ARRIVING);
    rq->uri_fault = uri_parse(target, &rq->uri, &rq->err);
    return rq;
}

static void body_take(struct httpd_request *rq, const char *data, size_t size)
{
    if (rq->refused)
        return;
    if (request_reserve(rq, size))
        str_add_n(&rq->body, data, size);
    else
        str_fini(&rq->body); /* the rest is dropped as it comes */
}

static enum MHD_Result reply_queue(struct httpd_request *rq)
{
    if (rq->reply.overflow)
        httpd_fail(rq, 500, "the reply is larger than %zu bytes",
                   rq->reply.max);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        rq->reply.size, rq->reply.size ? rq->reply.data : NULL,
        MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    if (rq->reply.size)
        (void)MHD_add_response_header(response, "Content-Type", rq->type);
    for (unsigned i = 0; i < rq->n_headers; i++)
        (void)MHD_add_response_header(response, rq->headers[i].name,
                                      rq->headers[i].value);
    if (rq->close || atomic_load(&rq->h->stopping))
        (void)MHD_add_response_header(response, "Connection", "close");
    rq->phase = PHASE_REPLIED;
    if (rq->started_ns)
        rq->took_ns = (uint64_t)clock_ns() - rq->started_ns;
    conn_enter(rq->conn, CONN_REPLYING);
    enum MHD_Result r = MHD_queue_response(rq->connection, rq->status,
                                           response);
    MHD_destroy_response(response);
    return r;
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

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection,
                                  const char *url, const char *method,
                                  const char *version, const char *data,
                                  size_t *size, void **con_cls)
{
    struct httpd_request *rq = *con_cls;
    (void)url;
    (void)version;
    (void)cls;
    (void)connection;
    if (rq->phase == PHASE_NEW) {
        rq->phase = PHASE_BODY;
        request_judge(rq, method);
        return rq->close ? reply_queue(rq) : MHD_YES;
    }
    if (rq->phase == PHASE_BODY && *size > 0) {
        body_take(rq, data, *size);
        *size = 0;
        return MHD_YES;
    }
    if (rq->phase == PHASE_BODY) {
        rq->phase = PHASE_HANDLING;
        rq->started_ns = (uint64_t)clock_ns();
        conn_enter(rq->conn, CONN_HANDLING);
        /* httpd_stop() sees either this state or a refused request: it must
         * not end the daemon while one is suspended */
        if (!rq->refused && atomic_load(&rq->h->stopping))
            request_refuse(rq, 503, "the server is stopping");
        if (!rq->refused)
            request_admit(rq);
    } else if (rq->then) {
        void (*then)(struct httpd_request * rq, void *arg) = rq->then;
        rq->then = NULL;
        rq->suspended = false;
        then(rq, rq->then_arg);
    } else {
        rq->suspended = false;
    }
    /* a suspended request comes back here when it is resumed */
    return rq->suspended ? MHD_YES : reply_queue(rq);
}

static void observe(struct httpd *h, const struct httpd_observation *o)
{
    if (h->config.observe)
        h->config.observe(h->config.ctx, o);
}

static void on_completed(void *cls, struct MHD_Connection *connection,
                         void **con_cls, enum MHD_RequestTerminationCode how)
{
    struct httpd_request *rq = *con_cls;
    struct httpd *h = cls;
    (void)connection;
    (void)how;
    if (!rq)
        return;
    *con_cls = NULL;
    if (rq->phase == PHASE_REPLIED) {
        struct httpd_observation o = {
            .listener = h->config.name,
            .route = rq->route,
            .status = rq->status,
            .refusal = rq->refusal,
            .nanoseconds = rq->took_ns,
            .body_size = rq->body.size,
            .reply_size = rq->reply.size,
        };
        observe(h, &o);
    }
    conn_enter(rq->conn, CONN_IDLE);
    request_give(rq);
}

static void on_connection(void *cls, struct MHD_Connection *connection,
                          void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct httpd *h = cls;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        int fd = MHD_get_connection_info(connection,
                                         MHD_CONNECTION_INFO_CONNECTION_FD)
                     ->connect_fd;
        struct conn *conn = conns_add(&h->conns, fd);
        *socket_context = conn;
        if (h->config.tls)
            conn_tls_begin(conn, &h->config, connection);
        if (h->file.path)
            conn_unix_begin(conn);
    } else if (*socket_context) {
        struct conn *conn = steal(socket_context);
        const struct httpd_observation o = {.listener = h->config.name,
                                            .refusal = "handshake"};
        if (conn_shaking(conn))
            observe(h, &o);
        conn_tls_end(conn);
        conns_remove(&h->conns, conn);
    }
}

/* Segments are decoded by uri_parse(), from the undecoded target. */
static size_t on_unescape(void *cls, struct MHD_Connection *connection,
                          char *text)
{
    (void)cls;
    (void)connection;
    return strlen(text);
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
}

static struct MHD_Daemon *daemon_start(struct httpd *h)
{
    const struct httpd_config *c = &h->config;
    struct MHD_OptionItem more[] = {
        {MHD_OPTION_END, 0, NULL},
        {MHD_OPTION_END, 0, NULL},
        {MHD_OPTION_END, 0, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    /* with epoll, libmicrohttpd turns round and round while a handshake waits
     * for its client: what gnutls has read dry, it takes for ready */
    unsigned n = 0, flags = MHD_ALLOW_SUSPEND_RESUME |
                            (c->tls ? MHD_USE_POLL_INTERNAL_THREAD
                                    : MHD_USE_EPOLL_INTERNAL_THREAD);
    if (c->threads > 1)
        more[n++] = (struct MHD_OptionItem){MHD_OPTION_THREAD_POOL_SIZE,
                                            (intptr_t)c->threads, NULL};
    if (c->tls) {
        flags |= MHD_USE_TLS;
        more[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0,
                                            (void *)TLS_PRIORITIES};
        more[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_CERT_CALLBACK, 0,
                                            (void *)httpd_no_certificate};
    }
    /* some room above connections_max: conns_add() makes place for a new
     * connection only once it has been accepted */
    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, h, MHD_OPTION_LISTEN_SOCKET, h->fd,
        MHD_OPTION_CONNECTION_LIMIT,
        c->connections_max + HTTPD_SPARE * c->threads,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
        MHD_OPTION_CONNECTION_TIMEOUT, (c->idle_ms + 999) / 1000,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK, on_target,
        h, MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_ARRAY, more,
        MHD_OPTION_END);
}

static void httpd_free(struct httpd *h)
{
    while (h->pool) {
        struct httpd_request *rq = h->pool;
        h->pool = rq->next;
        request_destroy(rq);
    }
    if (h->fd >= 0)
        (void)close(h->fd);
    unix_file_fini(&h->file);
    (void)pthread_mutex_destroy(&h->pool_lock);
    free(h);
}

int httpd_start(const struct httpd_config *config, struct httpd **ret_httpd,
                struct error *err)
{
    struct httpd *h = xcalloc(1, sizeof *h);
    h->config = *config;
    h->fd = -1;
    config_complete(&h->config);
    (void)pthread_mutex_init(&h->pool_lock, NULL);
    const char *path = address_unix(config->listen);
    int r = path
                ? unix_listen(path, &h->fd, &h->file, err)
                : address_listen(config->listen, config->loopback, &h->fd, err);
    if (!r) {
        h->port = path ? 0 : address_port(h->fd);
        r = conns_start(&h->conns, &h->config, err);
    }
    if (r) {
        httpd_free(h);
        return r;
    }
    h->daemon = daemon_start(h);
    if (!h->daemon) {
        r = error_set(err, EIO, "cannot start to serve \"%s\"", config->listen);
        h->fd = -1; /* MHD may have closed it */
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

void httpd_stop(struct httpd *h)
{
    if (!h)
        return;
    atomic_store(&h->stopping, true);
    h->fd = MHD_quiesce_daemon(h->daemon);
    const struct timespec nap = {0, STOP_POLL_MS * 1000000L};
    while (conns_busy(&h->conns) > 0)
        (void)nanosleep(&nap, NULL);
    MHD_stop_daemon(h->daemon);
    conns_stop(&h->conns);
    httpd_free(h);
}
