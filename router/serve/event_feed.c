#include "router/serve/event_feed.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

struct event_reader {
    void (*wake)(void *ctx);
    void *ctx;
    struct str queue; /* messages, each behind its size */
    size_t at;        /* where the oldest begins */
    bool lost;
};

struct event_feed {
    pthread_mutex_t lock;
    struct event_reader *readers[EVENT_FEED_READERS]; /* NULL: free */
};

struct event_feed *event_feed_create(void)
{
    struct event_feed *f = xcalloc(1, sizeof *f);
    (void)pthread_mutex_init(&f->lock, NULL);
    return f;
}

static void reader_destroy(struct event_reader *r)
{
    if (r)
        str_fini(&r->queue);
    free(r);
}

void event_feed_destroy(struct event_feed *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < EVENT_FEED_READERS; i++)
        reader_destroy(f->readers[i]);
    (void)pthread_mutex_destroy(&f->lock);
    free(f);
}

/* Those that were taken make room. */
static void shift(struct event_reader *r)
{
    size_t left = r->queue.size - r->at;
    if (r->at == 0)
        return;
    memmove(r->queue.data, r->queue.data + r->at, left);
    r->queue.size = left;
    r->at = 0;
}

static void put(struct event_reader *r, const void *message, size_t size)
{
    uint64_t head = size;
    if (r->queue.size + sizeof head + size > EVENT_FEED_SIZE)
        shift(r);
    str_add_n(&r->queue, (const char *)&head, sizeof head);
    str_add_n(&r->queue, message, size);
    if (!r->queue.overflow)
        return;
    r->lost = true;
    str_fini(&r->queue);
    r->queue = STR_INIT(0);
    r->at = 0;
}

void event_feed_put(struct event_feed *f, const void *message, size_t size)
{
    hold_lock(&f->lock);
    for (size_t i = 0; i < EVENT_FEED_READERS; i++) {
        struct event_reader *r = f->readers[i];
        if (!r)
            continue;
        if (!r->lost)
            put(r, message, size);
        r->wake(r->ctx);
    }
}

bool event_feed_is_read(struct event_feed *f)
{
    hold_lock(&f->lock);
    for (size_t i = 0; i < EVENT_FEED_READERS; i++)
        if (f->readers[i])
            return true;
    return false;
}

struct event_reader *event_feed_join(struct event_feed *f,
                                     void (*wake)(void *ctx), void *ctx)
{
    hold_lock(&f->lock);
    for (size_t i = 0; i < EVENT_FEED_READERS; i++) {
        if (f->readers[i])
            continue;
        struct event_reader *r = xcalloc(1, sizeof *r);
        *r = (struct event_reader){.wake = wake, .ctx = ctx};
        str_init(&r->queue, EVENT_FEED_SIZE);
        f->readers[i] = r;
        return r;
    }
    return NULL;
}

void event_feed_leave(struct event_feed *f, struct event_reader *r)
{
    hold_lock(&f->lock);
    for (size_t i = 0; i < EVENT_FEED_READERS; i++)
        if (f->readers[i] == r)
            f->readers[i] = NULL;
    reader_destroy(r);
}

int event_feed_take(struct event_feed *f, struct event_reader *r,
                    struct str *ret_message)
{
    uint64_t size;
    hold_lock(&f->lock);
    str_reset(ret_message);
    if (r->lost)
        return -EOVERFLOW;
    if (r->at == r->queue.size)
        return 0;
    memcpy(&size, r->queue.data + r->at, sizeof size);
    str_add_n(ret_message, r->queue.data + r->at + sizeof size, size);
    r->at += sizeof size + size;
    if (r->at == r->queue.size) {
        str_reset(&r->queue);
        r->at = 0;
    }
    return 1;
}
