#include "extender/app/scoped.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/io/clock.h"

struct kept {
    struct snapshot *seen; /* NULL: the entry is free */
    int64_t asked_ms;
};

struct scoped {
    pthread_mutex_t lock;
    struct kept kept[SCOPED_KEPT];
};

struct scoped *scoped_create(void)
{
    struct scoped *c = xcalloc(1, sizeof *c);
    (void)pthread_mutex_init(&c->lock, NULL); /* cannot fail on Linux */
    return c;
}

void scoped_destroy(struct scoped *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < SCOPED_KEPT; i++)
        snapshot_unref(c->kept[i].seen);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

static bool is_of(const struct kept *k, const struct scope *scope)
{
    return k->seen && scope_is_same(k->seen->scope, scope);
}

/* The entry of the scope, or else the one that is to be given up for it. */
static struct kept *entry_locked(struct scoped *c, const struct scope *scope)
{
    struct kept *oldest = &c->kept[0];
    for (size_t i = 0; i < SCOPED_KEPT; i++) {
        struct kept *k = &c->kept[i];
        if (is_of(k, scope))
            return k;
        if (oldest->seen && (!k->seen || k->asked_ms < oldest->asked_ms))
            oldest = k;
    }
    return oldest;
}

static struct snapshot *look(struct scoped *c, const struct snapshot *s,
                             const struct scope *scope)
{
    hold_lock(&c->lock);
    struct kept *k = entry_locked(c, scope);
    if (!is_of(k, scope) || k->seen->whole != s)
        return NULL;
    k->asked_ms = clock_ms();
    return snapshot_ref(k->seen);
}

static void keep(struct scoped *c, struct snapshot *seen)
{
    pthread_mutex_lock(&c->lock);
    struct kept *k = entry_locked(c, seen->scope);
    struct snapshot *before = k->seen;
    k->seen = snapshot_ref(seen);
    k->asked_ms = clock_ms();
    pthread_mutex_unlock(&c->lock);
    snapshot_unref(before);
}

struct snapshot *scoped_get(struct scoped *c, struct snapshot *s,
                            struct scope *scope)
{
    if (!scope)
        return s;
    struct snapshot *seen = c ? look(c, s, scope) : NULL;
    if (!seen) {
        seen = snapshot_scoped(s, scope, NULL);
        if (c)
            keep(c, seen);
    }
    snapshot_unref(s);
    return seen;
}

void scoped_forget(void *ctx)
{
    struct scoped *c = ctx;
    int64_t now_ms = clock_ms();
    for (size_t i = 0; i < SCOPED_KEPT; i++) {
        struct snapshot *old = NULL;
        pthread_mutex_lock(&c->lock);
        if (now_ms - c->kept[i].asked_ms > SCOPED_KEPT_MS)
            old = steal(&c->kept[i].seen);
        pthread_mutex_unlock(&c->lock);
        snapshot_unref(old);
    }
}
