/* pending_gauges - pods and jobs that wait for a place, by reason and age, as
 * metrics: counted anew for whoever asks for /metrics, of those that neither run
 * nor are over. */
#ifndef BIGA_EXTENDER_GAUGE_PENDING_GAUGES_H
#define BIGA_EXTENDER_GAUGE_PENDING_GAUGES_H

#include "extender/pods/pod_source.h"
#include "extender/state/alloc_order.h"
#include "extender/state/snapshot.h"
#include "lib/base/str.h"

/* Append them, as `biga jobs` and the page of what is pending tell them; `now_s`
 * is wall time.  Reasons are words of a fixed table, and so are ages, whatever
 * pods there are.  `order` is the snapshot's. */
void pending_gauges_write(const struct pod_source *source,
                          const struct snapshot *s,
                          const struct alloc_order *order, int64_t now_s,
                          struct str *out);

#endif
