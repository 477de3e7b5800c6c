/* helper_pod - the pod of biga-card on each card: made when a pod is first to run
 * there, ended when none is left. */
#ifndef BIGA_ADVERTISER_ACT_CORE_HELPER_POD_H
#define BIGA_ADVERTISER_ACT_CORE_HELPER_POD_H

#include "advertiser/act/core/state.h"

/* Does a pod have to wait for it?  Makes it when there is none, and releases
 * the lock meanwhile. */
bool helper_awaited(struct place *at, struct pod_entry *e) REQUIRES(act_state);
/* Ends it when it is of no use.  May release the lock for a while. */
void helper_tend(struct place *p) REQUIRES(act_state);
/* It has failed, or the end of `e` has waited for it long enough. */
bool helper_is_given_up(struct actuator *a, const struct pod_entry *e)
    REQUIRES(act_state);
/* Its running container there, "" none. */
void helper_id(struct actuator *a, const char *place,
               char ret_id[CRI_ID_MAX + 1]) REQUIRES(act_state);

#endif
