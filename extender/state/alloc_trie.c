#include "extender/state/alloc_trie.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/base/refs.h"

#define JOB_MASK ((UINT64_C(1) << ALLOC_JOB_BITS) - 1)

uint64_t alloc_hash_text(const char *text)
{
    return hash_bytes(text, strlen(text));
}

uint64_t alloc_hash_pod(const char *namespace, const char *name)
{
    return hash_mix(alloc_hash_text(namespace) | 1, alloc_hash_text(name));
}

uint64_t alloc_hash_job(const char *namespace, const char *job)
{
    return hash_mix(alloc_hash_text(namespace) | 1, alloc_hash_text(job)) &
           JOB_MASK;
}

static uint64_t hash_member(const struct demand *d)
{
    return alloc_hash_job(d->namespace, d->job) |
           hash_mix((uint64_t)d->pair + 1, 1) << ALLOC_JOB_BITS;
}

uint64_t alloc_hash_key(enum alloc_key key, const struct allocation *a)
{
    switch (key) {
    case ALLOC_KEY_POD:
        return alloc_hash_pod(a->demand.namespace, a->demand.name);
    case ALLOC_KEY_UID:
        return alloc_hash_text(a->demand.uid);
    case ALLOC_KEY_PAIR:
        return alloc_hash_text(a->pair_key);
    case ALLOC_KEY_JOB:
        return hash_member(&a->demand);
    default:
        return alloc_hash_text(a->node);
    }
}

uint32_t alloc_devices(const struct allocation *a)
{
    return (uint32_t)a->n_cards + a->n_gpus + a->n_nics;
}

struct alloc_trie *alloc_trie_create(enum alloc_key key, bool leaf, uint32_t n)
{
    struct alloc_trie *t = xmalloc(sizeof *t + n * sizeof t->slots[0]);
    atomic_init(&t->refs, 1);
    t->key = key;
    t->leaf = leaf;
    t->map = 0;
    t->n = n;
    t->devices = 0;
    return t;
}

DEFINE_REF(alloc_trie_ref, struct alloc_trie)

void alloc_trie_unref(struct alloc_trie *t)
{
    if (!t || !refs_drop(&t->refs))
        return;
    for (uint32_t i = 0; i < t->n; i++) {
        if (!t->leaf)
            alloc_trie_unref(t->slots[i]);
        else if (t->key == ALLOC_KEY_POD)
            allocation_unref(t->slots[i]);
    }
    free(t);
}

void *alloc_trie_hold(const struct alloc_trie *t, void *slot)
{
    if (!t->leaf)
        return alloc_trie_ref(slot);
    return t->key == ALLOC_KEY_POD ? allocation_ref(slot) : slot;
}

/* All above it are ours alone, too, so nobody can take a reference. */
bool alloc_trie_is_ours(const struct alloc_trie *t)
{
    return atomic_load_explicit(&t->refs, memory_order_acquire) == 1;
}

uint32_t alloc_trie_bit(uint64_t hash, unsigned shift)
{
    return UINT32_C(1) << ((hash >> shift) & 31);
}

uint32_t alloc_trie_position(const struct alloc_trie *t, uint32_t bit)
{
    return (uint32_t)__builtin_popcount(t->map & (bit - 1));
}

const struct alloc_trie *alloc_trie_part(const struct alloc_trie *t,
                                         uint64_t hash, unsigned bits)
{
    for (unsigned shift = 0; t && !t->leaf && shift < bits;
         shift += ALLOC_TRIE_BITS) {
        uint32_t bit = alloc_trie_bit(hash, shift);
        if (!(t->map & bit))
            return NULL;
        t = t->slots[alloc_trie_position(t, bit)];
    }
    return t;
}

const struct alloc_trie *alloc_trie_leaf(const struct alloc_trie *t,
                                         uint64_t hash)
{
    return alloc_trie_part(t, hash, UINT_MAX);
}

size_t alloc_trie_collect(const struct alloc_trie *t,
                          const struct allocation **ret, size_t n)
{
    for (uint32_t i = 0; t && i < t->n; i++) {
        if (t->leaf)
            ret[n++] = t->slots[i];
        else
            n = alloc_trie_collect(t->slots[i], ret, n);
    }
    return n;
}

size_t alloc_trie_count(const struct alloc_trie *t)
{
    size_t n = t && t->leaf ? t->n : 0;
    for (uint32_t i = 0; t && !t->leaf && i < t->n; i++)
        n += alloc_trie_count(t->slots[i]);
    return n;
}

const struct alloc_trie *alloc_trie_child(const struct alloc_trie *t,
                                          uint32_t bit)
{
    return t->map & bit ? t->slots[alloc_trie_position(t, bit)] : NULL;
}
