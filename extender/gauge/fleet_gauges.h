/* fleet_gauges - what the fleet has at the moment, as metrics, for whoever asks
 * for /metrics. */
#ifndef BIGA_EXTENDER_GAUGE_FLEET_GAUGES_H
#define BIGA_EXTENDER_GAUGE_FLEET_GAUGES_H

#include "extender/gauge/fleet_tally.h"
#include "extender/state/plans.h"
#include "extender/state/snapshot.h"
#include "lib/base/str.h"
#include "lib/io/metrics.h"

enum { FLEET_GAUGES_LEAVES_MAX = 4096 }; /* with series of their own */

/* Into the table of the extender's metrics (app_metrics.h): nodes by status,
 * cards by state, allocations, what pods have beside what was promised.
 * `counts` are those of the snapshot, here and below. */
void fleet_gauges_set(struct metrics *m, const struct snapshot *s,
                      const struct fleet_counts *counts);
/* The same of what was planned. */
void fleet_gauges_plans(struct metrics *m, struct plans *plans);

/* Append families that are in no table: allocations by relation, what is free
 * below each leaf switch, and what namespaces have of their quotas. */
void fleet_gauges_write(const struct snapshot *s,
                        const struct fleet_counts *counts, struct str *out);

#endif
