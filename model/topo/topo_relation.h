/* topo_relation - how close two devices are, as `nvidia-smi topo -m` says it. */
#ifndef BIGA_MODEL_TOPO_TOPO_RELATION_H
#define BIGA_MODEL_TOPO_TOPO_RELATION_H

#include "lib/base/error.h"

/* Closest first; the numeric order is the order of preference. */
enum relation {
    RELATION_PIX,    /* a PCI bridge above both, at most one more between */
    RELATION_PXB,    /* a PCI bridge above both, more between */
    RELATION_PHB,    /* the same host bridge */
    RELATION_NODE,   /* the same NUMA node */
    RELATION_SOCKET, /* the same package */
    RELATION_SYS,    /* the same node */
    RELATION_COUNT
};
const char *relation_name(enum relation relation); /* "PIX" … */
/* Reads "pix", "PIX" …; 0, or -EINVAL naming the words that are allowed. */
int relation_parse(const char *text, enum relation *ret_relation,
                   struct error *err);

#endif
