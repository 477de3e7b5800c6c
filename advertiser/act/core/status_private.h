/* status_private - filling in a status, for the actuator. */
#ifndef BIGA_ADVERTISER_ACT_CORE_STATUS_PRIVATE_H
#define BIGA_ADVERTISER_ACT_CORE_STATUS_PRIVATE_H

#include "advertiser/act/core/state.h"
#include "advertiser/act/core/status.h"

void status_fill_pod(struct actuator *a, const struct pod_entry *e,
                     struct act_pod_status *ret_view) REQUIRES(act_state);
void status_fill_place(struct place *p, struct act_place_status *ret_view)
    REQUIRES(act_state);

#endif
