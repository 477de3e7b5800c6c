/* A tree of four levels: parts of 64 things, parts of 64 of those, and so on.
 * A part that only one refers to is changed in place, any other is copied
 * first. */
#include "extender/roster/by_id.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/refs.h"

enum { FAN_BITS = 6, FAN = 1 << FAN_BITS, ROOT_SHIFT = 18, FETCH = 8 };

_Static_assert(BY_ID_MAX == 1 << (ROOT_SHIFT + FAN_BITS), "what a root has");

struct part {
    atomic_uint refs;
    void *items[FAN]; /* things where `shift` is 0, else parts */
};

static void part_unref(const struct by_id_kind *kind, struct part *p,
                       unsigned shift)
{
    if (!p || !refs_drop(&p->refs))
        return;
    for (size_t i = 0; i < FAN; i++) {
        if (i + FETCH < FAN) /* they lie anywhere in memory */
            __builtin_prefetch(p->items[i + FETCH], 1);
        if (p->items[i] && shift == 0)
            kind->unref(p->items[i]);
        else if (p->items[i])
            part_unref(kind, p->items[i], shift - FAN_BITS);
    }
    free(p);
}

static struct part *part_copy(const struct by_id_kind *kind,
                              const struct part *from, unsigned shift)
{
    struct part *p = xcalloc(1, sizeof *p);
    atomic_init(&p->refs, 1);
    if (!from)
        return p;
    memcpy(p->items, from->items, sizeof p->items);
    for (size_t i = 0; i < FAN; i++) {
        struct part *below = p->items[i];
        if (i + FETCH < FAN)
            __builtin_prefetch(p->items[i + FETCH], 1);
        if (below && shift == 0)
            kind->ref(p->items[i]);
        else if (below)
            atomic_fetch_add_explicit(&below->refs, 1, memory_order_relaxed);
    }
    return p;
}

/* The part as the caller's own.  Nobody can take a reference to one that only
 * he refers to. */
static struct part *part_own(const struct by_id_kind *kind, void **at,
                             unsigned shift)
{
    struct part *old = *at;
    if (old && atomic_load_explicit(&old->refs, memory_order_acquire) == 1)
        return old;
    *at = part_copy(kind, old, shift);
    part_unref(kind, old, shift);
    return *at;
}

struct by_id by_id_ref(const struct by_id *x)
{
    struct part *root = x->root;
    if (root)
        atomic_fetch_add_explicit(&root->refs, 1, memory_order_relaxed);
    return *x;
}

void by_id_fini(struct by_id *x)
{
    part_unref(x->kind, steal(&x->root), ROOT_SHIFT);
}

void by_id_set(struct by_id *x, uint32_t id, void *thing)
{
    void **at = &x->root;
    assert(id < BY_ID_MAX);
    for (unsigned shift = ROOT_SHIFT + FAN_BITS; shift > 0;) {
        shift -= FAN_BITS;
        at = &part_own(x->kind, at, shift)->items[id >> shift & (FAN - 1)];
    }
    if (*at)
        x->kind->unref(*at);
    *at = thing;
}

void *by_id_get(const struct by_id *x, uint32_t id)
{
    void *at = x->root;
    assert(id < BY_ID_MAX);
    for (unsigned shift = ROOT_SHIFT + FAN_BITS; shift > 0 && at;) {
        shift -= FAN_BITS;
        at = ((struct part *)at)->items[id >> shift & (FAN - 1)];
    }
    return at;
}

struct diff {
    by_id_visit_f *visit;
    void *ctx;
};

static void diff_parts(const struct diff *d, const struct part *before,
                       const struct part *after, unsigned shift, uint32_t first)
{
    if (before == after)
        return;
    for (uint32_t i = 0; i < FAN; i++) {
        void *a = before ? before->items[i] : NULL;
        void *b = after ? after->items[i] : NULL;
        uint32_t id = first + (i << shift);
        if (shift > 0)
            diff_parts(d, a, b, shift - FAN_BITS, id);
        else if (a != b)
            d->visit(d->ctx, id, a, b);
    }
}

void by_id_diff(const struct by_id *before, const struct by_id *after,
                by_id_visit_f *visit, void *ctx)
{
    const struct diff d = {visit, ctx};
    diff_parts(&d, before->root, after->root, ROOT_SHIFT, 0);
}
