/* left - what is kept of pods that are gone, and what they left behind. */
#ifndef BIGA_ADVERTISER_ACT_POD_LEFT_H
#define BIGA_ADVERTISER_ACT_POD_LEFT_H

#include "advertiser/act/core/act_private.h"

/* --- kept.c: without the lock ------------------------------------------------ */

/* Of a pod that has ended, before its files are removed: as far as possible. */
void kept_take(struct place *at, const struct connection *c,
               const struct entry *e);
/* As actuator_logs(); -ENOENT when none is kept. */
int kept_read(struct actuator *a, const struct intent_log *names,
              uint64_t offset, size_t max, struct str *ret_text,
              uint64_t *ret_next, struct error *err);

/* --- leftovers.c: with the lock held ----------------------------------------- */

int leftovers_load(struct actuator *a, struct error *err);
/* Of a pod that is gone.  Released while it is written down. */
void leftovers_add(struct place *p, const char *uid);
/* What an earlier pod of that UID left is being removed. */
bool leftovers_busy(const struct actuator *a, const char *uid);
/* When to try again there. */
int64_t leftovers_due(const struct place *p);
/* One of them.  Released meanwhile. */
void leftovers_sweep(struct place *p, const struct connection *c);

#endif
