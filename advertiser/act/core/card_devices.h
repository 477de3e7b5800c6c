/* card_devices - sets of a card's devices: which pods have them, as many as the
 * card file lets, which device nodes they are on the card, and what else they
 * let pods have. */
#ifndef BIGA_ADVERTISER_ACT_CORE_CARD_DEVICES_H
#define BIGA_ADVERTISER_ACT_CORE_CARD_DEVICES_H

#include "advertiser/act/card/connection.h"
#include "advertiser/act/core/state.h"

/* As MACHINE_PREPARE wants it: the sets that the pod asks for are its own until
 * it is over.  The result is in `r`. */
void card_devices_take(struct place *at, struct pod_entry *e,
                       struct machine_result *r, struct error *err)
    EXCLUDES(act_state);
/* The same: does the card, as it was prepared, have them? */
void card_devices_seek(struct place *at, const struct connection *c,
                       struct pod_entry *e, struct machine_result *r,
                       struct error *err) EXCLUDES(act_state);
/* After each step of a pod: when it does not have them any more, those that wait
 * for them try again. */
void card_devices_note_use(struct place *at, struct pod_entry *e)
    REQUIRES(act_state);
/* Give a container of the pod its devices, as MACHINE_CREATE wants it; they
 * live in the arena. */
void card_devices_find(struct place *at, const struct connection *c,
                       const struct pod_entry *e, struct arena *arena,
                       struct cri_container_config *config,
                       struct machine_result *r, struct error *err)
    EXCLUDES(act_state);

/* May a pod ask for the rights and huge pages that it asks for there, by --allow
 * or by its sets?  -EPERM names what it may not, and what would allow it. */
int card_devices_check(struct actuator *a, const char *place,
                       const struct podspec *spec, struct error *err)
    EXCLUDES(act_state);
/* Limit the huge pages of the pod's `unit`th container to what it asks for, of
 * all sizes that the card file gives to anybody there. */
void card_devices_limit(struct place *at, const struct podspec *spec,
                        size_t unit, struct arena *arena,
                        struct cri_container_config *config)
    EXCLUDES(act_state);

#endif
