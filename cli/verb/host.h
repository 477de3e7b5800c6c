/* host - one node's topology as the server tells it (/v1/topology), and its
 * pictures: a tree, a matrix.  Pure. */
#ifndef BIGA_CLI_VERB_HOST_H
#define BIGA_CLI_VERB_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/str.h"
#include "model/topo/topo.h"

struct host_device {
    char *id, *pci, *model; /* "" when unknown */
    const char *withdrawn;  /* why nothing new comes there: "drained", "lost";
                             * "" it may */
    enum device_kind kind;
    int numa;                       /* -1 unknown */
    double cores, memory_mib, cpus; /* -1 unknown */
};

struct host {
    char *name;
    struct host_device *devices; /* in the server's order */
    size_t n;
    uint8_t *relations; /* n * n, enum relation */
};

/* `json` has "node", "devices" and "relations"; `err` names what is
 * missing.  host_fini() releases. */
int host_read(const cJSON *json, struct host *ret_host, struct error *err);
void host_fini(struct host *h);
#define cleanup_host __attribute__((__cleanup__(host_fini)))

static inline enum relation host_relation(const struct host *h, size_t a,
                                          size_t b)
{
    return (enum relation)h->relations[a * h->n + b];
}

/* The index of a device, or -1. */
int host_find(const struct host *h, const char *id);

/* NUMA nodes, PCIe switches and devices.  `notes` (NULL: none) has one text
 * per device, or NULL, which is written behind it. */
void host_tree(const struct host *h, const char *const *notes, bool colours,
               struct str *out);

/* Every pair of cards, GPUs and NICs, with a legend. */
void host_matrix(const struct host *h, bool colours, struct str *out);

#endif
