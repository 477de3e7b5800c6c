/* device_nodes - the host's side of a card, as /sys tells now: RDMA devices,
 * network devices and virtual functions of all its PCI functions, and the files
 * below /dev by which programs reach them.
 *
 * Of each function: /sys/bus/pci/devices/ADDR/infiniband_verbs/uverbsN (the
 * kernel's Documentation/infiniband/user_verbs) and infiniband/NAME, net/NAME,
 * physfn of a virtual function; and /dev/vfio/GROUP of one whose driver is
 * vfio-pci (Documentation/driver-api/vfio). */
#ifndef BIGA_ADVERTISER_HOSTSIDE_DEVICE_NODES_H
#define BIGA_ADVERTISER_HOSTSIDE_DEVICE_NODES_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/str.h"
#include "model/topo/topo.h"

enum {
    DEVICE_NODES_MAX = 160, /* files of one card; more are left out */
    DEVICE_NODE_PATH_MAX = 63,
    DEVICE_NAMES_MAX = 4096, /* bytes of a list of names */
};

struct device_node {
    char path[DEVICE_NODE_PATH_MAX + 1]; /* "/dev/infiniband/uverbs0" */
    bool numbered; /* /sys tells its number; else whoever makes it looks */
    unsigned major, minor;
};

struct device_nodes {
    struct device_node nodes[DEVICE_NODES_MAX];
    size_t n;
    struct str rdma, interfaces, vfs; /* names, with ',' between */
};

/* `sysroot` is of the /sys, "" for /; NULL: what is described has none.  Blocks
 * for drivers to answer.  Never fails: what cannot be read is not there. */
void device_nodes_look(const char *sysroot, const struct device *card,
                       struct device_nodes *ret_nodes);
/* One more, of a path that is not there yet. */
void device_nodes_add(struct device_nodes *n, const char *path);
void device_nodes_fini(struct device_nodes *n);

#endif
