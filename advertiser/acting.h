/* acting - the actuator in the advertiser: its places follow what is seen of
 * the host, its socket and its feed are served, and what it finds out of the
 * cards is laid over the topology that is published. */
#ifndef BIGA_ADVERTISER_ACTING_H
#define BIGA_ADVERTISER_ACTING_H

#include <stdbool.h>
#include <stdint.h>

#include "advertiser/settings.h"
#include "lib/base/error.h"
#include "lib/http/http.h"
#include "model/topo/topo.h"

/* How often files of keys are looked at. */
enum { ACTING_TOUCH_MS = 5000 };

struct acting_config {
    const struct settings *set; /* with `actuate`; outlives it, as do: */
    const char *node, *boot_id;
    const struct http_config *extender; /* NULL: nobody to ask what is wanted;
                                         * the socket alone says */
};

struct acting; /* use from one thread */
/* `topo` is what was seen first.  Its places are known, the socket answers and
 * the feed runs when it returns. */
int acting_create(const struct acting_config *config, const struct topo *topo,
                  struct acting **ret_acting, struct error *err);
/* Within some seconds; pods go on.  NULL allowed. */
void acting_destroy(struct acting *a);

/* Readable when something may have changed; acting_moved() clears it, and says
 * whether a card fares otherwise than when last published. */
int acting_fd(const struct acting *a);
bool acting_moved(struct acting *a);
/* The topology was seen; its cards become places.  A card file that cannot be
 * read is logged, and the places stay as they are. */
void acting_look(struct acting *a, const struct topo *topo);
/* The topology that is to be published for the one that was seen last; the
 * caller owns it. */
struct topo *acting_publish(struct acting *a);
/* When keys of cards are to be looked at again, and do it when it is due. */
int64_t acting_due(const struct acting *a);
void acting_step(struct acting *a, int64_t now_ms);

#endif
