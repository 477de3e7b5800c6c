/* applied_draft - changes of applied pods and configs in one transaction of the
 * writer.  Used by the writer's thread alone. */
#ifndef BIGA_EXTENDER_KEEP_APPLIED_DRAFT_H
#define BIGA_EXTENDER_KEEP_APPLIED_DRAFT_H

#include "extender/keep/store.h"
#include "extender/pods/applied.h"

struct applied_draft;
struct applied_draft *applied_draft_begin(struct applied *p);
/* Drop all changes. NULL allowed. */
void applied_draft_drop(struct applied_draft *d);
DEFINE_CLEANUP(applied_draft, struct applied_draft *, applied_draft_drop)
/* Committed: publish the changes, call the watchers, and free the draft. */
void applied_draft_commit(struct applied_draft *d);

/* Can all of these be made, in this order?  -errno as WRITER_PODS has it, with
 * the index of the first that cannot. */
int applied_draft_check(const struct applied_draft *d,
                        const struct pod_change *changes, size_t n,
                        size_t *ret_failed, struct error *err);
/* Make a change that was checked, in the draft and in the store. */
int applied_draft_make(struct applied_draft *d, struct store *store,
                       struct pod_change *change, struct error *err);

/* Fill an empty registry from the store. */
int pods_load(struct applied *p, struct store *store, struct error *err);

#endif
