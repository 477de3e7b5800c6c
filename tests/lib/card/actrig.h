/* actrig - an actuator, and cards for it that are servers of their own
 * (cardserver), over unix sockets: "card-0", "card-1", …  Stops the test when
 * something cannot be set up. */
#ifndef BIGA_TESTS_LIB_CARD_ACTRIG_H
#define BIGA_TESTS_LIB_CARD_ACTRIG_H

#include <stdatomic.h>

#include "advertiser/act/core/actuator.h"
#include "tests/lib/card/cardserver.h"

enum { ACTRIG_CARDS = 4 };

struct actrig {
    char *dir; /* "…/state" is the actuator's, "…/card-N.sock" */
    size_t n;  /* of cards */
    struct cardserver *cards[ACTRIG_CARDS];
    struct act_place places[ACTRIG_CARDS];
    struct actuator_config config; /* for actrig_open() */
    struct actuator *a;            /* NULL: not open */
    atomic_bool closed;
    unsigned n_away; /* threads of it that wait for what the test will do */
};

/* Cards without an actuator: change `config` and `places` before it comes. */
void actrig_init(struct actrig *r, size_t n);
/* Card `i` over TCP, in cleartext, from then on. */
void actrig_tcp(struct actrig *r, size_t i);
void actrig_open(struct actrig *r);
void actrig_close(struct actrig *r); /* the actuator */
void actrig_fini(struct actrig *r);
/* The first `n` places are there. */
void actrig_set(struct actrig *r, size_t n);

/* A pod of namespace "lab" whose uid is its name, of one container, which ends
 * at once when it is told to; 0 or -errno. */
int actrig_want(struct actrig *r, const char *name, const char *place);
/* The same with what else `pod` says; no virtual functions: as they are. */
int actrig_want_as(struct actrig *r, struct act_pod pod);
/* Each for at most 60 s, of virtual time where that is on; false: it is not.
 * Until it is in that state. */
bool actrig_reach(struct actrig *r, const char *name, enum act_state state);
/* Until what lives on a card of that pod are so many objects. */
bool actrig_live(struct actrig *r, size_t card, const char *uid, unsigned n);
/* Until the health of the `i`-th place is that. */
bool actrig_becomes(struct actrig *r, size_t i, enum act_health health);
struct act_place_status actrig_place(struct actrig *r, size_t i);
/* A sandbox that nobody wrote down, with our labels. */
void actrig_stray(struct actrig *r, size_t card, const char *uid);

/* Virtual time, from before actrig_open() to after actrig_fini().  It goes on
 * when all threads of the actuator but `n_away` wait for it, or for cards that
 * are frozen: until the first of them is due, at most for `max_ms`. */
void actrig_step(struct actrig *r, int64_t max_ms);
/* The same again and again, for `ms`; then they wait again. */
void actrig_pass(struct actrig *r, int64_t ms);
/* When all of them wait. */
void actrig_settle(struct actrig *r);

#endif
