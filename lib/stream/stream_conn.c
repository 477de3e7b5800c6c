#include "lib/stream/stream_conn.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    /* A peer without power is noticed within half a minute although nothing
     * is sent.  No TCP_USER_TIMEOUT: it would end the stream of a reader that
     * pauses. */
    KEEP_IDLE_S = 10,
    KEEP_EVERY_S = 5,
    KEEP_TIMES = 4,
    /* messages of TLS itself in a row: more are a flood */
    NOTES_MAX = 64,
};

void stream_conn_probe(int fd)
{
    const int on = 1, idle = KEEP_IDLE_S, every = KEEP_EVERY_S,
              times = KEEP_TIMES;
    /* these are refused by sockets of other families, which need none */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
}

void stream_conn_init(struct stream_conn *c, int fd)
{
    *c = (struct stream_conn){.fd = fd};
    stream_conn_probe(fd);
}

void stream_conn_fini(struct stream_conn *c)
{
    if (c->session)
        gnutls_deinit(c->session);
    if (c->fd >= 0)
        (void)close(c->fd);
    *c = STREAM_CONN_NONE;
}

void stream_conn_happened(struct stream_conn *c, uint32_t events)
{
    /* to read, TLS may have to write, and the other way round */
    uint32_t all = c->session ? EPOLLIN | EPOLLOUT : 0;
    uint32_t lost = EPOLLERR | EPOLLHUP;
    c->told = true;
    c->readable |= (events & (EPOLLIN | EPOLLRDHUP | lost | all)) != 0;
    c->writable |= (events & (EPOLLOUT | lost | all)) != 0;
    c->hung_up |= (events & (EPOLLRDHUP | lost)) != 0;
}

/* --- to connect ---------------------------------------------------------------- */

int stream_conn_dial(struct stream_conn *c, const struct sockaddr_storage *to)
{
    socklen_t size = to->ss_family == AF_INET ? sizeof(struct sockaddr_in)
                                              : sizeof(struct sockaddr_in6);
    int fd = socket(to->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                    0);
    if (fd < 0)
        return -errno;
    stream_conn_init(c, fd);
    if (connect(fd, (const struct sockaddr *)to, size) < 0 &&
        errno != EINPROGRESS) {
        int e = errno;
        stream_conn_fini(c);
        return -e;
    }
    return 0;
}

int stream_conn_dialled(const struct stream_conn *c)
{
    int e = 0;
    socklen_t size = sizeof e;
    if (!c->writable)
        return -EAGAIN;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &e, &size) < 0)
        return -errno;
    return -e;
}

/* --- TLS ------------------------------------------------------------------------ */

/* GnuTLS says "again" also when it has taken a message of TLS itself, as a
 * ticket for sessions, and more is there, of which epoll will not tell any
 * more.  So these note what the kernel said. */
static ssize_t pull(gnutls_transport_ptr_t conn, void *data, size_t size)
{
    struct stream_conn *c = conn;
    ssize_t n = recv(c->fd, data, size, 0);
    c->waits |= n < 0 && errno == EAGAIN;
    return n;
}

static ssize_t push(gnutls_transport_ptr_t conn, const void *data, size_t size)
{
    struct stream_conn *c = conn;
    ssize_t n = send(c->fd, data, size, MSG_NOSIGNAL);
    c->waits |= n < 0 && errno == EAGAIN;
    return n;
}

static void use_session(struct stream_conn *c)
{
    gnutls_transport_set_ptr(c->session, c);
    gnutls_transport_set_pull_function(c->session, pull);
    gnutls_transport_set_push_function(c->session, push);
}

void stream_conn_adopt(struct stream_conn *c, int fd, gnutls_session_t session)
{
    stream_conn_init(c, fd);
    c->session = session;
    if (session)
        use_session(c);
    c->readable = c->writable = true; /* nobody has told; to be tried */
}

int stream_conn_tls(struct stream_conn *c, const struct stream_creds *creds,
                    struct error *err)
{
    int r = gnutls_init(&c->session,
                        GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
    if (r == 0)
        r = stream_creds_use(creds, c->session);
    if (r < 0)
        return error_set(err, EPROTO, "TLS: %s", gnutls_strerror(r));
    use_session(c);
    return 0;
}

static int certificate_refused(struct stream_conn *c, struct error *err)
{
    unsigned status = gnutls_session_get_verify_cert_status(c->session);
    gnutls_datum_t text = {NULL, 0};
    int r = gnutls_certificate_verification_status_print(
        status, GNUTLS_CRT_X509, &text, 0);
    error_set(err, EKEYREJECTED, "its certificate is refused: %s",
              r == 0 ? (const char *)text.data : "it cannot be read");
    gnutls_free(text.data);
    return -EKEYREJECTED;
}

/* What a failure of TLS is to others. */
static int fault(struct stream_conn *c, int r)
{
    bool alert = r == GNUTLS_E_FATAL_ALERT_RECEIVED;
    const char *name = alert
                           ? gnutls_alert_get_name(gnutls_alert_get(c->session))
                           : NULL;
    c->last = name ? name : gnutls_strerror(r);
    return alert ? -EKEYREJECTED
           : r == GNUTLS_E_PREMATURE_TERMINATION || r == GNUTLS_E_PULL_ERROR ||
                   r == GNUTLS_E_PUSH_ERROR
               ? -ECONNRESET
               : -EPROTO;
}

int stream_conn_shake(struct stream_conn *c, struct error *err)
{
    int r = GNUTLS_E_AGAIN;
    for (int i = 0; i < NOTES_MAX && r < 0 && !gnutls_error_is_fatal(r); i++) {
        c->waits = false;
        r = gnutls_handshake(c->session);
        if (r == GNUTLS_E_AGAIN && c->waits) {
            c->readable = c->writable = false;
            return -EAGAIN;
        }
    }
    if (r == 0)
        return 0;
    if (r == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR)
        return certificate_refused(c, err);
    int code = fault(c, r);
    return error_set(err, -code, "TLS handshake: %s", c->last);
}

static ssize_t tls_read(struct stream_conn *c, void *data, size_t size)
{
    ssize_t r = GNUTLS_E_AGAIN;
    for (int i = 0; i < NOTES_MAX && r < 0; i++) {
        c->waits = false;
        r = gnutls_record_recv(c->session, data, size);
        if (r == GNUTLS_E_AGAIN && c->waits)
            return -EAGAIN;
        if (r < 0 && gnutls_error_is_fatal((int)r))
            break;
    }
    return r >= 0 ? r : fault(c, (int)r);
}

static ssize_t tls_write(struct stream_conn *c, const void *data, size_t size)
{
    ssize_t r;
    do {
        r = c->held ? gnutls_record_send(c->session, NULL, 0)
                    : gnutls_record_send(c->session, data, size);
    } while (r == GNUTLS_E_INTERRUPTED);
    c->held = r == GNUTLS_E_AGAIN;
    return r == GNUTLS_E_AGAIN ? -EAGAIN : r >= 0 ? r : fault(c, (int)r);
}

/* --- bytes ------------------------------------------------------------------------ */

ssize_t stream_conn_read(struct stream_conn *c, void *data, size_t size)
{
    ssize_t n;
    if (!c->readable)
        return -EAGAIN;
    if (c->session) {
        n = tls_read(c, data, size);
    } else {
        do {
            n = recv(c->fd, data, size, 0);
        } while (n < 0 && errno == EINTR);
        n = n < 0 ? -errno : n;
    }
    if (n == -EAGAIN)
        c->readable = false;
    return n;
}

ssize_t stream_conn_write(struct stream_conn *c, const void *data, size_t size)
{
    ssize_t n;
    if (!c->writable)
        return -EAGAIN;
    if (c->session) {
        n = tls_write(c, data, size);
    } else {
        do {
            n = send(c->fd, data, size, MSG_NOSIGNAL);
        } while (n < 0 && errno == EINTR);
        n = n < 0 ? -errno : n;
    }
    if (n == -EAGAIN)
        c->writable = false;
    return n;
}

int stream_conn_end(struct stream_conn *c)
{
    if (c->session && !c->writable)
        return -EAGAIN;
    if (c->session) {
        int r = gnutls_bye(c->session, GNUTLS_SHUT_WR);
        if (r == GNUTLS_E_AGAIN || r == GNUTLS_E_INTERRUPTED) {
            c->writable = false;
            return -EAGAIN;
        }
    }
    return shutdown(c->fd, SHUT_WR) < 0 ? -errno : 0;
}

void stream_conn_reset(struct stream_conn *c)
{
    const struct linger at_once = {.l_onoff = 1};
    /* refused, it is noticed there when nothing was sent for too long */
    (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

int stream_conn_break(struct stream_conn *c)
{
    int unsent = 0;
    if (c->session)
        return shutdown(c->fd, SHUT_WR) < 0 ? -errno : 0;
    if (ioctl(c->fd, SIOCOUTQ, &unsent) == 0 && unsent > 0)
        return -EAGAIN;
    stream_conn_reset(c);
    return 0;
}
