/* alignment - how well a pair is placed, judged and told. Pure. */
#ifndef BIGA_EXTENDER_ALIGNMENT_H
#define BIGA_EXTENDER_ALIGNMENT_H

#include <stdbool.h>

#include "extender/allocation.h"
#include "extender/snapshot.h"
#include "model/base/str.h"

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
/* "on host03: card 0000:1a:00.0, gpu 0000:1b:00.0, PIX". */
void alignment_tell(const struct allocation *a, struct str *out);

#endif
