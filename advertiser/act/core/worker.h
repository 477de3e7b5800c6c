/* worker - the threads of a place that carry out the steps of its pods, and
 * remove orphans and folders that were left. */
#ifndef BIGA_ADVERTISER_ACT_CORE_WORKER_H
#define BIGA_ADVERTISER_ACT_CORE_WORKER_H

#include "advertiser/act/core/state.h"

/* The thread; `place` is one. */
void *worker_thread(void *place) EXCLUDES(act_state);
/* Pods of the host that somebody else runs.  Releases the lock meanwhile. */
void worker_run_host_pods(struct place *p) REQUIRES(act_state);

#endif
