/* scoped - the last snapshots as those see them who see some namespaces alone,
 * and what each of them, or who sees all, has in order: the same pages and lists
 * ask for them again and again, and the next is made of the last.  Any thread. */
#ifndef BIGA_EXTENDER_APP_SCOPED_H
#define BIGA_EXTENDER_APP_SCOPED_H

#include "extender/state/alloc_order.h"
#include "extender/state/scope.h"
#include "extender/state/snapshot.h"

enum {
    SCOPED_KEPT = 8,        /* scopes, besides all namespaces */
    SCOPED_KEPT_MS = 60000, /* since somebody asked */
    SCOPED_KEEP_MS = 10000, /* since the order of all was brought up to date */
};

struct scoped;
struct scoped *scoped_create(void);
void scoped_destroy(struct scoped *c); /* NULL allowed */

/* What `scope` sees of a snapshot, whose reference is taken over: itself when
 * that is all (NULL).  `c` may be NULL: nothing is kept. */
struct snapshot *scoped_get(struct scoped *c, struct snapshot *s,
                            struct scope *scope);
/* The allocations of what that gave, in order; the caller owns the reference. */
struct alloc_order *scoped_order(struct scoped *c, const struct snapshot *seen);
/* Forget what nobody has asked for lately, but for the order of all, which is
 * brought up to date with `s`, the whole: nobody has to wait for it to be made,
 * nor is an old one kept for long. */
void scoped_keep(struct scoped *c, struct snapshot *s);

#endif
