/* events - what runtimes tell by themselves of a place; all with the
 * actuator's lock held (act_private.h). */
#ifndef BIGA_ADVERTISER_ACT_CORE_EVENTS_H
#define BIGA_ADVERTISER_ACT_CORE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct actuator;
struct entry;
struct place;

/* What the thread of events has to say about a place. */
struct place_events {
    bool none;          /* its runtime has no events */
    bool live;          /* they come: lists are to make sure */
    bool deaf;          /* not all of them come: lists as without them */
    int64_t stirred_ms; /* the last that calls for a list; 0 none */
    int64_t missed_ms;  /* something had changed without one; 0 not so */
    int64_t retry_ms;   /* no new stream before */
    unsigned failures;  /* of streams, in a row */
    unsigned wakes;     /* that are left, as of: */
    int64_t wakes_ms;
};

/* A place has become ready: what was said of its events is void. */
void events_begin(struct place *p);
/* A place has changed, or all is to end: its thread looks. */
void events_wake(struct actuator *a);
/* Is a list to be made for an event that came after `listed_ms`, when the
 * last one began?  When, or INT64_MAX. */
int64_t events_due(const struct place *p, int64_t listed_ms);
/* Nobody is at a pod any more: an event that was about it meanwhile calls for
 * a list. */
void events_attend(struct place *p, const struct entry *e);
/* A container was found to have ended, and no event had told. */
void events_missed(struct place *p, int64_t now_ms);
/* May the place be listed less often?  Asked before each list. */
bool events_live(struct place *p, int64_t now_ms);

#endif
