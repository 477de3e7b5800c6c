/* Every trap that real machines have set, and the hosts that a vendor has
 * described in its own words. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "advertiser/probe/print.h"
#include "advertiser/probe/probe.h"
#include "lib/base/str.h"
#include "model/topo/topo.h"
#include "tests/lib/machine.h"
#include "tests/lib/testdata.h"

/* --- what real machines got wrong before -------------------------------- */

static size_t count_numa(const struct topo *topo, enum device_kind kind,
                         int numa)
{
    size_t first, n = topo_count(topo, kind, &first), found = 0;
    for (size_t i = first; i < first + n; i++)
        found += topo_device(topo, i)->numa == numa;
    return found;
}

/* POWER9: four NUMA nodes (252 to 255) are the memory of the GPUs. */
Test(probe, a_gpus_memory_is_no_numa_node)
{
    cleanup_with(topo) struct topo *topo =
        machine_probe("hosts/mpibind-coral-lassen-hwloc1.xml");
    cr_assert_eq(topo_count(topo, DEVICE_NUMA, NULL), 2);
    cr_assert(topo_find(topo, "numa-0") && topo_find(topo, "numa-8"));
    cr_assert_eq(count_numa(topo, DEVICE_GPU, 0), 2);
    cr_assert_eq(count_numa(topo, DEVICE_GPU, 8), 2);
}

/* Of 1, 3 | 5, 7 and of CPUs that alternate between sockets. */
Test(probe, numa_indexes_need_not_be_in_order)
{
    cleanup_with(topo) struct topo *oci =
        machine_probe("hosts-derived/oci-bm-gpu-b4.xml");
    static const struct {
        const char *id;
        int package;
    } numas[] = {{"numa-1", 0}, {"numa-3", 0}, {"numa-5", 1}, {"numa-7", 1}};
    for (size_t i = 0; i < ARRAY_LEN(numas); i++) {
        const struct device *d = topo_find(oci, numas[i].id);
        cr_assert(d);
        cr_expect_eq(d->package, numas[i].package, "%s", numas[i].id);
    }
    cr_expect_eq(machine_relation(oci, "numa-1", "numa-3"), RELATION_SOCKET);
    cr_expect_eq(machine_relation(oci, "numa-3", "numa-5"), RELATION_SYS);

    cleanup_with(topo) struct topo *xeon =
        machine_probe("hosts/hwloc-24em64t-2n6c2t-pci.xml");
    cr_expect_eq(topo_find(xeon, "numa-0")->cpus, 12);
    cr_expect_str_eq(topo_find(xeon, "numa-0")->cpu_list, "0-10:2;12-22:2");
    cr_expect_str_eq(topo_find(xeon, "numa-1")->cpu_list, "1-11:2;13-23:2");
    cr_expect_eq(topo_find(xeon, "gpu-0000-06-00-0")->numa, 0);
    cr_expect_eq(topo_find(xeon, "gpu-0000-11-00-0")->numa, 1);
    cr_expect_eq(topo_distance(xeon, 0, 0), 10);
    cr_expect_gt(topo_distance(xeon, 0, 1), 10);
}

Test(probe, a_bmc_is_no_gpu)
{
    static const struct {
        const char *file;
        size_t gpus;
    } hosts[] = {
        {"hosts/hwloc-24em64t-2n6c2t-pci.xml", 3},         /* 1002:515e */
        {"hosts/hwloc-192em64t-24n8c2t.xml", 0},           /* 102b:0534 */
        {"hosts/hwloc-32em64t-2n8c2t-pci-wholeio.xml", 4}, /* 102b:0532 */
        {"hosts/mpibind-arm64-ulna-hwloc1.xml", 2},        /* 1a03:2000 */
        {"hosts/mpibind-cts1-quartz-smt1.xml", 0},         /* 102b:0522 */
        {"hosts/hwloc-nvidiaDGX2.xml", 16},
    };
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        cleanup_with(topo) struct topo *topo = machine_probe(hosts[i].file);
        cr_expect_eq(topo_count(topo, DEVICE_GPU, NULL), hosts[i].gpus, "%s",
                     hosts[i].file);
    }
}

/* MI250X is a display controller of class 0380; a Slingshot adapter has no
 * OpenFabrics device and is a NIC all the same. */
Test(probe, mi250x_and_slingshot)
{
    cleanup_with(topo) struct topo *topo =
        machine_probe("hosts/mpibind-eas-tioga.xml");
    cr_expect_eq(topo_count(topo, DEVICE_GPU, NULL), 8);
    const struct device *nic = topo_find(topo, "nic-0000-c5-00-0");
    cr_assert(nic);
    cr_expect_str_eq(nic->interface, "hsi0");
    cr_expect_str_eq(nic->rdma, "");
    cr_expect_eq(count_numa(topo, DEVICE_GPU, 3), 2);
}

Test(probe, efa_has_no_network_device)
{
    cleanup_with(topo) struct topo *topo =
        machine_probe("hosts/mpibind-g4dnmetal.xml");
    const struct device *efa = topo_find(topo, "nic-0000-c5-00-0");
    cr_assert(efa);
    cr_expect_str_eq(efa->interface, "");
    cleanup_with(topo) struct topo *p4d =
        machine_probe("hosts-derived/aws-p4d-a100.xml");
    cr_expect_eq(topo_count(p4d, DEVICE_NIC, NULL), 4);
}

/* Shown by some InfiniBand adapters, and by Ethernet ones of zeros. */
Test(probe, adapters_have_guids)
{
    cleanup_with(topo) struct topo *topo =
        machine_probe("fabric/plafrim/hwloc/bonobo001.xml");
    size_t first, found = 0, n = topo_count(topo, DEVICE_NIC, &first);
    for (size_t i = 0; i < n; i++) {
        const struct device *nic = topo_device(topo, first + i);
        const char *guid = topo_identity(topo, nic).guid;
        cr_expect_eq(*guid != '\0', *nic->rdma != '\0', "%s", nic->id);
        found += strcmp(guid, "0002:c903:0002:a0ce") == 0;
    }
    cr_expect_eq(found, 1);
}

/* The north-south card of the XE9680 is dual-port, and PIX to a GPU as the
 * east-west one beside it. */
Test(probe, a_dual_port_card_is_one)
{
    cleanup_with(topo) struct topo *topo =
        machine_probe("hosts-derived/dell-xe9680-8bf3.xml");
    const struct device *card = topo_find(topo, "card-0000-9d-00");
    cr_assert(card);
    cr_assert_eq(card->n_functions, 2);
    cr_expect_eq(card->functions[0].function, 0);
    cr_expect_eq(card->functions[1].function, 1);
    cr_expect_eq(card->pci.function, 0);
    cr_expect_str_eq(card->interface, "eth7");
    cr_expect_str_eq(card->rdma, "rocep157s0f0");
    cr_expect_str_eq(card->arch, "arm64");
    cr_expect_eq(topo_count(topo, DEVICE_NIC, NULL), 0);
    cr_expect_eq(machine_relation(topo, "card-0000-9d-00", "gpu-0000-9c-1f-0"),
                 RELATION_PIX);
    cr_expect_eq(machine_relation(topo, "card-0000-9c-00", "gpu-0000-9c-1f-0"),
                 RELATION_PIX);
}

/* A card without a NUMA node known is near no other by guess. */
/* Both NICs hang off the machine, which has two NUMA nodes. */
Test(probe, unknown_numa_nodes_are_not_equal)
{
    const struct probe_source source = {.xml = "tests/data/unknown-numa.xml"};
    cleanup_with(topo) struct topo *topo = NULL;
    struct error err = {0};
    cr_assert_eq(probe_run(&source, "h1", NULL, &topo, &err), 0, "%s",
                 err.text);
    cr_assert_eq(topo_find(topo, "nic-0000-01-00-0")->numa, -1);
    cr_expect_eq(machine_relation(topo, "nic-0000-01-00-0", "numa-0"),
                 RELATION_SOCKET);
    cr_expect_eq(machine_relation(topo, "nic-0000-01-00-0", "nic-0000-11-00-0"),
                 RELATION_SOCKET);
    cleanup_str struct str out = STR_INIT(STR_MAX_DEFAULT);
    print_relations(topo, &out);
    cr_expect(strstr(str_text(&out),
                     "{\"id\":\"nic-0000-01-00-0\",\"kind\":\"nic\","
                     "\"pci\":\"0000:01:00.0\",\"numa\":null}"));
}

/* The HBM of a Knights Landing is four NUMA nodes that the file gives no
 * CPUs; hwloc lends them those of their neighbours. */
Test(probe, memory_without_cpus_is_left_aside_in_an_xml)
{
    size_t first;
    cleanup_with(topo) struct topo *topo =
        machine_probe("hosts/mpibind-knl-snc4-flat-hwloc1.xml");
    cr_assert_eq(topo_find(topo, "nic-0000-01-00-0")->numa, 0);
    cr_expect_eq(topo_count(topo, DEVICE_NUMA, &first), 4);
    cr_expect_null(topo_find(topo, "numa-4"));
}

/* --- the vendor's own description --------------------------------------- */

/* The value behind "  key: " in the lines of one preset entry. */
static bool preset_value(const char *line, const char *key, char ret[64])
{
    const char *p = line + strspn(line, " -");
    size_t size = strlen(key);
    if (strncmp(p, key, size) != 0 || strncmp(p + size, ": ", 2) != 0)
        return false;
    p += size + 2;
    if (*p == '"')
        p++;
    size = strcspn(p, "\"\r\n");
    snprintf(ret, 64, "%.*s", (int)(size < 63 ? size : 63), p);
    return true;
}

struct preset {
    char pci[64], numa[64], gpu[64], proximity[64];
};

static enum relation nearest_gpu(const struct topo *topo,
                                 const struct device *d)
{
    size_t first, n = topo_count(topo, DEVICE_GPU, &first);
    enum relation best = RELATION_SYS;
    size_t self = (size_t)(d - topo_device(topo, 0));
    for (size_t i = first; i < first + n; i++)
        if (topo_relation(topo, self, i) < best)
            best = topo_relation(topo, self, i);
    return best;
}

/* The device that has this function. */
static const struct device *function_find(const struct topo *topo,
                                          const char *pci)
{
    struct pci_addr addr;
    cr_assert_eq(pci_addr_parse(pci, &addr, NULL), 0, "%s", pci);
    for (size_t i = 0; i < topo_n_devices(topo); i++) {
        const struct device *d = topo_device(topo, i);
        for (unsigned j = 0; j < d->n_functions; j++)
            if (pci_addr_compare(&d->functions[j], &addr) == 0)
                return d;
        if (d->has_pci && pci_addr_compare(&d->pci, &addr) == 0)
            return d;
    }
    cr_assert_fail("%s is nowhere", pci);
    return NULL;
}

static void preset_check(const struct topo *topo, const struct preset *p)
{
    const struct device *d = function_find(topo, p->pci);
    cr_expect_eq(d->numa, (int)strtol(p->numa, NULL, 10), "%s: numa %d", p->pci,
                 d->numa);
    enum relation relation = nearest_gpu(topo, d);
    if (strncmp(p->gpu, "GPU", 3) == 0) {
        size_t first, self = (size_t)(d - topo_device(topo, 0));
        topo_count(topo, DEVICE_GPU, &first);
        relation = topo_relation(topo, self,
                                 first + strtoul(p->gpu + 3, NULL, 10));
    }
    cr_expect_str_eq(relation_name(relation), p->proximity, "%s to %s", p->pci,
                     p->gpu);
}

static void preset_compare(const char *preset, const char *xml,
                           size_t functions)
{
    cleanup_with(topo) struct topo *topo = machine_probe(xml);
    cr_assert_eq(topo_count(topo, DEVICE_CARD, NULL), 9);
    cr_assert_eq(topo_count(topo, DEVICE_GPU, NULL), 8);
    cleanup_free char *path = xasprintf("%s/%s", machine_dir(), preset);
    cleanup_free char *text = testdata_read(path, NULL);
    struct preset p = {0};
    size_t n = 0;
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        preset_value(line, "pciAddress", p.pci);
        preset_value(line, "numaNode", p.numa);
        preset_value(line, "connectedGPU", p.gpu);
        if (preset_value(line, "gpuProximity", p.proximity)) {
            preset_check(topo, &p);
            n++;
        }
    }
    cr_assert_eq(n, functions, "%zu functions in %s", n, preset);
}

Test(probe, dell_preset)
{
    preset_compare("presets/dell-xe9680.yaml",
                   "hosts-derived/dell-xe9680-8bf3.xml", 10);
}

Test(probe, lenovo_preset)
{
    preset_compare("presets/lenovo-sr680a-v3.yaml",
                   "hosts-derived/lenovo-sr680a-8bf3.xml", 12);
}
