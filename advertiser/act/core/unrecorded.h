/* unrecorded - pods that are wanted but could not be recorded yet: what is found of
 * them on a place is spared, and what is of nobody is an orphan. */
#ifndef BIGA_ADVERTISER_ACT_CORE_UNRECORDED_H
#define BIGA_ADVERTISER_ACT_CORE_UNRECORDED_H

#include "advertiser/act/core/state.h"

/* Copies, in order. */
void unrecorded_set(struct actuator *a, const char *const *uids, size_t n)
    REQUIRES(act_state);
/* Nobody wants what is of that pod there. */
bool unrecorded_is_orphan(const struct place *p, const char *uid)
    REQUIRES(act_state);
/* As actuator_told() and actuator_left(). */
void unrecorded_told(struct actuator *a, const char *const *uids, size_t n)
    EXCLUDES(act_state);
int unrecorded_check_gone(struct actuator *a, const char *place,
                          const char *uid, struct error *err)
    EXCLUDES(act_state);

#endif
