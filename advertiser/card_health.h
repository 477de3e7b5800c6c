/* card_health - how this host's cards fare, as its biga-cri says in a file
 * (advertiser/act/card/health_file.h): where a kubelet runs pods, nobody else
 * on the host speaks with them. */
#ifndef BIGA_ADVERTISER_CARD_HEALTH_H
#define BIGA_ADVERTISER_CARD_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "model/topo/topo.h"

enum { CARD_HEALTH_LOOK_MS = 1000 };

struct card_health; /* use from one thread */
/* A file that is not there yet says nothing. */
struct card_health *card_health_create(const char *path, const char *node);
void card_health_destroy(struct card_health *h); /* NULL allowed */

/* When the file is to be looked at again; and do it when it is due: true when
 * it says something else.  One that cannot be read is logged, and what the last
 * one said goes on. */
int64_t card_health_due(const struct card_health *h);
bool card_health_step(struct card_health *h, int64_t now_ms);

/* The topology with cards that are lost withdrawn; the caller owns it. */
struct topo *card_health_mark(struct card_health *h, struct topo *seen);

#endif
