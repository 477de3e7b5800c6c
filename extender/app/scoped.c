#include "extender/app/scoped.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/io/clock.h"

struct kept {
    struct scope *scope;
    struct snapshot *seen;     /* NULL: none is kept */
    struct alloc_order *order; /* the same */
    int64_t asked_ms;
};

struct scoped {
    pthread_mutex_t lock;
    struct kept kept[SCOPED_KEPT];
    struct kept all; /* of the whole snapshot */
};

struct scoped *scoped_create(void)
{
    struct scoped *c = xcalloc(1, sizeof *c);
    (void)pthread_mutex_init(&c->lock, NULL); /* cannot fail on Linux */
    return c;
}

static void kept_fini(struct kept *k)
{
    scope_unref(k->scope);
    snapshot_unref(k->seen);
    alloc_order_unref(k->order);
}

void scoped_destroy(struct scoped *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < SCOPED_KEPT; i++)
        kept_fini(&c->kept[i]);
    kept_fini(&c->all);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

/* The entry of the scope; else the one that is to be given up for it, or NULL
 * when none is to be. */
static struct kept *entry_locked(struct scoped *c, struct scope *scope,
                                 bool make)
{
    struct kept *oldest = &c->kept[0];
    if (!scope)
        return &c->all;
    for (size_t i = 0; i < SCOPED_KEPT; i++) {
        struct kept *k = &c->kept[i];
        if (k->scope && scope_is_same(k->scope, scope))
            return k;
        if (oldest->scope && (!k->scope || k->asked_ms < oldest->asked_ms))
            oldest = k;
    }
    return make ? oldest : NULL;
}

/* What is kept of a scope, whatever it is of; a reference to each. */
static struct kept look(struct scoped *c, struct scope *scope)
{
    struct kept found = {.scope = NULL};
    if (!c)
        return found;
    hold_lock(&c->lock);
    struct kept *k = entry_locked(c, scope, false);
    if (!k)
        return found;
    k->asked_ms = clock_ms();
    found.seen = k->seen ? snapshot_ref(k->seen) : NULL;
    found.order = k->order ? alloc_order_ref(k->order) : NULL;
    return found;
}

/* Keep a reference to what is not NULL. */
static void keep(struct scoped *c, struct scope *scope, struct snapshot *seen,
                 struct alloc_order *order)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    struct kept *k = entry_locked(c, scope, true), old = *k;
    bool same = !scope || (k->scope && scope_is_same(k->scope, scope));
    *k = (struct kept){.scope = scope ? scope_ref(scope) : NULL,
                       .asked_ms = clock_ms()};
    if (seen)
        k->seen = snapshot_ref(seen);
    else if (same)
        k->seen = steal(&old.seen);
    if (order)
        k->order = alloc_order_ref(order);
    else if (same)
        k->order = steal(&old.order);
    pthread_mutex_unlock(&c->lock);
    kept_fini(&old);
}

struct snapshot *scoped_get(struct scoped *c, struct snapshot *s,
                            struct scope *scope)
{
    if (!scope)
        return s;
    struct kept last = look(c, scope);
    struct snapshot *seen;
    if (last.seen && last.seen->whole == s) {
        seen = snapshot_ref(last.seen);
    } else {
        seen = snapshot_scoped(s, scope, last.seen);
        keep(c, scope, seen, NULL);
    }
    kept_fini(&last);
    snapshot_unref(s);
    return seen;
}

struct alloc_order *scoped_order(struct scoped *c, const struct snapshot *seen)
{
    struct kept last = look(c, seen->scope);
    struct alloc_order *order;
    if (last.order && last.order->of == seen->allocations) {
        order = alloc_order_ref(last.order);
    } else {
        order = alloc_order_create(seen->allocations, last.order);
        keep(c, seen->scope, NULL, order);
    }
    kept_fini(&last);
    return order;
}

static void forget(struct scoped *c, struct kept *k, int64_t before_ms)
{
    struct kept old = {.scope = NULL};
    pthread_mutex_lock(&c->lock);
    if (k->asked_ms < before_ms) {
        old = *k;
        *k = (struct kept){.scope = NULL};
    }
    pthread_mutex_unlock(&c->lock);
    kept_fini(&old);
}

static bool is_all_kept(struct scoped *c, int64_t since_ms)
{
    hold_lock(&c->lock);
    return c->all.order && c->all.asked_ms > since_ms;
}

void scoped_keep(struct scoped *c, struct snapshot *s)
{
    int64_t now_ms = clock_ms();
    for (size_t i = 0; i < SCOPED_KEPT; i++)
        forget(c, &c->kept[i], now_ms - SCOPED_KEPT_MS);
    if (!is_all_kept(c, now_ms - SCOPED_KEEP_MS))
        alloc_order_unref(scoped_order(c, s));
}
