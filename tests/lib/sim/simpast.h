/* simpast - what a history has, as lines. */
#ifndef BIGA_TESTS_LIB_SIM_SIMPAST_H
#define BIGA_TESTS_LIB_SIM_SIMPAST_H

#include "extender/history/history.h"
#include "lib/base/str.h"

/* Once all is written: the events of an object, or all (NULL), in order, a
 * line "KIND OBJECT [of JOB] REASON: MESSAGE" each.  Aborts when it cannot be
 * asked. */
void sim_past(struct history *h, const char *object, struct str *out);

/* A follower that holds the history's thread from the first news on, until
 * sim_past_go_on(): what is told meanwhile comes to be written together. */
struct sim_past_hold;
struct sim_past_hold *sim_past_hold(struct history *h);
void sim_past_go_on(struct sim_past_hold *hold);

#endif
