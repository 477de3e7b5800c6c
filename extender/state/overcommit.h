/* overcommit - pods that have more than there is: of a node whose slices have
 * shrunk, or had told of what it never had; of cards that somebody else has
 * given, too.  Pure. */
#ifndef BIGA_EXTENDER_STATE_OVERCOMMIT_H
#define BIGA_EXTENDER_STATE_OVERCOMMIT_H

#include "extender/state/snapshot.h"
#include "lib/base/str.h"

enum overfull {
    OVERCOMMIT_NOT,
    OVERCOMMIT_MORE, /* the pods on its node have more than there is of it */
    OVERCOMMIT_GONE, /* there is none of it */
};
/* An allocation of the node, or one that comes to it; `text` (may be NULL) is
 * appended to when it is: "card-1 has 8 cores, its pods have more".  Of a node
 * whose cards are not known nothing is overfull. */
enum overfull overcommit_find(const struct node *node,
                              const struct policy *policy,
                              const struct allocation *a, struct str *text);

#endif
