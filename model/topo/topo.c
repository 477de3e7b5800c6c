#include "model/topo/topo.h"

#include <string.h>

#include "lib/base/refs.h"
#include "model/topo/topo_private.h"

const char *device_kind_name(enum device_kind kind)
{
    static const char *const names[TOPO_KINDS] = {"card", "gpu", "nic", "numa"};
    return (unsigned)kind < TOPO_KINDS ? names[kind] : "?";
}

void device_id_format(enum device_kind kind, const struct pci_addr *addr,
                      char ret_id[TOPO_ID_MAX + 1])
{
    int n = snprintf(ret_id, TOPO_ID_MAX + 1, "%s-%04x-%02x-%02x",
                     device_kind_name(kind), (unsigned)addr->domain, addr->bus,
                     addr->device & 0x1fu);
    if (kind != DEVICE_CARD)
        snprintf(ret_id + n, (size_t)(TOPO_ID_MAX + 1 - n), "-%x",
                 addr->function & 7u);
}

DEFINE_REF(topo_ref, struct topo)

void topo_unref(struct topo *topo)
{
    if (!topo || !refs_drop(&topo->refs))
        return;
    arena_fini(&topo->arena);
    free(topo);
}

const char *topo_node(const struct topo *topo)
{
    return topo->node;
}

enum topo_runs topo_runs(const struct topo *topo)
{
    return topo->runs;
}

size_t topo_n_devices(const struct topo *topo)
{
    return topo->n_devices;
}

const struct device *topo_device(const struct topo *topo, size_t index)
{
    return &topo->devices[index];
}

struct identity topo_identity(const struct topo *topo,
                              const struct device *device)
{
    return topo->own[device - topo->devices];
}

const struct device *topo_find(const struct topo *topo, const char *id)
{
    for (size_t i = 0; i < topo->n_devices; i++)
        if (strcmp(topo->devices[i].id, id) == 0)
            return &topo->devices[i];
    return NULL;
}

size_t topo_count(const struct topo *topo, enum device_kind kind,
                  size_t *ret_first)
{
    if (ret_first)
        *ret_first = topo->first[kind];
    return topo->count[kind];
}

bool topo_is_compute_nic(const struct device *device)
{
    return device->kind == DEVICE_NIC && device->rdma[0] != '\0' &&
           !device->set_aside;
}

size_t topo_considered(const struct topo *topo, enum device_kind kind,
                       size_t ret[TOPO_KIND_MAX])
{
    size_t n = 0, first = topo->first[kind];
    for (size_t i = 0; i < topo->count[kind] && n < TOPO_KIND_MAX; i++)
        if (kind != DEVICE_NIC ||
            topo_is_compute_nic(&topo->devices[first + i]))
            ret[n++] = first + i;
    return n;
}

ptrdiff_t topo_numa_column(const struct topo *topo, int numa)
{
    const struct device *numas = &topo->devices[topo->first[DEVICE_NUMA]];
    for (size_t i = 0; i < topo->count[DEVICE_NUMA]; i++)
        if (numas[i].numa == numa)
            return (ptrdiff_t)i;
    return -1;
}

unsigned topo_distance(const struct topo *topo, int numa_a, int numa_b)
{
    ptrdiff_t a = topo_numa_column(topo, numa_a),
              b = topo_numa_column(topo, numa_b);
    if (a < 0 || b < 0)
        return 0;
    return topo->distances[(size_t)a * topo->count[DEVICE_NUMA] + (size_t)b];
}
