#include "model/topo/hardware.h"

#include <string.h>

#include "lib/base/refs.h"
#include "model/topo/topo_private.h"

#define TEXT(member) offsetof(struct device, member)

const size_t device_text_offsets[DEVICE_TEXTS] = {
    TEXT(id),   TEXT(vendor), TEXT(model),   TEXT(interface), TEXT(rdma),
    TEXT(arch), TEXT(link),   TEXT(devices), TEXT(rights),    TEXT(cpu_list),
    TEXT(mode), TEXT(health), TEXT(barred)};

struct hardware *hardware_create(void)
{
    struct hardware *h = xcalloc(1, sizeof *h);
    atomic_init(&h->refs, 1);
    return h;
}

DEFINE_REF(hardware_ref, struct hardware)

void hardware_unref(struct hardware *h)
{
    if (!h || !refs_drop(&h->refs))
        return;
    arena_fini(&h->arena);
    free(h);
}

ptrdiff_t hardware_numa_column(const struct hardware *h, int numa)
{
    const struct device *numas = &h->devices[h->first[DEVICE_NUMA]];
    for (size_t i = 0; i < h->count[DEVICE_NUMA]; i++)
        if (numas[i].numa == numa)
            return (ptrdiff_t)i;
    return -1;
}
