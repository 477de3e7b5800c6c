#include "extender/achieved/achieved_book.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/strmap.h"

struct achieved_book {
    pthread_mutex_t lock;
    struct strmap reports; /* by node */
    uint64_t version;
    pthread_mutex_t watch; /* held while the watcher is told */
    void (*changed)(void *ctx);
    void *ctx;
};

struct achieved_book *achieved_book_create(void)
{
    struct achieved_book *b = xcalloc(1, sizeof *b);
    (void)pthread_mutex_init(&b->lock, NULL); /* never fails on Linux */
    (void)pthread_mutex_init(&b->watch, NULL);
    return b;
}

static void report_free(void *report)
{
    achieved_report_unref(report);
}

void achieved_book_destroy(struct achieved_book *b)
{
    if (!b)
        return;
    strmap_fini_with(&b->reports, report_free);
    (void)pthread_mutex_destroy(&b->lock);
    (void)pthread_mutex_destroy(&b->watch);
    free(b);
}

void achieved_book_watch(struct achieved_book *b, void (*changed)(void *ctx),
                         void *ctx)
{
    hold_lock(&b->watch);
    b->changed = changed;
    b->ctx = ctx;
}

static void tell(struct achieved_book *b)
{
    hold_lock(&b->watch);
    if (b->changed)
        b->changed(b->ctx);
}

/* With the lock; the old report is the caller's, and so is its key. */
static bool swap(struct achieved_book *b, struct achieved_report *r,
                 struct achieved_report **ret_old)
{
    struct achieved_report *old = strmap_remove(&b->reports, r->node);
    if (!old && b->reports.n >= ACHIEVED_NODES_MAX)
        return false;
    (void)strmap_put(&b->reports, r->node, achieved_report_ref(r));
    b->version++;
    *ret_old = old;
    return true;
}

int achieved_book_put(struct achieved_book *b, struct achieved_report *r,
                      struct error *err)
{
    cleanup_with(achieved_report) struct achieved_report *old = NULL;
    pthread_mutex_lock(&b->lock);
    bool taken = swap(b, r, &old);
    pthread_mutex_unlock(&b->lock);
    if (!taken)
        return error_set(err, ENOSPC,
                         "node: \"%s\" is one too many, reports of at most %d "
                         "are kept",
                         r->node, ACHIEVED_NODES_MAX);
    tell(b);
    return 0;
}

void achieved_book_drop(struct achieved_book *b, const char *node)
{
    cleanup_with(achieved_report) struct achieved_report *old = NULL;
    pthread_mutex_lock(&b->lock);
    old = strmap_remove(&b->reports, node);
    b->version += old != NULL;
    pthread_mutex_unlock(&b->lock);
    if (old)
        tell(b);
}

struct achieved_report *achieved_book_get(struct achieved_book *b,
                                          const char *node)
{
    hold_lock(&b->lock);
    struct achieved_report *r = strmap_get(&b->reports, node);
    return r ? achieved_report_ref(r) : NULL;
}

struct achieved_report **achieved_book_list(struct achieved_book *b,
                                            size_t *ret_n)
{
    size_t n = 0, pos = 0;
    hold_lock(&b->lock);
    struct achieved_report **all = xcalloc(b->reports.n + 1, sizeof *all);
    for (struct achieved_report *r; (r = strmap_next(&b->reports, &pos));)
        all[n++] = achieved_report_ref(r);
    *ret_n = n;
    return all;
}

uint64_t achieved_book_version(struct achieved_book *b)
{
    hold_lock(&b->lock);
    return b->version;
}
