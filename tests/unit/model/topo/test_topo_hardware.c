/* What nodes of one model share, and what each has for itself. */
#include "model/topo/hardware.h"

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
