#include "tests/lib/roundtrip.h"

#include <stdio.h>
#include <string.h>

#include "model/slice/slice.h"

#define CHECK(what, same)                                    \
    do {                                                     \
        if (!(same)) {                                       \
            fprintf(stderr, "%s: %s differs\n", name, what); \
            return false;                                    \
        }                                                    \
    } while (0)

static bool same_addrs(const struct pci_addr *a, unsigned n_a,
                       const struct pci_addr *b, unsigned n_b)
{
    for (unsigned i = 0; i < n_a && n_a == n_b; i++)
        if (pci_addr_compare(&a[i], &b[i]) != 0)
            return false;
    return n_a == n_b;
}

static bool same_pci(const struct device *a, const struct device *b)
{
    const char *name = a->id;
    CHECK("has_pci", a->has_pci == b->has_pci);
    if (a->has_pci) {
        CHECK("pci", pci_addr_compare(&a->pci, &b->pci) == 0);
        CHECK("root_domain", a->root_domain == b->root_domain);
        CHECK("root_bus", a->root_bus == b->root_bus);
    }
    CHECK("path", same_addrs(a->path, a->n_path, b->path, b->n_path));
    CHECK("functions", same_addrs(a->functions, a->n_functions, b->functions,
                                  b->n_functions));
    CHECK("vendor_id", a->vendor_id == b->vendor_id);
    CHECK("device_id", a->device_id == b->device_id);
    return true;
}

static bool same_identity(const char *name, struct identity a,
                          struct identity b)
{
    CHECK("serial", strcmp(a.serial, b.serial) == 0);
    CHECK("guid", strcmp(a.guid, b.guid) == 0);
    CHECK("fabric_port", strcmp(a.fabric_port, b.fabric_port) == 0);
    CHECK("endpoint", strcmp(a.endpoint, b.endpoint) == 0);
    return true;
}

static bool same_device(const struct device *a, const struct device *b)
{
    const char *name = a->id;
    CHECK("kind", a->kind == b->kind);
    CHECK("id", strcmp(a->id, b->id) == 0);
    CHECK("numa", a->numa == b->numa);
    CHECK("package", a->package == b->package);
    CHECK("vendor", strcmp(a->vendor, b->vendor) == 0);
    CHECK("model", strcmp(a->model, b->model) == 0);
    CHECK("interface", strcmp(a->interface, b->interface) == 0);
    CHECK("rdma", strcmp(a->rdma, b->rdma) == 0);
    CHECK("arch", strcmp(a->arch, b->arch) == 0);
    CHECK("cores", a->cores == b->cores);
    CHECK("memory_mib", a->memory_mib == b->memory_mib);
    CHECK("devices", strcmp(a->devices, b->devices) == 0);
    CHECK("unhealthy", a->unhealthy == b->unhealthy);
    CHECK("health", strcmp(a->health, b->health) == 0);
    CHECK("by_claims", a->by_claims == b->by_claims);
    CHECK("runs_pods", a->runs_pods == b->runs_pods);
    CHECK("link", strcmp(a->link, b->link) == 0);
    CHECK("link_mbps", a->link_mbps == b->link_mbps);
    CHECK("mode", strcmp(a->mode, b->mode) == 0);
    CHECK("rights", strcmp(a->rights, b->rights) == 0);
    CHECK("vfs", a->vfs == b->vfs && a->vfs_max == b->vfs_max);
    CHECK("cpus", a->cpus == b->cpus);
    CHECK("cpu_list", strcmp(a->cpu_list, b->cpu_list) == 0);
    CHECK("numa_memory_mib", a->numa_memory_mib == b->numa_memory_mib);
    return same_pci(a, b);
}

static bool same_distances(const struct topo *a, const struct topo *b)
{
    size_t first, n = topo_count(a, DEVICE_NUMA, &first);
    const char *name = topo_node(a);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            int x = topo_device(a, first + i)->numa;
            int y = topo_device(a, first + j)->numa;
            CHECK("distance", topo_distance(a, x, y) == topo_distance(b, x, y));
        }
    return true;
}

static bool same_topo(const struct topo *a, const struct topo *b)
{
    size_t n = topo_n_devices(a);
    const char *name = topo_node(a);
    char hash_a[17], hash_b[17];
    CHECK("node", strcmp(topo_node(a), topo_node(b)) == 0);
    CHECK("number of devices", n == topo_n_devices(b));
    CHECK("runs", topo_runs(a) == topo_runs(b));
    for (size_t i = 0; i < n; i++) {
        const struct device *x = topo_device(a, i), *y = topo_device(b, i);
        if (!same_device(x, y) ||
            !same_identity(x->id, topo_identity(a, x), topo_identity(b, y)))
            return false;
        for (size_t j = 0; j < n; j++)
            CHECK("relation", topo_relation(a, i, j) == topo_relation(b, i, j));
    }
    slice_content_hash(a, hash_a);
    slice_content_hash(b, hash_b);
    CHECK("content hash", strcmp(hash_a, hash_b) == 0);
    return same_distances(a, b);
}

static struct slice *through_json(const struct topo *topo, size_t index)
{
    static const struct slice_epoch epoch = {"2c1f7a2e-boot", 7};
    cleanup_str struct str text = STR_INIT(SLICE_BODY_MAX);
    struct slice *slice = NULL;
    struct error err;
    slice_encode(topo, &epoch, index, &text);
    if (text.overflow)
        fprintf(stderr, "slice %zu is over %d bytes\n", index, SLICE_BODY_MAX);
    else if (slice_decode(text.data, text.size, &slice, &err) < 0)
        fprintf(stderr, "slice %zu: %s\n%s\n", index, err.text, text.data);
    return slice;
}

bool roundtrip(const struct topo *topo)
{
    struct slice *slices[SLICE_POOL_SLICES_MAX] = {0};
    cleanup_with(topo) struct topo *back = NULL;
    struct error err;
    size_t n = slice_count(topo);
    bool whole = true;
    for (size_t i = 0; i < n; i++)
        whole &= (slices[n - 1 - i] = through_json(topo, i)) != NULL;
    if (whole && slice_join(slices, n, &back, &err) < 0)
        fprintf(stderr, "%s\n", err.text);
    for (size_t i = 0; i < n; i++)
        slice_unref(slices[i]);
    return back && same_topo(topo, back);
}
