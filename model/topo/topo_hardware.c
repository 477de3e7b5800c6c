#include "model/topo/topo_hardware.h"

#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/refs.h"
#include "model/topo/topo_private.h"

#define TEXT(member) offsetof(struct device, member)
#define VALUE(member)                               \
    {                                               \
        offsetof(struct device, member),            \
            sizeof(((struct device *)NULL)->member) \
    }

const size_t device_text_offsets[DEVICE_TEXTS] = {
    TEXT(id),   TEXT(vendor), TEXT(model),   TEXT(interface), TEXT(rdma),
    TEXT(arch), TEXT(link),   TEXT(devices), TEXT(rights),    TEXT(cpu_list),
    TEXT(mode), TEXT(health), TEXT(barred)};

/* All members of a device that are no pointers. */
static const struct {
    size_t offset, size;
} values[] = {
    VALUE(kind),
    VALUE(numa),
    VALUE(package),
    VALUE(has_pci),
    VALUE(pci.domain),
    VALUE(pci.bus),
    VALUE(pci.device),
    VALUE(pci.function),
    VALUE(root_domain),
    VALUE(root_bus),
    VALUE(n_path),
    VALUE(vendor_id),
    VALUE(device_id),
    VALUE(set_aside),
    VALUE(n_functions),
    VALUE(cores),
    VALUE(memory_mib),
    VALUE(link_mbps),
    VALUE(vfs),
    VALUE(vfs_max),
    VALUE(unhealthy),
    VALUE(runs_pods),
    VALUE(by_claims),
    VALUE(cpus),
    VALUE(numa_memory_mib),
};
/* Nodes would share what differs in a member that is in neither table. */
_Static_assert(sizeof(void *) != 8 || sizeof(struct device) == 224,
               "a new member of struct device goes into the tables above");

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

/* --- equal ones --------------------------------------------------------- */

static uint64_t device_hash(const struct device *d)
{
    uint64_t h = 0;
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        h = hash_mix(
            h ^ hash_load((const char *)d + values[i].offset, values[i].size),
            UINT64_C(0x9e3779b97f4a7c15) + i);
    for (size_t i = 0; i < DEVICE_TEXTS; i++) {
        const char *text = *device_text((struct device *)(uintptr_t)d, i);
        h = hash_mix(h + i, hash_bytes(text, strlen(text)));
    }
    return h;
}

/* Paths, functions and distances may differ with equal hashes: that is rare,
 * and then the comparison tells. */
void hardware_seal(struct hardware *h)
{
    h->hash = (uint64_t)h->runs + 1;
    for (size_t i = 0; i < h->n_devices; i++) {
        const uint64_t both[] = {h->hash, device_hash(&h->devices[i])};
        h->hash = hash_bytes(both, sizeof both);
    }
}

static bool addrs_equal(const struct pci_addr *a, const struct pci_addr *b,
                        size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (pci_addr_compare(&a[i], &b[i]) != 0)
            return false;
    return true;
}

static bool device_equal(const struct device *a, const struct device *b)
{
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        if (memcmp((const char *)a + values[i].offset,
                   (const char *)b + values[i].offset, values[i].size) != 0)
            return false;
    for (size_t i = 0; i < DEVICE_TEXTS; i++)
        if (strcmp(*device_text((struct device *)(uintptr_t)a, i),
                   *device_text((struct device *)(uintptr_t)b, i)) != 0)
            return false;
    return addrs_equal(a->path, b->path, a->n_path) &&
           addrs_equal(a->functions, b->functions, a->n_functions);
}

/* Counts by kind follow from the devices. */
static bool hardware_equal(const struct hardware *a, const struct hardware *b)
{
    if (a == b)
        return true;
    if (a->hash != b->hash || a->runs != b->runs ||
        a->n_devices != b->n_devices)
        return false;
    for (size_t i = 0; i < a->n_devices; i++)
        if (!device_equal(&a->devices[i], &b->devices[i]))
            return false;
    size_t numas = a->count[DEVICE_NUMA];
    return memcmp(a->distances, b->distances,
                  numas * numas * sizeof *a->distances) == 0;
}

/* --- the table ---------------------------------------------------------- */

struct hardware_table {
    struct hardware **slots; /* by hash; the table has a reference to each */
    size_t cap;              /* a power of two, at most half of it used */
    size_t n;
};

enum { SLOTS_MIN = 128 };

struct hardware_table *hardware_table_create(void)
{
    struct hardware_table *t = xcalloc(1, sizeof *t);
    t->cap = SLOTS_MIN;
    t->slots = xcalloc(t->cap, sizeof(*t->slots));
    return t;
}

void hardware_table_destroy(struct hardware_table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->cap; i++)
        hardware_unref(t->slots[i]);
    free(t->slots);
    free(t);
}

size_t hardware_table_count(const struct hardware_table *t)
{
    return t->n;
}

/* The slot of what equals `h`, or the free one where it would go. */
static struct hardware **table_slot(const struct hardware_table *t,
                                    const struct hardware *h)
{
    size_t i = h->hash & (t->cap - 1);
    while (t->slots[i] && !hardware_equal(t->slots[i], h))
        i = (i + 1) & (t->cap - 1);
    return &t->slots[i];
}

/* Only the table has it; nobody can take a reference to it but through the
 * table. */
static bool is_unused(const struct hardware *h)
{
    return atomic_load_explicit(&h->refs, memory_order_acquire) == 1;
}

/* Leave out what is unused; room for as many again as are left. */
static void table_sweep(struct hardware_table *t)
{
    struct hardware **old = t->slots;
    size_t old_cap = t->cap;
    t->n = 0;
    for (size_t i = 0; i < old_cap; i++)
        t->n += old[i] && !is_unused(old[i]);
    while (t->cap > SLOTS_MIN && t->cap > t->n * 8)
        t->cap /= 2;
    while (t->cap < t->n * 4)
        t->cap *= 2;
    t->slots = xcalloc(t->cap, sizeof(*t->slots));
    t->n = 0;
    for (size_t i = 0; i < old_cap; i++) {
        if (!old[i] || is_unused(old[i])) {
            hardware_unref(old[i]);
            continue;
        }
        *table_slot(t, old[i]) = old[i];
        t->n++;
    }
    free(old);
}

struct hardware *hardware_table_take(struct hardware_table *t,
                                     struct hardware *h)
{
    struct hardware **slot = table_slot(t, h);
    if (*slot) {
        struct hardware *known = hardware_ref(*slot);
        hardware_unref(h);
        return known;
    }
    if (2 * (t->n + 1) > t->cap) {
        table_sweep(t);
        slot = table_slot(t, h);
    }
    *slot = hardware_ref(h);
    t->n++;
    return h;
}
