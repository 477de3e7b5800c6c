/* ResourceSlices: which devices there are, and on which node. */
#include <stdlib.h>
#include <string.h>

#include "extender/claims/claim_book_private.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"

/* --- pools ---------------------------------------------------------------- */

struct book_pool *book_pool_get(struct claim_book *b, const char *driver,
                                const char *pool)
{
    cleanup_free char *key = xasprintf("%s/%s", driver, pool);
    struct book_pool *p = strmap_get(&b->pools, key);
    if (p)
        return p;
    p = xcalloc(1, sizeof *p);
    p->key = steal(&key);
    (void)strmap_put(&b->pools, p->key, p);
    return p;
}

void book_pool_put(struct claim_book *b, struct book_pool *p)
{
    if (p->n || p->n_claims)
        return;
    (void)strmap_remove(&b->pools, p->key);
    free(p->slices);
    free(p->claims);
    free(p->key);
    free(p);
}

bool book_slice_counts(const struct book_slice *s)
{
    const struct book_pool *p = s->pool;
    int64_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (p->slices[i]->slice->generation > s->slice->generation)
            return false;
        n += p->slices[i]->slice->generation == s->slice->generation;
    }
    return n == s->slice->slice_count;
}

const char *book_device_node(const struct claim_slice *slice,
                             const struct claim_device *device)
{
    return slice->reach == CLAIM_OF_NODE     ? slice->node
           : slice->reach == CLAIM_BY_DEVICE ? device->node
                                             : "";
}

const struct claim_device *book_find_device(const struct book_pool *p,
                                            const char *name,
                                            const struct claim_slice **ret)
{
    const struct claim_device *found = NULL;
    for (size_t i = 0; i < p->n; i++) {
        const struct claim_slice *s = p->slices[i]->slice;
        if (found && (*ret)->generation >= s->generation)
            continue;
        for (size_t k = 0; k < s->n_devices; k++)
            if (strcmp(s->devices[k].name, name) == 0) {
                found = &s->devices[k];
                *ret = s;
            }
    }
    return found;
}

/* --- nodes ---------------------------------------------------------------- */

static struct book_node *node_get(struct claim_book *b, const char *name)
{
    struct book_node *n = strmap_get(&b->nodes, name);
    if (n)
        return n;
    n = xcalloc(1, sizeof *n);
    n->name = xstrdup(name);
    n->slot = b->n_free ? b->free_slots[--b->n_free] : b->n_slots++;
    (void)strmap_put(&b->nodes, n->name, n);
    return n;
}

static void node_free(struct claim_book *b, struct book_node *n)
{
    (void)strmap_remove(&b->nodes, n->name);
    b->free_slots = xgrow(b->free_slots, b->n_free, &b->free_cap,
                          sizeof *b->free_slots);
    b->free_slots[b->n_free++] = n->slot;
    free(n->slices);
    free(n->name);
    free(n);
}

static void node_touch(struct claim_book *b, struct book_node *n)
{
    n->epoch = ++b->epoch ? b->epoch : ++b->epoch; /* 0 is none */
}

static void node_add(struct claim_book *b, const char *name,
                     struct book_slice *s)
{
    if (!*name)
        return;
    struct book_node *n = node_get(b, name);
    node_touch(b, n);
    for (size_t i = 0; i < n->n; i++)
        if (n->slices[i] == s)
            return;
    n->slices = xgrow(n->slices, n->n, &n->cap, sizeof(*n->slices));
    n->slices[n->n++] = s;
}

static void node_remove(struct claim_book *b, const char *name,
                        const struct book_slice *s)
{
    struct book_node *n = *name ? strmap_get(&b->nodes, name) : NULL;
    if (!n)
        return;
    node_touch(b, n);
    for (size_t i = 0; i < n->n; i++)
        if (n->slices[i] == s)
            n->slices[i--] = n->slices[--n->n];
    if (n->n == 0)
        node_free(b, n);
}

typedef void on_node_f(struct claim_book *b, const char *name,
                       struct book_slice *s);

static void each_node(struct claim_book *b, struct book_slice *s,
                      on_node_f *visit)
{
    const struct claim_slice *slice = s->slice;
    if (slice->reach == CLAIM_OF_NODE)
        visit(b, slice->node, s);
    for (size_t i = 0; slice->reach == CLAIM_BY_DEVICE && i < slice->n_devices;
         i++)
        visit(b, slice->devices[i].node, s);
}

static void remove_from(struct claim_book *b, const char *name,
                        struct book_slice *s)
{
    node_remove(b, name, s);
}

static void touch(struct claim_book *b, const char *name, struct book_slice *s)
{
    struct book_node *n = *name ? strmap_get(&b->nodes, name) : NULL;
    (void)s;
    if (n)
        node_touch(b, n);
}

/* Whether the others of its pool count may have changed, too. */
static void pool_changed(struct claim_book *b, struct book_pool *p)
{
    for (size_t i = 0; i < p->n; i++)
        each_node(b, p->slices[i], touch);
    book_settle_pool(b, p);
    atomic_fetch_add(&b->version, 1);
}

/* --- slices --------------------------------------------------------------- */

static void detach(struct claim_book *b, struct book_slice *s)
{
    struct book_pool *p = s->pool;
    each_node(b, s, remove_from);
    for (size_t i = 0; i < p->n; i++)
        if (p->slices[i] == s)
            p->slices[i--] = p->slices[--p->n];
    b->slices_size -= s->size;
    claim_slice_destroy(s->slice);
    s->slice = NULL;
    s->pool = NULL;
    pool_changed(b, p);
    book_pool_put(b, p);
}

static void attach(struct claim_book *b, struct book_slice *s,
                   struct claim_slice *slice, size_t size)
{
    struct book_pool *p = book_pool_get(b, slice->driver, slice->pool);
    s->slice = slice;
    s->pool = p;
    s->size = size;
    b->slices_size += size;
    p->slices = xgrow(p->slices, p->n, &p->cap, sizeof(*p->slices));
    p->slices[p->n++] = s;
    each_node(b, s, node_add);
    pool_changed(b, p);
}

/* Of ours those alone that claims may have anything of: where Biga's
 * allocations give the cards, nothing else need be known. */
static bool is_kept(const struct book_kind *k, const char *json, size_t size)
{
    static const char says[] = "\"biga.dev/claims\"";
    return k->kind != CLAIM_BOOK_OWN_SLICES ||
           memmem(json, size, says, sizeof says - 1);
}

static void forget(struct book_kind *k, struct book_slice *s)
{
    (void)strmap_remove(&k->objects, s->object.key);
    book_drop_slice(k->book, &s->object);
}

int book_put_slice(struct book_kind *k, const char *key, const char *json,
                   size_t size, struct error *err)
{
    struct claim_book *b = k->book;
    struct book_slice *s = strmap_get(&k->objects, key);
    cleanup_with(claim_slice) struct claim_slice *slice = NULL;
    uint64_t hash = hash_bytes(json, size);
    size_t others = b->slices_size - (s ? s->size : 0);
    if (s && s->hash == hash)
        return 0;
    if (!is_kept(k, json, size)) {
        if (s)
            forget(k, s);
        return 0;
    }
    if (others + size > CLAIM_BOOK_SLICES_MAX)
        return error_set(err, ENOSPC, "there are more than %zu MiB of slices",
                         CLAIM_BOOK_SLICES_MAX >> 20);
    int r = claim_slice_read(json, size, &slice, err);
    if (r < 0)
        return r;
    if ((strcmp(slice->driver, CLAIM_BOOK_DRIVER) == 0) !=
        (k->kind == CLAIM_BOOK_OWN_SLICES))
        return error_set(err, EINVAL, "spec.driver: \"%s\" is not of this list",
                         slice->driver);
    if (s) {
        detach(b, s);
    } else {
        s = xcalloc(1, sizeof *s);
        s->object.key = xstrdup(key);
        (void)strmap_put(&k->objects, s->object.key, s);
    }
    s->hash = hash;
    attach(b, s, steal(&slice), size);
    return 0;
}

void book_drop_slice(struct claim_book *b, struct book_object *object)
{
    struct book_slice *s = (struct book_slice *)object; /* its first member */
    detach(b, s);
    free(s->object.key);
    free(s);
}
