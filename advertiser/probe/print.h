/* print - a topology as text: for people, in the words of `nvidia-smi topo
 * -m`, or as JSON.  Equal topologies give equal bytes. */
#ifndef BIGA_ADVERTISER_PROBE_PRINT_H
#define BIGA_ADVERTISER_PROBE_PRINT_H

#include "lib/base/str.h"
#include "model/topo/topo.h"

/* Packages, NUMA nodes, host bridges, switches and devices; says so when
 * there is no card, and how to add one. */
void print_tree(const struct topo *topo, struct str *out);

/* Every pair of cards, GPUs and NICs, their NUMA nodes, and a legend. */
void print_matrix(const struct topo *topo, struct str *out);

/* {"devices":[{"id","kind","pci","numa"}],"relations":{"A":{"B":"PIX"}}}
 * with both directions; pci and numa are null when there is none. */
void print_relations(const struct topo *topo, struct str *out);

#endif
