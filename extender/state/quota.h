/* quota - what every namespace has of the cards, and whether it may have
 * more (schema/policy.md).  Pure.
 *
 * Counted by pair: each card (of a node) that any member of the pair has is
 * one card; of its cores and memory a card gives the larger of what the
 * pair's host pod stated and what its xPU pods state together, as
 * usage_state() charges it.  A service's pod counts by itself.  Held places
 * count as the host pods they are held for. */
#ifndef BIGA_EXTENDER_STATE_QUOTA_H
#define BIGA_EXTENDER_STATE_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "extender/state/allocation.h"
#include "extender/state/snapshot.h"
#include "lib/base/str.h"
#include "model/pod/demand.h"

/* --- the sums: persistent (a change copies what is shared), ref-counted - */
struct quota_sums;
struct quota_sums *quota_sums_create(void);
struct quota_sums *quota_sums_ref(struct quota_sums *q);
void quota_sums_unref(struct quota_sums *q); /* NULL allowed */
void quota_sums_get(const struct quota_sums *q, const char *namespace,
                    struct quota_use *ret_use);
/* Follow the index from `before` to `after`, which differ in `changed` and
 * in nothing else of its pair; `*sums` becomes the caller's own. */
void quota_sums_follow(struct quota_sums **sums,
                       const struct alloc_index *before,
                       const struct alloc_index *after,
                       const struct allocation *changed);

/* What the members of one pair have together. */
void quota_count_pair(const struct allocation *const *members, size_t n,
                      struct quota_use *ret_use);

/* --- may it have more? -------------------------------------------------- */
enum quota_kind {
    QUOTA_OK,
    QUOTA_CARDS,
    QUOTA_CORES,
    QUOTA_MEMORY,
    QUOTA_UNSTATED_CORES, /* cores are limited, and it does not state any */
    QUOTA_UNSTATED_MEMORY,
};
struct quota_verdict {
    enum quota_kind kind;
    uint64_t used, limit, asked; /* `asked` on top of `used` */
};

/* May a pod, whose pair has no place yet, have what it asks?  For a planned
 * pod: may its job have all pairs that have no place yet?  `former`: what is
 * allocated to its own name and ends with it, or NULL. */
void quota_judge(const struct snapshot *s, const struct demand *pod,
                 const struct allocation *former,
                 struct quota_verdict *ret_verdict);
/* May this allocation be made (in place of `former`), beside what its pair
 * has? */
void quota_judge_allocation(const struct snapshot *s,
                            const struct allocation *fresh,
                            const struct allocation *former,
                            struct quota_verdict *ret_verdict);

/* "quota of namespace team-a: 60 of 64 cards used, 8 more asked" */
void quota_explain(const char *namespace, const struct quota_verdict *verdict,
                   struct str *out);

#endif
