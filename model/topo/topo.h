/* topo - what is inside one node: its devices and how close they are.
 *
 * A flat list of devices.  Each PCI device carries the chain of PCI bridges
 * from its host bridge down to itself, which is all that a relation needs;
 * the same list is what an advertiser discovers, what a ResourceSlice
 * carries, and what the extender decides on.  Built once, then immutable and
 * ref-counted.  A node has its name and the identities of its devices; all
 * else may be shared with nodes of the same model (topo_hardware.h).  Pure: no
 * I/O, clock, thread or log. */
#ifndef BIGA_MODEL_TOPO_TOPO_H
#define BIGA_MODEL_TOPO_TOPO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "model/topo/pci.h"
#include "model/topo/topo_relation.h"

enum {
    TOPO_DEVICES_MAX = 1024, /* per node */
    TOPO_CARDS_MAX = 16,     /* cards per node that the decision considers */
    TOPO_GPUS_MAX = 16,
    TOPO_NICS_MAX = 16,  /* compute NICs */
    TOPO_KIND_MAX = 16,  /* the most of these three */
    TOPO_NUMAS_MAX = 64, /* NUMA nodes with CPUs, per node */
    TOPO_PATH_MAX = 16,  /* PCI bridges between a host bridge and a device */
    TOPO_FUNCTIONS_MAX = 64, /* PCI functions of one card that are listed */
    TOPO_TEXT_MAX = 64,      /* bytes in a text attribute (a DRA limit) */
    TOPO_ID_MAX = 63,        /* a DNS label */
    TOPO_BARRED_MAX = 768,   /* bytes of why a card is barred */
};

/* The root_domain of a device whose host bridge is unknown. */
#define TOPO_ROOT_NONE UINT32_MAX

enum device_kind { DEVICE_CARD, DEVICE_GPU, DEVICE_NIC, DEVICE_NUMA };
const char *device_kind_name(enum device_kind kind); /* "card" … */

/* Texts are owned by the hardware and never NULL ("" when unknown). */
struct device {
    enum device_kind kind;
    const char *id; /* unique in the node, a DNS label:
                          * "card-0000-17-00", "gpu-0000-1b-00-0",
                          * "nic-0000-3d-00-1", "numa-0"; stable across
                          * reboots as long as the PCI address is */
    int numa;       /* os index of its NUMA node, -1 unknown */
    int package;    /* os index of its package, -1 unknown */

    /* card, gpu, nic */
    bool has_pci;
    struct pci_addr pci;  /* a card's: its lowest function */
    uint32_t root_domain; /* of the host bridge, with root_bus: */
    uint8_t root_bus;     /* "pci0000:16"; TOPO_ROOT_NONE and 0 when no
                               * host bridge is known */
    uint8_t n_path;
    const struct pci_addr *path; /* bridges, host bridge's child first */
    uint16_t vendor_id, device_id;
    const char *vendor;
    const char *model;
    const char *interface; /* net device of the first function, "eth2" */
    const char *rdma;      /* RDMA device of the first function, "mlx5_0" */

    /* nic */
    bool set_aside; /* not for computing: a virtual function, or the operator
                     * says so (storage) */

    /* card */
    uint8_t n_functions;
    const struct pci_addr *functions; /* all its PFs and VFs, ascending */
    const char *arch;      /* "arm64", "amd64", … of its own cores */
    uint32_t cores;        /* 0 unknown */
    uint64_t memory_mib;   /* 0 unknown */
    const char *devices;   /* sets of its own devices that pods there may
                              * have, as in device_set.h */
    const char *rights;    /* that pods there may have, as in card_rights.h;
                              * "" its node does not say */
    const char *link;      /* of its interface, "up", "down" … */
    uint32_t link_mbps;    /* 0 unknown */
    const char *mode;      /* of its eswitch, "switchdev", "legacy" */
    uint16_t vfs, vfs_max; /* virtual functions that it has, and can have */
    bool unhealthy;        /* capacity withdrawn: never chosen */
    const char *health;    /* "ready", "suspect", "lost" or "drained", as
                              * its node found it; "" nobody looks */
    const char *barred;    /* why whoever manages it has it take no new pod,
                              * which its node does not know: never
                              * published; "" nobody has */
    bool runs_pods;        /* TOPO_RUNS_PODS: its runtime is known */
    bool by_claims;        /* given by ResourceClaims, not by allocations */

    /* numa */
    uint32_t cpus;        /* logical CPUs */
    const char *cpu_list; /* which (cpulist.h), as many as cpus; "" unknown */
    uint64_t numa_memory_mib;
};

/* What tells a device from that of another node of the same model.  Owned by
 * the topo, never NULL. */
struct identity {
    const char *serial;
    const char *guid;        /* node GUID of its RDMA device,
                              * "0c42:a103:00b1:2fd4" */
    const char *fabric_port; /* what the operator calls a card's port */
    const char *endpoint; /* of a card's container runtime, "tcp://…:port" */
};

/* Does the node's advertiser run pods that were applied (biga apply)? */
enum topo_runs {
    TOPO_RUNS_UNTOLD, /* it does not say: it is older, or a kubelet runs them */
    TOPO_RUNS_NONE,
    TOPO_RUNS_PODS, /* on the host, and on each card that has `runs_pods` */
};

struct topo; /* opaque; ref-counted (atomically) and immutable */

struct topo *topo_ref(struct topo *topo);
void topo_unref(struct topo *topo); /* NULL allowed */
DEFINE_CLEANUP(topo, struct topo *, topo_unref)

const char *topo_node(const struct topo *topo);
size_t topo_n_devices(const struct topo *topo);
/* Devices are ordered: cards by PCI address, gpus by PCI address, nics by
 * PCI address, then numas by os index. */
const struct device *topo_device(const struct topo *topo, size_t index);
/* Of a device that topo_device() or topo_find() gave of this topo. */
struct identity topo_identity(const struct topo *topo,
                              const struct device *device);
/* Only its serial, which is faster. */
const char *topo_serial(const struct topo *topo, const struct device *device);
/* NULL when there is none. */
const struct device *topo_find(const struct topo *topo, const char *id);
/* Devices of one kind: how many, and the index of the first (they are
 * adjacent). */
size_t topo_count(const struct topo *topo, enum device_kind kind,
                  size_t *ret_first);

/* Is it a NIC that a pod can compute with: one with an RDMA device that is not
 * set aside? */
bool topo_is_compute_nic(const struct device *device);
/* Indexes of the cards, GPUs or NICs that the decision considers, in the
 * order of the bits by which it tells them: the first TOPO_KIND_MAX, of NICs
 * those for computing.  Returns how many. */
size_t topo_considered(const struct topo *topo, enum device_kind kind,
                       size_t ret[TOPO_KIND_MAX]);

enum topo_runs topo_runs(const struct topo *topo);

/* NUMA distance (SLIT) between two os indexes: 10 is local; 0 unknown. */
unsigned topo_distance(const struct topo *topo, int numa_a, int numa_b);

/* How close devices `a` and `b` (indexes) are.  Two numa devices, and a
 * numa device with a PCI device, are never closer than NODE. */
enum relation topo_relation(const struct topo *topo, size_t a, size_t b);

/* The id that a device of this kind at this PCI address has
 * ("card-0000-17-00" without the function for a card). */
void device_id_format(enum device_kind kind, const struct pci_addr *addr,
                      char ret_id[TOPO_ID_MAX + 1]);

#endif
