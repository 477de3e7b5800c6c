/* threads - the threads of the actuator, and who waits for its news. */
#ifndef BIGA_ADVERTISER_ACT_CORE_THREADS_H
#define BIGA_ADVERTISER_ACT_CORE_THREADS_H

#include "advertiser/act/core/state.h"

/* Wakes who waits for a change. */
void act_notify(struct actuator *a) REQUIRES(act_state);
/* A thread with `f`; false when there can be none. */
bool act_thread(struct actuator *a, void *(*f)(void *), void *arg)
    REQUIRES(act_state);
/* The last call of such a thread; gives the lock back. */
void act_thread_ends(struct actuator *a) RELEASES(act_state);

#endif
