/* numa_rows - the NUMA nodes of a topology in the order in which they are
 * drawn.  Pure. */
#ifndef BIGA_EXTENDER_VIEW_NUMA_ROWS_H
#define BIGA_EXTENDER_VIEW_NUMA_ROWS_H

#include "model/topo/topo.h"

struct numa_row {
    int numa, package;           /* -1: not known */
    const struct device *device; /* NULL: not listed */
};

/* Those that are listed, by package, then those that devices name alone, and
 * -1 if some name none.  `rows` has room for as many as there are devices. */
size_t numa_rows_find(const struct topo *topo, struct numa_row *rows);
/* Where the package ends whose rows begin at `i`. */
size_t numa_rows_end(const struct numa_row *rows, size_t n, size_t i);

#endif
