/* grant - what a pod was given on this node: its annotation
 * biga.dev/allocation (schema/allocation.schema.json), as far as it says where
 * the pod runs and what it may take there.
 *
 * The annotation comes through the kubelet from the API server, where whoever
 * may write pods can have put it: it counts only for the pod and the node that
 * it names.  Pure. */
#ifndef BIGA_ROUTER_SERVE_GRANT_H
#define BIGA_ROUTER_SERVE_GRANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "model/topo/topo.h"

enum { GRANT_SIZE_MAX = 64 << 10 }; /* bytes of the annotation */

struct grant {
    bool remote; /* its role is xpu or service: it runs on a card */
    uint32_t n_cards;
    /* The first of its cards, where it runs; "" none. */
    char card[TOPO_ID_MAX + 1], pci[PCI_ADDR_TEXT_MAX];
    /* Of that card; 0: not stated, it is not limited. */
    uint32_t cores, memory_mib;
    char arch[16]; /* that it asked for; "" any */
};

/* Whose annotation it is; "" where it is not known. */
struct grant_pod {
    const char *namespace, *name, *uid, *node;
};

/* 0, or -EINVAL: it is malformed, or another's; the text says what to do. */
int grant_read(const char *json, size_t size, const struct grant_pod *pod,
               struct grant *ret_grant, struct error *err);

#endif
