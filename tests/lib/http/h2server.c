#include "tests/lib/http/h2server.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/lib/http/h2server_private.h"

static void must(bool well, const char *what)
{
    if (well)
        return;
    perror(what);
    abort();
}

/* --- bytes ---------------------------------------------------------------- */

bool conn_write(struct conn *c, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t n = c->tls ? gnutls_record_send(c->tls, at, size)
                           : send(c->fd, at, size, MSG_NOSIGNAL);
        if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static ssize_t conn_read(struct conn *c, void *data, size_t size)
{
    ssize_t n;
    if (!c->tls)
        return recv(c->fd, data, size, 0);
    do
        n = gnutls_record_recv(c->tls, data, size);
    while (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED);
    return n;
}

/* --- requests ------------------------------------------------------------- */

static int on_header(nghttp2_session *h2, const nghttp2_frame *frame,
                     const uint8_t *name, size_t name_size,
                     const uint8_t *value, size_t value_size, uint8_t flags,
                     void *ctx)
{
    struct conn *c = ctx;
    (void)h2;
    (void)frame;
    (void)flags;
    if (name_size == 5 && memcmp(name, ":path", 5) == 0)
        (void)snprintf(c->path, sizeof c->path, "%.*s", (int)value_size,
                       (const char *)value);
    str_addf(&c->headers, "%.*s: %.*s\n", (int)name_size, (const char *)name,
             (int)value_size, (const char *)value);
    return 0;
}

static int on_begin(nghttp2_session *h2, const nghttp2_frame *frame, void *ctx)
{
    struct conn *c = ctx;
    (void)h2;
    (void)frame;
    str_reset(&c->headers);
    str_reset(&c->body);
    return 0;
}

static int on_data(nghttp2_session *h2, uint8_t flags, int32_t stream,
                   const uint8_t *data, size_t size, void *ctx)
{
    struct conn *c = ctx;
    (void)h2;
    (void)flags;
    (void)stream;
    str_add_n(&c->body, (const char *)data, size);
    return 0;
}

static int on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *ctx)
{
    struct conn *c = ctx;
    (void)h2;
    if ((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        c->ready = frame->hd.stream_id;
    return 0;
}

static void note_call(struct conn *c)
{
    struct h2_server *s = c->s;
    pthread_mutex_lock(&s->lock);
    str_reset(&s->headers);
    str_reset(&s->body);
    str_add(&s->headers, str_text(&c->headers));
    if (c->body.size >= 5)
        str_add_n(&s->body, c->body.data + 5, c->body.size - 5);
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_add(&s->calls, 1);
}

static bool send_pending(struct conn *c)
{
    const uint8_t *data;
    for (ssize_t n; (n = nghttp2_session_mem_send(c->h2, &data)) > 0;)
        if (!conn_write(c, data, (size_t)n))
            return false;
    return true;
}

static void serve(struct conn *c)
{
    nghttp2_session_callbacks *cb;
    uint8_t data[16384];
    must(nghttp2_session_callbacks_new(&cb) == 0, "nghttp2");
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    must(nghttp2_session_server_new(&c->h2, cb, c) == 0, "nghttp2");
    nghttp2_session_callbacks_del(cb);
    (void)nghttp2_submit_settings(c->h2, NGHTTP2_FLAG_NONE, NULL, 0);
    bool well = send_pending(c);
    while (well) {
        ssize_t n = conn_read(c, data, sizeof data);
        if (n <= 0 || nghttp2_session_mem_recv(c->h2, data, (size_t)n) < 0)
            break;
        well = send_pending(c);
        if (!well || c->ready == 0)
            continue;
        int32_t stream = c->ready;
        c->ready = 0;
        note_call(c);
        well = conn_answer(c, stream);
        atomic_fetch_add(&c->s->answers, 1);
    }
}

/* --- connections ---------------------------------------------------------- */

static bool shake_hands(struct conn *c)
{
    struct h2_server *s = c->s;
    const gnutls_datum_t h2 = {.data = (unsigned char[]){'h', '2'}, .size = 2};
    if (!s->own)
        return true;
    must(gnutls_init(&c->tls, GNUTLS_SERVER | GNUTLS_NO_SIGNAL) == 0, "gnutls");
    (void)gnutls_set_default_priority(c->tls);
    (void)gnutls_credentials_set(c->tls, GNUTLS_CRD_CERTIFICATE, s->own);
    (void)gnutls_alpn_set_protocols(c->tls, &h2, 1, 0);
    if (s->config.ca) {
        gnutls_certificate_server_set_request(c->tls, GNUTLS_CERT_REQUIRE);
        gnutls_session_set_verify_cert(c->tls, NULL, 0);
    }
    gnutls_transport_set_int(c->tls, c->fd);
    gnutls_handshake_set_timeout(c->tls, 300000);
    int r;
    do
        r = gnutls_handshake(c->tls);
    while (r < 0 && !gnutls_error_is_fatal(r));
    if (r < 0)
        (void)gnutls_alert_send_appropriate(c->tls, r);
    return r == 0;
}

static void *conn_run(void *ctx)
{
    struct conn *c = ctx;
    int on = 1;
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (shake_hands(c)) {
        atomic_fetch_add(&c->s->connections, 1);
        serve(c);
    }
    if (c->tls)
        gnutls_deinit(c->tls);
    nghttp2_session_del(c->h2); /* NULL allowed */
    (void)shutdown(c->fd, SHUT_RDWR);
    str_fini(&c->headers);
    str_fini(&c->body);
    atomic_store(&c->over, true);
    return NULL;
}

static void conn_end(struct conn *c)
{
    (void)shutdown(c->fd, SHUT_RDWR);
    (void)pthread_join(c->thread, NULL);
    (void)close(c->fd);
    free(c);
}

/* Makes room where connections are over. */
static void reap(struct h2_server *s)
{
    for (size_t i = s->n_conns; i-- > 0;)
        if (atomic_load(&s->conns[i]->over)) {
            conn_end(s->conns[i]);
            s->conns[i] = s->conns[--s->n_conns];
        }
}

static void *accept_all(void *ctx)
{
    struct h2_server *s = ctx;
    for (;;) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
        reap(s);
        if (fd < 0 || atomic_load(&s->stopping) ||
            s->n_conns == CONNECTIONS_MAX) {
            if (fd >= 0)
                (void)close(fd);
            return NULL;
        }
        struct conn *c = xcalloc(1, sizeof *c);
        c->s = s;
        c->fd = fd;
        c->headers = STR_INIT(HEADERS_KEPT);
        c->body = STR_INIT(REQUEST_MAX);
        pthread_mutex_lock(&s->lock);
        s->conns[s->n_conns++] = c;
        must(pthread_create(&c->thread, NULL, conn_run, c) == 0, "thread");
        pthread_mutex_unlock(&s->lock);
    }
}

static int bind_to(const struct sockaddr *where, socklen_t size)
{
    int on = 1, fd = socket(where->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(fd >= 0, "socket");
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    must(bind(fd, where, size) == 0, "bind");
    return fd;
}

/* While the holder is bound nobody else is given the port, neither to listen
 * on nor to connect from. */
static void listen_on_port(struct h2_server *s)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr *where = (struct sockaddr *)&in;
    socklen_t size = sizeof in;
    s->holder = s->config.holder ? s->config.holder : bind_to(where, size);
    must(getsockname(s->holder, where, &size) == 0, "getsockname");
    s->port = ntohs(in.sin_port);
    s->fd = bind_to(where, size);
}

static void listen_on(struct h2_server *s)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    s->holder = -1;
    if (s->config.socket) {
        (void)snprintf(local.sun_path, sizeof local.sun_path, "%s",
                       s->config.socket);
        s->fd = bind_to((struct sockaddr *)&local, sizeof local);
    } else {
        listen_on_port(s);
    }
    must(listen(s->fd, 64) == 0, "listen");
}

struct h2_server *h2_server_start(const struct h2_config *config)
{
    struct h2_server *s = xcalloc(1, sizeof *s);
    s->config = *config;
    s->handler = config->handler;
    s->handler_ctx = config->ctx;
    s->repeat = 1;
    s->headers = STR_INIT(HEADERS_KEPT);
    s->body = STR_INIT(REQUEST_MAX);
    pthread_mutex_init(&s->lock, NULL);
    if (config->cert) {
        must(gnutls_certificate_allocate_credentials(&s->own) == 0, "gnutls");
        must(gnutls_certificate_set_x509_key_file(
                 s->own, config->cert, config->key, GNUTLS_X509_FMT_PEM) == 0,
             "gnutls: certificate");
    }
    if (config->ca)
        must(gnutls_certificate_set_x509_trust_file(s->own, config->ca,
                                                    GNUTLS_X509_FMT_PEM) > 0,
             "gnutls: authorities");
    listen_on(s);
    must(pthread_create(&s->thread, NULL, accept_all, s) == 0, "thread");
    return s;
}

int h2_server_leave(struct h2_server *s)
{
    int holder = s->holder;
    atomic_store(&s->stopping, true);
    (void)shutdown(s->fd, SHUT_RDWR);
    (void)pthread_join(s->thread, NULL);
    (void)close(s->fd);
    for (size_t i = 0; i < s->n_conns; i++)
        conn_end(s->conns[i]);
    for (size_t i = 0; i < s->n_replies; i++) {
        free(s->replies[i].method);
        free(s->replies[i].text);
        str_fini(&s->replies[i].message);
    }
    if (s->own)
        gnutls_certificate_free_credentials(s->own);
    str_fini(&s->headers);
    str_fini(&s->body);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return holder;
}

void h2_server_stop(struct h2_server *s)
{
    (void)close(h2_server_leave(s)); /* -1 allowed */
}

/* --- what the tests say --------------------------------------------------- */

uint16_t h2_server_port(const struct h2_server *s)
{
    return s->port;
}

void h2_server_fault(struct h2_server *s, enum h2_fault fault)
{
    atomic_store(&s->fault, (int)fault);
}

static struct reply *reply_of(struct h2_server *s, const char *method)
{
    for (size_t i = 0; i < s->n_replies; i++) {
        const char *its = s->replies[i].method;
        if ((!its && !method) || (its && method && strcmp(its, method) == 0))
            return &s->replies[i];
    }
    must(s->n_replies < REPLIES_MAX, "h2server: replies");
    struct reply *r = &s->replies[s->n_replies++];
    r->method = method ? xstrdup(method) : NULL;
    r->message = STR_INIT(64 << 20);
    return r;
}

void h2_server_reply(struct h2_server *s, const char *method,
                     const void *message, size_t size)
{
    pthread_mutex_lock(&s->lock);
    struct reply *r = reply_of(s, method);
    str_reset(&r->message);
    str_add_n(&r->message, message, size);
    r->code = 0;
    pthread_mutex_unlock(&s->lock);
}

void h2_server_status(struct h2_server *s, const char *method, int code,
                      const char *text)
{
    pthread_mutex_lock(&s->lock);
    struct reply *r = reply_of(s, method);
    free(r->text);
    r->text = xstrdup(text);
    r->code = code;
    pthread_mutex_unlock(&s->lock);
}

void h2_server_repeat(struct h2_server *s, unsigned n, unsigned ms)
{
    pthread_mutex_lock(&s->lock);
    s->repeat = n;
    s->repeat_ms = ms;
    pthread_mutex_unlock(&s->lock);
}

void h2_server_handle(struct h2_server *s, h2_handler_f *handler, void *ctx)
{
    pthread_mutex_lock(&s->lock);
    s->handler = handler;
    s->handler_ctx = ctx;
    pthread_mutex_unlock(&s->lock);
}

unsigned h2_server_connections(struct h2_server *s)
{
    return atomic_load(&s->connections);
}

unsigned h2_server_calls(struct h2_server *s)
{
    return atomic_load(&s->calls);
}

unsigned h2_server_answers(struct h2_server *s)
{
    return atomic_load(&s->answers);
}

size_t h2_server_request(struct h2_server *s, void *ret_message, size_t max)
{
    pthread_mutex_lock(&s->lock);
    size_t size = s->body.size;
    if (size > 0)
        memcpy(ret_message, s->body.data, size < max ? size : max);
    pthread_mutex_unlock(&s->lock);
    return size;
}

void h2_server_header(struct h2_server *s, const char *name, char *ret_value,
                      size_t size)
{
    cleanup_free char *start = xasprintf("%s: ", name);
    ret_value[0] = '\0';
    pthread_mutex_lock(&s->lock);
    const char *text = str_text(&s->headers);
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        if (strncmp(line, start, strlen(start)) == 0)
            (void)snprintf(ret_value, size, "%.*s", (int)(n - strlen(start)),
                           line + strlen(start));
        line += n + (line[n] == '\n');
    }
    pthread_mutex_unlock(&s->lock);
}
