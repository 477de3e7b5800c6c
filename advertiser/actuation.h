/* actuation - the actuator in the advertiser: its places follow what is seen of
 * the host, its socket and its feed are served, and what it finds out of the
 * cards is laid over the topology that is published. */
#ifndef BIGA_ADVERTISER_ACTUATION_H
#define BIGA_ADVERTISER_ACTUATION_H

#include <stdbool.h>
#include <stdint.h>

#include "advertiser/achieved/given_facts.h"
#include "advertiser/settings.h"
#include "lib/base/error.h"
#include "lib/http/http.h"
#include "model/topo/topo.h"

/* How often files of keys are looked at. */
enum { ACTUATION_TOUCH_MS = 5000 };

struct actuation_config {
    const struct settings *set; /* with `actuate`; outlives it, as do: */
    const char *node, *boot_id;
    const struct http_config *extender; /* NULL: nobody to ask what is wanted;
                                         * the socket alone says */
};

struct actuation; /* use from one thread */
/* `topo` is what was seen first.  Its places are known, the socket answers and
 * the feed runs when it returns. */
int actuation_create(const struct actuation_config *config,
                     const struct topo *topo, struct actuation **ret_acting,
                     struct error *err);
/* Within some seconds; pods go on.  NULL allowed. */
void actuation_destroy(struct actuation *a);

/* What it acts by, for who counts; it lives as long. */
struct actuator *actuation_actuator(const struct actuation *a);
/* Readable when something may have changed; actuation_moved() clears it, and says
 * whether a card fares otherwise than when last published. */
int actuation_fd(const struct actuation *a);
bool actuation_moved(struct actuation *a);
/* The topology was seen; its cards become places.  A card file that cannot be
 * read is logged, and the places stay as they are. */
void actuation_look(struct actuation *a, const struct topo *topo);
/* The topology that is to be published for the one that was seen last; the
 * caller owns it. */
struct topo *actuation_publish(struct actuation *a);
/* Adds what the pods really have that the extender wants here, as in
 * acted_facts.h; on one thread, which may be another.  Ends before it does. */
int actuation_facts(void *acting, const struct host_seen *seen,
                    struct facts *facts);
/* When keys of cards are to be looked at again, and do it when it is due. */
int64_t actuation_due(const struct actuation *a);
void actuation_step(struct actuation *a, int64_t now_ms);

#endif
