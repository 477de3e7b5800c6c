/* topo_private - what reading, building and checking a topology share. */
#ifndef BIGA_MODEL_TOPO_TOPO_PRIVATE_H
#define BIGA_MODEL_TOPO_TOPO_PRIVATE_H

#include "model/topo/topo.h"

enum { TOPO_KINDS = DEVICE_NUMA + 1 };

/* [a-z0-9]([-a-z0-9]*[a-z0-9])?, of `size` bytes. */
bool topo_is_label(const char *text, size_t size);
/* 0, or -EINVAL with what is wrong, as topo_build() says it. */
int topo_check_device(const struct device *d, struct error *err);

#endif
