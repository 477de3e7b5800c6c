/* pods_draft - changes of what was applied, being made in one transaction of
 * the writer.  Used by the writer's thread alone. */
#ifndef BIGA_EXTENDER_KEEP_PODS_DRAFT_H
#define BIGA_EXTENDER_KEEP_PODS_DRAFT_H

#include "extender/keep/store.h"
#include "extender/pods/pods.h"

struct pods_draft;
struct pods_draft *pods_draft_begin(struct pods *p);
/* Nothing has happened. NULL allowed. */
void pods_draft_drop(struct pods_draft *d);
DEFINE_CLEANUP(pods_draft, struct pods_draft *, pods_draft_drop)
/* It is stored: show it, call the watchers, and free the draft. */
void pods_draft_commit(struct pods_draft *d);

/* Can all of these be made, one after the other?  -errno as pods.h says, with
 * the index of the one that cannot. */
int pods_draft_check(const struct pods_draft *d,
                     const struct pod_change *changes, size_t n,
                     size_t *ret_failed, struct error *err);
/* Make one that was checked, in the draft and in the store. */
int pods_draft_make(struct pods_draft *d, struct store *store,
                    struct pod_change *change, struct error *err);

/* Fill an empty registry from the store. */
int pods_load(struct pods *p, struct store *store, struct error *err);

#endif
