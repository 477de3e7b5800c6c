#include "lib/stream/stream_way.h"

#include <string.h>

#include "lib/base/mem.h"

void stream_way_init(struct stream_way *w)
{
    *w = (struct stream_way){.limit = UINT64_MAX};
}

void stream_way_fini(struct stream_way *w)
{
    free(w->data);
    w->data = NULL;
    w->n = 0;
}

void stream_way_put(struct stream_way *w, const void *data, size_t size)
{
    if (size == 0)
        return;
    w->data = xmemdup(data, size);
    w->at = 0;
    w->n = size;
}

static void to_is_lost(struct stream_way *w)
{
    stream_way_fini(w);
    w->to_lost = w->ended = w->shut = true;
}

/* How much of it is taken now. */
static size_t give(struct stream_way *w, struct stream_conn *to,
                   const char *data, size_t size)
{
    size_t at = 0;
    while (at < size) {
        ssize_t n = stream_conn_write(to, data + at, size - at);
        if (n == -EAGAIN)
            break;
        if (n <= 0) {
            to_is_lost(w);
            return size;
        }
        at += (size_t)n;
    }
    w->moved += at;
    return at;
}

bool stream_way_flush(struct stream_way *w, struct stream_conn *to)
{
    if (w->n == 0)
        return true;
    size_t n = give(w, to, w->data + w->at, w->n);
    if (w->to_lost)
        return true;
    w->at += n;
    w->n -= n;
    if (w->n > 0)
        return false;
    stream_way_fini(w);
    return true;
}

/* One read; false: there is nothing to be read now. */
static bool take(struct stream_way *w, const struct stream_way_ends *ends,
                 char *scratch)
{
    size_t most = w->limit < STREAM_WAY_MAX ? (size_t)w->limit : STREAM_WAY_MAX;
    ssize_t n = most > 0 ? stream_conn_read(ends->from, scratch, most) : 0;
    if (n == -EAGAIN)
        return false;
    w->ended = n <= 0;
    w->from_lost = n < 0;
    if (n <= 0) {
        if (ends->saw)
            ends->saw(ends->ctx, NULL, 0);
        return true;
    }
    size_t size = (size_t)n;
    w->limit -= w->limit == UINT64_MAX ? 0 : size;
    if (ends->saw)
        ends->saw(ends->ctx, scratch, size);
    size_t taken = give(w, ends->to, scratch, size);
    stream_way_put(w, scratch + taken, size - taken);
    return true;
}

static void end(struct stream_way *w, struct stream_conn *to)
{
    int r = stream_conn_end(to);
    w->shut = r != -EAGAIN;
    w->to_lost |= w->shut && r < 0;
}

bool stream_way_turn(struct stream_way *w, const struct stream_way_ends *ends,
                     char *scratch)
{
    for (int i = 0; i < STREAM_WAY_READS; i++) {
        if (w->shut || !stream_way_flush(w, ends->to))
            return true;
        if (w->ended && !w->shut)
            end(w, ends->to);
        if (w->shut || w->ended || !take(w, ends, scratch))
            return true;
    }
    return false;
}
