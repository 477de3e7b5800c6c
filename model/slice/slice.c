#include "model/slice/slice.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/base/refs.h"
#include "model/slice/slice_private.h"
#include "model/topo/topo_builder.h"
#include "model/topo/topo_hardware.h"

#define TEXT(member) offsetof(struct slice_device, d.member)
#define OWN(member) offsetof(struct slice_device, own.member)

const struct attribute slice_attributes[ATTRIBUTE_COUNT] = {
    [ATTRIBUTE_KIND] = {"biga.dev/kind", VALUE_TEXT, ON_ALL, 1, 0},
    [ATTRIBUTE_NUMA] = {"resource.kubernetes.io/numaNode", VALUE_INT, ON_ALL, 1,
                        0},
    [ATTRIBUTE_PACKAGE] = {"biga.dev/package", VALUE_INT, ON_ALL, 1, 0},
    [ATTRIBUTE_ROOT] = {"resource.kubernetes.io/pcieRoot", VALUE_TEXT, ON_PCI,
                        1, 0},
    [ATTRIBUTE_BUS_ID] = {"resource.kubernetes.io/pciBusID", VALUE_TEXT, ON_PCI,
                          1, 0},
    [ATTRIBUTE_ADDRESS] = {"biga.dev/pciAddress", VALUE_TEXT, ON_PCI, 1, 0},
    [ATTRIBUTE_PCI_ID] = {"biga.dev/pciID", VALUE_TEXT, ON_PCI, 1, 0},
    [ATTRIBUTE_SWITCH] = {"biga.dev/switch", VALUE_TEXT, ON_PCI, 1, 0},
    [ATTRIBUTE_PATH] = {"biga.dev/pciePath", VALUE_TEXT, ON_PCI, 6, 0},
    [ATTRIBUTE_DEVICES] = {"biga.dev/devices", VALUE_TEXT, ON_CARD, 1,
                           TEXT(devices)},
    [ATTRIBUTE_RIGHTS] = {"biga.dev/rights", VALUE_TEXT, ON_CARD, 1,
                          TEXT(rights)},
    [ATTRIBUTE_VENDOR] = {"biga.dev/vendor", VALUE_TEXT, ON_PCI, 1,
                          TEXT(vendor)},
    [ATTRIBUTE_MODEL] = {"biga.dev/model", VALUE_TEXT, ON_PCI, 1, TEXT(model)},
    [ATTRIBUTE_SERIAL] = {"biga.dev/serial", VALUE_TEXT, ON_PCI, 1,
                          OWN(serial)},
    [ATTRIBUTE_INTERFACE] = {"biga.dev/interface", VALUE_TEXT, ON_PCI, 1,
                             TEXT(interface)},
    [ATTRIBUTE_RDMA] = {"biga.dev/rdma", VALUE_TEXT, ON_PCI, 1, TEXT(rdma)},
    [ATTRIBUTE_GUID] = {"biga.dev/guid", VALUE_TEXT, ON_PCI, 1, OWN(guid)},
    [ATTRIBUTE_FUNCTIONS] = {"biga.dev/functions", VALUE_TEXT, ON_CARD, 8, 0},
    [ATTRIBUTE_ARCH] = {"biga.dev/arch", VALUE_TEXT, ON_CARD, 1, TEXT(arch)},
    [ATTRIBUTE_FABRIC_PORT] = {"biga.dev/fabricPort", VALUE_TEXT, ON_CARD, 1,
                               OWN(fabric_port)},
    [ATTRIBUTE_ENDPOINT] = {"biga.dev/endpoint", VALUE_TEXT, ON_CARD, 1,
                            OWN(endpoint)},
    [ATTRIBUTE_HEALTHY] = {"biga.dev/healthy", VALUE_BOOL, ON_CARD, 1, 0},
    [ATTRIBUTE_CLAIMS] = {"biga.dev/claims", VALUE_BOOL, ON_CARD, 1, 0},
    [ATTRIBUTE_COMPUTE] = {"biga.dev/compute", VALUE_BOOL, ON_NIC, 1, 0},
    [ATTRIBUTE_NODE] = {"biga.dev/node", VALUE_TEXT, ON_CARD, 1, 0},
    [ATTRIBUTE_HEALTH] = {"biga.dev/health", VALUE_TEXT, ON_CARD, 1,
                          TEXT(health)},
    [ATTRIBUTE_LINK] = {"biga.dev/link", VALUE_TEXT, ON_CARD, 1, TEXT(link)},
    [ATTRIBUTE_LINK_SPEED] = {"biga.dev/linkSpeed", VALUE_INT, ON_CARD, 1, 0},
    [ATTRIBUTE_MODE] = {"biga.dev/mode", VALUE_TEXT, ON_CARD, 1, TEXT(mode)},
    [ATTRIBUTE_VFS] = {"biga.dev/vfs", VALUE_INT, ON_CARD, 1, 0},
    [ATTRIBUTE_VFS_MAX] = {"biga.dev/vfsMax", VALUE_INT, ON_CARD, 1, 0},
    [ATTRIBUTE_DISTANCES] = {"biga.dev/distances", VALUE_TEXT, ON_NUMA,
                             SLICE_PARTS_MAX, 0},
    [ATTRIBUTE_CPU_LIST] = {"biga.dev/cpuList", VALUE_TEXT, ON_NUMA, 1,
                            TEXT(cpu_list)},
};

const struct capacity slice_capacities[CAPACITY_COUNT] = {
    [CAPACITY_CORES] = {"biga.dev/cores", ON_CARD},
    [CAPACITY_MEMORY] = {"biga.dev/memory", ON_CARD | ON_NUMA},
    [CAPACITY_CPUS] = {"biga.dev/cpus", ON_NUMA},
};

const struct pci_addr *slice_switch(const struct device *device)
{
    if (device->n_path == 0)
        return NULL;
    return &device->path[device->n_path >= 2 ? device->n_path - 2 : 0];
}

size_t slice_count(const struct topo *topo)
{
    size_t n = topo_n_devices(topo);
    return n == 0 ? 1 : (n + SLICE_DEVICES_MAX - 1) / SLICE_DEVICES_MAX;
}

void slice_name(const char *node, size_t index,
                char ret_name[SLICE_NAME_MAX + 1])
{
    char tail[48];
    int tail_size = snprintf(tail, sizeof tail, "-" SLICE_DRIVER "-%zu", index);
    size_t size = strlen(node);
    if (size + (size_t)tail_size <= SLICE_NAME_MAX) {
        (void)snprintf(ret_name, SLICE_NAME_MAX + 1, "%s%s", node, tail);
        return;
    }
    /* a name may not have '.' or '-' before the '-' that follows the cut */
    size_t keep = SLICE_NAME_MAX - (size_t)tail_size - 17;
    while (keep > 0 && !isalnum((unsigned char)node[keep - 1]))
        keep--;
    (void)snprintf(ret_name, SLICE_NAME_MAX + 1, "%.*s-%016llx%s", (int)keep,
                   node, (unsigned long long)hash_bytes(node, size), tail);
}

void slice_node_text(const char *node, char ret_text[SLICE_NODE_TEXT_MAX + 1])
{
    size_t size = strlen(node);
    if (size <= SLICE_NODE_TEXT_MAX)
        memcpy(ret_text, node, size + 1);
    else
        (void)snprintf(ret_text, SLICE_NODE_TEXT_MAX + 1, "%.47s-%016llx", node,
                       (unsigned long long)hash_bytes(node, size));
}

/* --- the object ---------------------------------------------------------- */

DEFINE_REF(slice_ref, struct slice)

void slice_unref(struct slice *slice)
{
    if (!slice || !refs_drop(&slice->refs))
        return;
    hardware_unref(slice->hardware);
    arena_fini(&slice->arena);
    free(slice);
}

struct slice *slice_brief(const struct slice *slice)
{
    size_t name = strlen(slice->name) + 1, node = strlen(slice->node) + 1;
    size_t hash = strlen(slice->hash) + 1;
    struct slice *s = xcalloc(1, sizeof *s + name + node + hash);
    char *text = (char *)(s + 1);
    atomic_init(&s->refs, 1);
    s->name = memcpy(text, slice->name, name);
    s->node = s->pool = memcpy(text + name, slice->node, node); /* equal */
    s->hash = memcpy(text + name + node, slice->hash, hash);
    s->runs = "";
    s->epoch = slice->epoch;
    s->pool_count = slice->pool_count;
    s->given = slice->given;
    return s;
}

const char *slice_get_name(const struct slice *slice)
{
    return slice->name;
}

const char *slice_get_node(const struct slice *slice)
{
    return slice->node;
}

const char *slice_get_hash(const struct slice *slice)
{
    return slice->hash;
}

const struct slice_epoch *slice_get_epoch(const struct slice *slice)
{
    return &slice->epoch;
}

size_t slice_get_pool_count(const struct slice *slice)
{
    return slice->pool_count;
}

/* --- joining a pool ------------------------------------------------------ */

static int check_same_pool(const struct slice *a, const struct slice *b,
                           struct error *err)
{
    if (strcmp(a->name, b->name) == 0 && a != b)
        return error_set(err, EINVAL, "slice %s is there twice", a->name);
    if (strcmp(a->node, b->node) != 0)
        return error_set(err, EINVAL,
                         "slices %s and %s: spec.nodeName differs (\"%s\", "
                         "\"%s\")",
                         a->name, b->name, a->node, b->node);
    if (strcmp(a->epoch.boot_id, b->epoch.boot_id) != 0 ||
        a->epoch.generation != b->epoch.generation)
        return error_set(err, EINVAL,
                         "slices %s and %s: boot id or generation differs "
                         "(%s/%lld, %s/%lld)",
                         a->name, b->name, a->epoch.boot_id,
                         (long long)a->epoch.generation, b->epoch.boot_id,
                         (long long)b->epoch.generation);
    if (a->pool_count != b->pool_count)
        return error_set(err, EINVAL,
                         "slices %s and %s: spec.pool.resourceSliceCount "
                         "differs (%zu, %zu)",
                         a->name, b->name, a->pool_count, b->pool_count);
    if (strcmp(a->runs, b->runs) != 0)
        return error_set(err, EINVAL,
                         "slices %s and %s: metadata.annotations[\"%s\"] "
                         "differs (\"%.80s\", \"%.80s\")",
                         a->name, b->name, SLICE_ANNOTATION_RUNS, a->runs,
                         b->runs);
    return 0;
}

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return x < y ? -1 : x > y;
}

/* The os indexes of all numa devices of the pool, ascending.  Counts beyond
 * the limit are left to topo_build, which words them. */
static size_t collect_numas(struct slice *const *slices, size_t n,
                            int ret_numas[TOPO_NUMAS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t d = 0; d < slices[i]->n_devices; d++)
            if (slices[i]->devices[d].d.kind == DEVICE_NUMA &&
                count < TOPO_NUMAS_MAX)
                ret_numas[count++] = slices[i]->devices[d].d.numa;
    qsort(ret_numas, count, sizeof *ret_numas, compare_ints);
    return count;
}

static int add_distances(struct topo_builder *b, const struct slice *slice,
                         const int *numas, size_t n_numas, struct error *err)
{
    for (size_t d = 0; d < slice->n_devices; d++) {
        const struct slice_distances *row = &slice->distances[d];
        if (row->n == 0)
            continue;
        if (row->n != n_numas)
            return error_set(err, EINVAL,
                             "slice %s: spec.devices[%zu].attributes["
                             "\"biga.dev/distances\"]: has %zu numbers, the "
                             "pool has %zu numa devices",
                             slice->name, d, row->n, n_numas);
        for (size_t i = 0; i < row->n; i++)
            if (row->list[i] != 0)
                topo_builder_distance(b, slice->devices[d].d.numa, numas[i],
                                      row->list[i]);
    }
    return 0;
}

/* Is `id` among the words of the text? */
static bool names(const char *text, const char *id)
{
    size_t size = strlen(id);
    for (const char *at = text; (at = strstr(at, id)); at += size)
        if (at > text && at[-1] == ' ' && (at[size] == ' ' || at[size] == '\0'))
            return true;
    return false;
}

static void add_device(struct topo_builder *b,
                       const struct slice_device *device, const char *runs)
{
    struct device d = device->d;
    d.runs_pods = names(runs, d.id);
    topo_builder_add(b, &d, &device->own);
}

static enum topo_runs runs_of(const struct slice *slice)
{
    if (!*slice->runs)
        return TOPO_RUNS_UNTOLD;
    return strcmp(slice->runs, SLICE_RUNS_NONE) == 0 ? TOPO_RUNS_NONE
                                                     : TOPO_RUNS_PODS;
}

int slice_join(struct slice *const *slices, size_t n, struct topo **ret_topo,
               struct error *err)
{
    if (n == 0)
        return error_set(err, EINVAL, "a pool has at least one slice");
    if (n != slices[0]->pool_count)
        return error_set(err, EINVAL,
                         "%zu slices, spec.pool.resourceSliceCount of %s "
                         "says %zu",
                         n, slices[0]->name, slices[0]->pool_count);
    if (slices[0]->hardware) {
        *ret_topo = topo_of_hardware(slices[0]->hardware, slices[0]->own,
                                     slices[0]->own_size);
        return 0;
    }

    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create(slices[0]->node);
    int numas[TOPO_NUMAS_MAX] = {0};
    size_t n_numas = collect_numas(slices, n, numas);
    topo_builder_runs(b, runs_of(slices[0]));
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            int r = check_same_pool(slices[j], slices[i], err);
            if (r < 0)
                return r;
        }
        for (size_t d = 0; d < slices[i]->n_devices; d++)
            add_device(b, &slices[i]->devices[d], slices[i]->runs);
        int r = add_distances(b, slices[i], numas, n_numas, err);
        if (r < 0)
            return r;
    }
    int r = topo_build(b, ret_topo, err);
    return r < 0 ? error_wrap(err, "pool %s", slices[0]->pool) : 0;
}
