/* The thread that carries all streams. */
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/io/clock.h"
#include "lib/io/thread_name.h"
#include "router/stream/stream_relay_private.h"

enum {
    EVENTS = 64,  /* taken at once */
    ACCEPTS = 32, /* before others have their turn */
};

int stream_relay_watch(struct stream_relay *r, struct stream_conn *c)
{
    struct epoll_event event = {
        .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c};
    return epoll_ctl(r->epoll, EPOLL_CTL_ADD, c->fd, &event) < 0 ? -errno : 0;
}

/* --- who comes ------------------------------------------------------------------ */

static void list_remove(struct stream_relay *r, size_t i)
{
    struct stream *s = r->list[i];
    pthread_mutex_lock(&r->lock);
    r->n--;
    r->n_planned -= s->plan != NULL;
    memmove(&r->list[i], &r->list[i + 1], (r->n - i) * sizeof *r->list);
    pthread_mutex_unlock(&r->lock);
    stream_join_destroy(r, s);
}

/* Whoever has shown no ticket for longest makes room for others, so that no
 * user of this host can keep the kubelet out. */
static void evict(struct stream_relay *r)
{
    size_t oldest = SIZE_MAX, n = 0;
    for (size_t i = r->n; i-- > 0;)
        if (!r->list[i]->plan) {
            oldest = i;
            n++;
        }
    if (n >= STREAM_HEADS_MAX)
        list_remove(r, oldest);
}

static void list_add(struct stream_relay *r, int fd)
{
    evict(r);
    struct stream *s = stream_join_create(r, fd);
    if (!s)
        return;
    pthread_mutex_lock(&r->lock);
    r->list = xgrow(r->list, r->n, &r->cap, sizeof *r->list);
    r->list[r->n++] = s;
    pthread_mutex_unlock(&r->lock);
}

/* Without a descriptor nobody can be accepted, and would be announced again
 * and again. */
static void turn_away(struct stream_relay *r)
{
    if (r->spare >= 0)
        (void)close(r->spare);
    int fd = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        (void)close(fd);
    r->spare = eventfd(0, EFD_CLOEXEC);
    atomic_fetch_add(&r->refused, 1);
}

static void accept_all(struct stream_relay *r)
{
    for (int i = 0; i < ACCEPTS; i++) {
        int fd = accept4(r->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            list_add(r, fd);
        } else if (errno == EMFILE || errno == ENFILE) {
            turn_away(r); /* one; there may be descriptors again by then */
            return;
        } else if (errno == EAGAIN) {
            return; /* else that one has gone again */
        }
    }
}

/* --- a turn of all ------------------------------------------------------------- */

static void wait_for_events(struct stream_relay *r, int64_t due_ms)
{
    struct epoll_event events[EVENTS];
    uint64_t count;
    bool comes = false;
    int n = epoll_wait(r->epoll, events, EVENTS, clock_poll_ms(due_ms));
    for (int i = 0; i < n; i++) {
        if (events[i].data.ptr == &r->listener)
            comes = true;
        else if (events[i].data.ptr == &r->wake)
            (void)!read(r->wake, &count, sizeof count); /* there or not */
        else
            stream_conn_happened(events[i].data.ptr, events[i].events);
    }
    if (comes) /* not before: it may end a stream that has an event here */
        accept_all(r);
}

/* What others want; true: all is to end. */
static bool look(struct stream_relay *r, int64_t *ret_due_ms)
{
    hold_lock(&r->lock);
    *ret_due_ms = stream_tokens_expire(r->tickets);
    for (size_t i = 0; i < r->n; i++)
        r->list[i]->cutting = r->list[i]->cut != NULL;
    return r->stopping;
}

/* False: it is over. */
static bool turn(struct stream_relay *r, struct stream *s)
{
    bool told = s->client.told || s->remote.told || s->again;
    if (s->cutting) {
        atomic_fetch_add(&r->cut, 1);
        stream_join_finish(r, s, s->cut);
        return false;
    }
    s->client.told = s->remote.told = s->again = false;
    if (told && !stream_join_turn(r, s))
        return false;
    return s->due_ms > r->now_ms || stream_join_late(r, s);
}

static int64_t turn_all(struct stream_relay *r, int64_t due_ms)
{
    r->now_ms = clock_ms();
    for (size_t i = 0; i < r->n;) {
        struct stream *s = r->list[i];
        if (!turn(r, s)) {
            list_remove(r, i);
            continue;
        }
        if (s->again)
            due_ms = 0;
        else if (s->due_ms < due_ms)
            due_ms = s->due_ms;
        i++;
    }
    return due_ms;
}

void *stream_relay_run(void *relay)
{
    struct stream_relay *r = relay;
    int64_t due_ms;
    thread_name("streams", NULL);
    while (!look(r, &due_ms)) {
        due_ms = turn_all(r, due_ms);
        wait_for_events(r, due_ms);
    }
    while (r->n > 0) {
        stream_join_finish(r, r->list[r->n - 1], STREAM_STOPPING);
        list_remove(r, r->n - 1);
    }
    return NULL;
}
