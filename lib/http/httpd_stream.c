#include "lib/http/httpd_stream.h"

#include "lib/base/mem.h"
#include "lib/http/httpd_private.h"
#include "lib/stream/stream_conn.h"

enum { KEEP_BUFFER = 16 << 10 /* of a stream whose client keeps up */ };

struct httpd_stream {
    struct stream_link link; /* until the request leaves */
    atomic_uint refs;        /* the caller's, and the request's */

    pthread_mutex_t lock;
    struct httpd_request *rq; /* NULL: it has left */
    char *data;               /* [at, size) waits for the client */
    size_t at, size, cap, max;
    size_t wanted;  /* bytes of room that a write lacked; 0: none did */
    bool parked;    /* the request is suspended, and nobody resumes it yet */
    bool ended;     /* nothing follows what is there */
    bool cut;       /* the client has hung up, or the server stops */
    bool broken;    /* the client is to see that this is not all */
    uint64_t taken; /* bytes, by the client */

    /* Recursive: `changed` may end the stream.  Before the lock above. */
    pthread_mutex_t call_lock;
    void (*changed)(void *ctx);
    void *ctx;
};

void stream_ref(struct httpd_stream *s)
{
    atomic_fetch_add(&s->refs, 1);
}

void stream_unref(struct httpd_stream *s)
{
    if (atomic_fetch_sub(&s->refs, 1) > 1)
        return;
    (void)pthread_mutex_destroy(&s->call_lock);
    (void)pthread_mutex_destroy(&s->lock);
    free(s->data);
    free(s);
}

static void tell(struct httpd_stream *s)
{
    hold_lock(&s->call_lock);
    if (s->changed)
        s->changed(s->ctx);
}

struct httpd_stream *httpd_stream_begin(struct httpd_request *rq, size_t max,
                                        void (*changed)(void *ctx), void *ctx)
{
    struct httpd_stream *s = xcalloc(1, sizeof *s);
    pthread_mutexattr_t recursive;
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_mutexattr_init(&recursive);
    (void)pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    (void)pthread_mutex_init(&s->call_lock, &recursive);
    (void)pthread_mutexattr_destroy(&recursive);
    atomic_store(&s->refs, 1);
    s->rq = rq;
    s->max = max;
    s->changed = changed;
    s->ctx = ctx;
    s->link.fd = rq->conn->fd;
    s->link.alone = !rq->conn->h2;
    s->link.stream = s;
    if (!streams_add(&rq->h->streams, &s->link)) {
        stream_unref(s);
        streams_refuse(rq);
        return NULL;
    }
    stream_ref(s);
    rq->stream = s;
    stream_conn_probe(s->link.fd);
    return s;
}

static void wake_locked(struct httpd_stream *s)
{
    if (!s->parked)
        return;
    s->parked = false;
    s->rq->transport->resume(s->rq);
}

/* --- what writers use ----------------------------------------------------- */

/* Room behind what waits for so many more bytes; within `max`. */
static void make_room_locked(struct httpd_stream *s, size_t size)
{
    size_t waits = s->size - s->at;
    if (s->size + size <= s->cap)
        return;
    if (s->at > 0)
        memmove(s->data, s->data + s->at, waits);
    s->at = 0;
    s->size = waits;
    if (waits + size <= s->cap)
        return;
    s->cap = 2 * (waits + size) < s->max ? 2 * (waits + size) : s->max;
    s->data = xrealloc(s->data, s->cap, 1);
}

int httpd_stream_write(struct httpd_stream *s, const char *data, size_t size)
{
    hold_lock(&s->lock);
    if (!s->rq || s->cut)
        return -EPIPE;
    if (size > s->max)
        return -EMSGSIZE;
    if (size > s->max - (s->size - s->at)) {
        s->wanted = size;
        return -EAGAIN;
    }
    if (size == 0)
        return 0;
    make_room_locked(s, size);
    memcpy(s->data + s->size, data, size);
    s->size += size;
    wake_locked(s);
    return 0;
}

size_t httpd_stream_room(struct httpd_stream *s)
{
    hold_lock(&s->lock);
    size_t room = s->max - (s->size - s->at);
    if (room == 0)
        s->wanted = 1;
    return room;
}

bool httpd_stream_gone(struct httpd_stream *s)
{
    hold_lock(&s->lock);
    return !s->rq || s->cut;
}

static void finish(struct httpd_stream *s, bool whole)
{
    pthread_mutex_lock(&s->call_lock);
    s->changed = NULL;
    pthread_mutex_unlock(&s->call_lock);
    pthread_mutex_lock(&s->lock);
    s->ended = true;
    s->broken |= !whole;
    wake_locked(s);
    pthread_mutex_unlock(&s->lock);
    stream_unref(s);
}

void httpd_stream_end(struct httpd_stream *s)
{
    finish(s, true);
}

void httpd_stream_break(struct httpd_stream *s)
{
    finish(s, false);
}

/* --- what transports use -------------------------------------------------- */

/* `ret_tell`: a writer waits for the room that there is now. */
static ssize_t take_locked(struct httpd_stream *s, void *data, size_t size,
                           bool *ret_tell)
{
    size_t waits = s->size - s->at;
    s->rq->suspended = false;
    if (s->cut)
        return STREAM_BROKEN;
    if (waits == 0 && s->ended)
        return s->broken ? STREAM_BROKEN : STREAM_ENDED;
    if (waits == 0) {
        s->parked = s->rq->suspended = true;
        s->rq->transport->suspend(s->rq);
        return STREAM_PARKED;
    }
    size = size < waits ? size : waits;
    memcpy(data, s->data + s->at, size);
    s->at += size;
    s->taken += size;
    if (s->at == s->size) {
        s->at = s->size = 0;
        if (s->cap > KEEP_BUFFER) {
            free(steal(&s->data));
            s->cap = 0;
        }
    }
    *ret_tell = s->wanted && s->max - (s->size - s->at) >= s->wanted;
    if (*ret_tell)
        s->wanted = 0;
    return (ssize_t)size;
}

ssize_t stream_take(struct httpd_stream *s, void *data, size_t size)
{
    bool room = false;
    pthread_mutex_lock(&s->lock);
    ssize_t n = take_locked(s, data, size, &room);
    pthread_mutex_unlock(&s->lock);
    if (room)
        tell(s);
    return n;
}

bool stream_unpark(struct httpd_stream *s)
{
    hold_lock(&s->lock);
    bool was = s->parked;
    s->parked = false;
    return was;
}

uint64_t stream_taken(struct httpd_stream *s)
{
    hold_lock(&s->lock);
    return s->taken;
}

void stream_cut(struct httpd_stream *s)
{
    hold_lock(&s->lock);
    if (s->cut)
        return;
    s->cut = true;
    wake_locked(s);
}

void stream_leave(struct httpd_request *rq)
{
    struct httpd_stream *s = steal(&rq->stream);
    if (!s)
        return;
    streams_remove(&rq->h->streams, &s->link);
    pthread_mutex_lock(&s->lock);
    s->rq = NULL;
    s->parked = false;
    pthread_mutex_unlock(&s->lock);
    tell(s);
    stream_unref(s);
}
