#include "extender/pods/feed_progress.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/base/strmap.h"

struct entry {
    char *node;
    uint64_t number, pending;
    struct entry *next; /* of those with something pending */
};

struct feed_progress {
    pthread_mutex_t lock;
    struct strmap nodes; /* entries by node */
    struct entry *touched;
    uint64_t floor;
};

struct feed_progress *feed_progress_create(void)
{
    struct feed_progress *f = xcalloc(1, sizeof *f);
    (void)pthread_mutex_init(&f->lock, NULL); /* never fails on Linux */
    return f;
}

static void entry_free(void *entry)
{
    struct entry *e = entry;
    free(e->node);
    free(e);
}

void feed_progress_destroy(struct feed_progress *f)
{
    if (!f)
        return;
    strmap_fini_with(&f->nodes, entry_free);
    (void)pthread_mutex_destroy(&f->lock);
    free(f);
}

static struct entry *entry_open(struct feed_progress *f, const char *node)
{
    struct entry *e = strmap_get(&f->nodes, node);
    if (e)
        return e;
    e = xcalloc(1, sizeof *e);
    e->node = xstrdup(node);
    (void)strmap_put(&f->nodes, e->node, e);
    return e;
}

void feed_progress_set_floor(struct feed_progress *f, uint64_t number)
{
    f->floor = number;
}

void feed_progress_load(struct feed_progress *f, const char *node,
                        uint64_t number)
{
    struct entry *e = entry_open(f, node);
    e->number = e->pending = number;
}

static uint64_t read_number(struct feed_progress *f, const char *node,
                            bool pending)
{
    hold_lock(&f->lock);
    const struct entry *e = strmap_get(&f->nodes, node);
    uint64_t number = !e ? 0 : pending ? e->pending : e->number;
    if (number < f->floor)
        number = f->floor;
    return number;
}

uint64_t feed_progress_number(struct feed_progress *f, const char *node)
{
    return read_number(f, node, false);
}

uint64_t feed_progress_pending(struct feed_progress *f, const char *node)
{
    return read_number(f, node, true);
}

void feed_progress_raise(struct feed_progress *f, const char *node,
                         uint64_t number)
{
    hold_lock(&f->lock);
    struct entry *e = entry_open(f, node);
    if (e->pending == e->number && number > e->number) {
        e->next = f->touched;
        f->touched = e;
    }
    if (number > e->pending)
        e->pending = number;
}

static void settle(struct feed_progress *f, bool committed)
{
    hold_lock(&f->lock);
    for (struct entry *e; (e = f->touched);) {
        f->touched = e->next;
        if (committed)
            e->number = e->pending;
        else
            e->pending = e->number;
    }
}

void feed_progress_mark(struct feed_progress *f)
{
    settle(f, true);
}

void feed_progress_undo(struct feed_progress *f)
{
    settle(f, false);
}
