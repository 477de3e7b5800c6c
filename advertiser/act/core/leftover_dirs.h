/* leftover_dirs - folders of pods that are gone, which could not be removed: what was
 * in the way may have gone later. */
#ifndef BIGA_ADVERTISER_ACT_CORE_LEFTOVER_DIRS_H
#define BIGA_ADVERTISER_ACT_CORE_LEFTOVER_DIRS_H

#include "advertiser/act/card/connection.h"
#include "advertiser/act/core/state.h"

int leftover_dirs_load(struct actuator *a, struct error *err)
    REQUIRES(act_state);
/* Of a pod that is gone.  Releases the lock while it is written down. */
void leftover_dirs_add(struct place *p, const char *uid) REQUIRES(act_state);
/* What an earlier pod of that UID left is being removed. */
bool leftover_dirs_busy(const struct actuator *a, const char *uid)
    REQUIRES(act_state);
/* Tries one of them.  Releases the lock meanwhile. */
void leftover_dirs_sweep(struct place *p, const struct connection *c)
    REQUIRES(act_state);

#endif
