/* scoped - the last snapshots as those see them who see some namespaces alone:
 * the same pages and lists ask for them again and again.  Any thread. */
#ifndef BIGA_EXTENDER_APP_SCOPED_H
#define BIGA_EXTENDER_APP_SCOPED_H

#include "extender/state/scope.h"
#include "extender/state/snapshot.h"

enum {
    SCOPED_KEPT = 8,       /* scopes */
    SCOPED_KEPT_MS = 60000 /* since somebody asked */
};

struct scoped;
struct scoped *scoped_create(void);
void scoped_destroy(struct scoped *c); /* NULL allowed */

/* What `scope` sees of a snapshot, whose reference is taken over: itself when
 * that is all (NULL).  `c` may be NULL: nothing is kept. */
struct snapshot *scoped_get(struct scoped *c, struct snapshot *s,
                            struct scope *scope);
/* Forget what nobody has asked for lately. */
void scoped_forget(void *c);

#endif
