/* overcommit - finds pods that were given more than their node has: its slices
 * have shrunk or were wrong, or another allocation has the same cards.
 * Pure. */
#ifndef BIGA_EXTENDER_STATE_OVERCOMMIT_H
#define BIGA_EXTENDER_STATE_OVERCOMMIT_H

#include "extender/state/snapshot.h"
#include "lib/base/str.h"

enum overfull {
    OVERCOMMIT_NOT,
    OVERCOMMIT_MORE, /* the pods on its node have more than there is of it */
    OVERCOMMIT_GONE, /* there is none of it */
};
/* Whether this allocation of node_whole(), or a new one, has more than there
 * is; then the reason is appended to `text` (NULL allowed): "card-1 has 8
 * cores, its pods have more".  False on a node whose cards are unknown. */
enum overfull overcommit_find(const struct node *node,
                              const struct policy *policy,
                              const struct allocation *a, struct str *text);

#endif
