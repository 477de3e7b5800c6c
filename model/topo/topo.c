#include "model/topo/topo.h"

#include <string.h>

#include "lib/base/refs.h"
#include "model/topo/topo_private.h"

struct topo {
    atomic_uint refs;
    uint32_t size; /* of the texts */
    struct hardware *hardware;
    const char *texts; /* topo_own_texts(); behind `own` in this block */
    uint32_t own[];    /* of each device: where in `texts` its own begin */
};

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
    hardware_unref(topo->hardware);
    free(topo);
}

const char *topo_node(const struct topo *topo)
{
    return topo->texts;
}

struct hardware *topo_hardware(const struct topo *topo)
{
    return topo->hardware;
}

enum topo_runs topo_runs(const struct topo *topo)
{
    return topo->hardware->runs;
}

size_t topo_n_devices(const struct topo *topo)
{
    return topo->hardware->n_devices;
}

const struct device *topo_device(const struct topo *topo, size_t index)
{
    return &topo->hardware->devices[index];
}

const struct device *topo_find(const struct topo *topo, const char *id)
{
    const struct hardware *h = topo->hardware;
    for (size_t i = 0; i < h->n_devices; i++)
        if (strcmp(h->devices[i].id, id) == 0)
            return &h->devices[i];
    return NULL;
}

size_t topo_count(const struct topo *topo, enum device_kind kind,
                  size_t *ret_first)
{
    if (ret_first)
        *ret_first = topo->hardware->first[kind];
    return topo->hardware->count[kind];
}

bool topo_is_compute_nic(const struct device *device)
{
    return device->kind == DEVICE_NIC && device->rdma[0] != '\0' &&
           !device->set_aside;
}

size_t topo_considered(const struct topo *topo, enum device_kind kind,
                       size_t ret[TOPO_KIND_MAX])
{
    const struct hardware *h = topo->hardware;
    size_t n = 0, first = h->first[kind];
    for (size_t i = 0; i < h->count[kind] && n < TOPO_KIND_MAX; i++)
        if (kind != DEVICE_NIC || topo_is_compute_nic(&h->devices[first + i]))
            ret[n++] = first + i;
    return n;
}

unsigned topo_distance(const struct topo *topo, int numa_a, int numa_b)
{
    const struct hardware *h = topo->hardware;
    ptrdiff_t a = hardware_numa_column(h, numa_a);
    ptrdiff_t b = hardware_numa_column(h, numa_b);
    if (a < 0 || b < 0)
        return 0;
    return h->distances[(size_t)a * h->count[DEVICE_NUMA] + (size_t)b];
}

/* --- what is the node's own --------------------------------------------- */

static const char *next_text(const char *text)
{
    return text + strlen(text) + 1;
}

const char *topo_serial(const struct topo *topo, const struct device *device)
{
    return topo->texts + topo->own[device - topo->hardware->devices];
}

struct identity topo_identity(const struct topo *topo,
                              const struct device *device)
{
    struct identity own = {.serial = topo_serial(topo, device)};
    own.guid = next_text(own.serial);
    own.fabric_port = next_text(own.guid);
    own.endpoint = next_text(own.fabric_port);
    return own;
}

const char *topo_own_texts(const struct topo *topo, size_t *ret_size)
{
    *ret_size = topo->size;
    return topo->texts;
}

struct topo *topo_of_hardware(struct hardware *h, const char *texts,
                              size_t size)
{
    size_t n = 0, head = sizeof(struct topo) + h->n_devices * sizeof(uint32_t);
    for (size_t i = 0; i < size; i++)
        n += texts[i] == '\0';
    if (n != 1 + h->n_devices * IDENTITY_TEXTS || texts[size - 1] ||
        size > UINT32_MAX)
        return NULL;
    struct topo *topo = xmalloc(head + size);
    char *copy = memcpy((char *)topo + head, texts, size);
    atomic_init(&topo->refs, 1);
    topo->size = (uint32_t)size;
    topo->hardware = hardware_ref(h);
    topo->texts = copy;
    const char *at = next_text(copy);
    for (size_t i = 0; i < h->n_devices; i++) {
        topo->own[i] = (uint32_t)(at - copy);
        for (size_t t = 0; t < IDENTITY_TEXTS; t++)
            at = next_text(at);
    }
    return topo;
}

void hardware_table_share(struct hardware_table *t, struct topo *topo)
{
    topo->hardware = hardware_table_take(t, topo->hardware);
}
