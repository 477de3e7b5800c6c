#include "lib/http/httpd_private.h"

#include <linux/tcp.h> /* tcpi_bytes_received; netinet/tcp.h lacks it */
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/thread_name.h"

enum {
    REAPER_PERIOD_MS = 1000,
    REAPER_PERIOD_MIN_MS = 20,
    /* when connections run out, a request may be this slow */
    SPARED_ARRIVING_MS = 1000,
    DRAIN_MAX_MS = 5000, /* who is cut is gone at once; this is for a fault */
};

static uint64_t bytes_received(int fd)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return 0;
    return info.tcpi_bytes_received;
}

bool conn_has_unread(int fd)
{
    int unread = 0;
    return ioctl(fd, FIONREAD, &unread) == 0 && unread > 0;
}

bool conn_hung_up(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    return poll(&p, 1, 0) > 0;
}

/* Its peer sends no more, and all it sent was read. */
static bool conn_is_over(int fd)
{
    return conn_hung_up(fd) && !conn_has_unread(fd);
}

static void conn_cut_locked(struct conns *c, struct conn *conn)
{
    conn->cut = true;
    c->n_cut++;
    /* whose it is sees the end of the stream and closes the descriptor */
    (void)shutdown(conn->fd, SHUT_RDWR);
}

/* Has this connection taken longer than it may? */
static bool conn_late_locked(struct conns *c, struct conn *conn, int64_t now)
{
    enum conn_state state = (enum conn_state)atomic_load(&conn->state);
    int64_t since = atomic_load(&conn->since_ms);
    unsigned finished = atomic_load(&conn->n_requests);
    if (state == CONN_HANDLING || state == CONN_STREAMING)
        return false;
    if (state == CONN_REPLYING)
        return now - since > (int64_t)c->reply_ms;
    if (state == CONN_SHAKING)
        return now - since > (int64_t)c->request_ms &&
               !conn_has_unread(conn->fd);
    if (finished != conn->seen_requests) {
        /* what came until now is taken as part of finished requests */
        conn->seen_requests = finished;
        conn->seen_bytes = bytes_received(conn->fd);
        conn->arriving_ms = 0;
    }
    if (conn->arriving_ms == 0) {
        if (state == CONN_ARRIVING)
            conn->arriving_ms = since;
        else if (bytes_received(conn->fd) > conn->seen_bytes)
            conn->arriving_ms = now;
    }
    return conn->arriving_ms != 0 &&
           now - conn->arriving_ms > (int64_t)c->request_ms &&
           !conn_has_unread(conn->fd);
}

static void *reaper_run(void *arg)
{
    struct conns *c = arg;
    unsigned shortest = c->request_ms < c->reply_ms ? c->request_ms
                                                    : c->reply_ms;
    unsigned period = shortest / 4;
    thread_name("http deadlines", NULL);
    if (period > REAPER_PERIOD_MS)
        period = REAPER_PERIOD_MS;
    if (period < REAPER_PERIOD_MIN_MS)
        period = REAPER_PERIOD_MIN_MS;
    hold_lock(&c->lock);
    while (!c->stopping) {
        (void)clock_wait(&c->wake, &c->lock, clock_ms() + period);
        int64_t now = clock_ms();
        for (struct conn *x = c->first; x && !c->stopping; x = x->next)
            if (!x->cut && !x->h2 && conn_late_locked(c, x, now))
                conn_cut_locked(c, x);
        streams_tick(c->streams);
    }
    return NULL;
}

int conns_start(struct conns *c, const struct httpd_config *config,
                struct streams *streams, struct error *err)
{
    c->streams = streams;
    c->max = config->connections_max;
    c->request_ms = config->request_ms;
    c->reply_ms = config->reply_ms;
    (void)pthread_mutex_init(&c->lock, NULL);
    clock_wait_init(&c->wake);
    clock_wait_init(&c->gone);
    int r = pthread_create(&c->reaper, NULL, reaper_run, c);
    if (r == 0)
        return 0;
    (void)pthread_cond_destroy(&c->gone);
    (void)pthread_cond_destroy(&c->wake);
    (void)pthread_mutex_destroy(&c->lock);
    return error_errno(err, r, "cannot start a thread");
}

void conns_drain(struct conns *c)
{
    hold_lock(&c->lock);
    c->draining = true;
    for (struct conn *x = c->first; x; x = x->next)
        if (!x->cut)
            conn_cut_locked(c, x);
    int64_t until = clock_ms() + DRAIN_MAX_MS;
    while (c->n > 0 && clock_ms() < until)
        (void)clock_wait(&c->gone, &c->lock, until);
}

void conns_stop(struct conns *c)
{
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
    (void)pthread_join(c->reaper, NULL);
    (void)pthread_cond_destroy(&c->gone);
    (void)pthread_cond_destroy(&c->wake);
    (void)pthread_mutex_destroy(&c->lock);
}

/* Of those in a state, the one that has been there for longest, before
 * `until`. */
struct eldest {
    struct conn *conn;
    int64_t since;
};

static void eldest_see(struct eldest *e, struct conn *conn, int64_t since)
{
    if (since >= e->since)
        return;
    e->conn = conn;
    e->since = since;
}

/* The oldest whose client has gone: libmicrohttpd does not see the end of a
 * stream that comes with the last bytes before it.  Or else one that has not
 * shown a good certificate, if it has to: a crowd without any must not push out
 * who is known.  Or else a handshake that had its chance, the longest idle
 * connection, or the longest arriving request that had its chance; NULL when
 * all are at work. */
static struct conn *conn_to_spare_locked(struct conns *c, int64_t now)
{
    struct eldest gone = {NULL, INT64_MAX}, doubtful = gone, idle = gone;
    struct eldest shaking = {NULL, now - SPARED_ARRIVING_MS}, slow = shaking;
    for (struct conn *x = c->first; x; x = x->next) {
        int state = atomic_load(&x->state);
        int64_t since = atomic_load(&x->since_ms);
        if (x->cut || state > CONN_ARRIVING)
            continue;
        /* what was just read may be a whole request, to be answered */
        if ((state != CONN_ARRIVING || since < now - SPARED_ARRIVING_MS) &&
            conn_is_over(x->fd))
            eldest_see(&gone, x, since);
        else if (atomic_load(&x->doubtful))
            eldest_see(&doubtful, x, since);
        else if (state == CONN_SHAKING)
            eldest_see(&shaking, x, since);
        else if (state == CONN_ARRIVING)
            eldest_see(&slow, x, since);
        else if (!conn_has_unread(x->fd))
            eldest_see(&idle, x, since);
    }
    return gone.conn       ? gone.conn
           : doubtful.conn ? doubtful.conn
           : shaking.conn  ? shaking.conn
           : idle.conn     ? idle.conn
                           : slow.conn;
}

static void conns_insert(struct conns *c, struct conn *conn)
{
    int64_t now = clock_ms();
    atomic_store(&conn->since_ms, now);
    hold_lock(&c->lock);
    if (c->n - c->n_cut >= c->max) {
        struct conn *spare = conn_to_spare_locked(c, now);
        if (spare)
            conn_cut_locked(c, spare);
    }
    conn->next = c->first;
    if (c->first)
        c->first->prev = conn;
    c->first = conn;
    c->n++;
    if (c->draining)
        conn_cut_locked(c, conn);
}

struct conn *conns_add(struct conns *c, int fd)
{
    struct conn *conn = xcalloc(1, sizeof *conn);
    conn->fd = fd;
    atomic_store(&conn->state, CONN_IDLE);
    conns_insert(c, conn);
    return conn;
}

struct conn *conns_add_h2(struct conns *c, int fd, bool doubtful)
{
    struct conn *conn = xcalloc(1, sizeof *conn);
    conn->fd = fd;
    conn->h2 = true;
    atomic_store(&conn->doubtful, doubtful);
    atomic_store(&conn->state, CONN_SHAKING);
    conns_insert(c, conn);
    return conn;
}

bool conns_full(struct conns *c, size_t spare)
{
    hold_lock(&c->lock);
    return c->n >= c->max + spare;
}

void conns_remove(struct conns *c, struct conn *conn)
{
    pthread_mutex_lock(&c->lock);
    if (conn->prev)
        conn->prev->next = conn->next;
    else
        c->first = conn->next;
    if (conn->next)
        conn->next->prev = conn->prev;
    c->n--;
    c->n_cut -= conn->cut;
    if (c->draining && c->n == 0)
        pthread_cond_signal(&c->gone);
    pthread_mutex_unlock(&c->lock);
    free(conn);
}

void conn_enter(struct conn *conn, enum conn_state state)
{
    atomic_store(&conn->since_ms, clock_ms());
    if (state == CONN_IDLE)
        atomic_fetch_add(&conn->n_requests, 1);
    atomic_store(&conn->state, (int)state);
}

size_t conns_busy(struct conns *c)
{
    size_t n = 0;
    hold_lock(&c->lock);
    for (struct conn *x = c->first; x; x = x->next)
        if (atomic_load(&x->state) >= CONN_HANDLING)
            n++;
    return n;
}
