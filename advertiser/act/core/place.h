/* place - a place: what may be done there, and when. */
#ifndef BIGA_ADVERTISER_ACT_CORE_PLACE_H
#define BIGA_ADVERTISER_ACT_CORE_PLACE_H

#include "advertiser/act/core/state.h"

struct place *place_find(struct actuator *a, const char *name)
    REQUIRES(act_state);
void place_free(struct place *p);
/* Steps may be begun there. */
bool place_works(const struct place *p) REQUIRES(act_state);
enum act_health place_health(const struct place *p) REQUIRES(act_state);
/* When the next step of a pod there, an orphan, or a folder that was left is
 * due; INT64_MAX never. */
int64_t place_due(struct place *p) REQUIRES(act_state);
/* The last of these. */
int64_t place_leftover_dirs_due(const struct place *p) REQUIRES(act_state);
/* There may be something to do: wakes its threads, or begins one. */
void place_wake(struct place *p) REQUIRES(act_state);
/* Has one of the pod's sets of devices to be looked for there by patterns? */
bool place_seeks_devices(const struct place *p, const struct pod_entry *e)
    REQUIRES(act_state);
/* Others see all of its pods anew. */
void place_publish(struct place *p) REQUIRES(act_state);

#endif
