/* alloc_trie - a hash trie of allocations by one of their keys, path-copied on a
 * change, so that versions share all but a few small parts.  A part that one
 * version alone has is changed in place.  For alloc_index.c. */
#ifndef BIGA_EXTENDER_STATE_ALLOC_TRIE_H
#define BIGA_EXTENDER_STATE_ALLOC_TRIE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/state/allocation.h"

enum alloc_key {
    ALLOC_KEY_POD,
    ALLOC_KEY_UID,
    ALLOC_KEY_PAIR,
    ALLOC_KEY_NODE,
    ALLOC_KEY_JOB,
    ALLOC_KEY_COUNT
};

/* The low bits of a member's hash are its job's, the others its pair's: all
 * members are in one part of the trie, and no leaf has to hold them all. */
enum { ALLOC_TRIE_BITS = 5, ALLOC_JOB_BITS = 6 * ALLOC_TRIE_BITS };

/* A leaf lists allocations, a branch has a child per bit of its map.  Only
 * the trie by pod holds references to the allocations: the others of the
 * same version list exactly the same ones. */
struct alloc_trie {
    atomic_uint refs;
    enum alloc_key key : 8;
    bool leaf;
    uint32_t map;
    uint32_t n;
    uint32_t devices; /* that all in it have */
    uint32_t n_bound; /* of all in it; the others' places are held */
    void *slots[];
};

struct alloc_trie *alloc_trie_ref(struct alloc_trie *t);
void alloc_trie_unref(struct alloc_trie *t); /* NULL allowed */

/* Both take over a trie (NULL: nothing is in it) and give back one that has the
 * allocation, or has not what is in it; the caller's alone at its top. */
struct alloc_trie *alloc_trie_with(struct alloc_trie *t, enum alloc_key key,
                                   struct allocation *a);
struct alloc_trie *alloc_trie_without(struct alloc_trie *t,
                                      struct allocation *a);

/* The hashes of keys. */
uint64_t alloc_hash_text(const char *text); /* uid, pair, node */
uint64_t alloc_hash_pod(const char *namespace, const char *name);
uint64_t alloc_hash_job(const char *namespace, const char *job);

/* The part where all entries are (others may be, too) whose hash has the same
 * low `bits`, or NULL. */
const struct alloc_trie *alloc_trie_part(const struct alloc_trie *t,
                                         uint64_t hash, unsigned bits);
/* The leaf where entries of this hash are, or NULL. */
const struct alloc_trie *alloc_trie_leaf(const struct alloc_trie *t,
                                         uint64_t hash);
/* The child of a branch at this bit of its map, or NULL. */
const struct alloc_trie *alloc_trie_child(const struct alloc_trie *t,
                                          uint32_t bit);
size_t
alloc_trie_count(const struct alloc_trie *t); /* NULL allowed, as below */
/* All that are in it, after the first `n` of `ret`; returns how many these are
 * then. */
size_t alloc_trie_collect(const struct alloc_trie *t,
                          const struct allocation **ret, size_t n);

#endif
