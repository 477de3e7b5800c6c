/* connection - a connection to the runtime of a place as it was described at some
 * time: who changes the description counts its generation, and connections of an
 * earlier one are closed by those who have them.  Use from one thread. */
#ifndef BIGA_ADVERTISER_ACT_CARD_CONNECTION_H
#define BIGA_ADVERTISER_ACT_CARD_CONNECTION_H

#include "advertiser/act/card/card.h"
#include "advertiser/cri/cri.h"
#include "lib/base/error.h"

struct connection {
    struct act_place place; /* it is to this one; it must not move while */
    unsigned generation;    /* of the description */
    struct cri *cri;        /* NULL: it is closed */
};

/* Blocks for no answer: the first call connects.  Once more is a success. */
int connection_open(struct connection *c, struct error *err);
/* May wait for a call to be given up. */
void connection_close(struct connection *c);

#endif
