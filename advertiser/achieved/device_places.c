#include "advertiser/achieved/device_places.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/io/file.h"

/* --- UUIDs of NVIDIA's driver --------------------------------------------- */

enum { INFORMATION_MAX = 64 << 10 };

/* "GPU UUID: \t GPU-6b0c…" */
bool device_uuid_read(const char *text, size_t size,
                      char ret_uuid[DEVICE_UUID_MAX + 1])
{
    static const char key[] = "GPU UUID:";
    for (const char *p = text, *end = text + size; p < end;) {
        const char *line_end = memchr(p, '\n', (size_t)(end - p));
        if (!line_end)
            line_end = end;
        size_t left = (size_t)(line_end - p);
        const char *value = p + sizeof key - 1;
        bool found = left >= sizeof key && memcmp(p, key, sizeof key - 1) == 0;
        p = line_end + 1;
        if (!found)
            continue;
        while (value < line_end && (*value == ' ' || *value == '\t'))
            value++;
        size_t n = (size_t)(line_end - value);
        /* one that the driver has not read yet is "GPU-???…" */
        if (n < 5 || n > DEVICE_UUID_MAX || memcmp(value, "GPU-", 4) != 0 ||
            memchr(value, '?', n) || memchr(value, '\0', n))
            return false;
        memcpy(ret_uuid, value, n);
        ret_uuid[n] = '\0';
        return true;
    }
    return false;
}

static bool look_at_gpu(const char *dir, const char *name,
                        struct device_uuid *ret_gpu)
{
    cleanup_free char *path = xasprintf("%s/%s/information", dir, name);
    cleanup_free char *text = NULL;
    size_t size;
    return pci_addr_parse(name, &ret_gpu->pci, NULL) == 0 &&
           file_read(path, INFORMATION_MAX, &text, &size, NULL) == 0 &&
           device_uuid_read(text, size, ret_gpu->uuid);
}

void device_uuids_look(const char *sysroot, struct device_uuids *ret_uuids)
{
    cleanup_free char *dir = xasprintf("%s/proc/driver/nvidia/gpus", sysroot);
    DIR *d = opendir(dir);
    ret_uuids->n = 0;
    for (const struct dirent *e;
         d && ret_uuids->n < DEVICE_UUIDS_MAX && (e = readdir(d));)
        ret_uuids->n += look_at_gpu(dir, e->d_name,
                                    &ret_uuids->items[ret_uuids->n]);
    if (d)
        (void)closedir(d); /* only read from */
}

/* --- addresses ------------------------------------------------------------ */

/* The last PCI device of where a link of /sys leads. */
static bool follow(const char *sysroot, const char *above, const char *name,
                   const char *below, struct pci_addr *ret_addr)
{
    char real[PATH_MAX];
    cleanup_free char *path = xasprintf("%s/sys/%s/%s%s", sysroot, above, name,
                                        below);
    if (!realpath(path, real))
        return false;
    for (char *slash; (slash = strrchr(real, '/')); *slash = '\0')
        if (pci_addr_parse(slash + 1, ret_addr, NULL) == 0)
            return true;
    return false;
}

/* What a described host calls its devices. */
static bool find_name(const struct topo *topo, const char *id,
                      struct pci_addr *ret_addr)
{
    for (size_t i = 0; i < topo_n_devices(topo); i++) {
        const struct device *d = topo_device(topo, i);
        if (d->has_pci &&
            (strcmp(d->rdma, id) == 0 || strcmp(d->interface, id) == 0)) {
            *ret_addr = d->pci;
            return true;
        }
    }
    return false;
}

bool device_places_find(const struct device_places *p, const char *id,
                        struct pci_addr *ret_addr)
{
    char name[DEVICE_ID_MAX + 1];
    /* a device that several share is there as "ID::0", "ID::1" … */
    const char *copy = strstr(id, "::");
    size_t size = copy ? (size_t)(copy - id) : strlen(id);
    if (size == 0 || size >= sizeof name || memchr(id, '/', size) ||
        id[0] == '.')
        return false;
    memcpy(name, id, size);
    name[size] = '\0';
    if (pci_addr_parse(name, ret_addr, NULL) == 0)
        return true;
    for (size_t i = 0; i < p->uuids->n; i++)
        if (strcmp(p->uuids->items[i].uuid, name) == 0) {
            *ret_addr = p->uuids->items[i].pci;
            return true;
        }
    return follow(p->sysroot, "class/infiniband", name, "/device", ret_addr) ||
           follow(p->sysroot, "class/net", name, "/device", ret_addr) ||
           follow(p->sysroot, "bus/auxiliary/devices", name, "", ret_addr) ||
           find_name(p->topo, name, ret_addr);
}

/* --- what is there -------------------------------------------------------- */

/* The card that has the function, or the GPU or NIC at that address. */
static const struct device *device_at(const struct topo *topo,
                                      const struct pci_addr *addr)
{
    for (size_t i = 0; i < topo_n_devices(topo); i++) {
        const struct device *d = topo_device(topo, i);
        if (!d->has_pci)
            continue;
        if (pci_addr_compare(&d->pci, addr) == 0)
            return d;
        for (size_t k = 0; d->kind == DEVICE_CARD && k < d->n_functions; k++)
            if (pci_addr_compare(&d->functions[k], addr) == 0)
                return d;
    }
    return NULL;
}

/* Of a virtual function that is not in the topology, what it is one of. */
static const struct device *find_device(const struct device_places *p,
                                        const struct pci_addr *addr)
{
    char text[PCI_ADDR_TEXT_MAX], name[PCI_ADDR_TEXT_MAX];
    struct pci_addr above;
    const struct device *d = device_at(p->topo, addr);
    if (d)
        return d;
    pci_addr_format(addr, text);
    cleanup_free char *path = xasprintf("%s/sys/bus/pci/devices/%s/physfn",
                                        p->sysroot, text);
    return file_link_name(path, name, sizeof name) &&
                   pci_addr_parse(name, &above, NULL) == 0
               ? device_at(p->topo, &above)
               : NULL;
}

static struct fact_pcis *list_of(struct pod_facts *f, enum device_kind kind)
{
    switch (kind) {
    case DEVICE_CARD:
        return &f->cards;
    case DEVICE_GPU:
        return &f->gpus;
    case DEVICE_NIC:
        return &f->nics;
    default:
        return NULL;
    }
}

/* What a device may be, by what its plugin calls the resource.  A name that
 * tells nothing may be anything. */
struct may_be {
    bool card, gpu, nic;
};

static struct may_be may_be(const char *resource)
{
    static const struct {
        const char *part;
        struct may_be what;
    } names[] = {
        {"devices.kubevirt.io/", {0}}, /* /dev/kvm and its like */
        {"gpu", {.gpu = true}},
        {"/mig-", {.gpu = true}},
        {"rdma", {.card = true, .nic = true}},
        {"sriov", {.card = true, .nic = true}},
        {"nic", {.card = true, .nic = true}},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strstr(resource, names[i].part))
            return names[i].what;
    return (struct may_be){true, true, true};
}

void device_places_add_pci(const struct device_places *p, const char *resource,
                           const struct pci_addr *addr, struct pod_facts *facts)
{
    const struct device *d = addr ? find_device(p, addr) : NULL;
    struct may_be may = may_be(resource);
    if (d && list_of(facts, d->kind)) {
        fact_pcis_add(list_of(facts, d->kind), &d->pci);
        return;
    }
    if (addr && may.gpu && !may.nic) { /* a GPU that the topology lacks */
        fact_pcis_add(&facts->gpus, addr);
        return;
    }
    if (addr && may.nic && !may.gpu) {
        fact_pcis_add(&facts->nics, addr);
        return;
    }
    if (addr)
        return; /* something else */
    facts->cards.known &= !may.card;
    facts->gpus.known &= !may.gpu;
    facts->nics.known &= !may.nic;
}

void device_places_add(const struct device_places *p, const char *resource,
                       const char *id, struct pod_facts *facts)
{
    struct pci_addr addr;
    bool found = device_places_find(p, id, &addr);
    device_places_add_pci(p, resource, found ? &addr : NULL, facts);
}

void device_places_add_ours(const struct device_places *p, const char *id,
                            struct pod_facts *facts)
{
    const struct device *d = topo_find(p->topo, id);
    if (d && d->has_pci && list_of(facts, d->kind))
        fact_pcis_add(list_of(facts, d->kind), &d->pci);
    else
        facts->cards.known = false;
}
