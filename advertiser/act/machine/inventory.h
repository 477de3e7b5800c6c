/* inventory - the sandboxes and containers that a place listed with our
 * labels, sorted by the UID of their pod, so that what the lock is held for
 * stays short however much a card lists.  Pure. */
#ifndef BIGA_ADVERTISER_ACT_MACHINE_INVENTORY_H
#define BIGA_ADVERTISER_ACT_MACHINE_INVENTORY_H

#include "advertiser/act/machine/machine.h"
#include "advertiser/act/pod/orphans.h"

struct inventory {
    struct cri_containers containers;
    struct cri_sandboxes sandboxes;
    struct orphan_seen *seen; /* of both, in order; inventory_sort() makes it */
    size_t n;
};
void inventory_fini(struct inventory *l); /* it is empty then */
void inventory_sort(struct inventory *l);
/* The objects of that pod are expected there: they are no orphans. */
void inventory_know(struct inventory *l, const char *uid);
/* The pod has ended: what is left of it may be removed at once. */
void inventory_end(struct inventory *l, const char *uid);
/* As inventory_know(); adds to `*n` and `*n_running` how many objects were not
 * known before. */
void inventory_spare(struct inventory *l, const char *uid, size_t *n,
                     size_t *n_running);
/* Adds the objects of that pod to `found`. */
void inventory_take(const struct inventory *l, const char *uid,
                    struct machine_found *found);

#endif
