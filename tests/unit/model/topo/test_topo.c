#include "model/topo/topo.h"
#include "model/topo/topo_builder.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct pci_addr at(const char *text)
{
    struct pci_addr addr = {0};
    struct error err = {0};
    cr_assert_eq(pci_addr_parse(text, &addr, &err), 0, "%s", err.text);
    return addr;
}

/* --- PCI addresses ------------------------------------------------------ */

Test(pci, addresses_are_read_and_written)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"0000:17:00.0", "0000:17:00.0"},
        {"17:1f.7", "0000:17:1f.7"},
        {"AbCd:FF:0A.1", "abcd:ff:0a.1"},
        {"10000:00:04.0", "10000:00:04.0"},
        {"ffffffff:ff:1f.7", "ffffffff:ff:1f.7"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[PCI_ADDR_TEXT_MAX];
        const struct pci_addr addr = at(cases[i].in);
        pci_addr_format(&addr, text);
        cr_expect_str_eq(text, cases[i].out);
    }
}

Test(pci, what_is_no_address_is_refused)
{
    static const char *const texts[] = {"",
                                        "17",
                                        "0000:17:00",
                                        "0000:17:00.8",
                                        "0000:17:20.0",
                                        "0000:1:00.0",
                                        "0000:17:0.0",
                                        "0000:17:00.0 ",
                                        "0000:17:00.00",
                                        ":17:00.0",
                                        "0000::00.0",
                                        "g000:17:00.0",
                                        "123456789:00:00.0",
                                        "0000:17:00,0",
                                        "0000:0000:17:00.0"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct pci_addr addr = {.bus = 9};
        struct error err = {0};
        cr_expect_eq(pci_addr_parse(texts[i], &addr, &err), -EINVAL, "\"%s\"",
                     texts[i]);
        cr_expect_eq(addr.bus, 9, "\"%s\" wrote its result", texts[i]);
        cr_expect(strstr(err.text, "0000:17:00.0"), "%s", err.text);
    }
}

Test(pci, addresses_are_ordered)
{
    static const char *const sorted[] = {"0000:00:00.0", "0000:00:00.1",
                                         "0000:00:01.0", "0000:01:00.0",
                                         "0001:00:00.0", "10000:00:00.0"};
    for (size_t i = 0; i < ARRAY_LEN(sorted); i++)
        for (size_t j = 0; j < ARRAY_LEN(sorted); j++) {
            const struct pci_addr a = at(sorted[i]), b = at(sorted[j]);
            int order = pci_addr_compare(&a, &b);
            cr_expect_eq((order > 0) - (order < 0), (i > j) - (i < j));
        }
}

Test(pci, ids_are_labels)
{
    char id[TOPO_ID_MAX + 1];
    struct pci_addr addr = at("0000:1b:00.1");
    device_id_format(DEVICE_CARD, &addr, id);
    cr_expect_str_eq(id, "card-0000-1b-00");
    device_id_format(DEVICE_GPU, &addr, id);
    cr_expect_str_eq(id, "gpu-0000-1b-00-1");
    addr = at("10000:e1:1f.7");
    device_id_format(DEVICE_NIC, &addr, id);
    cr_expect_str_eq(id, "nic-10000-e1-1f-7");
}

/* --- relations ---------------------------------------------------------- */

Test(relation, names_are_read_and_written)
{
    for (unsigned i = 0; i < RELATION_COUNT; i++) {
        enum relation relation = RELATION_COUNT;
        cr_expect_eq(
            relation_parse(relation_name((enum relation)i), &relation, NULL),
            0);
        cr_expect_eq(relation, i);
    }
    enum relation relation = RELATION_COUNT;
    struct error err = {0};
    cr_expect_eq(relation_parse("pxb", &relation, &err), 0);
    cr_expect_eq(relation, RELATION_PXB);
    cr_expect_eq(relation_parse("near", &relation, &err), -EINVAL);
    cr_expect(strstr(err.text, "\"near\"") && strstr(err.text, "socket"));
    cr_expect_str_eq(relation_name(RELATION_COUNT), "?");
}

/* A device under a chain of bridges 0000:BUS:00.0, named by their buses. */
struct place {
    uint32_t root_domain;
    uint8_t root_bus;
    const char *path; /* "\x01\x02": buses of the bridges */
    int numa, package;
};

static void place_add(struct topo_builder *b, enum device_kind kind,
                      uint8_t bus, const struct place *p)
{
    struct pci_addr path[TOPO_PATH_MAX] = {{0}};
    char id[TOPO_ID_MAX + 1];
    struct device d = {.kind = kind,
                       .id = id,
                       .numa = p->numa,
                       .package = p->package,
                       .has_pci = true,
                       .pci = {.bus = bus},
                       .root_domain = p->root_domain,
                       .root_bus = p->root_bus,
                       .path = path,
                       .n_path = (uint8_t)strlen(p->path)};
    for (size_t i = 0; p->path[i]; i++)
        path[i].bus = (uint8_t)p->path[i];
    device_id_format(kind, &d.pci, id);
    topo_builder_add(b, &d, NULL);
}

static void numa_add(struct topo_builder *b, int numa, int package)
{
    char id[TOPO_ID_MAX + 1];
    snprintf(id, sizeof(id), "numa-%d", numa);
    const struct device d = {
        .kind = DEVICE_NUMA, .id = id, .numa = numa, .package = package};
    topo_builder_add(b, &d, NULL);
}

static struct topo *built(struct topo_builder *b)
{
    struct topo *topo = NULL;
    struct error err = {0};
    cr_assert_eq(topo_build(b, &topo, &err), 0, "%s", err.text);
    return topo;
}

static enum relation between(const struct place *p, const struct place *q)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("h1");
    place_add(b, DEVICE_CARD, 0xa0, p);
    place_add(b, DEVICE_GPU, 0xb0, q);
    cleanup_with(topo) struct topo *topo = built(b);
    enum relation relation = topo_relation(topo, 0, 1);
    cr_expect_eq(topo_relation(topo, 1, 0), relation, "not symmetric");
    return relation;
}

Test(relation, follows_the_lowest_common_ancestor)
{
    static const struct {
        struct place a, b;
        enum relation relation;
    } cases[] = {
        /* one bridge above both, none between */
        {{0, 1, "\x01", 0, 0}, {0, 1, "\x01", 0, 0}, RELATION_PIX},
        /* one further on one side, on both sides */
        {{0, 1, "\x01\x02", 0, 0}, {0, 1, "\x01", 0, 0}, RELATION_PIX},
        {{0, 1, "\x01\x02", 0, 0}, {0, 1, "\x01\x03", 0, 0}, RELATION_PIX},
        /* two further on one side */
        {{0, 1, "\x01\x02\x04", 0, 0}, {0, 1, "\x01", 0, 0}, RELATION_PXB},
        {{0, 1, "\x01\x02\x04", 0, 0}, {0, 1, "\x01\x03", 0, 0}, RELATION_PXB},
        /* the host bridge alone */
        {{0, 1, "\x01", 0, 0}, {0, 1, "\x02", 0, 0}, RELATION_PHB},
        {{0, 1, "", 0, 0}, {0, 1, "", 0, 0}, RELATION_PHB},
        {{0, 1, "", 0, 0}, {0, 1, "\x01", 0, 0}, RELATION_PHB},
        /* PHB even when no NUMA node is known */
        {{0, 1, "\x01", -1, -1}, {0, 1, "\x02", -1, -1}, RELATION_PHB},
        /* other host bridges, also those of equal bus and other domain */
        {{0, 1, "\x01", 3, 0}, {0, 2, "\x01", 3, 0}, RELATION_NODE},
        {{0, 1, "\x01", 3, 0}, {1, 1, "\x01", 3, 0}, RELATION_NODE},
        {{0x10000, 1, "", 3, 0}, {0x20000, 1, "", 3, 0}, RELATION_NODE},
        {{0, 1, "\x01", 0, 0}, {0, 2, "\x01", 1, 0}, RELATION_SOCKET},
        {{0, 1, "\x01", 0, 0}, {0, 2, "\x01", 1, 1}, RELATION_SYS},
        /* unknown is equal to nothing */
        {{0, 1, "", -1, 0}, {0, 2, "", -1, 0}, RELATION_SOCKET},
        {{0, 1, "", -1, -1}, {0, 2, "", -1, -1}, RELATION_SYS},
        {{0, 1, "", 0, -1}, {0, 2, "", -1, -1}, RELATION_SYS},
        /* no host bridge known: never PHB, but a common bridge counts */
        {{TOPO_ROOT_NONE, 0, "", 0, 0},
         {TOPO_ROOT_NONE, 0, "", 0, 0},
         RELATION_NODE},
        {{TOPO_ROOT_NONE, 0, "\x01", 0, 0},
         {TOPO_ROOT_NONE, 0, "\x01", 0, 0},
         RELATION_PIX},
        {{TOPO_ROOT_NONE, 0, "\x01", 0, 0},
         {TOPO_ROOT_NONE, 0, "\x02", 1, 1},
         RELATION_SYS},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        enum relation relation = between(&cases[i].a, &cases[i].b);
        cr_expect_eq(relation, cases[i].relation, "case %zu is %s, not %s", i,
                     relation_name(relation), relation_name(cases[i].relation));
    }
}

Test(relation, of_numa_nodes_is_never_closer_than_node)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("h1");
    static const struct place place = {0, 1, "\x01", 1, 0};
    place_add(b, DEVICE_CARD, 0xa0, &place);
    numa_add(b, 1, 0);
    numa_add(b, 2, 0);
    numa_add(b, 5, 1);
    numa_add(b, 6, -1);
    cleanup_with(topo) struct topo *topo = built(b);
    cr_expect_eq(topo_relation(topo, 0, 1), RELATION_NODE);
    cr_expect_eq(topo_relation(topo, 0, 2), RELATION_SOCKET);
    cr_expect_eq(topo_relation(topo, 0, 3), RELATION_SYS);
    cr_expect_eq(topo_relation(topo, 0, 4), RELATION_SYS);
    cr_expect_eq(topo_relation(topo, 1, 2), RELATION_SOCKET);
    cr_expect_eq(topo_relation(topo, 1, 3), RELATION_SYS);
    cr_expect_eq(topo_relation(topo, 4, 3), RELATION_SYS);
    cr_expect_eq(topo_relation(topo, 1, 1), RELATION_NODE);
    cr_expect_eq(topo_relation(topo, 0, 0), RELATION_PIX);
}

/* --- building ----------------------------------------------------------- */

Test(topo, devices_are_sorted_and_found)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("host-1.example");
    static const struct place place = {0, 1, "", 0, 0};
    numa_add(b, 8, 1);
    numa_add(b, 0, 0);
    place_add(b, DEVICE_NIC, 3, &place);
    place_add(b, DEVICE_GPU, 9, &place);
    place_add(b, DEVICE_GPU, 2, &place);
    place_add(b, DEVICE_CARD, 7, &place);
    topo_builder_distance(b, 0, 0, 10);
    topo_builder_distance(b, 0, 8, 40);
    cleanup_with(topo) struct topo *topo = built(b);
    static const char *const ids[] = {"card-0000-07-00",  "gpu-0000-02-00-0",
                                      "gpu-0000-09-00-0", "nic-0000-03-00-0",
                                      "numa-0",           "numa-8"};
    cr_assert_eq(topo_n_devices(topo), ARRAY_LEN(ids));
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        cr_expect_str_eq(topo_device(topo, i)->id, ids[i]);
        cr_expect_eq(topo_find(topo, ids[i]), topo_device(topo, i));
    }
    size_t first = 99;
    cr_expect_eq(topo_count(topo, DEVICE_GPU, &first), 2);
    cr_expect_eq(first, 1);
    cr_expect_eq(topo_count(topo, DEVICE_NUMA, NULL), 2);
    cr_expect_null(topo_find(topo, "numa-1"));
    cr_expect_str_eq(topo_node(topo), "host-1.example");
    cr_expect_eq(topo_distance(topo, 0, 8), 40);
    cr_expect_eq(topo_distance(topo, 8, 0), 0, "unknown");
    cr_expect_eq(topo_distance(topo, 0, 3), 0, "no such node");
    cr_expect_str_eq(topo_device(topo, 0)->vendor, "", "NULL becomes empty");

    struct topo *again = topo_ref(topo);
    topo_unref(again);
    cr_expect_eq(topo_n_devices(topo), ARRAY_LEN(ids));
}

Test(topo, everything_is_copied)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("h1");
    char model[] = "BlueField-3";
    struct pci_addr path[] = {at("0000:01:00.0")};
    struct pci_addr functions[] = {at("0000:02:00.1"), at("0000:02:00.0")};
    const struct device d = {.kind = DEVICE_CARD,
                             .id = "card-0000-02-00",
                             .has_pci = true,
                             .pci = at("0000:02:00.0"),
                             .model = model,
                             .path = path,
                             .n_path = 1,
                             .functions = functions,
                             .n_functions = 2};
    topo_builder_add(b, &d, NULL);
    memset(model, 'x', sizeof(model) - 1);
    memset(path, 0xff, sizeof(path));
    memset(functions, 0xff, sizeof(functions));
    cleanup_with(topo) struct topo *topo = built(b);
    const struct device *copy = topo_device(topo, 0);
    cr_expect_str_eq(copy->model, "BlueField-3");
    cr_expect_eq(copy->path[0].bus, 1);
    cr_expect_eq(copy->functions[0].function, 0, "ascending");
    cr_expect_eq(copy->functions[1].function, 1);
}

/* One device with one fault; the error must say `text`. */
static void refuse(const struct device *d, const struct identity *own,
                   unsigned copies, const char *text)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("h1");
    for (unsigned i = 0; i < copies; i++)
        topo_builder_add(b, d, own);
    struct topo *topo = NULL;
    struct error err = {0};
    cr_expect_eq(topo_build(b, &topo, &err), -EINVAL, "accepted: %s", text);
    cr_expect_null(topo);
    cr_expect(strstr(err.text, text), "\"%s\" not in: %s", text, err.text);
}

Test(topo, wrong_devices_are_refused)
{
    static const char long_text[] =
        "01234567890123456789012345678901234567890123456789012345678901234";
    const struct device cases[] = {
        {.id = "Card"},
        {.id = ""},
        {.id = "-card"},
        {.id = "card_1"},
        {.id = long_text},
        {.id = "c", .model = long_text},
        {.id = "c", .interface = "a\xff"},
        {.id = "c", .numa = -2},
        {.id = "c", .numa = 2147483647}, /* as some kernels report */
        {.id = "c", .package = -2},
        {.id = "numa-0", .kind = DEVICE_NUMA, .numa = -1},
        {.id = "c",
         .n_path = TOPO_PATH_MAX + 1,
         .path = (struct pci_addr[TOPO_PATH_MAX + 1]){{0}}},
        {.id = "c",
         .n_functions = TOPO_FUNCTIONS_MAX + 1,
         .functions = (struct pci_addr[TOPO_FUNCTIONS_MAX + 1]){{0}}},
        {.id = "c",
         .n_functions = 3,
         .functions = (struct pci_addr[]){{0}, {.function = 1}, {0}}},
        {.id = "c", .memory_mib = UINT64_C(1) << 43},
        {.id = "numa-0",
         .kind = DEVICE_NUMA,
         .numa_memory_mib = UINT64_C(1) << 43},
    };
    static const char *const texts[] = {"\"Card\", must be a DNS label",
                                        "\"\"",
                                        "\"-card\"",
                                        "\"card_1\"",
                                        "DNS label",
                                        "device c: model: has 65 bytes",
                                        "interface: is no valid",
                                        "NUMA node: is -2",
                                        "NUMA node: is 2147483647",
                                        "package: is -2",
                                        "must be 0 to",
                                        "path: has 17",
                                        "functions: has 65",
                                        "functions: has 0000:00:00.0 twice",
                                        "memory: is 8796093022208 MiB",
                                        "at most 8796093022207"};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        refuse(&cases[i], NULL, 1, texts[i]);
    const struct device twice = {.id = "c", .kind = DEVICE_NIC};
    refuse(&twice, NULL, 2, "device c: is there twice");
}

Test(topo, wrong_identities_are_refused)
{
    static const char long_text[] =
        "01234567890123456789012345678901234567890123456789012345678901234";
    const struct device d = {.id = "c"};
    const struct identity cases[] = {{.serial = "a\xff"},
                                     {.guid = long_text},
                                     {.fabric_port = long_text},
                                     {.endpoint = "\xc3"}};
    static const char *const texts[] = {
        "device c: serial: is no valid", "guid: has 65 bytes",
        "fabric port: has 65", "endpoint: is no valid"};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        refuse(&d, &cases[i], 1, texts[i]);
}

Test(topo, wrong_nodes_are_refused)
{
    static const char *const names[] = {"",   "H1",  "h1.", ".h1", "h..1",
                                        "h_", "h1-", "h 1", "h1\n"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        cleanup_with(topo_builder) struct topo_builder *b =
            topo_builder_create(names[i]);
        struct topo *topo = NULL;
        struct error err = {0};
        cr_expect_eq(topo_build(b, &topo, &err), -EINVAL, "\"%s\"", names[i]);
        cr_expect(strstr(err.text, "DNS subdomain"), "%s", err.text);
    }
}

static void many_add(struct topo_builder *b, enum device_kind kind, int n)
{
    for (int i = 0; i < n; i++) {
        char id[TOPO_ID_MAX + 1];
        snprintf(id, sizeof(id), "d-%d-%d", (int)kind, i);
        const struct device d = {.kind = kind, .id = id, .numa = i};
        topo_builder_add(b, &d, NULL);
    }
}

Test(topo, counts_have_limits)
{
    static const struct {
        enum device_kind kind;
        int max;
    } cases[] = {{DEVICE_CARD, TOPO_CARDS_MAX},
                 {DEVICE_GPU, TOPO_GPUS_MAX},
                 {DEVICE_NIC, TOPO_DEVICES_MAX},
                 {DEVICE_NUMA, TOPO_NUMAS_MAX}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (int more = 0; more < 2; more++) {
            cleanup_with(topo_builder) struct topo_builder *b =
                topo_builder_create("h1");
            many_add(b, cases[i].kind, cases[i].max + more);
            cleanup_with(topo) struct topo *topo = NULL;
            struct error err = {0};
            cr_expect_eq(topo_build(b, &topo, &err), more ? -EINVAL : 0,
                         "%s: %s", device_kind_name(cases[i].kind), err.text);
        }
}

Test(topo, distances_name_numa_nodes_that_exist)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("h1");
    numa_add(b, 0, 0);
    topo_builder_distance(b, 0, 4, 20);
    struct topo *topo = NULL;
    struct error err = {0};
    cr_expect_eq(topo_build(b, &topo, &err), -EINVAL);
    cr_expect(strstr(err.text, "no NUMA node 4"), "%s", err.text);
}
