/* allowance - what a pod may ask for beyond what every pod has: by --allow, and
 * by the sets of devices of its card that it asks for. */
#ifndef BIGA_ADVERTISER_ACT_CORE_ALLOWANCE_H
#define BIGA_ADVERTISER_ACT_CORE_ALLOWANCE_H

#include "advertiser/act/core/state.h"

/* -EPERM names what it may not, and what would allow it. */
int allowance_check(struct actuator *a, const char *place,
                    const struct podspec *spec, struct error *err)
    EXCLUDES(act_state);
/* Limit the huge pages of the pod's `unit`th container to what it asks for, of
 * all sizes that the card file gives to anybody there. */
void allowance_limit(struct place *at, const struct podspec *spec, size_t unit,
                     struct arena *arena, struct cri_container_config *config)
    EXCLUDES(act_state);

#endif
