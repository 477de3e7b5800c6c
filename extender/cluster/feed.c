#include "extender/cluster/feed.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "model/fabric/fabric.h"

struct feed {
    struct writer *writer;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t less;
    size_t bytes, n; /* on the way */
};

struct feed *feed_create(struct writer *w)
{
    struct feed *f = xcalloc(1, sizeof *f);
    f->writer = w;
    /* neither can fail on Linux */
    (void)pthread_mutex_init(&f->lock, NULL);
    (void)pthread_cond_init(&f->less, NULL);
    return f;
}

void feed_destroy(struct feed *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    while (f->n)
        (void)pthread_cond_wait(&f->less, &f->lock); /* never fails */
    pthread_mutex_unlock(&f->lock);
    (void)pthread_cond_destroy(&f->less);
    (void)pthread_mutex_destroy(&f->lock);
    free(f);
}

struct feed_op *feed_new(struct feed *f, enum writer_kind kind, size_t room)
{
    struct feed_op *o = xmalloc(sizeof *o + room);
    memset(o, 0, sizeof *o);
    o->op.kind = kind;
    o->feed = f;
    o->size = sizeof *o + room;
    return o;
}

const char *feed_text(struct feed_op *o, const char *data, size_t size)
{
    char *text = o->texts + o->used;
    if (o->used + size + 1 > o->size - sizeof *o)
        abort(); /* the poster has asked for less room than it takes */
    memcpy(text, data, size);
    text[size] = '\0';
    o->used += size + 1;
    return text;
}

static void feed_done(struct writer_op *op)
{
    struct feed_op *o = (struct feed_op *)op; /* its first member */
    struct feed *f = o->feed;
    size_t size = o->size;
    if (o->then)
        o->then(o);
    allocation_unref(op->allocation);
    fabric_unref(op->fabric);
    claim_use_unref(op->claim);
    card_bars_unref(op->bars);
    str_fini(&op->out);
    free(o);
    hold_lock(&f->lock);
    f->bytes -= size;
    f->n--;
    pthread_cond_broadcast(&f->less); /* under the lock: f may end after it */
}

void feed_post(struct feed_op *o)
{
    struct feed *f = o->feed;
    pthread_mutex_lock(&f->lock);
    while (f->n && f->bytes + o->size > FEED_MAX)
        (void)pthread_cond_wait(&f->less, &f->lock); /* never fails */
    f->bytes += o->size;
    f->n++;
    pthread_mutex_unlock(&f->lock);
    o->op.done = feed_done;
    writer_post(f->writer, &o->op);
}

size_t feed_n_waiting(struct feed *f)
{
    hold_lock(&f->lock);
    return f->n;
}
