#include "tests/lib/sim/benchhost.h"
#include "model/topo/topo_builder.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

/* What is on the label of card or GPU `i` of host `index`, and where the card
 * is connected. */
struct label {
    char serial[32], guid[32], port[32], endpoint[48];
};

static struct identity label_of(struct label *l, enum device_kind kind,
                                size_t index, unsigned i)
{
    unsigned host = (unsigned)index;
    bool card = kind == DEVICE_CARD;
    (void)snprintf(l->serial, sizeof l->serial, "%s%06u%02u",
                   card ? "MT2344XZ" : "16524", host, i);
    (void)snprintf(l->guid, sizeof l->guid, "a088:c203:%04x:%04x",
                   host >> 8 & 0xffff, (host << 8 & 0xff00) | i);
    (void)snprintf(l->port, sizeof l->port, "leaf-%04u/%u", host / 32,
                   host % 32 * 2 + i / 4);
    (void)snprintf(l->endpoint, sizeof l->endpoint, "tcp://10.%u.%u.%u:7443",
                   host >> 13 & 0xff, host >> 5 & 0xff, (host & 31) * 8 + i);
    return card ? (struct identity){l->serial, l->guid, l->port, l->endpoint}
                : (struct identity){.serial = l->serial};
}

/* Card or GPU `i` of a host: two packages, each with two switches, each of
 * them with two cards and, depending on the shape, GPUs. */
static void add_pci(struct topo_builder *b, enum device_kind kind, unsigned i,
                    size_t index)
{
    unsigned shape = (unsigned)(index % BENCHHOST_SHAPES);
    unsigned cards = BENCHHOST_CARDS;
    unsigned per = kind == DEVICE_CARD ? cards : cards >> (shape & 1);
    unsigned position = shape & 2 ? per - 1 - i : i;
    unsigned group = position * 4 / per, numa = group / 2;
    char id[TOPO_ID_MAX + 1], interface[16], rdma[16];
    struct label label;
    const struct identity own = label_of(&label, kind, index, i);
    struct pci_addr path[2] = {
        {.bus = (uint8_t)(0x10 + 0x20 * group)},
        {.bus = (uint8_t)(0x11 + 0x20 * group),
         .device = (uint8_t)(position % 2 + (kind == DEVICE_CARD ? 0 : 4))},
    };
    struct device d = {
        .kind = kind,
        .numa = (int)numa,
        .package = (int)numa,
        .has_pci = true,
        .pci = {.bus = (uint8_t)(0x14 + 0x20 * group +
                                 (kind == DEVICE_CARD ? 0 : 8) +
                                 position % (per / 4 ? per / 4 : 1))},
        .root_bus = (uint8_t)(0x10 + 0x20 * group),
        .n_path = 2,
        .path = path,
        .vendor_id = kind == DEVICE_CARD ? 0x15b3 : 0x10de,
        .device_id = kind == DEVICE_CARD ? 0xa2dc : 0x2330,
        .model = kind == DEVICE_CARD ? "BlueField-3" : "H100",
        .id = id,
    };
    if (kind == DEVICE_CARD) {
        d.n_functions = 1;
        d.functions = &d.pci;
        d.arch = "arm64";
        d.cores = 16;
        d.memory_mib = 32768;
        d.interface = interface;
        d.rdma = rdma;
        (void)snprintf(interface, sizeof interface, "ens%unp0", i + 1);
        (void)snprintf(rdma, sizeof rdma, "mlx5_%u", i);
    }
    device_id_format(kind, &d.pci, id);
    topo_builder_add(b, &d, &own);
}

struct topo *benchhost_create(const char *node, size_t index)
{
    unsigned shape = (unsigned)(index % BENCHHOST_SHAPES);
    struct topo_builder *b = topo_builder_create(node);
    struct topo *topo = NULL;
    struct error err = {0};
    for (int numa = 0; numa < 2; numa++) {
        char id[] = {'n', 'u', 'm', 'a', '-', (char)('0' + numa), '\0'};
        struct device d = {
            .kind = DEVICE_NUMA,
            .id = id,
            .numa = numa,
            .package = numa,
            .cpus = 112,
            .numa_memory_mib = 1 << 20,
        };
        topo_builder_add(b, &d, NULL);
        topo_builder_distance(b, numa, numa, 10);
        topo_builder_distance(b, numa, 1 - numa, 21);
    }
    for (unsigned i = 0; i < BENCHHOST_CARDS; i++)
        add_pci(b, DEVICE_CARD, i, index);
    for (unsigned i = 0; i < (unsigned)(BENCHHOST_CARDS >> (shape & 1)); i++)
        add_pci(b, DEVICE_GPU, i, index);
    if (topo_build(b, &topo, &err)) {
        fprintf(stderr, "benchhost: %s\n", err.text);
        abort();
    }
    topo_builder_destroy(b);
    return topo;
}

struct fabric *benchhost_fabric(size_t n, int digits, size_t leaf_hosts,
                                size_t spine_leaves)
{
    cleanup_str struct str text = STR_INIT(64 << 20);
    struct fabric *fabric = NULL;
    struct error err = {0};
    size_t leaves = (n + leaf_hosts - 1) / leaf_hosts;
    size_t spines = (leaves + spine_leaves - 1) / spine_leaves;
    for (size_t l = 0; l < leaves; l++)
        str_addf(&text, "SwitchName=leaf%04zu Nodes=host[%0*zu-%0*zu]\n", l,
                 digits, l * leaf_hosts, digits, (l + 1) * leaf_hosts - 1);
    for (size_t s = 0; s < spines; s++) {
        size_t last = s * spine_leaves + spine_leaves - 1;
        str_addf(&text, "SwitchName=spine%03zu Switches=leaf[%04zu-%04zu]\n", s,
                 s * spine_leaves, last < leaves ? last : leaves - 1);
    }
    str_addf(&text, "SwitchName=core Switches=spine[000-%03zu]\n", spines - 1);
    struct fabric_source source = {"bench", str_text(&text), text.size,
                                   FABRIC_SLURM};
    struct fabric_labels labels = {.n_keys = 0};
    if (fabric_read(&source, 1, &labels, &fabric, &err) < 0) {
        fprintf(stderr, "benchhost: %s\n", err.text);
        abort();
    }
    return fabric;
}
