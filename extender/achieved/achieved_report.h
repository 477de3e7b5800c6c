/* achieved_report - what a node says that its pods' containers have
 * (schema/achieved.md): facts, nothing of what was promised.  Immutable;
 * ref-counted.  Pure. */
#ifndef BIGA_EXTENDER_ACHIEVED_ACHIEVED_REPORT_H
#define BIGA_EXTENDER_ACHIEVED_ACHIEVED_REPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "model/pod/demand.h"
#include "model/topo/pci.h"

enum {
    ACHIEVED_BODY_MAX = 512 << 10,
    ACHIEVED_PODS_MAX = 512,
    ACHIEVED_DEVICES_MAX = 64, /* of one kind, of one pod */
    ACHIEVED_NUMAS_MAX = TOPO_NUMAS_MAX,
    ACHIEVED_CPUS_TEXT_MAX = 4096,
};

/* Ascending, none twice; not told: the node does not know. */
struct achieved_devices {
    bool told;
    uint8_t n;
    struct pci_addr *at;
};
struct achieved_numas {
    bool told;
    uint8_t n;
    uint16_t *at; /* os indexes */
};

struct achieved_facts {
    char namespace[DEMAND_NAMESPACE_MAX + 1];
    char name[DEMAND_NAME_MAX + 1];
    char uid[DEMAND_UID_MAX + 1]; /* "" not told */
    struct achieved_devices cards, gpus, nics;
    char *cpus; /* as it was told; NULL: it was not */
    unsigned n_cpus;
    struct achieved_numas numa, memory_numa;
};

struct achieved_report {
    atomic_uint refs;
    char node[DEMAND_NAME_MAX + 1];
    struct achieved_facts *pods; /* by namespace and name */
    size_t n_pods;
};
struct achieved_report *achieved_report_ref(struct achieved_report *r);
void achieved_report_unref(struct achieved_report *r); /* NULL allowed */
DEFINE_CLEANUP(achieved_report, struct achieved_report *, achieved_report_unref)

/* 0, -ENOMEM, or -EINVAL with path and value: `pods[3].gpus[0]: …`.  Members
 * that we do not know are skipped, for the node may be newer. */
int achieved_report_parse(const char *json, size_t size,
                          struct achieved_report **ret_report,
                          struct error *err);

/* Of this very pod: not of an earlier one of its name.  NULL: nothing. */
const struct achieved_facts *
achieved_report_find(const struct achieved_report *r, const struct demand *pod);

#endif
