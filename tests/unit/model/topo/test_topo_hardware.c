/* What nodes of one model share, and what each has for itself. */
#include "model/topo/topo_hardware.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "model/topo/topo_builder.h"

static const struct pci_addr path[] = {{0, 1, 0, 0}, {0, 2, 0, 0}};
static const struct pci_addr functions[] = {{0, 3, 0, 0}, {0, 3, 0, 1}};
static const struct device model = {.kind = DEVICE_CARD,
                                    .id = "card-0",
                                    .has_pci = true,
                                    .pci = {0, 3, 0, 0},
                                    .n_path = 2,
                                    .path = path,
                                    .n_functions = 2,
                                    .functions = functions,
                                    .model = "BlueField-3",
                                    .cores = 16};

/* Two NUMA nodes, a card and a NIC. */
static struct topo *host(const char *name, const struct device *card,
                         const struct identity *own, unsigned distance)
{
    const struct device numas[] = {
        {.kind = DEVICE_NUMA, .id = "numa-0", .cpus = 4},
        {.kind = DEVICE_NUMA, .id = "numa-1", .cpus = 4, .numa = 1}};
    const struct device nic = {.kind = DEVICE_NIC, .id = "nic-0"};
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create(name);
    struct topo *topo = NULL;
    struct error err = {0};
    topo_builder_add(b, &numas[1], NULL);
    topo_builder_add(b, &nic, NULL);
    topo_builder_add(b, card, own);
    topo_builder_add(b, &numas[0], NULL);
    topo_builder_distance(b, 0, 1, distance);
    topo_builder_runs(b, TOPO_RUNS_PODS);
    cr_assert_eq(topo_build(b, &topo, &err), 0, "%s", err.text);
    return topo;
}

static void expect_identity(const struct topo *topo, size_t i,
                            const struct identity *want)
{
    struct identity have = topo_identity(topo, topo_device(topo, i));
    cr_expect_str_eq(have.serial, want->serial);
    cr_expect_str_eq(have.guid, want->guid);
    cr_expect_str_eq(have.fabric_port, want->fabric_port);
    cr_expect_str_eq(have.endpoint, want->endpoint);
}

static const struct identity nothing = {"", "", "", ""};

Test(hardware, nodes_of_a_model_share_it)
{
    cleanup_with(hardware_table) struct hardware_table *t =
        hardware_table_create();
    const struct identity own[] = {{"S1", "0:1", "leaf1/1", "tcp://a:1"},
                                   {"S2", "0:2", "", "tcp://b:1"}};
    cleanup_with(topo) struct topo *a = host("host-a", &model, &own[0], 20);
    cleanup_with(topo) struct topo *b = host("b", &model, &own[1], 20);
    cr_assert_neq(topo_hardware(a), topo_hardware(b));
    hardware_table_share(t, a);
    hardware_table_share(t, b);
    hardware_table_share(t, b);
    cr_expect_eq(topo_hardware(a), topo_hardware(b));
    cr_expect_eq(hardware_table_count(t), 1);
    cr_expect_str_eq(topo_node(a), "host-a");
    cr_expect_str_eq(topo_node(b), "b");
    expect_identity(a, 0, &own[0]);
    expect_identity(b, 0, &own[1]);
    for (size_t i = 1; i < topo_n_devices(b); i++)
        expect_identity(b, i, &nothing);
    cr_expect_eq(topo_distance(b, 0, 1), 20);
    cr_expect_eq(topo_runs(b), TOPO_RUNS_PODS);
}

/* One card that differs in one way from `model`. */
struct other {
    struct device d;
    unsigned distance;
};

#define OTHER(member, value) others[n].d.member = (value), n++

Test(hardware, whoever_differs_has_its_own)
{
    static const struct pci_addr elsewhere[] = {{0, 1, 0, 0}, {0, 4, 0, 0}};
    cleanup_with(hardware_table) struct hardware_table *t =
        hardware_table_create();
    struct other others[40];
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        others[i] = (struct other){model, 20};
    n++; /* as it is */
    others[n++].distance = 21;
    OTHER(id, "card-1"), OTHER(numa, 1), OTHER(package, 1);
    OTHER(pci.bus, 4), OTHER(pci.device, 1), OTHER(pci.function, 1);
    OTHER(has_pci, false), OTHER(root_domain, 1), OTHER(root_bus, 1);
    OTHER(n_path, 1), OTHER(path, elsewhere);
    OTHER(n_functions, 1), OTHER(functions, elsewhere);
    OTHER(vendor_id, 1), OTHER(device_id, 1), OTHER(vendor, "v");
    OTHER(model, "m"), OTHER(interface, "eth1"), OTHER(rdma, "mlx5_0");
    OTHER(set_aside, true), OTHER(arch, "arm64"), OTHER(cores, 17);
    OTHER(memory_mib, 1), OTHER(devices, "rdma");
    OTHER(rights, "0000000000000000"), OTHER(link, "up");
    OTHER(link_mbps, 100), OTHER(mode, "legacy"), OTHER(vfs, 1);
    OTHER(vfs_max, 1), OTHER(unhealthy, true), OTHER(health, "lost");
    OTHER(barred, "by hand"), OTHER(runs_pods, true), OTHER(by_claims, true);
    cr_assert_leq(n, ARRAY_LEN(others));

    struct topo *topos[ARRAY_LEN(others)];
    for (size_t i = 0; i < n; i++) {
        topos[i] = host("h", &others[i].d, NULL, others[i].distance);
        hardware_table_share(t, topos[i]);
        cr_expect_eq(hardware_table_count(t), i + 1, "other %zu", i);
    }
    for (size_t i = 0; i < n; i++)
        topo_unref(topos[i]);
}

/* Thousands come and go; what is in use stays, and is found. */
Test(hardware, what_nobody_uses_goes)
{
    enum { KEPT = 100, ALL = 5000 };
    cleanup_with(hardware_table) struct hardware_table *t =
        hardware_table_create();
    struct topo *kept[KEPT];
    for (uint32_t i = 0; i < ALL; i++) {
        struct device d = model;
        d.cores = i + 1;
        cleanup_with(topo) struct topo *topo = host("h", &d, NULL, 20);
        hardware_table_share(t, topo);
        if (i < KEPT)
            kept[i] = topo_ref(topo);
        cr_assert_leq(hardware_table_count(t), 4 * KEPT);
    }
    for (uint32_t i = 0; i < KEPT; i++) {
        struct device d = model;
        d.cores = i + 1;
        cleanup_with(topo) struct topo *again = host("h", &d, NULL, 20);
        hardware_table_share(t, again);
        cr_expect_eq(topo_hardware(again), topo_hardware(kept[i]));
        topo_unref(kept[i]);
    }
}

Test(hardware, a_node_is_made_of_its_texts_again)
{
    const struct identity own = {"S1", "", "leaf1/1", "tcp://a:1"};
    cleanup_with(topo) struct topo *topo = host("host-a", &model, &own, 20);
    struct hardware *shared = topo_hardware(topo);
    size_t size = 0;
    const char *texts = topo_own_texts(topo, &size);
    cleanup_with(topo) struct topo *again = topo_of_hardware(shared, texts,
                                                             size);
    cr_assert(again);
    cr_expect_eq(topo_hardware(again), shared);
    cr_expect_str_eq(topo_node(again), "host-a");
    expect_identity(again, 0, &own);
    expect_identity(again, topo_n_devices(again) - 1, &nothing);
}

Test(hardware, other_texts_make_no_node)
{
    cleanup_with(topo) struct topo *topo = host("a", &model, NULL, 20);
    struct hardware *shared = topo_hardware(topo);
    size_t size = 0;
    const char *texts = topo_own_texts(topo, &size);
    for (size_t i = 0; i < size; i++)
        cr_expect_null(topo_of_hardware(shared, texts, i), "%zu bytes", i);
    cleanup_free char *more = xcalloc(1, size + 1);
    memcpy(more, texts, size);
    cr_expect_null(topo_of_hardware(shared, more, size + 1), "one too many");
    more[size] = 'x';
    cr_expect_null(topo_of_hardware(shared, more, size + 1), "no end");
}
