#include "extender/achieved/achieved_book.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/strmap.h"

/* A node's, in the order in which they came. */
struct entry {
    struct achieved_report *report;
    uint64_t version; /* of the book, when it came */
    struct entry *newer, *older;
};

struct achieved_book {
    pthread_mutex_t lock;
    struct strmap entries; /* by node, a text of the report */
    struct entry *newest;
    uint64_t version, dropped; /* dropped: when the last one was */
    pthread_mutex_t watch;     /* held while the watcher is told */
    void (*changed)(void *ctx);
    void *ctx;
};

struct achieved_book *achieved_book_create(void)
{
    struct achieved_book *b = xcalloc(1, sizeof *b);
    b->version = 1;                           /* 0 is before any */
    (void)pthread_mutex_init(&b->lock, NULL); /* never fails on Linux */
    (void)pthread_mutex_init(&b->watch, NULL);
    return b;
}

static void entry_free(void *value)
{
    struct entry *e = value;
    achieved_report_unref(e->report);
    free(e);
}

void achieved_book_destroy(struct achieved_book *b)
{
    if (!b)
        return;
    strmap_fini_with(&b->entries, entry_free);
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

/* With the lock.  NULL: there is none; else it is the caller's. */
static struct entry *take(struct achieved_book *b, const char *node)
{
    struct entry *e = strmap_remove(&b->entries, node);
    if (!e)
        return NULL;
    if (e->newer)
        e->newer->older = e->older;
    else
        b->newest = e->older;
    if (e->older)
        e->older->newer = e->newer;
    return e;
}

/* With the lock; the old report is the caller's. */
static bool swap(struct achieved_book *b, struct achieved_report *r,
                 struct achieved_report **ret_old)
{
    struct entry *e = take(b, r->node);
    if (!e && b->entries.n >= ACHIEVED_NODES_MAX)
        return false;
    *ret_old = e ? e->report : NULL;
    e = e ? e : xmalloc(sizeof *e);
    *e = (struct entry){.report = achieved_report_ref(r),
                        .version = ++b->version,
                        .older = b->newest};
    if (b->newest)
        b->newest->newer = e;
    b->newest = e;
    (void)strmap_put(&b->entries, r->node, e);
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
    pthread_mutex_lock(&b->lock);
    struct entry *old = take(b, node);
    if (old)
        b->dropped = ++b->version;
    pthread_mutex_unlock(&b->lock);
    if (!old)
        return;
    entry_free(old);
    tell(b);
}

struct achieved_report *achieved_book_get(struct achieved_book *b,
                                          const char *node)
{
    hold_lock(&b->lock);
    const struct entry *e = strmap_get(&b->entries, node);
    return e ? achieved_report_ref(e->report) : NULL;
}

struct achieved_report **achieved_book_list(struct achieved_book *b,
                                            size_t *ret_n)
{
    uint64_t version = 0;
    bool all;
    return achieved_book_since(b, &version, &all, ret_n);
}

struct achieved_report **achieved_book_since(struct achieved_book *b,
                                             uint64_t *version, bool *ret_all,
                                             size_t *ret_n)
{
    size_t n = 0, cap = 0;
    struct achieved_report **list = NULL;
    hold_lock(&b->lock);
    *ret_all = *version == 0 || b->dropped > *version;
    if (*ret_all)
        *version = 0;
    for (const struct entry *e = b->newest; e && e->version > *version;
         e = e->older) {
        list = xgrow(list, n, &cap, sizeof *list);
        list[n++] = achieved_report_ref(e->report);
    }
    *version = b->version;
    *ret_n = n;
    return list;
}

uint64_t achieved_book_version(struct achieved_book *b)
{
    hold_lock(&b->lock);
    return b->version;
}
