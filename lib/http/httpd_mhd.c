#include <strings.h>

#include "lib/base/mem.h"
#include "lib/http/httpd_private.h"

enum {
    CONNECTION_MEMORY = 64 << 10, /* measured best for 5,000 names */
    STREAM_BLOCK = 4 << 10,       /* of a client of HTTP/1.0 */
};

static const char *mhd_header(const struct httpd_request *rq, const char *name)
{
    return MHD_lookup_connection_value(rq->connection, MHD_HEADER_KIND, name);
}

static void mhd_suspend(struct httpd_request *rq)
{
    MHD_suspend_connection(rq->connection);
}

static void mhd_resume(struct httpd_request *rq)
{
    MHD_resume_connection(rq->connection);
}

static const struct transport http1 = {mhd_header, mhd_suspend, mhd_resume};

static struct conn *conn_of(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection,
                                   MHD_CONNECTION_INFO_SOCKET_CONTEXT)
        ->socket_context;
}

/* --- requests ------------------------------------------------------------- */

/* MHD is done with the connection's request, however that went. */
static void request_end(struct conn *conn)
{
    struct httpd_request *rq = steal(&conn->rq);
    if (!rq)
        return;
    if (rq->then && rq->lost)
        rq->lost(rq->then_arg);
    request_observe(rq);
    request_give(rq);
}

/* The request line is here, undecoded: the only place that shows it so. */
static void *on_target(void *cls, const char *target,
                       struct MHD_Connection *connection)
{
    struct httpd_request *rq = request_take(cls);
    rq->transport = &http1;
    rq->connection = connection;
    rq->conn = conn_of(connection);
    rq->conn->rq = rq;
    conn_enter(rq->conn, CONN_ARRIVING);
    rq->target = target;
    rq->target_size = strlen(target);
    rq->uri_fault = uri_parse(target, &rq->uri, &rq->err);
    return rq;
}

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind,
                                 const char *key, const char *value)
{
    struct head *head = cls;
    (void)kind;
    layout_field(&head->layout, key, value);
    if (strcasecmp(key, "Content-Length") == 0) {
        head->n_lengths++;
        head->length = value;
    } else if (strcasecmp(key, "Transfer-Encoding") == 0) {
        head->n_encodings++;
        head->encoding = value;
    } else if (strcasecmp(key, "Host") == 0) {
        head->n_hosts++;
        head->host = value;
    } else if (strcasecmp(key, "Origin") == 0) {
        head->origin = value;
    }
    return MHD_YES;
}

static ssize_t on_stream_read(void *stream, uint64_t at, char *data,
                              size_t size)
{
    (void)at;
    ssize_t n = stream_take(stream, data, size);
    return n == STREAM_ENDED    ? MHD_CONTENT_READER_END_OF_STREAM
           : n == STREAM_BROKEN ? MHD_CONTENT_READER_END_WITH_ERROR
                                : n;
}

static void on_stream_freed(void *stream)
{
    stream_unref(stream);
}

/* As long as its connection lasts: it is not kept for another request. */
static struct MHD_Response *stream_response(struct httpd_request *rq)
{
    stream_ref(rq->stream);
    rq->close = true;
    (void)MHD_set_connection_option(rq->connection,
                                    MHD_CONNECTION_OPTION_TIMEOUT, 0U);
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_BLOCK, on_stream_read, rq->stream,
        on_stream_freed);
    if (!response)
        stream_unref(rq->stream);
    return response;
}

static enum MHD_Result reply_queue(struct httpd_request *rq)
{
    if (rq->conn->upgraded)
        return MHD_NO; /* it has ended: closed */
    request_seal(rq);
    struct MHD_Response *response =
        rq->stream ? stream_response(rq)
                   : MHD_create_response_from_buffer(
                         rq->reply.size, rq->reply.size ? rq->reply.data : NULL,
                         MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    if (rq->reply.size || rq->stream)
        (void)MHD_add_response_header(response, "Content-Type", rq->type);
    for (unsigned i = 0; i < rq->n_headers; i++)
        (void)MHD_add_response_header(response, rq->headers[i].name,
                                      rq->headers[i].value);
    if (rq->close || atomic_load(&rq->h->stopping))
        (void)MHD_add_response_header(response, "Connection", "close");
    conn_enter(rq->conn, rq->stream ? CONN_STREAMING : CONN_REPLYING);
    enum MHD_Result r = MHD_queue_response(rq->connection, rq->status,
                                           response);
    MHD_destroy_response(response);
    return r;
}

/* All headers are there, and nothing has been made of them. */
static void request_head(struct httpd_request *rq, const char *method,
                         const char *version)
{
    struct head head = {.old = strcmp(version, MHD_HTTP_VERSION_1_0) == 0};
    size_t size = MHD_get_connection_info(
                      rq->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)
                      ->header_size;
    layout_line(&head.layout, method, rq->target, rq->target_size, version);
    (void)MHD_get_connection_values(rq->connection, MHD_HEADER_KIND, on_header,
                                    &head);
    layout_end(&head.layout, size);
    rq->phase = PHASE_BODY;
    request_judge(rq, method, &head);
    /* MHD takes more for the end of a chunk or of the trailers than others
     * do; nothing that follows is read as a request */
    rq->close = rq->at_once || head.n_encodings;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection,
                                  const char *url, const char *method,
                                  const char *version, const char *data,
                                  size_t *size, void **con_cls)
{
    struct httpd_request *rq = *con_cls;
    (void)url;
    (void)cls;
    (void)connection;
    if (rq->phase == PHASE_NEW) {
        request_head(rq, method, version);
        return rq->at_once ? reply_queue(rq) : MHD_YES;
    }
    if (rq->phase == PHASE_BODY && *size > 0) {
        request_take_body(rq, data, *size);
        *size = 0;
        return MHD_YES;
    }
    bool ready;
    if (rq->phase == PHASE_BODY) {
        conn_enter(rq->conn, CONN_HANDLING);
        ready = request_begin(rq);
    } else { /* a suspended request comes back here when it is resumed */
        ready = request_go_on(rq);
    }
    return ready ? reply_queue(rq) : MHD_YES;
}

static void on_completed(void *cls, struct MHD_Connection *connection,
                         void **con_cls, enum MHD_RequestTerminationCode how)
{
    struct conn *conn = conn_of(connection);
    (void)cls;
    (void)how;
    if (!conn->rq)
        return;
    *con_cls = NULL;
    request_end(conn);
    conn_enter(conn, CONN_IDLE);
}

/* --- connections ---------------------------------------------------------- */

/* The client's Finished was taken: from now on it may wait with its first
 * request as long as others between two. */
static int on_finished(gnutls_session_t session, unsigned type, unsigned when,
                       unsigned incoming, const gnutls_datum_t *message)
{
    /* MHD keeps its connection there */
    struct MHD_Connection *connection = gnutls_session_get_ptr(session);
    struct conn *conn = conn_of(connection);
    (void)type;
    (void)when;
    (void)message;
    if (incoming && conn)
        conn_enter(conn, CONN_IDLE);
    return 0;
}

/* For MHD, which must be given one: conn_tls_begin() sees to the
 * certificate. */
static int no_certificate(gnutls_session_t session,
                          const gnutls_datum_t *authorities, int n_authorities,
                          const gnutls_pk_algorithm_t *algorithms,
                          int n_algorithms, gnutls_pcert_st **ret_certs,
                          unsigned *ret_n, gnutls_privkey_t *ret_key)
{
    (void)session;
    (void)authorities;
    (void)n_authorities;
    (void)algorithms;
    (void)n_algorithms;
    (void)ret_certs;
    (void)ret_n;
    (void)ret_key;
    return -1;
}

static void tls_begin(struct conn *conn, const struct httpd_config *config,
                      struct MHD_Connection *connection)
{
    gnutls_session_t session =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION)
            ->tls_session;
    conn_tls_begin(conn, config, session);
    gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_FINISHED,
                                       GNUTLS_HOOK_POST, on_finished);
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
            tls_begin(conn, &h->config, connection);
        if (h->file.path)
            conn_unix_begin(conn);
    } else if (*socket_context) {
        struct conn *conn = steal(socket_context);
        /* MHD 0.9.75 closes without on_completed() when its answer to a
         * request that it refuses fails, too: after many cookies */
        request_end(conn);
        conn_observe(h, conn);
        conn_tls_end(conn);
        free(conn->upgraded);
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

struct MHD_Daemon *mhd_start(struct httpd *h)
{
    const struct httpd_config *c = &h->config;
    struct MHD_OptionItem more[] = {
        {MHD_OPTION_END, 0, NULL}, {MHD_OPTION_END, 0, NULL},
        {MHD_OPTION_END, 0, NULL}, {MHD_OPTION_END, 0, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    /* with epoll, libmicrohttpd turns round and round while a handshake waits
     * for its client: what gnutls has read dry, it takes for ready */
    unsigned n = 0, flags = MHD_ALLOW_SUSPEND_RESUME |
                            (c->tls ? MHD_USE_POLL_INTERNAL_THREAD
                                    : MHD_USE_EPOLL_INTERNAL_THREAD);
    if (h->h2) /* which accepts */
        flags |= MHD_USE_NO_LISTEN_SOCKET;
    else
        more[n++] = (struct MHD_OptionItem){MHD_OPTION_LISTEN_SOCKET, h->fd,
                                            NULL};
    if (c->threads > 1)
        more[n++] = (struct MHD_OptionItem){MHD_OPTION_THREAD_POOL_SIZE,
                                            (intptr_t)c->threads, NULL};
    if (c->tls) {
        flags |= MHD_USE_TLS;
        more[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0,
                                            (void *)TLS_PRIORITIES};
        more[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_CERT_CALLBACK, 0,
                                            (void *)no_certificate};
    }
    /* some room above connections_max: conns_add() makes place for a new
     * connection only once it has been accepted */
    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, h, MHD_OPTION_CONNECTION_LIMIT,
        c->connections_max + HTTPD_SPARE * c->threads,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
        MHD_OPTION_CONNECTION_TIMEOUT, (c->idle_ms + 999) / 1000,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK, on_target,
        h, MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_ARRAY, more,
        MHD_OPTION_END);
}
