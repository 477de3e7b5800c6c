/* card_setup - configures a card before a pod uses it: virtual and scalable
 * functions, the operator's hook; who uses the card meanwhile, and who waits for it. */
#ifndef BIGA_ADVERTISER_ACT_CORE_CARD_SETUP_H
#define BIGA_ADVERTISER_ACT_CORE_CARD_SETUP_H

#include "advertiser/act/core/state.h"

/* As MACHINE_PREPARE wants it: the result is in `r`. */
void card_setup_run(struct place *at, const struct act_place *what,
                    struct pod_entry *e, struct machine_result *r,
                    struct error *err) EXCLUDES(act_state);
/* Its scalable functions go; what cannot go is logged, and tried again when the
 * card is configured for another pod. */
void card_setup_end(struct place *at, const struct act_place *what,
                    const struct pod_entry *e) EXCLUDES(act_state);
/* A container is told which they are: BIGA_SCALABLE_FUNCTIONS. */
int card_setup_env(struct place *at, const struct act_place *what,
                   const struct pod_entry *e, struct arena *arena,
                   struct cri_container_config *container, struct error *err)
    EXCLUDES(act_state);
/* After each step of a pod: when it does not use the card any more, those that
 * wait for its virtual functions try again. */
void card_setup_note_use(struct place *at, struct pod_entry *e)
    REQUIRES(act_state);
/* The pods that wait there for that reason try again now. */
void card_setup_wake(struct place *at, const char *reason) REQUIRES(act_state);
/* What was not recorded does not use the card any more. */
void card_setup_freed(struct place *at) REQUIRES(act_state);

#endif
