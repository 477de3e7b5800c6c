#include "tests/lib/http/streamserver.h"

#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "tests/lib/http/rawclient.h"

enum { PATIENCE_S = 300, BUFFER = 64 << 10, ALL_MAX = 64 << 20 };

struct stream_server {
    struct stream_server_config config;
    gnutls_certificate_credentials_t own;
    gnutls_datum_t tickets; /* the key of its sessions' tickets */
    int listener;
    uint16_t port;
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    unsigned running, ended, asked;
    struct str head;
};

/* One connection, plain or TLS. */
struct peer {
    struct stream_server *server;
    int fd;
    gnutls_session_t session;
};

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "streamserver: %s\n", what);
    abort();
}

/* --- bytes -------------------------------------------------------------------- */

static ssize_t peer_read(struct peer *p, void *data, size_t size)
{
    ssize_t n;
    if (!p->session)
        return recv(p->fd, data, size, 0);
    do {
        n = gnutls_record_recv(p->session, data, size);
    } while (n < 0 && !gnutls_error_is_fatal((int)n));
    return n;
}

static bool peer_write(struct peer *p, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = p->session ? gnutls_record_send(p->session, data, size)
                               : send(p->fd, data, size, MSG_NOSIGNAL);
        if (n < 0 && p->session && !gnutls_error_is_fatal((int)n))
            continue;
        if (n <= 0)
            return false;
        data += n;
        size -= (size_t)n;
    }
    return true;
}

static void peer_end(struct peer *p)
{
    if (p->session)
        (void)gnutls_bye(p->session, GNUTLS_SHUT_WR);
    (void)shutdown(p->fd, SHUT_WR);
}

static bool peer_tls(struct peer *p)
{
    struct stream_server *s = p->server;
    int r;
    if (!s->own)
        return true;
    must(gnutls_init(&p->session, GNUTLS_SERVER | GNUTLS_NO_SIGNAL) == 0 &&
             gnutls_set_default_priority(p->session) == 0 &&
             gnutls_credentials_set(p->session, GNUTLS_CRD_CERTIFICATE,
                                    s->own) == 0 &&
             gnutls_session_ticket_enable_server(p->session, &s->tickets) == 0,
         "TLS");
    if (s->config.client_ca_file) {
        gnutls_certificate_server_set_request(p->session, GNUTLS_CERT_REQUIRE);
        gnutls_session_set_verify_cert(p->session, NULL, 0);
    }
    gnutls_transport_set_int(p->session, p->fd);
    do {
        r = gnutls_handshake(p->session);
    } while (r < 0 && !gnutls_error_is_fatal(r));
    if (r < 0) /* the other side is to hear why */
        (void)gnutls_alert_send_appropriate(p->session, r);
    return r == 0;
}

/* A ticket for sessions and the answer in one packet, as Go's servers have it
 * at times: who reads the one must not wait for more before the other. */
static void cork(struct peer *p, int on)
{
    if (!p->session)
        return;
    (void)setsockopt(p->fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on);
    if (on && gnutls_protocol_get_version(p->session) == GNUTLS_TLS1_3)
        (void)gnutls_session_ticket_send(p->session, 1, 0); /* or it is gone */
}

/* --- one connection --------------------------------------------------------------- */

static bool read_head(struct peer *p, struct str *head)
{
    char c;
    while (head->size < 4 ||
           memcmp(head->data + head->size - 4, "\r\n\r\n", 4) != 0) {
        if (peer_read(p, &c, 1) != 1)
            return false;
        str_add_c(head, c);
    }
    return true;
}

static bool answer(struct peer *p, const struct str *head)
{
    const char *given = p->server->config.answer;
    if (given)
        return peer_write(p, given, strlen(given));
    cleanup_str struct str text = STR_INIT(1 << 16);
    bool socket = strstr(head->data, "Upgrade: websocket") != NULL;
    str_addf(&text,
             "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
             "Upgrade: %s\r\n%s: v4.channel.k8s.io\r\n\r\n",
             socket ? "websocket" : "SPDY/3.1",
             socket ? "Sec-WebSocket-Protocol" : "X-Stream-Protocol-Version");
    return peer_write(p, text.data, text.size);
}

static void echo(struct peer *p)
{
    cleanup_free char *buffer = xmalloc(BUFFER);
    ssize_t n;
    while ((n = peer_read(p, buffer, BUFFER)) > 0)
        if (!peer_write(p, buffer, (size_t)n))
            return;
    if (n == 0)
        (void)peer_write(p, "end", 3);
}

static void swap(struct peer *p)
{
    cleanup_str struct str all = STR_INIT(ALL_MAX);
    cleanup_free char *buffer = xmalloc(BUFFER);
    ssize_t n;
    while ((n = peer_read(p, buffer, BUFFER)) > 0)
        str_add_n(&all, buffer, (size_t)n);
    for (size_t i = 0; i < all.size; i++)
        all.data[i] = (char)~all.data[i];
    (void)peer_write(p, str_text(&all), all.size);
}

static void until_end(struct peer *p)
{
    char buffer[4096];
    while (peer_read(p, buffer, sizeof buffer) > 0)
        ;
}

static void reset(struct peer *p)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    char c;
    (void)peer_read(p, &c, 1);
    (void)setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

static void serve(struct peer *p)
{
    struct stream_server *s = p->server;
    cleanup_str struct str head = STR_INIT(1 << 20);
    if (!peer_tls(p) || !read_head(p, &head))
        return;
    pthread_mutex_lock(&s->lock);
    s->asked++;
    str_reset(&s->head);
    str_add_n(&s->head, head.data, head.size);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    cork(p, 1);
    bool answered = answer(p, &head);
    cork(p, 0);
    if (!answered)
        return;
    switch (s->config.manner) {
    case SERVES_ECHO:
        echo(p);
        break;
    case SERVES_SWAP:
        swap(p);
        break;
    case SERVES_ANSWER:
        until_end(p);
        break;
    case SERVES_RESET:
        reset(p);
        return;
    case SERVES_CLOSE:
        break;
    }
    peer_end(p);
}

static void *peer_run(void *arg)
{
    struct peer *p = arg;
    struct stream_server *s = p->server;
    serve(p);
    if (p->session)
        gnutls_deinit(p->session);
    (void)close(p->fd);
    free(p);
    pthread_mutex_lock(&s->lock);
    s->running--;
    s->ended++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* --- all of them -------------------------------------------------------------------- */

static void *accept_all(void *arg)
{
    struct stream_server *s = arg;
    for (;;) {
        pthread_t thread;
        int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            return NULL; /* it is to stop */
        struct peer *p = xcalloc(1, sizeof *p);
        p->server = s;
        p->fd = fd;
        pthread_mutex_lock(&s->lock);
        s->running++;
        pthread_mutex_unlock(&s->lock);
        must(pthread_create(&thread, NULL, peer_run, p) == 0, "thread");
        (void)pthread_detach(thread);
    }
}

struct stream_server *
stream_server_start(const struct stream_server_config *config)
{
    struct stream_server *s = xcalloc(1, sizeof *s);
    s->config = *config;
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->changed, NULL);
    str_init(&s->head, 1 << 20);
    if (config->cert_file) {
        must(gnutls_session_ticket_key_generate(&s->tickets) == 0 &&
                 gnutls_certificate_allocate_credentials(&s->own) == 0 &&
                 gnutls_certificate_set_x509_key_file(s->own, config->cert_file,
                                                      config->key_file,
                                                      GNUTLS_X509_FMT_PEM) >= 0,
             config->cert_file);
        if (config->client_ca_file)
            must(gnutls_certificate_set_x509_trust_file(
                     s->own, config->client_ca_file, GNUTLS_X509_FMT_PEM) > 0,
                 config->client_ca_file);
    }
    s->listener = raw_listen(&s->port);
    must(pthread_create(&s->thread, NULL, accept_all, s) == 0, "thread");
    return s;
}

uint16_t stream_server_port(const struct stream_server *s)
{
    return s->port;
}

/* With the lock: until it was told that something has changed. */
static void wait_changed(struct stream_server *s, const char *what)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    must(pthread_cond_timedwait(&s->changed, &s->lock, &until) == 0, what);
}

void stream_server_ended(struct stream_server *s, unsigned n)
{
    hold_lock(&s->lock);
    while (s->ended < n)
        wait_changed(s, "a connection does not end");
}

void stream_server_asked(struct stream_server *s, unsigned n)
{
    hold_lock(&s->lock);
    while (s->asked < n)
        wait_changed(s, "no request comes");
}

void stream_server_head(struct stream_server *s, struct str *ret_head)
{
    hold_lock(&s->lock);
    str_reset(ret_head);
    str_add_n(ret_head, str_text(&s->head), s->head.size);
}

void stream_server_stop(struct stream_server *s)
{
    (void)shutdown(s->listener, SHUT_RDWR);
    (void)pthread_join(s->thread, NULL);
    pthread_mutex_lock(&s->lock);
    while (s->running > 0)
        wait_changed(s, "a connection does not end");
    pthread_mutex_unlock(&s->lock);
    (void)close(s->listener);
    if (s->own)
        gnutls_certificate_free_credentials(s->own);
    gnutls_free(s->tickets.data);
    str_fini(&s->head);
    (void)pthread_cond_destroy(&s->changed);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}
