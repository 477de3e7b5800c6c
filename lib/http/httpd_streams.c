#include "lib/http/httpd_streams.h"

#include <sys/socket.h>

#include "lib/base/mem.h"
#include "lib/http/httpd_private.h"

void streams_init(struct streams *t, size_t max)
{
    (void)pthread_mutex_init(&t->lock, NULL);
    t->max = max;
}

void streams_fini(struct streams *t)
{
    (void)pthread_mutex_destroy(&t->lock);
}

bool streams_add(struct streams *t, struct stream_link *link)
{
    hold_lock(&t->lock);
    if (t->stopping || t->n == t->max)
        return false;
    link->prev = NULL;
    link->next = t->first;
    if (t->first)
        t->first->prev = link;
    t->first = link;
    t->n++;
    return true;
}

void streams_refuse(struct httpd_request *rq)
{
    httpd_fail(rq, 503, "%u streams are open already, or the server stops",
               rq->h->config.streams_max);
}

void streams_remove(struct streams *t, struct stream_link *link)
{
    hold_lock(&t->lock);
    if (link->prev)
        link->prev->next = link->next;
    else
        t->first = link->next;
    if (link->next)
        link->next->prev = link->prev;
    t->n--;
}

void streams_tick(struct streams *t)
{
    hold_lock(&t->lock);
    for (struct stream_link *x = t->first; x; x = x->next)
        if (x->stream && x->alone && conn_hung_up(x->fd))
            stream_cut(x->stream);
}

void streams_stop(struct streams *t)
{
    hold_lock(&t->lock);
    t->stopping = true;
    for (struct stream_link *x = t->first; x; x = x->next) {
        if (x->alone) /* whose it is reads the end, and closes */
            (void)shutdown(x->fd, SHUT_RDWR);
        if (x->stream)
            stream_cut(x->stream);
    }
}
