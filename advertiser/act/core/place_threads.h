/* place_threads - the threads of a place: one probes it and lists what is there,
 * some others carry out the steps of its pods, and remove orphans and folders
 * that were left. */
#ifndef BIGA_ADVERTISER_ACT_CORE_PLACE_THREADS_H
#define BIGA_ADVERTISER_ACT_CORE_PLACE_THREADS_H

#include "advertiser/act/core/state.h"

/* Adds the place, or changes it; its prober runs.  NULL: there are too many. */
struct place *prober_set_place(struct actuator *a, const struct act_place *what)
    REQUIRES(act_state);
/* It is not in this node any more. */
void prober_remove_place(struct place *p) REQUIRES(act_state);

/* The thread of a worker; `place` is one. */
void *worker_thread(void *place) EXCLUDES(act_state);
/* Pods of the host that somebody else runs.  Releases the lock meanwhile. */
void worker_run_host_pods(struct place *p) REQUIRES(act_state);

#endif
