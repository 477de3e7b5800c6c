/* events - what runtimes tell by themselves of a place. */
#ifndef BIGA_ADVERTISER_ACT_CORE_EVENTS_H
#define BIGA_ADVERTISER_ACT_CORE_EVENTS_H

#include "advertiser/act/core/state.h"

/* A place has become ready: what was said of its events is void. */
void events_begin(struct place *p) REQUIRES(act_state);
/* A place has changed, or all is to end: its thread looks. */
void events_wake(struct actuator *a) REQUIRES(act_state);
/* Is a list to be made for an event that came after `listed_ms`, when the
 * last one began?  When, or INT64_MAX. */
int64_t events_due(const struct place *p, int64_t listed_ms)
    REQUIRES(act_state);
/* A step of the pod has ended: an event that came meanwhile causes a list. */
void events_attend(struct place *p, const struct pod_entry *e)
    REQUIRES(act_state);
/* A container was found to have ended, and no event had told. */
void events_missed(struct place *p, int64_t now_ms) REQUIRES(act_state);
/* May the place be listed less often?  Asked before each list. */
bool events_live(struct place *p, int64_t now_ms) REQUIRES(act_state);

#endif
