#include "extender/state/alloc_trie.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/base/refs.h"

enum { LEAF_MAX = 8, SHIFT_MAX = 60 };

#define JOB_MASK ((UINT64_C(1) << ALLOC_JOB_BITS) - 1)

/* Keys that differ in a number at their end alone, as those of a job's pods and
 * pairs do, come in runs: who changes them in their order changes a few parts,
 * and would copy a part for each of them if they lay anywhere.  So 256 in a row
 * have the same lowest bits, and each eight of them a leaf. */
enum { RUN_BITS = 3 * ALLOC_TRIE_BITS, NUMBER_BITS = 8 };
#define RUN_MASK ((UINT64_C(1) << RUN_BITS) - 1)
#define RUN_SALT UINT64_C(0x9e3779b97f4a7c15) /* the first run is mixed, too */

/* The lower bits of a number, with the highest of them first. */
static uint64_t spread(uint64_t number)
{
    return (number >> 3 & 31) | (number & 7) << ALLOC_TRIE_BITS;
}

/* What `head` is the hash of, with a number behind it. */
static uint64_t hash_numbered(uint64_t head, uint64_t number)
{
    uint64_t run = hash_mix(head | 1, (number >> NUMBER_BITS) + RUN_SALT);
    return (run & RUN_MASK) | spread(number) << RUN_BITS |
           run >> RUN_BITS << (RUN_BITS + NUMBER_BITS);
}

static uint64_t hash_name(uint64_t space, const char *name)
{
    enum { DIGITS_MAX = 9 };
    size_t size = strlen(name), head = size;
    uint64_t number = 0, power = 1;
    while (head > 0 && size - head < DIGITS_MAX && name[head - 1] >= '0' &&
           name[head - 1] <= '9') {
        number += (uint64_t)(name[--head] - '0') * power;
        power *= 10;
    }
    uint64_t hash = hash_mix(space | 1, hash_bytes(name, head));
    return head == size ? hash : hash_numbered(hash, number);
}

static uint64_t hash_plain(const char *text)
{
    return hash_bytes(text, strlen(text));
}

uint64_t alloc_hash_text(const char *text)
{
    return hash_name(0, text);
}

uint64_t alloc_hash_pod(const char *namespace, const char *name)
{
    return hash_name(hash_plain(namespace), name);
}

uint64_t alloc_hash_job(const char *namespace, const char *job)
{
    return hash_mix(hash_plain(namespace) | 1, hash_plain(job)) & JOB_MASK;
}

/* Behind the job's bits is the number of the run, then what is its own. */
static uint64_t hash_member(const struct demand *d)
{
    uint64_t pair = (uint64_t)d->pair;
    uint64_t member = (pair >> 13 & 31) | (pair >> 8 & 31) << ALLOC_TRIE_BITS |
                      spread(pair) << 2 * ALLOC_TRIE_BITS |
                      pair >> 18 << (2 * ALLOC_TRIE_BITS + NUMBER_BITS);
    return alloc_hash_job(d->namespace, d->job) | member << ALLOC_JOB_BITS;
}

static uint64_t hash_key(enum alloc_key key, const struct allocation *a)
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

static size_t trie_size(uint32_t n)
{
    return sizeof(struct alloc_trie) + n * sizeof(void *);
}

static struct alloc_trie *trie_create(enum alloc_key key, bool leaf, uint32_t n)
{
    struct alloc_trie *t = xmalloc(trie_size(n));
    atomic_init(&t->refs, 1);
    t->key = key;
    t->leaf = leaf;
    t->map = 0;
    t->n = n;
    t->devices = t->n_bound = 0;
    return t;
}

static uint32_t devices_of(const struct allocation *a)
{
    return (uint32_t)a->n_cards + a->n_gpus + a->n_nics;
}

static void sums_add(struct alloc_trie *t, const struct allocation *a)
{
    t->devices += devices_of(a);
    t->n_bound += !a->held;
}

static void sums_take(struct alloc_trie *t, const struct allocation *a)
{
    t->devices -= devices_of(a);
    t->n_bound -= !a->held;
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

static void *slot_hold(const struct alloc_trie *t, void *slot)
{
    if (!t->leaf)
        return alloc_trie_ref(slot);
    return t->key == ALLOC_KEY_POD ? allocation_ref(slot) : slot;
}

/* All above it are ours alone, too, so nobody can take a reference. */
static bool is_ours(const struct alloc_trie *t)
{
    return atomic_load_explicit(&t->refs, memory_order_acquire) == 1;
}

/* What follows takes over a part, which others may have, and gives back one
 * that is ours alone. */

static struct alloc_trie *trie_own(struct alloc_trie *t)
{
    if (is_ours(t))
        return t;
    struct alloc_trie *own = trie_create(t->key, t->leaf, t->n);
    own->map = t->map;
    own->devices = t->devices;
    own->n_bound = t->n_bound;
    for (uint32_t i = 0; i < t->n; i++)
        own->slots[i] = slot_hold(t, t->slots[i]);
    alloc_trie_unref(t);
    return own;
}

/* With one more slot at `at`, which the caller fills. */
static struct alloc_trie *trie_open(struct alloc_trie *t, uint32_t at)
{
    t = trie_own(t);
    t = xrealloc(t, trie_size(t->n + 1), 1);
    memmove(&t->slots[at + 1], &t->slots[at], (t->n - at) * sizeof t->slots[0]);
    t->n++;
    return t;
}

/* Without slot `at`, whose content the caller has dropped; NULL when nothing is
 * left. */
static struct alloc_trie *trie_close(struct alloc_trie *t, uint32_t at)
{
    t->n--;
    memmove(&t->slots[at], &t->slots[at + 1], (t->n - at) * sizeof t->slots[0]);
    if (t->n > 0)
        return t;
    free(t);
    return NULL;
}

static uint32_t trie_bit(uint64_t hash, unsigned shift)
{
    return UINT32_C(1) << ((hash >> shift) & 31);
}

static uint32_t trie_position(const struct alloc_trie *t, uint32_t bit)
{
    return (uint32_t)__builtin_popcount(t->map & (bit - 1));
}

static bool leaf_separable(const struct alloc_trie *t, unsigned shift,
                           uint64_t hash)
{
    if (shift > SHIFT_MAX)
        return false;
    for (uint32_t i = 0; i < t->n; i++)
        if (hash_key(t->key, t->slots[i]) != hash)
            return true;
    return false;
}

static struct alloc_trie *trie_add(struct alloc_trie *t, unsigned shift,
                                   uint64_t hash, struct allocation *a);

static struct alloc_trie *leaf_split(struct alloc_trie *t, unsigned shift,
                                     uint64_t hash, struct allocation *a)
{
    struct alloc_trie *branch = trie_create(t->key, false, 0);
    for (uint32_t i = 0; i < t->n; i++)
        branch = trie_add(branch, shift, hash_key(t->key, t->slots[i]),
                          t->slots[i]);
    alloc_trie_unref(t);
    return trie_add(branch, shift, hash, a);
}

static struct alloc_trie *leaf_add(struct alloc_trie *t, unsigned shift,
                                   uint64_t hash, struct allocation *a)
{
    uint32_t at = t->n;
    if (at >= LEAF_MAX && leaf_separable(t, shift, hash))
        return leaf_split(t, shift, hash, a);
    t = trie_open(t, at);
    t->slots[at] = slot_hold(t, a);
    sums_add(t, a);
    return t;
}

/* As trie_own(), with the allocation. */
static struct alloc_trie *trie_add(struct alloc_trie *t, unsigned shift,
                                   uint64_t hash, struct allocation *a)
{
    if (t->leaf)
        return leaf_add(t, shift, hash, a);
    uint32_t bit = trie_bit(hash, shift);
    uint32_t at = trie_position(t, bit);
    if (t->map & bit) {
        t = trie_own(t);
        t->slots[at] = trie_add(t->slots[at], shift + ALLOC_TRIE_BITS, hash, a);
        sums_add(t, a);
        return t;
    }
    struct alloc_trie *leaf = trie_create(t->key, true, 1);
    leaf->slots[0] = slot_hold(leaf, a);
    sums_add(leaf, a);
    t = trie_open(t, at);
    t->slots[at] = leaf;
    t->map |= bit;
    sums_add(t, a);
    return t;
}

static struct alloc_trie *leaf_remove(struct alloc_trie *t,
                                      struct allocation *a)
{
    uint32_t at = 0;
    t = trie_own(t);
    while (at < t->n && t->slots[at] != a)
        at++;
    if (at == t->n)
        return t;
    sums_take(t, a);
    if (t->key == ALLOC_KEY_POD)
        allocation_unref(a);
    return trie_close(t, at);
}

/* As trie_own(), without the allocation, which must be in there; NULL when
 * nothing is left. */
static struct alloc_trie *trie_remove(struct alloc_trie *t, unsigned shift,
                                      uint64_t hash, struct allocation *a)
{
    if (t->leaf)
        return leaf_remove(t, a);
    uint32_t bit = trie_bit(hash, shift);
    uint32_t at = trie_position(t, bit);
    if (!(t->map & bit))
        return t;
    t = trie_own(t);
    sums_take(t, a);
    t->slots[at] = trie_remove(t->slots[at], shift + ALLOC_TRIE_BITS, hash, a);
    if (t->slots[at])
        return t;
    t->map &= ~bit;
    return trie_close(t, at);
}

struct alloc_trie *alloc_trie_with(struct alloc_trie *t, enum alloc_key key,
                                   struct allocation *a)
{
    return trie_add(t ? t : trie_create(key, true, 0), 0, hash_key(key, a), a);
}

struct alloc_trie *alloc_trie_without(struct alloc_trie *t,
                                      struct allocation *a)
{
    return trie_remove(t, 0, hash_key(t->key, a), a);
}

const struct alloc_trie *alloc_trie_part(const struct alloc_trie *t,
                                         uint64_t hash, unsigned bits)
{
    for (unsigned shift = 0; t && !t->leaf && shift < bits;
         shift += ALLOC_TRIE_BITS) {
        uint32_t bit = trie_bit(hash, shift);
        if (!(t->map & bit))
            return NULL;
        t = t->slots[trie_position(t, bit)];
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
    return t->map & bit ? t->slots[trie_position(t, bit)] : NULL;
}
