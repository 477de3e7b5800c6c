#include "model/topo/topo_builder.h"

#include <string.h>

#include "lib/base/str.h"
#include "model/topo/topo_private.h"

enum { NODE_NAME_MAX = 253 };

struct distance {
    int a, b;
    unsigned value;
};

struct part {
    struct device d;
    struct identity own;
};

struct topo_builder {
    struct arena arena; /* the texts of devices, becomes the hardware's */
    struct arena own;   /* of identities */
    char *node;
    enum topo_runs runs;
    struct part *parts;
    size_t n_parts, parts_cap;
    struct distance *distances;
    size_t n_distances, distances_cap;
};

struct topo_builder *topo_builder_create(const char *node)
{
    struct topo_builder *b = xcalloc(1, sizeof(*b));
    b->node = xstrdup(node);
    return b;
}

void topo_builder_destroy(struct topo_builder *b)
{
    if (!b)
        return;
    arena_fini(&b->arena);
    arena_fini(&b->own);
    free(b->node);
    free(b->parts);
    free(b->distances);
    free(b);
}

static const char *text_copy(struct arena *arena, const char *text)
{
    return text && *text ? arena_strndup(arena, text, strlen(text)) : "";
}

static const struct pci_addr *addrs_copy(struct arena *arena,
                                         const struct pci_addr *addrs, size_t n)
{
    if (n == 0)
        return NULL;
    struct pci_addr *copy = arena_alloc(arena, n * sizeof(*copy));
    memcpy(copy, addrs, n * sizeof(*copy));
    return copy;
}

static int addr_order(const void *a, const void *b)
{
    return pci_addr_compare(a, b);
}

void topo_builder_add(struct topo_builder *b, const struct device *device,
                      const struct identity *own)
{
    const struct identity none = {0};
    struct part p = {.d = *device, .own = own ? *own : none};
    const char **texts[IDENTITY_TEXTS] = {&p.own.serial, &p.own.guid,
                                          &p.own.fabric_port, &p.own.endpoint};
    for (size_t i = 0; i < DEVICE_TEXTS; i++)
        *device_text(&p.d, i) = text_copy(&b->arena, *device_text(&p.d, i));
    for (size_t i = 0; i < IDENTITY_TEXTS; i++)
        *texts[i] = text_copy(&b->own, *texts[i]);
    p.d.path = addrs_copy(&b->arena, p.d.path, p.d.n_path);
    p.d.functions = addrs_copy(&b->arena, p.d.functions, p.d.n_functions);
    if (p.d.n_functions > 1)
        qsort((struct pci_addr *)p.d.functions, p.d.n_functions,
              sizeof(*p.d.functions), addr_order);
    b->parts = xgrow(b->parts, b->n_parts, &b->parts_cap, sizeof(*b->parts));
    b->parts[b->n_parts++] = p;
}

void topo_builder_distance(struct topo_builder *b, int numa_a, int numa_b,
                           unsigned distance)
{
    b->distances = xgrow(b->distances, b->n_distances, &b->distances_cap,
                         sizeof(*b->distances));
    b->distances[b->n_distances++] =
        (struct distance){.a = numa_a, .b = numa_b, .value = distance};
}

void topo_builder_runs(struct topo_builder *b, enum topo_runs runs)
{
    b->runs = runs;
}

static int part_order(const void *pa, const void *pb)
{
    const struct device *a = &((const struct part *)pa)->d;
    const struct device *b = &((const struct part *)pb)->d;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->kind == DEVICE_NUMA && a->numa != b->numa)
        return a->numa < b->numa ? -1 : 1;
    if (a->has_pci != b->has_pci)
        return a->has_pci ? -1 : 1;
    int order = a->has_pci ? pci_addr_compare(&a->pci, &b->pci) : 0;
    return order ? order : strcmp(a->id, b->id);
}

static int node_check(const char *node, struct error *err)
{
    size_t size = strlen(node);
    const char *p = node;
    bool valid = size <= NODE_NAME_MAX;
    while (valid) {
        size_t label = strcspn(p, ".");
        valid = topo_is_label(p, label);
        p += label;
        if (*p == '\0')
            break;
        p++;
    }
    if (valid)
        return 0;
    return error_set(err, EINVAL,
                     "node name: is \"%.64s\", must be a DNS subdomain of at "
                     "most %d characters",
                     node, NODE_NAME_MAX);
}

static int id_order(const void *a, const void *b)
{
    return strcmp((*(const struct device *const *)a)->id,
                  (*(const struct device *const *)b)->id);
}

static int ids_check(const struct device *devices, size_t n, struct error *err)
{
    if (n == 0)
        return 0;
    cleanup_free const struct device **by_id =
        xmalloc(n * sizeof(const struct device *));
    for (size_t i = 0; i < n; i++)
        by_id[i] = &devices[i];
    qsort(by_id, n, sizeof(*by_id), id_order);
    for (size_t i = 1; i < n; i++)
        if (strcmp(by_id[i - 1]->id, by_id[i]->id) == 0)
            return error_set(err, EINVAL, "device %s: is there twice",
                             by_id[i]->id);
    return 0;
}

static int counts_check(const struct hardware *h, struct error *err)
{
    static const size_t max[TOPO_KINDS] = {TOPO_CARDS_MAX, TOPO_GPUS_MAX,
                                           TOPO_DEVICES_MAX, TOPO_NUMAS_MAX};
    for (unsigned kind = 0; kind < TOPO_KINDS; kind++)
        if (h->count[kind] > max[kind])
            return error_set(
                err, EINVAL, "%zu devices of kind %s, at most %zu allowed",
                h->count[kind], device_kind_name((enum device_kind)kind),
                max[kind]);
    if (h->n_devices > TOPO_DEVICES_MAX)
        return error_set(err, EINVAL, "%zu devices, at most %d allowed",
                         h->n_devices, TOPO_DEVICES_MAX);
    const struct device *numas = &h->devices[h->first[DEVICE_NUMA]];
    for (size_t i = 1; i < h->count[DEVICE_NUMA]; i++)
        if (numas[i - 1].numa == numas[i].numa)
            return error_set(err, EINVAL, "NUMA node %d: is there twice",
                             numas[i].numa);
    return 0;
}

static void kinds_find(struct hardware *h)
{
    size_t i = 0;
    for (unsigned kind = 0; kind < TOPO_KINDS; kind++) {
        h->first[kind] = i;
        while (i < h->n_devices && (unsigned)h->devices[i].kind == kind)
            i++;
        h->count[kind] = i - h->first[kind];
    }
}

static int distances_fill(struct hardware *h, const struct distance *distances,
                          size_t n, struct error *err)
{
    size_t numas = h->count[DEVICE_NUMA];
    h->distances = arena_alloc(&h->arena,
                               (numas * numas + 1) * sizeof(*h->distances));
    for (size_t i = 0; i < n; i++) {
        ptrdiff_t a = hardware_numa_column(h, distances[i].a);
        ptrdiff_t b = hardware_numa_column(h, distances[i].b);
        if (a < 0 || b < 0)
            return error_set(err, EINVAL,
                             "NUMA distance: there is no NUMA node %d",
                             a < 0 ? distances[i].a : distances[i].b);
        h->distances[(size_t)a * numas + (size_t)b] = distances[i].value;
    }
    return 0;
}

/* The parts in order: devices to the hardware, identities to the array. */
static void parts_sort(struct topo_builder *b, struct hardware *h,
                       struct identity *own)
{
    size_t n = b->n_parts;
    if (n)
        qsort(b->parts, n, sizeof(*b->parts), part_order);
    h->n_devices = n;
    h->devices = arena_alloc(&h->arena, (n + 1) * sizeof(*h->devices));
    for (size_t i = 0; i < n; i++) {
        struct device *d = &h->devices[i];
        *d = b->parts[i].d;
        d->runs_pods &= h->runs == TOPO_RUNS_PODS && d->kind == DEVICE_CARD;
        own[i] = b->parts[i].own;
    }
}

static struct topo *create(struct hardware *h, const char *node,
                           const struct identity *own)
{
    cleanup_str struct str texts = STR_INIT(STR_MAX_DEFAULT);
    str_add_n(&texts, node, strlen(node) + 1);
    for (size_t i = 0; i < h->n_devices; i++) {
        const char *const four[IDENTITY_TEXTS] = {
            own[i].serial, own[i].guid, own[i].fabric_port, own[i].endpoint};
        for (size_t t = 0; t < IDENTITY_TEXTS; t++)
            str_add_n(&texts, four[t], strlen(four[t]) + 1);
    }
    return topo_of_hardware(h, texts.data, texts.size);
}

static int build(struct topo_builder *b, struct topo **ret_topo,
                 struct error *err)
{
    if (node_check(b->node, err) < 0)
        return -EINVAL;
    for (size_t i = 0; i < b->n_parts; i++)
        if (topo_check_device(&b->parts[i].d, &b->parts[i].own, err) < 0)
            return -EINVAL;

    cleanup_with(hardware) struct hardware *h = hardware_create();
    cleanup_free struct identity *own = xcalloc(b->n_parts + 1, sizeof *own);
    h->arena = b->arena;
    b->arena = (struct arena){0};
    h->runs = b->runs;
    parts_sort(b, h, own);
    kinds_find(h);
    int rc = ids_check(h->devices, h->n_devices, err);
    if (rc == 0)
        rc = counts_check(h, err);
    if (rc == 0)
        rc = distances_fill(h, b->distances, b->n_distances, err);
    if (rc < 0)
        return rc;
    hardware_seal(h);
    *ret_topo = create(h, b->node, own);
    return 0;
}

int topo_build(struct topo_builder *b, struct topo **ret_topo,
               struct error *err)
{
    int rc = build(b, ret_topo, err);
    arena_fini(&b->arena);
    arena_fini(&b->own);
    b->n_parts = b->n_distances = 0;
    return rc;
}

int topo_change(const struct topo *topo, topo_change_f *change, void *ctx,
                enum topo_runs runs, struct topo **ret_topo, struct error *err)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create(topo_node(topo));
    const struct hardware *h = topo_hardware(topo);
    size_t first = h->first[DEVICE_NUMA], n = h->count[DEVICE_NUMA];
    for (size_t i = 0; i < h->n_devices; i++) {
        struct device d = h->devices[i];
        struct identity own = topo_identity(topo, &h->devices[i]);
        change(ctx, &d, &own);
        topo_builder_add(b, &d, &own);
    }
    for (size_t i = 0; i < n * n; i++)
        if (h->distances[i])
            topo_builder_distance(b, h->devices[first + i / n].numa,
                                  h->devices[first + i % n].numa,
                                  h->distances[i]);
    topo_builder_runs(b, runs);
    return topo_build(b, ret_topo, err);
}
