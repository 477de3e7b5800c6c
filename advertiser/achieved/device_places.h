/* device_places - where the devices are that a container was given: the PCI
 * address of a device plugin's id, and which card, GPU or NIC of the topology
 * that is.
 *
 * An id is a PCI address, a UUID of NVIDIA's driver, or the name of an RDMA,
 * network or auxiliary device; of any other the address is not known. */
#ifndef BIGA_ADVERTISER_ACHIEVED_DEVICE_PLACES_H
#define BIGA_ADVERTISER_ACHIEVED_DEVICE_PLACES_H

#include <stdbool.h>
#include <stddef.h>

#include "advertiser/achieved/facts.h"
#include "model/topo/topo.h"

enum {
    DEVICE_UUIDS_MAX = 64, /* GPUs of NVIDIA's driver */
    DEVICE_UUID_MAX = 63,
    DEVICE_ID_MAX = 253, /* of a plugin; longer ones are not known */
};

/* GPUs by what NVIDIA's driver calls them, as in /proc/driver/nvidia/gpus. */
struct device_uuids {
    size_t n;
    struct device_uuid {
        char uuid[DEVICE_UUID_MAX + 1]; /* "GPU-6b0c…" */
        struct pci_addr pci;
    } items[DEVICE_UUIDS_MAX];
};
/* Of the driver below `sysroot` ("" for /); none where there is no driver. */
void device_uuids_look(const char *sysroot, struct device_uuids *ret_uuids);
/* The UUID that a file "information" tells; false when it tells none. */
bool device_uuid_read(const char *text, size_t size,
                      char ret_uuid[DEVICE_UUID_MAX + 1]);

/* What ids are looked up in; all is borrowed. */
struct device_places {
    const struct topo *topo;
    const char *sysroot; /* "" for / */
    const struct device_uuids *uuids;
};

/* False when its address is not known. */
bool device_places_find(const struct device_places *p, const char *id,
                        struct pci_addr *ret_addr);

/* A pod was given a device by a plugin's resource: what the topology has at its
 * address is added to what the pod has.  One whose address is not known makes
 * that unknown which it may be, by the name of its resource. */
void device_places_add(const struct device_places *p, const char *resource,
                       const char *id, struct pod_facts *facts);
/* The same of a device at an address, or of one whose address is not known
 * (NULL). */
void device_places_add_pci(const struct device_places *p, const char *resource,
                           const struct pci_addr *addr,
                           struct pod_facts *facts);
/* One of our own, by its id in the topology. */
void device_places_add_ours(const struct device_places *p, const char *id,
                            struct pod_facts *facts);

#endif
