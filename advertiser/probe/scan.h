/* scan - what hwloc found, as flat records without pointers, so that the
 * child process which runs hwloc can leave them in shared memory. */
#ifndef BIGA_ADVERTISER_PROBE_SCAN_H
#define BIGA_ADVERTISER_PROBE_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "advertiser/probe/pci_function.h"
#include "lib/base/error.h"
#include "model/topo/topo.h"

enum {
    SCAN_FUNCTIONS_MAX = 4096,
    SCAN_TEXT_SIZE = TOPO_TEXT_MAX + 1,
};

/* A PCI function that is no bridge. */
struct scan_function {
    struct pci_addr addr;
    uint16_t class_id, vendor_id, device_id;
    int32_t numa, package; /* os index, -1 unknown */
    uint32_t root_domain;  /* TOPO_ROOT_NONE: no host bridge known */
    uint8_t root_bus;
    uint8_t n_path;
    struct pci_addr path[TOPO_PATH_MAX];
    uint8_t n_foreign;   /* of the path: above its own vendor's bridges */
    uint32_t cores;      /* 0 unknown */
    uint64_t memory_mib; /* 0 unknown */
    char vendor[SCAN_TEXT_SIZE];
    char model[SCAN_TEXT_SIZE];
    char serial[SCAN_TEXT_SIZE];
    char interface[SCAN_TEXT_SIZE];
    char rdma[SCAN_TEXT_SIZE];
    char guid[SCAN_TEXT_SIZE];
    struct pci_function look;
};

/* A NUMA node that has CPUs. */
struct scan_numa {
    int32_t os_index, package;
    uint32_t cpus;
    uint64_t memory_mib;
    char cpu_list[SCAN_TEXT_SIZE]; /* cpulist.h; "" too long to tell */
};

struct scan {
    int32_t code; /* 0, or a positive errno with its text */
    char text[ERROR_TEXT_MAX];
    uint32_t n_functions;
    uint32_t n_left_out; /* functions beyond SCAN_FUNCTIONS_MAX */
    uint32_t n_numas;
    struct scan_function functions[SCAN_FUNCTIONS_MAX];
    struct scan_numa numas[TOPO_NUMAS_MAX];
    uint16_t distance[TOPO_NUMAS_MAX][TOPO_NUMAS_MAX]; /* 0 unknown */
};

/* Copy `text` (NULL allowed), cut at TOPO_TEXT_MAX bytes between two
 * characters, what is hidden (hidden_text.h) replaced by '?', spaces at both
 * ends dropped. */
void scan_text(char ret_text[SCAN_TEXT_SIZE], const char *text);

/* What hwloc is to look at: one is set, or none (the live host). */
struct scan_source {
    const char *xml; /* the text itself, NUL-terminated */
    size_t xml_size; /* with the NUL */
    const char *fsroot;
};

/* Run hwloc in this process and fill `scan`, which is zeroed.  Changes the
 * environment: only to be called in a child process.  Errors are left in
 * scan->code and scan->text, without the name of the source. */
void scan_hwloc(const struct scan_source *source, struct scan *scan);

/* The same in a child process that gets `deadline_ms`.  The caller frees
 * `*ret_scan` with scan_free(). */
int scan_run(const struct scan_source *source, int deadline_ms,
             struct scan **ret_scan, struct error *err);
void scan_free(struct scan *scan); /* NULL allowed */
DEFINE_CLEANUP(scan, struct scan *, scan_free)

#endif
