/* hardware - what a card is now: its firmware, mode and functions, from sysfs,
 * devlink and rshim.  What none of them tells is unknown. */
#ifndef BIGA_ADVERTISER_ACT_PREP_HARDWARE_H
#define BIGA_ADVERTISER_ACT_PREP_HARDWARE_H

#include "advertiser/act/prep/devlink.h"
#include "advertiser/act/prep/prep.h"
#include "advertiser/act/prep/rshim.h"

enum { HARDWARE_MS = 3000 }; /* each of its commands may take */

struct hardware { /* "" and -1: unknown */
    struct devlink_info info;
    char eswitch[DEVLINK_TEXT_MAX + 1];
    struct rshim rshim;
    int vfs, vfs_max;
    int sfs; /* also those of others */
};

/* Of the card whose lowest function is `pci`.  Blocks for a few commands. */
void hardware_look(const struct prep_config *config, const char *pci,
                   struct hardware *ret_hardware);

#endif
