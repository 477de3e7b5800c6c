#include "lib/http/httpd_h2.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/thread_name.h"

enum {
    EVENTS = 64,
    ACCEPTS = 64, /* in one round */
    TICK_MAX_MS = 1000,
    TICK_MIN_MS = 20,
};

/* --- connections ---------------------------------------------------------- */

void h2_watch(struct h2_conn *c, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = c};
    if (events == c->events)
        return;
    int what = !c->events ? EPOLL_CTL_ADD
               : !events  ? EPOLL_CTL_DEL
                          : EPOLL_CTL_MOD;
    /* where it fails there is no memory: its deadlines end the connection */
    (void)epoll_ctl(c->loop->epoll, what, c->fd, &e);
    c->events = events;
}

void h2_dirty(struct h2_conn *c)
{
    struct h2_loop *loop = c->loop;
    if (c->dirty)
        return;
    c->dirty = true;
    c->next_dirty = loop->dirty;
    loop->dirty = c;
}

/* The listener's socket is known by the loop's address.  Only the first time,
 * to add it, may fail. */
static int listener_watch(struct h2_loop *loop, int what, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = loop};
    return epoll_ctl(loop->epoll, what, loop->h->fd, &e);
}

static void pause_accept(struct h2_loop *loop, bool pause)
{
    if (loop->paused == pause || loop->leaving)
        return;
    loop->paused = pause;
    if (pause)
        loop->due_ms = clock_ms() + TICK_MIN_MS;
    (void)listener_watch(loop, EPOLL_CTL_MOD, pause ? 0 : EPOLLIN);
}

static void accept_some(struct h2_loop *loop)
{
    struct httpd *h = loop->h;
    size_t spare = (size_t)HTTPD_SPARE * h->config.threads;
    for (int i = 0; i < ACCEPTS; i++) {
        if (conns_full(&h->conns, spare)) {
            pause_accept(loop, true);
            return;
        }
        int fd = accept4(h->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            h2_conn_create(loop, fd);
        else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
                 errno == ENOMEM)
            pause_accept(loop, true);
        if (fd < 0 && errno != ECONNABORTED && errno != EINTR)
            return;
    }
}

void h2_hand_over(struct h2_conn *c)
{
    struct httpd *h = c->loop->h;
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    const int one = 1;
    (void)setsockopt(c->fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof one);
    /* it counts again as soon as MHD's thread has it; MHD closes it should it
     * not want it */
    conns_remove(&h->conns, steal(&c->conn));
    if (getpeername(c->fd, (struct sockaddr *)&address, &size) == 0)
        (void)MHD_add_connection(h->daemon, c->fd, (struct sockaddr *)&address,
                                 size);
    else
        (void)close(c->fd);
    c->fd = -1;
}

/* --- the thread ----------------------------------------------------------- */

static void take_resumed(struct h2_loop *loop)
{
    uint64_t n;
    if (read(loop->wake, &n, sizeof n) < 0)
        return;
    pthread_mutex_lock(&loop->lock);
    struct httpd_request *rq = steal(&loop->resumed);
    pthread_mutex_unlock(&loop->lock);
    while (rq) {
        struct httpd_request *next = rq->next;
        h2_stream_resumed(rq);
        rq = next;
    }
}

/* What was answered in this round goes out, as much as fits in one record;
 * only here connections are freed. */
static void flush_dirty(struct h2_loop *loop)
{
    while (loop->dirty) {
        struct h2_conn *c = loop->dirty;
        loop->dirty = c->next_dirty;
        c->dirty = false;
        h2_conn_flush(c);
    }
}

static void leave(struct h2_loop *loop)
{
    (void)listener_watch(loop, EPOLL_CTL_DEL, 0);
    loop->leaving = true;
    loop->due_ms = 0;
    for (struct h2_conn *c = loop->first; c; c = c->next)
        h2_conn_leave(c);
}

static int64_t tick_ms(const struct httpd_config *c)
{
    unsigned shortest = c->request_ms < c->reply_ms ? c->request_ms
                                                    : c->reply_ms;
    return shortest / 4 > TICK_MAX_MS   ? TICK_MAX_MS
           : shortest / 4 < TICK_MIN_MS ? TICK_MIN_MS
                                        : shortest / 4;
}

static void tick(struct h2_loop *loop)
{
    int64_t now = clock_ms();
    if (now < loop->due_ms)
        return;
    for (struct h2_conn *c = loop->first; c; c = c->next)
        h2_conn_tick(c, now);
    pause_accept(loop, false);
    loop->due_ms = now +
                   (loop->leaving ? TICK_MIN_MS : tick_ms(&loop->h->config));
}

static int wait_ms(const struct h2_loop *loop)
{
    int64_t wait = loop->due_ms - clock_ms();
    return !loop->first && !loop->paused ? -1 : wait > 0 ? (int)wait : 0;
}

static void *loop_run(void *arg)
{
    struct h2_loop *loop = arg;
    struct epoll_event events[EVENTS];
    thread_name("http2 loop", NULL);
    while (!loop->leaving || loop->first) {
        int n = epoll_wait(loop->epoll, events, EVENTS, wait_ms(loop));
        for (int i = 0; i < n; i++) {
            void *whose = events[i].data.ptr;
            if (!whose)
                take_resumed(loop);
            else if (whose == loop)
                accept_some(loop);
            else
                h2_conn_event(whose, events[i].events);
        }
        tick(loop);
        if (!loop->leaving && atomic_load(&loop->h->stopping))
            leave(loop);
        flush_dirty(loop);
    }
    return NULL;
}

/* --- starting and stopping ------------------------------------------------ */

int h2_create(struct httpd *h, struct h2_loop **ret_loop, struct error *err)
{
    struct h2_loop *loop = xcalloc(1, sizeof *loop);
    struct epoll_event e = {.events = EPOLLIN};
    loop->h = h;
    loop->callbacks = h2_callbacks();
    if (nghttp2_option_new(&loop->option) != 0 ||
        gnutls_priority_init(&loop->priorities, TLS_PRIORITIES, NULL) < 0)
        abort(); /* out of memory, as x*alloc does */
    nghttp2_option_set_no_closed_streams(loop->option, 1);
    (void)pthread_mutex_init(&loop->lock, NULL);
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->epoll < 0 || loop->wake < 0 ||
        epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->wake, &e) < 0 ||
        listener_watch(loop, EPOLL_CTL_ADD, EPOLLIN) < 0) {
        int r = error_errno(err, errno, "cannot wait for connections");
        h2_destroy(loop);
        return r;
    }
    *ret_loop = loop;
    return 0;
}

int h2_start(struct h2_loop *loop, struct error *err)
{
    int r = pthread_create(&loop->thread, NULL, loop_run, loop);
    return r ? error_errno(err, r, "cannot start a thread") : 0;
}

void h2_wake(struct h2_loop *loop)
{
    const uint64_t one = 1;
    if (write(loop->wake, &one, sizeof one) < 0)
        return; /* it is full, and wakes all the same */
}

void h2_stop(struct h2_loop *loop)
{
    h2_wake(loop);
    (void)pthread_join(loop->thread, NULL);
}

void h2_destroy(struct h2_loop *loop)
{
    if (!loop)
        return;
    if (loop->epoll >= 0)
        (void)close(loop->epoll);
    if (loop->wake >= 0)
        (void)close(loop->wake);
    gnutls_priority_deinit(loop->priorities);
    nghttp2_option_del(loop->option);
    nghttp2_session_callbacks_del(loop->callbacks);
    (void)pthread_mutex_destroy(&loop->lock);
    free(loop);
}
