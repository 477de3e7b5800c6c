/* pod_store - applied pods and what is kept about them: what the runner and the
 * poll of the nodes work on.  Everything is borrowed. */
#ifndef BIGA_EXTENDER_RUN_POD_STORE_H
#define BIGA_EXTENDER_RUN_POD_STORE_H

#include <stdint.h>

#include "extender/keep/writer.h"
#include "extender/pods/applied.h"
#include "extender/pods/node_reports.h"
#include "extender/pods/pending_demands.h"
#include "extender/state/plans.h"
#include "lib/io/metrics.h"

struct pod_store {
    struct writer *writer; /* with `applied` as its pods */
    struct metrics *metrics;
    struct pending_demands *demands;
    struct plans *plans;
    uint64_t instance; /* another one after each start */
    struct applied *applied;
    struct node_reports *reports;
};

#endif
