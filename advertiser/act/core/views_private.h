/* views_private - filling in views, for the actuator. */
#ifndef BIGA_ADVERTISER_ACT_CORE_VIEWS_PRIVATE_H
#define BIGA_ADVERTISER_ACT_CORE_VIEWS_PRIVATE_H

#include "advertiser/act/core/state.h"
#include "advertiser/act/core/views.h"

void view_fill_pod(struct actuator *a, const struct entry *e,
                   struct act_pod_view *ret_view) REQUIRES(act_state);
void view_fill_place(struct place *p, struct act_place_view *ret_view)
    REQUIRES(act_state);

#endif
