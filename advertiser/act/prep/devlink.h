/* devlink - what the command `devlink -j` (iproute2) tells of a PCI function:
 * its ports, its firmware, the mode of its eswitch.  Pure: it reads texts. */
#ifndef BIGA_ADVERTISER_ACT_PREP_DEVLINK_H
#define BIGA_ADVERTISER_ACT_PREP_DEVLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"

enum {
    DEVLINK_PORTS_MAX = 4096, /* of flavour pcisf; more is an error */
    DEVLINK_HANDLE_MAX = 63,  /* "pci/0000:17:00.0/32768" */
    DEVLINK_TEXT_MAX = 63, /* of a version, a mode …; longer ones are cut */
};

/* A scalable function. */
struct devlink_sf {
    char handle[DEVLINK_HANDLE_MAX + 1];
    uint32_t pfnum, sfnum;
    bool active, attached; /* its state, and its opstate */
};
struct devlink_sfs {
    struct devlink_sf *list;
    size_t n;
};

/* `devlink -j port show`, or `port add`: those of the function `pci` with no
 * controller but its own; -EINVAL with the path of what is wrong.  The caller
 * frees `ret_sfs->list`. */
int devlink_read_sfs(const char *json, size_t size, const char *pci,
                     struct devlink_sfs *ret_sfs, struct error *err);

struct devlink_info { /* "" not told */
    char driver[DEVLINK_TEXT_MAX + 1];
    char serial[DEVLINK_TEXT_MAX + 1];
    char firmware[DEVLINK_TEXT_MAX + 1]; /* that runs */
    char stored[DEVLINK_TEXT_MAX + 1];   /* that runs after the next reset */
    char psid[DEVLINK_TEXT_MAX + 1];     /* what board it is for */
};
/* `devlink -j dev info` */
int devlink_read_info(const char *json, size_t size, const char *pci,
                      struct devlink_info *ret_info, struct error *err);
/* `devlink -j dev eswitch show`: "switchdev" …, "" not told. */
int devlink_read_eswitch(const char *json, size_t size, const char *pci,
                         char ret_mode[DEVLINK_TEXT_MAX + 1],
                         struct error *err);

#endif
