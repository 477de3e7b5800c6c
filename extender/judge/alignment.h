/* alignment - judges and describes how well a pair is placed.  Pure. */
#ifndef BIGA_EXTENDER_JUDGE_ALIGNMENT_H
#define BIGA_EXTENDER_JUDGE_ALIGNMENT_H

#include <stdbool.h>

#include "extender/state/allocation.h"
#include "extender/state/snapshot.h"
#include "lib/base/str.h"

/* Whether pair `rank`, of which `a` is a member or held place, is placed on
 * `node` as well as it prefers (decide_is_aligned()).  False when `node` is NULL. */
bool alignment_is_good(const struct node *node, const struct allocation *a,
                       int32_t rank);

enum alignment {
    ALIGNMENT_GOOD,
    ALIGNMENT_DEGRADED, /* not as preferred, but within one NUMA node */
    ALIGNMENT_NONE,     /* worse, or not known */
};
enum alignment alignment_judge(const struct node *node,
                               const struct allocation *a);
/* How close its cards are to its own GPUs, or else to the NUMA node of its
 * (host) pod; -1 when neither is known. */
int alignment_relation(const struct snapshot *s, const struct allocation *a);
/* The same as "PIX", or "-". */
const char *alignment_word(const struct snapshot *s,
                           const struct allocation *a);
/* Append the member ,"alignment": {"relation","to"} (or null). */
void alignment_write(const struct snapshot *s, const struct allocation *a,
                     struct str *out);
/* Append the allocation as JSON, with that member. */
void alignment_encode(const struct snapshot *s, const struct allocation *a,
                      struct str *out);
/* ": PIX to gpu-0000-1b-00-0"; for an xPU pod, which has no GPU, what its own
 * cards are close to, then what its pair was placed by. */
void alignment_explain(const struct snapshot *snapshot,
                       const struct allocation *a, struct str *text);
/* "on host03: card 0000:1a:00.0, gpu 0000:1b:00.0, PIX". */
void alignment_tell(const struct allocation *a, struct str *out);

#endif
