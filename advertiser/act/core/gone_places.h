/* gone_places - pods that are to end on places that are not in this node any
 * more. */
#ifndef BIGA_ADVERTISER_ACT_CORE_GONE_PLACES_H
#define BIGA_ADVERTISER_ACT_CORE_GONE_PLACES_H

#include "advertiser/act/core/state.h"

/* They are gone with their place.  Releases the lock meanwhile; false when that
 * could not be written down: to be tried again. */
bool gone_places_end_pods(struct actuator *a) REQUIRES(act_state);

#endif
