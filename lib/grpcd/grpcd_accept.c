#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "lib/grpcd/grpcd_private.h"
#include "lib/io/clock.h"

enum {
    ACCEPTS = 64,  /* in one round */
    PAUSE_MS = 50, /* until the next try, for want of files or memory */
};

/* The listener is known by the server's address. */
int grpcd_listener_watch(struct grpcd *s, int what, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = s};
    return epoll_ctl(s->epoll, what, s->fd, &e);
}

/* While it is not watched, connections wait in the backlog, and wake nobody. */
static void pause_for(struct grpcd *s, bool pause)
{
    if (pause)
        grpcd_due(s, clock_ms() + PAUSE_MS);
    if (s->paused == pause || s->leaving)
        return;
    s->paused = pause;
    (void)grpcd_listener_watch(s, EPOLL_CTL_MOD, pause ? 0 : EPOLLIN);
}

static bool somebody_waits(const struct grpcd *s)
{
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

/* Room for one more: the longest idle one goes. */
static bool make_room(struct grpcd *s)
{
    struct grpcd_link *idle = NULL;
    if (s->n_links < s->config.connections || !somebody_waits(s))
        return true;
    for (struct grpcd_link *l = s->first; l; l = l->next) {
        if (l->ended)
            return true; /* it is about to be freed */
        if (l->n_calls == 0 && (!idle || l->idle_ms < idle->idle_ms))
            idle = l;
    }
    if (idle)
        grpcd_link_end(idle);
    return idle;
}

void grpcd_accept(struct grpcd *s)
{
    for (int i = 0; i < ACCEPTS; i++) {
        if (!make_room(s)) {
            pause_for(s, true);
            return;
        }
        int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            struct grpcd_link *l = grpcd_link_create(s, NULL, fd);
            l->uid = unix_peer(fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
                   errno == ENOMEM) {
            atomic_fetch_add(&s->n_not_accepted, 1);
            pause_for(s, true);
            return;
        } else if (errno != ECONNABORTED && errno != EINTR) {
            return;
        }
    }
}

void grpcd_accept_tick(struct grpcd *s)
{
    pause_for(s, false);
}
