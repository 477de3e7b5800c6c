#include "extender/keep/slice_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/base/strmap.h"

struct entry {
    struct slice_digest digest;
    uint64_t version;
    struct liveness *liveness;
    const char *node; /* behind the name */
    char name[];
};

struct slice_cache {
    pthread_mutex_t lock;
    struct strmap entries; /* by slice name */
};

/* A second hash, independent of hash_bytes(): other constants, another order of
 * the words. */
static uint64_t hash_other(const char *data, size_t size)
{
    const uint64_t k0 = UINT64_C(0xa0761d6478bd642f);
    const uint64_t k1 = UINT64_C(0xe7037ed1a0b428db);
    uint64_t h = k0 + size;
    size_t at = 0;
    for (; at + 8 <= size; at += 8)
        h = hash_mix(h + hash_load(data + at, 8), k1) + k0;
    return hash_mix(h + hash_load(data + at, size - at), k1 ^ k0);
}

struct slice_digest slice_digest(const char *body, size_t size)
{
    return (struct slice_digest){hash_bytes(body, size), hash_other(body, size),
                                 size};
}

static bool digest_equal(const struct slice_digest *x,
                         const struct slice_digest *y)
{
    return x->a == y->a && x->b == y->b && x->size == y->size;
}

struct slice_cache *slice_cache_create(void)
{
    struct slice_cache *h = xcalloc(1, sizeof *h);
    (void)pthread_mutex_init(&h->lock, NULL); /* cannot fail on Linux */
    return h;
}

static void entry_destroy(void *entry)
{
    struct entry *e = entry;
    if (!e)
        return;
    liveness_unref(e->liveness);
    free(e);
}

void slice_cache_destroy(struct slice_cache *h)
{
    if (!h)
        return;
    strmap_fini_with(&h->entries, entry_destroy);
    (void)pthread_mutex_destroy(&h->lock); /* nobody holds it */
    free(h);
}

void slice_cache_put(struct slice_cache *h, const char *name,
                     const struct slice_digest *body, uint64_t version,
                     const struct node *node)
{
    size_t name_size = strlen(name) + 1, node_size = strlen(node->name) + 1;
    struct entry *e = xmalloc(sizeof *e + name_size + node_size);
    memcpy(e->name, name, name_size);
    e->node = memcpy(e->name + name_size, node->name, node_size);
    e->digest = *body;
    e->version = version;
    e->liveness = liveness_ref(node->liveness);
    pthread_mutex_lock(&h->lock);
    struct entry *old = strmap_put(&h->entries, e->name, e);
    pthread_mutex_unlock(&h->lock);
    entry_destroy(old);
}

void slice_cache_remove(struct slice_cache *h, const char *name)
{
    pthread_mutex_lock(&h->lock);
    struct entry *old = strmap_remove(&h->entries, name);
    pthread_mutex_unlock(&h->lock);
    entry_destroy(old);
}

bool slice_cache_repeat(struct slice_cache *h,
                        const struct slice_cache_body *body, int64_t now_ms,
                        uint64_t *ret_version)
{
    struct slice_digest digest = slice_digest(body->body, body->size);
    hold_lock(&h->lock);
    struct entry *e = strmap_get(&h->entries, body->name);
    bool same = e && digest_equal(&e->digest, &digest) &&
                (!body->owner || strcmp(e->node, body->owner) == 0);
    if (same && now_ms >= 0)
        atomic_store_explicit(&e->liveness->heard_ms, now_ms,
                              memory_order_relaxed);
    if (same)
        *ret_version = e->version;
    return same;
}

bool slice_cache_node(struct slice_cache *h, const char *name,
                      char ret_node[DEMAND_NAME_MAX + 1])
{
    pthread_mutex_lock(&h->lock);
    const struct entry *e = strmap_get(&h->entries, name);
    size_t size = e ? strnlen(e->node, DEMAND_NAME_MAX) : 0;
    if (e)
        memcpy(ret_node, e->node, size);
    ret_node[size] = '\0';
    pthread_mutex_unlock(&h->lock);
    return e != NULL;
}
