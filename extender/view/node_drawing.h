/* node_drawing - one node as an SVG drawing: its NUMA nodes and packages,
 * PCIe switches, cards, GPUs and NICs, which pods have what, what is free, and
 * what is the matter with a card.  Pure. */
#ifndef BIGA_EXTENDER_VIEW_NODE_DRAWING_H
#define BIGA_EXTENDER_VIEW_NODE_DRAWING_H

#include "extender/state/snapshot.h"
#include "extender/view/drawing.h"
#include "lib/base/str.h"

enum {
    NODE_DRAWING_PODS = 6, /* of one device; the rest is counted */
    NODE_DRAWING_NICS = 4, /* of a NUMA node, beside those that pods can have */
};

struct node_drawing {
    const struct snapshot *snapshot;
    size_t index; /* of the node */
    enum drawing_form form;
    /* Adds what the node says of a card's health; NULL: nobody knows. */
    void (*add_health)(void *ctx, const struct node *node, size_t card,
                       struct str *text);
    void *ctx;
};
void node_drawing_write(const struct node_drawing *of, struct str *out);

#endif
