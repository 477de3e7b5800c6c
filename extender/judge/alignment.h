/* alignment - how well a pair is placed, judged and told. Pure. */
#ifndef BIGA_EXTENDER_JUDGE_ALIGNMENT_H
#define BIGA_EXTENDER_JUDGE_ALIGNMENT_H

#include <stdbool.h>

#include "extender/state/allocation.h"
#include "extender/state/snapshot.h"
#include "lib/base/str.h"

/* Is the pair of rank `rank`, of which `a` is a member (or its held place), as
 * well placed on `node` as it prefers (decide_is_aligned())?  On a node that
 * is gone (NULL), or of which nothing is known, it is not. */
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
 * (host) pod, in a word; "-" where they are near nothing that is known. */
const char *alignment_word(const struct snapshot *s,
                           const struct allocation *a);
/* The member ,"alignment": {"relation","to"}, or null; and the allocation as
 * JSON with it. */
void alignment_write(const struct snapshot *s, const struct allocation *a,
                     struct str *out);
void alignment_encode(const struct snapshot *s, const struct allocation *a,
                      struct str *out);
/* ": PIX to gpu-0000-1b-00-0"; of an xPU pod, which has no GPU itself, what its
 * own cards are close to, and then what its pair was placed by. */
void alignment_explain(const struct snapshot *snapshot,
                       const struct allocation *a, struct str *text);
/* "on host03: card 0000:1a:00.0, gpu 0000:1b:00.0, PIX". */
void alignment_tell(const struct allocation *a, struct str *out);

#endif
