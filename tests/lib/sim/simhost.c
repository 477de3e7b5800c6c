#include "tests/lib/sim/simhost.h"
#include "model/topo/topo_builder.h"

#include <stdio.h>

/* What is different about it. */
struct variant {
    bool unsized;
    enum topo_runs runs;
    unsigned running; /* cards */
};

static void add_numa(struct topo_builder *b, int index, uint32_t cpus)
{
    struct device d = {.kind = DEVICE_NUMA,
                       .numa = index,
                       .package = index,
                       .cpus = cpus,
                       .numa_memory_mib = 262144};
    char id[TOPO_ID_MAX + 1];
    (void)snprintf(id, sizeof id, "numa-%d", index);
    d.id = id;
    topo_builder_add(b, &d, NULL);
}

static void add_pci(struct topo_builder *b, enum device_kind kind,
                    unsigned index, unsigned n_cards, struct variant v)
{
    unsigned sw = index / 2, half = index * 2 >= n_cards;
    struct pci_addr path[2] = {
        {.bus = (uint8_t)(0x10 + sw * 16), .device = 1},
        {.bus = (uint8_t)(0x11 + sw * 16), .device = (uint8_t)(index % 2)}};
    struct device d = {.kind = kind,
                       .numa = (int)half,
                       .package = (int)half,
                       .has_pci = true,
                       .root_bus = (uint8_t)(0x10 + sw * 16),
                       .n_path = 2,
                       .path = path};
    char id[TOPO_ID_MAX + 1];
    d.pci.bus = (uint8_t)(0x12 + sw * 16 + index % 2);
    d.pci.device = kind == DEVICE_GPU ? 1 : 0;
    device_id_format(kind, &d.pci, id);
    d.id = id;
    if (kind == DEVICE_CARD) {
        d.arch = "arm64";
        d.cores = v.unsized ? 0 : 16;
        d.memory_mib = v.unsized ? 0 : 32768;
        d.runs_pods = v.running >> index & 1;
        d.n_functions = 1;
        d.functions = &d.pci;
    }
    topo_builder_add(b, &d, NULL);
}

static struct topo *simhost(const char *node, unsigned n_cards,
                            struct variant v)
{
    struct topo_builder *b = topo_builder_create(node);
    struct topo *topo = NULL;
    struct error err = {0};
    topo_builder_runs(b, v.runs);
    add_numa(b, 0, 32);
    add_numa(b, 1, 32);
    for (unsigned i = 0; i < n_cards; i++) {
        add_pci(b, DEVICE_CARD, i, n_cards, v);
        add_pci(b, DEVICE_GPU, i, n_cards, v);
    }
    if (topo_build(b, &topo, &err) < 0) {
        (void)fprintf(stderr, "simhost: %s\n", err.text);
        abort();
    }
    topo_builder_destroy(b);
    return topo;
}

struct topo *simhost_topo(const char *node, unsigned n_cards)
{
    return simhost(node, n_cards, (struct variant){0});
}

struct topo *simhost_runs(const char *node, unsigned n_cards,
                          enum topo_runs runs, unsigned cards)
{
    return simhost(node, n_cards,
                   (struct variant){.runs = runs, .running = cards});
}

struct topo *simhost_unsized(const char *node, unsigned n_cards)
{
    return simhost(node, n_cards, (struct variant){.unsized = true});
}

/* --- boards --------------------------------------------------------------- */

enum { SWITCHES = 4 }; /* of each package */

/* Behind a switch of its package, 0 … 7 over both. */
static void add_behind(struct topo_builder *b, enum device_kind kind,
                       unsigned at_switch, unsigned slot, const char *rdma)
{
    uint8_t root = (uint8_t)(0x10 + at_switch * 0x10);
    struct pci_addr path[2] = {
        {.bus = root, .device = 1},
        {.bus = (uint8_t)(root + 1), .device = (uint8_t)slot}};
    struct device d = {.kind = kind,
                       .numa = (int)(at_switch / SWITCHES),
                       .package = (int)(at_switch / SWITCHES),
                       .has_pci = true,
                       .pci.bus = (uint8_t)(root + 2 + slot),
                       .root_bus = root,
                       .n_path = 2,
                       .path = path,
                       .rdma = rdma};
    char id[TOPO_ID_MAX + 1];
    device_id_format(kind, &d.pci, id);
    d.id = id;
    if (kind == DEVICE_CARD) {
        d.arch = "arm64";
        d.cores = 16;
        d.memory_mib = 32768;
        d.n_functions = 1;
        d.functions = &d.pci;
    }
    topo_builder_add(b, &d, NULL);
}

/* A NIC without RDMA at the host bridge of a package. */
static void add_plain_nic(struct topo_builder *b, unsigned package)
{
    struct device d = {.kind = DEVICE_NIC,
                       .numa = (int)package,
                       .package = (int)package,
                       .has_pci = true,
                       .pci.bus = (uint8_t)(0x02 + package),
                       .root_bus = (uint8_t)(0x01 + package * 8)};
    char id[TOPO_ID_MAX + 1];
    device_id_format(DEVICE_NIC, &d.pci, id);
    d.id = id;
    topo_builder_add(b, &d, NULL);
}

struct topo *simhost_board(const char *node, unsigned per_switch,
                           unsigned n_cards)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create(node);
    struct topo *topo;
    struct error err;
    add_numa(b, 0, 112);
    add_numa(b, 1, 112);
    add_plain_nic(b, 0);
    add_plain_nic(b, 1);
    for (unsigned s = 0; s < 2 * SWITCHES; s++) {
        for (unsigned i = 0; i < per_switch; i++) {
            char rdma[16];
            (void)snprintf(rdma, sizeof rdma, "mlx5_%u", s * per_switch + i);
            add_behind(b, DEVICE_NIC, s, 2 * i, rdma);
            add_behind(b, DEVICE_GPU, s, 2 * i + 1, NULL);
        }
        if (s % SWITCHES < n_cards)
            add_behind(b, DEVICE_CARD, s, 2 * per_switch, NULL);
    }
    if (topo_build(b, &topo, &err) < 0) {
        (void)fprintf(stderr, "simhost_board: %s\n", err.text);
        abort();
    }
    return topo;
}

/* --- many devices --------------------------------------------------------- */

struct topo *simhost_nics(const char *node, unsigned n, const char *model)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create(node);
    struct topo *topo;
    struct error err;
    for (unsigned i = 0; i < n; i++) {
        char id[TOPO_ID_MAX + 1];
        struct device nic = {
            .kind = DEVICE_NIC,
            .id = id,
            .numa = -1,
            .package = -1,
            .model = model,
            .has_pci = true,
            .pci = {.bus = (uint8_t)(i / 32 + 1), .device = (uint8_t)(i % 32)}};
        device_id_format(DEVICE_NIC, &nic.pci, id);
        topo_builder_add(b, &nic, NULL);
    }
    if (topo_build(b, &topo, &err) < 0) {
        (void)fprintf(stderr, "simhost_nics: %s\n", err.text);
        abort();
    }
    return topo;
}
