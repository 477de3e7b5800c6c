/* node_drawing_private - one device of a node in its drawing: what it is, what
 * of it is free, who has it, and what is the matter with it.  Pure. */
#ifndef BIGA_EXTENDER_VIEW_NODE_DRAWING_PRIVATE_H
#define BIGA_EXTENDER_VIEW_NODE_DRAWING_PRIVATE_H

#include <stdbool.h>

#include "extender/view/node_drawing.h"

enum { DEVICE_BOX_WIDTH = 280 };

struct device_box {
    const struct node_drawing *of;
    const struct node *node;
    size_t device; /* index in its topology */
};

bool device_box_is_held(const struct device_box *b); /* by anybody */
int device_box_height(const struct device_box *b);
void device_box_write(const struct device_box *b, int x, int y,
                      struct str *out);

#endif
