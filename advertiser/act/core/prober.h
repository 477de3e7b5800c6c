/* prober - the thread of a place that probes it and lists what is there. */
#ifndef BIGA_ADVERTISER_ACT_CORE_PROBER_H
#define BIGA_ADVERTISER_ACT_CORE_PROBER_H

#include "advertiser/act/core/state.h"

/* Adds the place, or changes it; its thread runs.  NULL: there are too many. */
struct place *prober_set_place(struct actuator *a, const struct act_place *what)
    REQUIRES(act_state);
/* It is not in this node any more. */
void prober_remove_place(struct place *p) REQUIRES(act_state);

#endif
