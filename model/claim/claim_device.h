/* claim_device - what a ResourceSlice (resource.k8s.io/v1) of any driver says:
 * its devices with typed attributes, capacities and taints, as DRA's
 * allocator sees them.  Pure.
 *
 * Read in place from the object's JSON; members that are not named here are
 * checked for syntax and skipped, also those that later releases add. */
#ifndef BIGA_MODEL_CLAIM_CLAIM_DEVICE_H
#define BIGA_MODEL_CLAIM_CLAIM_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "model/claim/claim_capacity.h"
#include "model/topo/pci.h"

/* Kubernetes allows 128 devices, 32 attributes and capacities together (48
 * with lists), 16 taints, domains and drivers of 63 bytes, names of 32, values
 * of 64: what it may raise later has room. */
enum {
    CLAIM_DEVICES_MAX = 128,
    CLAIM_ATTRIBUTES_MAX = 64, /* of a device */
    CLAIM_TAINTS_MAX = 64,     /* of a device; tolerations of a request */
    CLAIM_SLICE_MAX = 4 << 20, /* bytes of a slice's JSON */
};

enum claim_type {
    CLAIM_BOOL,
    CLAIM_INT,
    CLAIM_TEXT,
    CLAIM_VERSION,
    CLAIM_OTHER, /* a list, or what is not known: it is there, no more */
};

/* Names without a domain are in that of the driver. */
struct claim_attribute {
    const char *domain, *name;
    enum claim_type type;
    int64_t number;   /* of an int; 0 or 1 of a bool */
    const char *text; /* of a text and a version, else "" */
};

struct claim_taint {
    const char *key, *value, *effect; /* "NoSchedule", "NoExecute", … */
};

struct claim_device {
    const char *name;
    const struct claim_attribute *attributes; /* by domain, then name */
    size_t n_attributes;
    const struct claim_capacity *capacities; /* in the same order */
    size_t n_capacities;
    const struct claim_taint *taints;
    size_t n_taints;
    bool allow_multiple; /* may be in several claims, by capacity */
    bool has_pci;
    struct pci_addr pci;   /* of resource.kubernetes.io/pciBusID */
    const char *pcie_root; /* resource.kubernetes.io/pcieRoot, "" none */
    const char *node;      /* when the slice reaches CLAIM_BY_DEVICE */
};

/* Which nodes get at the devices. */
enum claim_reach {
    CLAIM_OF_NODE,     /* `node` */
    CLAIM_BY_SELECTOR, /* those that a selector names */
    CLAIM_OF_ALL,      /* every node */
    CLAIM_BY_DEVICE,   /* each device says it itself */
};

struct claim_slice {
    const char *name, *driver, *pool;
    int64_t generation, slice_count; /* of the pool */
    enum claim_reach reach;
    const char *node; /* "" when it reaches others than one node */
    const struct claim_device *devices;
    size_t n_devices;
    struct arena arena; /* holds all texts and arrays */
};

/* Read a ResourceSlice.  0, and the caller destroys it; or -EINVAL with the
 * path and what is wrong: no JSON, a cap that is passed, a name that is
 * missing, an amount that is none.  A pciBusID that is no PCI address leaves
 * has_pci false. */
int claim_slice_read(const char *json, size_t size,
                     struct claim_slice **ret_slice, struct error *err);
void claim_slice_destroy(struct claim_slice *slice); /* NULL allowed */
DEFINE_CLEANUP(claim_slice, struct claim_slice *, claim_slice_destroy)

/* By qualified name; NULL when the device has none. */
const struct claim_attribute *
claim_device_attribute(const struct claim_device *device, const char *domain,
                       const char *name);
const struct claim_capacity *
claim_device_capacity(const struct claim_device *device, const char *domain,
                      const char *name);

#endif
