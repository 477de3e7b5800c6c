/* topo_private - what reading, building and checking a topology share. */
#ifndef BIGA_MODEL_TOPO_TOPO_PRIVATE_H
#define BIGA_MODEL_TOPO_TOPO_PRIVATE_H

#include <stdatomic.h>

#include "model/topo/topo.h"

enum { TOPO_KINDS = DEVICE_NUMA + 1 };

struct topo {
    atomic_uint refs;
    struct arena arena; /* holds everything below */
    char *node;
    enum topo_runs runs;
    struct device *devices;
    struct identity *own; /* of each device */
    size_t n_devices;
    size_t first[TOPO_KINDS], count[TOPO_KINDS];
    unsigned *distances; /* count[DEVICE_NUMA] squared */
};

/* The column of a NUMA node, or -1. */
ptrdiff_t topo_numa_column(const struct topo *topo, int numa);

/* [a-z0-9]([-a-z0-9]*[a-z0-9])?, of `size` bytes. */
bool topo_is_label(const char *text, size_t size);
/* 0, or -EINVAL with what is wrong, as topo_build() says it. */
int topo_check_device(const struct device *d, const struct identity *own,
                      struct error *err);

#endif
