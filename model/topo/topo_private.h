/* topo_private - what a topology is made of. */
#ifndef BIGA_MODEL_TOPO_TOPO_PRIVATE_H
#define BIGA_MODEL_TOPO_TOPO_PRIVATE_H

#include <stdatomic.h>

#include "model/topo/topo.h"
#include "model/topo/topo_hardware.h"

enum {
    TOPO_KINDS = DEVICE_NUMA + 1,
    IDENTITY_TEXTS = sizeof(struct identity) / sizeof(const char *),
    DEVICE_TEXTS = 13, /* in a struct device */
};

struct hardware {
    atomic_uint refs;
    struct arena arena; /* holds everything below */
    uint64_t hash;      /* of everything below; set by hardware_seal() */
    enum topo_runs runs;
    struct device *devices;
    size_t n_devices;
    size_t first[TOPO_KINDS], count[TOPO_KINDS];
    unsigned *distances; /* count[DEVICE_NUMA] squared */
};

/* Where the texts of a struct device are. */
extern const size_t device_text_offsets[DEVICE_TEXTS];
static inline const char **device_text(struct device *d, size_t i)
{
    return (const char **)(void *)((char *)d + device_text_offsets[i]);
}

struct hardware *hardware_create(void); /* empty */
/* Devices and distances stay as they are from now on. */
void hardware_seal(struct hardware *h);
/* The column of a NUMA node, or -1. */
ptrdiff_t hardware_numa_column(const struct hardware *h, int numa);

/* The table's that equals `h`, or `h`; takes over one reference, gives one. */
struct hardware *hardware_table_take(struct hardware_table *t,
                                     struct hardware *h);

/* [a-z0-9]([-a-z0-9]*[a-z0-9])?, of `size` bytes. */
bool topo_is_label(const char *text, size_t size);
/* 0, or -EINVAL with what is wrong, as topo_build() says it. */
int topo_check_device(const struct device *d, const struct identity *own,
                      struct error *err);

#endif
