#include "lib/http/httpd_h2.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "lib/base/mem.h"
#include "lib/http/httpd_hello.h"
#include "lib/io/clock.h"

enum {
    RECORD_MAX = 1 << 14, /* bytes in one TLS record */
    OUT_MIN = 4 * RECORD_MAX,
    /* frames that wait to be sent, without DATA: the head of each reply, and
     * others */
    QUEUE_MAX = HTTPD_STREAMS + 1024,
    COST_ALERT = 10,
    COST_LATE = 100,
    STOP_LINGER_MS = 200,
};

/* --- coming and going ----------------------------------------------------- */

void h2_conn_create(struct h2_loop *loop, int fd)
{
    struct h2_conn *c = xcalloc(1, sizeof *c);
    c->loop = loop;
    c->fd = fd;
    c->since_ms = clock_ms();
    c->conn = conns_add_h2(&loop->h->conns, fd, config_asks(&loop->h->config));
    c->next = loop->first;
    if (c->next)
        c->next->prev = c;
    loop->first = c;
    str_init(&c->out, STR_MAX_DEFAULT);
    c->out.soft = true;
    h2_watch(c, EPOLLIN | EPOLLRDHUP);
}

static void conn_free(struct h2_conn *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        c->loop->first = c->next;
    if (c->next)
        c->next->prev = c->prev;
    if (c->session)
        gnutls_deinit(c->session);
    if (c->conn) {
        conn_tls_end(c->conn);
        conns_remove(&c->loop->h->conns, c->conn);
    }
    if (c->fd >= 0)
        (void)close(c->fd);
    str_fini(&c->out);
    free(c);
}

/* The descriptor stays until conn_free(): others may still look at it. */
void h2_conn_end(struct h2_conn *c)
{
    if (c->stage == H2_ENDED)
        return;
    if (c->conn)
        conn_observe(c->loop->h, c->conn);
    if (c->fd >= 0) {
        h2_watch(c, 0);
        (void)shutdown(c->fd, SHUT_RDWR);
    }
    c->stage = H2_ENDED;
    h2_streams_drop(c);
    nghttp2_session_del(steal(&c->h2));
    h2_dirty(c);
}

/* All is sent.  The client is given time to read it: a connection that is
 * closed with bytes unread takes back what it has sent. */
static void linger(struct h2_conn *c)
{
    h2_streams_drop(c);
    (void)gnutls_bye(c->session, GNUTLS_SHUT_WR);
    (void)shutdown(c->fd, SHUT_WR);
    c->stage = H2_LINGER;
    c->since_ms = clock_ms();
    h2_watch(c, EPOLLIN | EPOLLRDHUP);
}

static void drop_input(struct h2_conn *c)
{
    ssize_t n = recv(c->fd, c->loop->in, sizeof c->loop->in, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        h2_conn_end(c);
}

/* --- sending -------------------------------------------------------------- */

/* False when there is nothing more to send. */
static bool out_fill(struct h2_conn *c)
{
    if (c->n_out < c->out.size)
        return true;
    str_reset(&c->out);
    c->n_out = 0;
    while (c->out.size < OUT_MIN) {
        const uint8_t *data;
        ssize_t n = nghttp2_session_mem_send(c->h2, &data);
        if (n > 0)
            str_add_n(&c->out, (const char *)data, (size_t)n);
        if (n < 0 || c->out.starved) /* nghttp2 takes it for sent */
            h2_conn_end(c);
        if (n <= 0 || c->out.starved)
            break;
    }
    if (c->out.size == 0 && c->out.cap > RECORD_MAX)
        str_fini(&c->out); /* an idle connection needs no large buffer */
    return c->stage == H2_OPEN && c->out.size > 0;
}

/* False when the socket takes no more, or never will. */
static bool out_send(struct h2_conn *c)
{
    size_t size = c->out.size - c->n_out;
    if (size > RECORD_MAX)
        size = RECORD_MAX;
    /* what GnuTLS has encrypted already is not given to it again */
    ssize_t n = c->n_stuck ? gnutls_record_send(c->session, NULL, 0)
                           : gnutls_record_send(c->session,
                                                c->out.data + c->n_out, size);
    if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED) {
        if (!c->n_stuck)
            c->stuck_ms = clock_ms();
        c->n_stuck = c->n_stuck ? c->n_stuck : size;
        return false;
    }
    if (n < 0) {
        h2_conn_end(c);
        return false;
    }
    c->n_out += c->n_stuck ? c->n_stuck : (size_t)n;
    c->n_stuck = 0;
    return true;
}

/* A last word to the client, with all that came until now. */
static void say_goodbye(struct h2_conn *c)
{
    if (c->flood) {
        (void)nghttp2_session_terminate_session(c->h2,
                                                NGHTTP2_ENHANCE_YOUR_CALM);
        c->flood = false;
        c->over = true;
    } else if (c->leave && !c->goodbye) {
        c->goodbye = true;
        (void)nghttp2_submit_goaway(
            c->h2, NGHTTP2_FLAG_NONE,
            nghttp2_session_get_last_proc_stream_id(c->h2), NGHTTP2_NO_ERROR,
            NULL, 0);
        c->goaway_waiting = true;
    }
}

void h2_conn_flush(struct h2_conn *c)
{
    if (c->stage != H2_OPEN) {
        if (c->stage == H2_ENDED && c->n_suspended == 0)
            conn_free(c);
        return;
    }
    say_goodbye(c);
    while (out_fill(c) && out_send(c))
        ;
    if (c->stage != H2_OPEN)
        return;
    if (c->n_stuck == 0 && !nghttp2_session_want_read(c->h2) &&
        !nghttp2_session_want_write(c->h2)) {
        linger(c);
        return;
    }
    h2_watch(c, (c->goaway_waiting || c->over ? 0 : EPOLLIN) | EPOLLRDHUP |
                    (c->n_stuck ? EPOLLOUT : 0));
}

/* --- receiving ------------------------------------------------------------ */

/* For GnuTLS, which asks for a record in pieces: one recv has many. */
static ssize_t pull(gnutls_transport_ptr_t arg, void *data, size_t size)
{
    struct h2_conn *c = arg;
    struct h2_loop *loop = c->loop;
    if (loop->in_at == loop->in_size) {
        ssize_t n = -1;
        if (loop->may_read)
            n = recv(c->fd, loop->in, sizeof loop->in, 0);
        else
            errno = EAGAIN;
        loop->may_read = false;
        if (n < 0)
            gnutls_transport_set_errno(c->session, errno);
        if (n <= 0)
            return n;
        loop->in_at = 0;
        loop->in_size = (size_t)n;
    }
    if (size > loop->in_size - loop->in_at)
        size = loop->in_size - loop->in_at;
    memcpy(data, loop->in + loop->in_at, size);
    loop->in_at += size;
    return (ssize_t)size;
}

static void pay(struct h2_conn *c, unsigned cost)
{
    if (!h2_meter_pay(&c->meter, cost, clock_ms()))
        c->flood = true;
}

static void take_plain(struct h2_conn *c, size_t size)
{
    const uint8_t *data = c->loop->plain;
    if (!h2_meter_feed(&c->meter, data, size, clock_ms()))
        c->flood = true;
    ssize_t n = nghttp2_session_mem_recv(c->h2, data, size);
    if (n == NGHTTP2_ERR_FLOODED ||
        nghttp2_session_get_outbound_queue_size(c->h2) > QUEUE_MAX)
        c->flood = true;
    else if (n < 0)
        h2_conn_end(c);
}

static void receive(struct h2_conn *c)
{
    const struct h2_loop *loop = c->loop;
    while (c->stage == H2_OPEN && !c->flood) {
        ssize_t n = gnutls_record_recv(c->session, c->loop->plain,
                                       sizeof c->loop->plain);
        /* or else it was a record of the handshake's, and others follow */
        if (n == GNUTLS_E_AGAIN && loop->in_at == loop->in_size)
            break;
        if (n == GNUTLS_E_AGAIN)
            pay(c, COST_ALERT);
        else if (n > 0)
            take_plain(c, (size_t)n);
        else if (n == GNUTLS_E_WARNING_ALERT_RECEIVED)
            pay(c, COST_ALERT);
        else if (n != GNUTLS_E_INTERRUPTED)
            h2_conn_end(c);
    }
}

/* --- the handshake -------------------------------------------------------- */

static bool shake_begin(struct h2_conn *c)
{
    static const gnutls_datum_t h2 = {(unsigned char *)"h2", 2};
    if (gnutls_init(&c->session,
                    GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) < 0 ||
        gnutls_priority_set(c->session, c->loop->priorities) < 0 ||
        gnutls_alpn_set_protocols(c->session, &h2, 1, GNUTLS_ALPN_MANDATORY) <
            0)
        return false;
    conn_tls_begin(c->conn, &c->loop->h->config, c->session);
    gnutls_transport_set_ptr2(c->session, c, (void *)(intptr_t)c->fd);
    gnutls_transport_set_pull_function(c->session, pull);
    c->stage = H2_SHAKING;
    return true;
}

static void shake(struct h2_conn *c, bool closed)
{
    int r;
    do {
        r = gnutls_handshake(c->session);
    } while (r == GNUTLS_E_INTERRUPTED || r == GNUTLS_E_WARNING_ALERT_RECEIVED);
    if (r == GNUTLS_E_AGAIN && !closed) {
        h2_watch(c, EPOLLRDHUP |
                        (gnutls_record_get_direction(c->session) ? EPOLLOUT
                                                                 : EPOLLIN));
        return;
    }
    gnutls_datum_t chosen = {NULL, 0};
    if (r < 0 || gnutls_alpn_get_selected_protocol(c->session, &chosen) < 0 ||
        h2_session_create(c) < 0) {
        h2_conn_end(c);
        return;
    }
    c->stage = H2_OPEN;
    c->idle_ms = clock_ms();
    h2_meter_init(&c->meter, c->idle_ms);
    conn_enter(c->conn, CONN_IDLE);
    receive(c);
    h2_dirty(c);
}

/* Peek at the first TLS record: it stays in the socket for its reader. */
static void look(struct h2_conn *c, bool closed)
{
    size_t need = 0;
    ssize_t n = recv(c->fd, c->loop->in, HELLO_MAX, MSG_PEEK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    enum hello hello = n > 0 ? hello_read(c->loop->in, (size_t)n, &need)
                             : HELLO_MORE;
    if (hello == HELLO_OTHER) {
        h2_watch(c, 0);
        h2_hand_over(c);
        h2_conn_end(c);
    } else if (n <= 0 || (hello == HELLO_MORE && closed)) {
        h2_conn_end(c);
    } else if (hello == HELLO_MORE) {
        /* or else the socket would stay readable all the time */
        const int low = (int)need;
        if (setsockopt(c->fd, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low) < 0)
            h2_conn_end(c);
    } else {
        const int one = 1;
        (void)setsockopt(c->fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof one);
        if (shake_begin(c))
            shake(c, closed);
        else
            h2_conn_end(c);
    }
}

/* --- events and deadlines ------------------------------------------------- */

void h2_conn_event(struct h2_conn *c, uint32_t events)
{
    bool closed = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
    c->loop->may_read = true;
    c->loop->in_at = c->loop->in_size = 0;
    if (c->stage == H2_HELLO)
        look(c, closed);
    else if (c->stage == H2_SHAKING)
        shake(c, closed);
    else if (c->stage == H2_LINGER)
        drop_input(c);
    else if (c->stage == H2_OPEN && (events & EPOLLIN))
        receive(c);
    else if (c->stage == H2_OPEN && closed)
        h2_conn_end(c);
    if (c->stage == H2_OPEN)
        h2_dirty(c);
}

/* Requests that arrive too slowly, replies that are taken too slowly. */
static void late_streams(struct h2_conn *c, int64_t now)
{
    const struct httpd_config *config = &c->loop->h->config;
    for (struct httpd_request *rq = c->streams, *next; rq; rq = next) {
        next = rq->h2.next;
        int64_t took = now - rq->h2.since_ms;
        bool late = rq->h2.state == CONN_ARRIVING
                        ? took > (int64_t)config->request_ms
                        : (rq->h2.state == CONN_REPLYING || rq->h2.broken) &&
                              took > (int64_t)config->reply_ms;
        if (!late && rq->h2.broken && rq->h2.id && !c->n_stuck) {
            /* libcurl may have the last one, and wait for more before it looks
             * at it */
            h2_stream_break(rq);
            h2_dirty(c);
        }
        if (!late)
            continue;
        if (rq->phase == PHASE_NEW) { /* and nothing else can come before */
            h2_conn_end(c);
            return;
        }
        pay(c, COST_LATE);
        rq->h2.since_ms = now; /* once will do */
        h2_stream_reset(rq, NGHTTP2_CANCEL);
        h2_dirty(c);
    }
}

static void tick_open(struct h2_conn *c, int64_t now)
{
    const struct httpd_config *config = &c->loop->h->config;
    /* who has a stream may pause; probes notice one that has vanished */
    if (c->n_stuck && c->n_in[CONN_STREAMING] == 0 &&
        now - c->stuck_ms > (int64_t)config->reply_ms) {
        h2_conn_end(c);
        return;
    }
    if (!c->goaway_waiting && conn_has_unread(c->fd))
        return; /* the delay is ours */
    if (h2_meter_partial_ms(&c->meter, now) > (int64_t)config->request_ms) {
        h2_conn_end(c);
        return;
    }
    late_streams(c, now);
    if (c->stage == H2_OPEN && !c->streams &&
        now - c->idle_ms > (int64_t)config->idle_ms) {
        c->leave = true;
        h2_dirty(c);
    }
}

void h2_conn_tick(struct h2_conn *c, int64_t now)
{
    const struct httpd_config *config = &c->loop->h->config;
    int64_t took = now - c->since_ms;
    if (c->stage == H2_OPEN)
        tick_open(c, now);
    else if (c->stage == H2_LINGER
                 ? took > (c->loop->leaving ? STOP_LINGER_MS : H2_LINGER_MS)
                 : c->stage != H2_ENDED && took > (int64_t)config->request_ms)
        h2_conn_end(c);
}

void h2_conn_leave(struct h2_conn *c)
{
    if (c->stage == H2_HELLO || c->stage == H2_SHAKING)
        h2_conn_end(c);
    if (c->stage != H2_OPEN)
        return;
    if (c->n_stuck && c->n_in[CONN_STREAMING] > 0) {
        h2_conn_end(c); /* it pauses, and may do so for ever */
        return;
    }
    /* what has not come whole has not been looked at: ask somebody else */
    for (struct httpd_request *rq = c->streams, *next; rq; rq = next) {
        next = rq->h2.next;
        if (rq->h2.state == CONN_ARRIVING)
            h2_stream_reset(rq, NGHTTP2_REFUSED_STREAM);
        else if (rq->h2.state == CONN_STREAMING)
            h2_stream_reset(rq, NGHTTP2_CANCEL);
    }
    c->leave = true;
    h2_dirty(c);
}
