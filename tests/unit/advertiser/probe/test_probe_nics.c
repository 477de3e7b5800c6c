/* Which NICs of a host are for computing: a /sys with many virtual functions, and
 * a NIC that the operator sets aside. */
#include <criterion/criterion.h>
#include <string.h>

#include "advertiser/describe/cardfile.h"
#include "advertiser/probe/probe.h"
#include "lib/base/mem.h"
#include "model/slice/slice.h"
#include "tests/lib/card/hostroot.h"
#include "tests/lib/tmpdir.h"

#define CPU "sys/devices/system/cpu/"
#define DEVICES "sys/devices/pci0000:00/"
#define NODE "sys/devices/system/node/"
enum { VFS = 64 };

static void add_cpu(const char *root)
{
    static const char *const files[][2] = {
        {CPU "online", "0\n"},
        {CPU "possible", "0\n"},
        {CPU "present", "0\n"},
        {CPU "cpu0/topology/physical_package_id", "0\n"},
        {CPU "cpu0/topology/core_id", "0\n"},
        {CPU "cpu0/topology/package_cpus", "1\n"},
        {CPU "cpu0/topology/core_cpus", "1\n"},
        {NODE "online", "0\n"},
        {NODE "node0/cpumap", "1\n"},
        {NODE "node0/distance", "10\n"},
        {NODE "node0/meminfo", "Node 0 MemTotal: 1048576 kB\n"},
        {"proc/meminfo", "MemTotal: 1048576 kB\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        hostroot_file(root, files[i][0], files[i][1]);
}

static void add_file(const char *root, const char *pci, const char *name,
                     const char *text)
{
    cleanup_free char *path = xasprintf(DEVICES "%s/%s", pci, name);
    hostroot_file(root, path, text);
}

/* A NIC with the RDMA device mlx5_N. */
static void add_nic(const char *root, const char *pci, int n)
{
    static const char *const files[][2] = {
        {"vendor", "0x15b3\n"},         {"device", "0x1021\n"},
        {"class", "0x020000\n"},        {"subsystem_vendor", "0x15b3\n"},
        {"revision", "0x00\n"},         {"subsystem_device", "0x0001\n"},
        {"local_cpus", "1\n"},          {"numa_node", "0\n"},
        {"config", "\xb3\x15\x21\x10"},
    };
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        add_file(root, pci, files[i][0], files[i][1]);
    cleanup_free char *type = xasprintf("infiniband/mlx5_%d/node_type", n);
    cleanup_free char *device =
        xasprintf("sys/bus/pci/devices/%s/infiniband/mlx5_%d/device", pci, n);
    cleanup_free char *class = xasprintf("sys/class/infiniband/mlx5_%d", n);
    cleanup_free char *to =
        xasprintf("../../devices/pci0000:00/%s/infiniband/mlx5_%d", pci, n);
    cleanup_free char *bus = xasprintf("sys/bus/pci/devices/%s", pci);
    cleanup_free char *there = xasprintf("../../../devices/pci0000:00/%s", pci);
    hostroot_link(root, bus, there);
    add_file(root, pci, type, "1: CA\n");
    hostroot_link(root, device, "../..");
    hostroot_link(root, class, to);
}

/* Two NICs, the first with its virtual functions before the second, and one for
 * storage before both. */
static char *make_host(void)
{
    char *root = tmpdir_create();
    add_cpu(root);
    add_nic(root, "0000:10:00.0", 100);
    add_nic(root, "0000:20:00.0", 101);
    add_nic(root, "0000:30:00.0", 102);
    for (int i = 1; i <= VFS; i++) {
        cleanup_free char *pci = xasprintf("0000:20:%02x.%x", i / 8, i % 8);
        cleanup_free char *physfn = xasprintf("sys/bus/pci/devices/%s/physfn",
                                              pci);
        add_nic(root, pci, i);
        hostroot_link(root, physfn, "../0000:20:00.0");
    }
    return root;
}

static struct topo *probed(const char *root)
{
    static const char file[] =
        "{\"cards\":[{\"match\":{\"pci\":\"0000:10:00.0\"},\"exclude\":true,"
        "\"compute\":false}]}";
    const struct probe_source source = {.fsroot = root};
    cleanup_with(cardfile) struct cardfile *cards = NULL;
    struct topo *topo = NULL;
    struct error err = {0};
    cr_assert_eq(cardfile_parse(file, strlen(file), &cards, &err), 0, "%s",
                 err.text);
    cr_assert_eq(probe_run(&source, "h1", cards, &topo, &err), 0, "%s",
                 err.text);
    return topo;
}

static void expect_two(const struct topo *topo)
{
    size_t nics[TOPO_KIND_MAX];
    cr_assert_eq(topo_count(topo, DEVICE_NIC, NULL), (size_t)VFS + 3);
    cr_assert_eq(topo_considered(topo, DEVICE_NIC, nics), 2u);
    cr_expect_str_eq(topo_device(topo, nics[0])->id, "nic-0000-20-00-0");
    cr_expect_str_eq(topo_device(topo, nics[1])->id, "nic-0000-30-00-0");
    cr_expect(topo_find(topo, "nic-0000-20-00-1")->rdma[0]);
}

Test(probe_nics, virtual_functions_do_not_count, .timeout = 60)
{
    const struct slice_epoch epoch = {"boot", 1};
    char *root = make_host();
    cleanup_with(topo) struct topo *topo = probed(root);
    expect_two(topo);
    /* as the extender has it */
    struct slice *slices[SLICE_POOL_SLICES_MAX] = {0};
    size_t n = slice_count(topo);
    struct error err = {0};
    cleanup_with(topo) struct topo *back = NULL;
    for (size_t i = 0; i < n; i++) {
        cleanup_str struct str text = STR_INIT(SLICE_BODY_MAX);
        slice_encode(topo, &epoch, i, &text);
        cr_assert_eq(slice_decode(text.data, text.size, &slices[i], &err), 0,
                     "%s", err.text);
    }
    cr_assert_eq(slice_join(slices, n, &back, &err), 0, "%s", err.text);
    expect_two(back);
    for (size_t i = 0; i < n; i++)
        slice_unref(slices[i]);
    tmpdir_remove(root);
}
