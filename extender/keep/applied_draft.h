/* applied_draft - changes of what was applied, being made in one transaction of
 * the writer.  Used by the writer's thread alone. */
#ifndef BIGA_EXTENDER_KEEP_APPLIED_DRAFT_H
#define BIGA_EXTENDER_KEEP_APPLIED_DRAFT_H

#include "extender/keep/store.h"
#include "extender/pods/applied.h"

struct applied_draft;
struct applied_draft *applied_draft_begin(struct applied *p);
/* Nothing has happened. NULL allowed. */
void applied_draft_drop(struct applied_draft *d);
DEFINE_CLEANUP(applied_draft, struct applied_draft *, applied_draft_drop)
/* It is stored: show it, call the watchers, and free the draft. */
void applied_draft_commit(struct applied_draft *d);

/* Can all of these be made, one after the other?  -errno as pods.h says, with
 * the index of the one that cannot. */
int applied_draft_check(const struct applied_draft *d,
                        const struct pod_change *changes, size_t n,
                        size_t *ret_failed, struct error *err);
/* Make one that was checked, in the draft and in the store. */
int applied_draft_make(struct applied_draft *d, struct store *store,
                       struct pod_change *change, struct error *err);

/* Fill an empty registry from the store. */
int pods_load(struct applied *p, struct store *store, struct error *err);

#endif
