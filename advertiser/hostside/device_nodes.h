/* device_nodes - the host's side of cards, NICs and GPUs, as /sys tells now: RDMA
 * devices, network devices and virtual functions of their PCI functions, and the
 * files below /dev by which programs reach them.
 *
 * Of each function: /sys/bus/pci/devices/ADDR/infiniband_verbs/uverbsN (the
 * kernel's Documentation/infiniband/user_verbs) and infiniband/NAME, net/NAME,
 * physfn of a virtual function and virtfnN to each of them; /dev/vfio/GROUP of
 * one whose driver is vfio-pci (Documentation/driver-api/vfio).  Of a GPU:
 * drm/renderDN, /dev/kfd beside those of amdgpu, and what NVIDIA's driver says
 * in /proc/driver/nvidia/gpus/ADDR/information. */
#ifndef BIGA_ADVERTISER_HOSTSIDE_DEVICE_NODES_H
#define BIGA_ADVERTISER_HOSTSIDE_DEVICE_NODES_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/str.h"
#include "model/topo/topo.h"

enum {
    DEVICE_NODES_MAX = 160, /* files of one list; more are left out */
    DEVICE_NODE_PATH_MAX = 63,
    DEVICE_NAMES_MAX = 4096,    /* bytes of a list of names */
    DEVICE_FUNCTIONS_MAX = 128, /* of one card that are looked at */
};

struct device_node {
    char path[DEVICE_NODE_PATH_MAX + 1]; /* "/dev/infiniband/uverbs0" */
    bool numbered; /* /sys tells its number; else whoever makes it looks */
    unsigned major, minor;
};

struct device_nodes {
    struct device_node nodes[DEVICE_NODES_MAX];
    size_t n;
    struct str rdma, interfaces,
        vfs; /* names of cards' devices, with ',' between
                                       */
};

/* Which files are looked for. */
enum {
    NODES_RDMA = 1,  /* verbs, and the connection manager */
    NODES_VFIO = 2,  /* functions that are bound to vfio-pci */
    NODES_GPU = 4,   /* GPUs */
    NODES_NAMED = 8, /* what the card file names; see host_side.h */
    NODES_ALL = 15,
};

/* Whose it is. */
struct device_part {
    unsigned kinds; /* NODES_… */
    /* Others have the card, too.  Then of its functions it is `function` alone,
     * a virtual one ("0000:17:00.2").  "": nothing of a card that has virtual
     * functions, and the RDMA devices of one that has none, which can be
     * shared; never anything by VFIO. */
    bool shared;
    const char *function;
};

void device_nodes_init(struct device_nodes *ret_nodes);
void device_nodes_fini(struct device_nodes *n);
/* Append what there is of a card, NIC or GPU.  `sysroot` is of the /sys, "" for
 * /; NULL: what is described has none.  Blocks for drivers to answer.  Never
 * fails: what cannot be read is not there. */
void device_nodes_look(const char *sysroot, const struct device *device,
                       const struct device_part *part, struct device_nodes *n);
/* One more, of a path that is not there yet. */
void device_nodes_add(struct device_nodes *n, const char *path);
/* Leave out what is no device node below `sysroot`, or is one of another number
 * than /sys tells. */
void device_nodes_check(const char *sysroot, struct device_nodes *n);

/* The first virtual function of the card that is not among `taken` (addresses,
 * with ',' between); false: there is none.  `keep` is chosen when it is one. */
bool device_nodes_free_vf(const char *sysroot, const struct device *card,
                          const char *keep, const char *taken,
                          char ret_function[PCI_ADDR_TEXT_MAX]);
/* Is that one of the texts that have ',' between? */
bool device_names_have(const char *list, const char *name);

#endif
