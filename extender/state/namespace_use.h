/* namespace_use - what every namespace has of the cards.  Pure.
 *
 * Counted by pair: each card (of a node) that any member of the pair has is
 * one card; of its cores and memory a card gives the larger of what the
 * pair's host pod stated and what its xPU pods state together, as
 * usage_state() charges it.  A service's pod counts by itself.  Held places
 * count as the host pods they are held for. */
#ifndef BIGA_EXTENDER_STATE_NAMESPACE_USE_H
#define BIGA_EXTENDER_STATE_NAMESPACE_USE_H

#include <stddef.h>
#include <stdint.h>

#include "extender/state/allocation.h"

struct namespace_use {
    uint64_t cards, cores, memory_mib;
};
void namespace_use_add(struct namespace_use *to,
                       const struct namespace_use *use);

/* --- the sums: persistent (a change copies what is shared), ref-counted - */
struct namespace_sums;
struct namespace_sums *namespace_sums_create(void);
struct namespace_sums *namespace_sums_ref(struct namespace_sums *q);
void namespace_sums_unref(struct namespace_sums *q); /* NULL allowed */
void namespace_sums_get(const struct namespace_sums *q, const char *namespace,
                        struct namespace_use *ret_use);
/* A pair of the namespace that had `before` has `after`; `*sums` becomes the
 * caller's own. */
void namespace_sums_follow(struct namespace_sums **sums, const char *namespace,
                           const struct namespace_use *before,
                           const struct namespace_use *after);

/* What the members of one pair have together. */
void namespace_use_count_pair(const struct allocation *const *members, size_t n,
                              struct namespace_use *ret_use);
/* The same of those in the index but `without` (or NULL), and `with` (or
 * NULL). */
void namespace_use_count(const struct alloc_index *x, const char *pair_key,
                         const struct allocation *without,
                         const struct allocation *with,
                         struct namespace_use *ret_use);

#endif
