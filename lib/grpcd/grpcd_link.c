#include <errno.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib/grpcd/grpcd_private.h"
#include "lib/io/clock.h"

enum {
    OUT_MIN = 64 << 10, /* bytes: as many at least in one send */
    OUT_KEEP = 16 << 10,
    READS = 4,        /* of one connection in a round */
    QUEUE_MAX = 4096, /* frames that wait to be sent, without DATA */
};

static void watch(struct grpcd_link *l, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = l};
    if (events == l->events)
        return;
    int what = !l->events ? EPOLL_CTL_ADD
               : !events  ? EPOLL_CTL_DEL
                          : EPOLL_CTL_MOD;
    if (epoll_ctl(l->s->epoll, what, l->fd, &e) == 0)
        l->events = events;
    else
        grpcd_link_end(l); /* there is no memory */
}

/* --- coming and going ------------------------------------------------------- */

struct grpcd_link *grpcd_link_create(struct grpcd *s, struct grpcd_relay *relay,
                                     int fd)
{
    struct grpcd_link *l = xcalloc(1, sizeof *l);
    struct grpcd_link **list = relay ? &relay->first : &s->first;
    l->s = s;
    l->relay = relay;
    l->fd = fd;
    l->idle_ms = clock_ms();
    l->next = *list;
    if (l->next)
        l->next->prev = l;
    *list = l;
    s->n_links += !relay;
    atomic_store(&s->stat_links, s->n_links);
    str_init(&l->out, STR_MAX_DEFAULT);
    h2_meter_init(&l->meter, l->idle_ms);
    if (grpcd_session_create(l) < 0)
        abort(); /* out of memory, as x*alloc does */
    watch(l, EPOLLIN | EPOLLRDHUP);
    grpcd_link_dirty(l);
    return l;
}

static void link_free(struct grpcd_link *l)
{
    struct grpcd *s = l->s;
    struct grpcd_link **list = l->relay ? &l->relay->first : &s->first;
    if (l->prev)
        l->prev->next = l->next;
    else
        *list = l->next;
    if (l->next)
        l->next->prev = l->prev;
    s->n_links -= !l->relay;
    atomic_store(&s->stat_links, s->n_links);
    nghttp2_session_del(l->h2);
    str_fini(&l->out);
    (void)close(l->fd);
    free(l);
}

void grpcd_link_dirty(struct grpcd_link *l)
{
    if (l->dirty)
        return;
    l->dirty = true;
    l->next_dirty = l->s->dirty;
    l->s->dirty = l;
}

/* The descriptor and the session stay until link_free(): others may be at
 * work with them. */
void grpcd_link_end(struct grpcd_link *l)
{
    if (l->ended)
        return;
    l->ended = true;
    if (l->events)
        (void)epoll_ctl(l->s->epoll, EPOLL_CTL_DEL, l->fd, NULL);
    l->events = 0;
    (void)shutdown(l->fd, SHUT_RDWR);
    if (l->relay)
        grpcd_relay_gone(l);
    while (l->calls) {
        if (l->relay)
            grpcd_pass_lost(l->calls);
        else
            grpcd_stream_closed(l->calls, NGHTTP2_CANCEL);
    }
    grpcd_link_dirty(l);
}

void grpcd_link_leave(struct grpcd_link *l)
{
    if (l->leaving || l->ended)
        return;
    l->leaving = true;
    (void)nghttp2_submit_goaway(l->h2, NGHTTP2_FLAG_NONE,
                                nghttp2_session_get_last_proc_stream_id(l->h2),
                                NGHTTP2_NO_ERROR, NULL, 0);
    grpcd_link_dirty(l);
}

/* --- sending ---------------------------------------------------------------- */

/* False when there is nothing more to send. */
static bool fill(struct grpcd_link *l)
{
    if (l->n_out < l->out.size)
        return true;
    str_reset(&l->out);
    l->n_out = 0;
    while (l->out.size < OUT_MIN) {
        const uint8_t *data;
        ssize_t n = nghttp2_session_mem_send(l->h2, &data);
        if (n > 0)
            str_add_n(&l->out, (const char *)data, (size_t)n);
        if (n < 0)
            grpcd_link_end(l);
        if (n <= 0 || l->ended)
            break;
    }
    if (l->out.size == 0 && l->out.cap > OUT_KEEP)
        str_fini(&l->out);
    return !l->ended && l->out.size > 0;
}

/* False when the socket takes no more, or never will. */
static bool push(struct grpcd_link *l)
{
    ssize_t n = send(l->fd, l->out.data + l->n_out, l->out.size - l->n_out,
                     MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) {
        l->n_out += (size_t)n;
        return true;
    }
    if (errno == EAGAIN || errno == EINTR)
        l->stuck = true;
    else
        grpcd_link_end(l);
    return false;
}

void grpcd_link_flush(struct grpcd_link *l)
{
    if (l->flood && !l->ended) {
        l->flood = false;
        l->leaving = true;
        (void)nghttp2_session_terminate_session(l->h2,
                                                NGHTTP2_ENHANCE_YOUR_CALM);
    }
    l->stuck = false;
    while (!l->ended && fill(l) && push(l))
        ;
    if (!l->ended && !l->stuck && !nghttp2_session_want_read(l->h2) &&
        !nghttp2_session_want_write(l->h2))
        grpcd_link_end(l);
    if (!l->ended)
        watch(l, EPOLLIN | EPOLLRDHUP | (l->stuck ? EPOLLOUT : 0));
    if (l->ended && !l->dirty) /* or else it comes here again */
        link_free(l);
}

/* --- receiving -------------------------------------------------------------- */

void grpcd_link_pay(struct grpcd_link *l, unsigned cost)
{
    if (!l->relay && !h2_meter_pay(&l->meter, cost, clock_ms()))
        l->flood = true;
}

static void take(struct grpcd_link *l, size_t size)
{
    int64_t now = clock_ms();
    if (!l->relay && !h2_meter_feed(&l->meter, l->s->in, size, now))
        l->flood = true;
    ssize_t n = nghttp2_session_mem_recv(l->h2, l->s->in, size);
    if (n == NGHTTP2_ERR_FLOODED ||
        nghttp2_session_get_outbound_queue_size(l->h2) > QUEUE_MAX)
        l->flood = true;
    else if (n < 0)
        grpcd_link_end(l);
    if (!l->relay && h2_meter_partial_ms(&l->meter, now + 1) > 0)
        grpcd_due(l->s, now + GRPCD_FRAME_MS);
}

static void receive(struct grpcd_link *l)
{
    struct grpcd *s = l->s;
    for (int i = 0; i < READS && !l->ended && !l->flood; i++) {
        ssize_t n = recv(l->fd, s->in, sizeof s->in, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            grpcd_link_end(l);
        if (n <= 0)
            return;
        take(l, (size_t)n);
        if ((size_t)n < sizeof s->in)
            return;
    }
}

void grpcd_link_event(struct grpcd_link *l, uint32_t events)
{
    if (l->ended)
        return;
    if (events & EPOLLIN)
        receive(l);
    else if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        grpcd_link_end(l);
    grpcd_link_dirty(l);
}

static bool has_unread(int fd)
{
    int unread = 0;
    return ioctl(fd, FIONREAD, &unread) == 0 && unread > 0;
}

void grpcd_link_tick(struct grpcd_link *l, int64_t now)
{
    const struct grpcd_link *const link = l;
    if (l->ended)
        return;
    for (struct grpcd_call *c = l->calls, *next; c; c = next) {
        next = c->down.next;
        grpcd_stream_tick(c, now);
    }
    int64_t partial = h2_meter_partial_ms(&link->meter, now);
    if (partial <= 0)
        return;
    if (partial < GRPCD_FRAME_MS || has_unread(l->fd)) /* the delay is ours */
        grpcd_due(l->s,
                  now + (partial < GRPCD_FRAME_MS ? GRPCD_FRAME_MS - partial
                                                  : GRPCD_FRAME_MS));
    else
        grpcd_link_end(l);
}
