/* pod_dir - where the files and logs of a pod are, on a card and on the host. */
#ifndef BIGA_ADVERTISER_ACT_CARD_POD_DIR_H
#define BIGA_ADVERTISER_ACT_CARD_POD_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "advertiser/act/card/card.h"
#include "advertiser/cri/cri.h"

#define ACT_MEMORY_DIR "/dev/shm/biga" /* a place's own memory is below it */
#define ACT_MEMORY_HELPER "/memory"    /* where the helper has that mounted */
#define ACT_DEV_HELPER "/card-dev"     /* and, to be read alone, its /dev */

/* The directories of this node; borrowed. */
struct pod_dirs {
    const char *host; /* the only one on the host that we are sure to be allowed
                       * to write to; NULL: as on cards (tests) */
    const char *card; /* on each card */
};

/* A pod on a place, and whom to ask for its files and logs there. */
struct pod_access {
    const struct act_place *place;
    const struct pod_dirs *dirs;
    const char *uid;
    /* on a card alone: */
    struct cri *cri;    /* a connection to its runtime */
    const char *helper; /* the id of the helper's container, "" it does not
                         * run */
};

/* Of that pod; the caller frees it, as all of these. */
char *pod_dir_path(const struct pod_dirs *dirs, const char *place,
                   const char *uid);
/* Of its volumes in memory; `helper`: as the helper sees it. */
char *pod_dir_memory(const char *uid, bool helper);
/* Of its volumes of huge pages; and where the card is to have a hugetlbfs with
 * such pages. */
char *pod_dir_hugepages(const char *uid, uint64_t page, bool helper);
char *pod_dir_hugetlbfs(uint64_t page, bool helper);
/* The name of a log file, below "logs" in the pod's directory. */
char *pod_dir_log_name(const char *container, uint32_t attempt);

#endif
