/* demand_private - what demand.c and demand_shapes.c share. */
#ifndef BIGA_MODEL_POD_DEMAND_PRIVATE_H
#define BIGA_MODEL_POD_DEMAND_PRIVATE_H

#include "model/pod/demand.h"

enum { SHAPES_TEXT_MAX = 1024 };

/* Reads annotation biga.dev/shapes, "0: cards=1; 1-4: cards=2 gpus=2", into
 * n_shapes and shapes of `d`, whose size is known.  `text` is overwritten.
 * 0, or -EDOM with a text that says which entry is wrong, and how. */
int shapes_parse(char *text, struct demand *d, struct error *err);

/* What `shapes` says of the pair `rank`; NULL: nothing. */
const struct pair_shape *shapes_find(const struct demand *d, int32_t rank);

#endif
