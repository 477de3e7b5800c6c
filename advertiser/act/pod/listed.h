/* listed - what was found on a place with our labels, by the UID of its pods,
 * so that what is done with it under the lock is short however much a card
 * lists.  Pure. */
#ifndef BIGA_ADVERTISER_ACT_POD_LISTED_H
#define BIGA_ADVERTISER_ACT_POD_LISTED_H

#include "advertiser/act/machine/machine.h"
#include "advertiser/act/pod/orphans.h"

struct listed {
    struct cri_containers containers;
    struct cri_sandboxes sandboxes;
    struct orphan_seen *seen; /* in order; of the two, once they are sorted */
    size_t n;
};
void listed_fini(struct listed *l); /* and it is empty */
void listed_sort(struct listed *l);
/* Those of a pod are to be there. */
void listed_know(struct listed *l, const char *uid);
/* Those of a pod are what its end left. */
void listed_end(struct listed *l, const char *uid);
/* As listed_know(); adds how many that are which nobody knew. */
void listed_spare(struct listed *l, const char *uid, size_t *n,
                  size_t *n_running);
/* Adds those of a pod. */
void listed_take(const struct listed *l, const char *uid,
                 struct machine_found *found);

/* As the machine has them. */
void listed_sandbox(const struct cri_sandbox *s, struct machine_found *found);
void listed_container(const struct cri_container *c,
                      struct machine_found *found);
/* "" when it is not there. */
const char *listed_label(const struct cri_pair *list, size_t n,
                         const char *key);

#endif
