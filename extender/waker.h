/* waker - the thread that has pods tried again which were refused, as soon as
 * there is room for them (waiting.h), while this replica leads.
 *
 * kube-scheduler looks at a pod that it has put aside when that pod changes.
 * So what changes is a condition in its status, which says why; nothing else of
 * it, and nothing of any other object. */
#ifndef BIGA_EXTENDER_WAKER_H
#define BIGA_EXTENDER_WAKER_H

#include "extender/job.h"
#include "extender/waiting.h"

/* How a pod fares in a snapshot, as filter would answer.  Pure but for the memory
 * of plans, which may be NULL. */
void waker_judge(struct plans *memory, const struct snapshot *snapshot,
                 const struct demand *pod, const struct candidates *named,
                 struct waiting_verdict *ret_verdict);

#endif
