/* applied_view - what is shown of what was applied, as JSON and as tables.  Pure.
 * What a Secret holds is never shown. */
#ifndef BIGA_EXTENDER_PODS_APPLIED_VIEW_H
#define BIGA_EXTENDER_PODS_APPLIED_VIEW_H

#include "extender/pods/applied.h"
#include "extender/state/snapshot.h"
#include "lib/base/str.h"
#include "lib/base/table.h"

/* The pod's allocation, or NULL: it has no place. */
const struct allocation *pod_place(const struct applied_pod *p,
                                   const struct snapshot *s);
/* As shown: a pod with a place of which its node has said nothing is wanted;
 * one that is over is failed or gone as it ended, whatever became of it there.
 * One that has ended well runs until that is written down. */
enum pod_state pod_state_shown(const struct applied_pod *p,
                               const struct allocation *place);

/* One object; `whole` with its containers and its Pod. */
void pod_view(const struct applied_pod *p, const struct snapshot *snapshot,
              bool whole, struct str *out);
extern const char *const pod_view_heads[];
void pod_view_row(const struct applied_pod *p, const struct snapshot *snapshot,
                  struct table *t);
/* One pod with everything, for a person. */
void pod_view_text(const struct applied_pod *p, const struct snapshot *snapshot,
                   struct str *out);

void config_view(const struct applied_config *c, bool whole, struct str *out);
extern const char *const config_view_heads[];
void config_view_row(const struct applied_config *c, struct table *t);

#endif
