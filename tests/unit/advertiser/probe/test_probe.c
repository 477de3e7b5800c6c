/* Real machines through probe, compared with a walk of hwloc's own tree;
 * what is no machine; and the operator's file. */
#include "advertiser/probe/probe.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "advertiser/probe/print.h"
#include "advertiser/probe/scan.h"
#include "lib/base/str.h"
#include "model/slice/slice.h"
#include "tests/lib/machine.h"
#include "tests/lib/testdata.h"
#include "tests/lib/tmpdir.h"
#include "tests/lib/walker.h"

/* --- equal to the walker ------------------------------------------------ */

static void thing_name(const struct device *d, char ret_name[64])
{
    char pci[PCI_ADDR_TEXT_MAX];
    pci_addr_format(&d->pci, pci);
    if (d->kind == DEVICE_NUMA)
        snprintf(ret_name, 64, "numa-%d", d->numa);
    else if (d->kind == DEVICE_CARD)
        snprintf(ret_name, 64, "%s", pci);
    else
        snprintf(ret_name, 64, "%s/%04x:%04x", pci, d->vendor_id, d->device_id);
}

/* Each function of a card is as its card is. */
static void functions_compare(const struct walker *w, const struct topo *topo,
                              const char *path)
{
    for (size_t i = 0; i < topo_n_devices(topo); i++) {
        const struct device *d = topo_device(topo, i);
        for (unsigned j = 0; j < d->n_functions; j++) {
            char name[PCI_ADDR_TEXT_MAX];
            pci_addr_format(&d->functions[j], name);
            cr_expect_eq(walker_numa(w, name), d->numa, "%s: %s", path, name);
        }
    }
}

static size_t pairs_compare(const struct walker *w, const struct topo *topo,
                            const char *path)
{
    const size_t n = topo_n_devices(topo);
    for (size_t i = 0; i < n; i++) {
        const struct device *d = topo_device(topo, i);
        char a[64], b[64];
        thing_name(d, a);
        cr_expect_eq(walker_numa(w, a), d->numa, "%s: NUMA node of %s is %d",
                     path, a, d->numa);
        cr_expect_eq(walker_package(w, a), d->package,
                     "%s: package of %s is %d", path, a, d->package);
        for (size_t j = 0; j < n; j++) {
            if (j == i)
                continue;
            thing_name(topo_device(topo, j), b);
            const char *right = walker_relation(w, a, b);
            const char *ours = relation_name(topo_relation(topo, i, j));
            cr_expect(right && strcmp(right, ours) == 0,
                      "%s: %s to %s is %s, not %s", path, a, b,
                      right ? right : "nothing", ours);
        }
    }
    return n * (n - 1);
}

/* Every network function is a NIC or part of a card, every NUMA node with
 * CPUs is there. */
static void counts_compare(const struct walker *w, const struct topo *topo,
                           const char *path)
{
    size_t network = topo_count(topo, DEVICE_NIC, NULL);
    size_t first, cards = topo_count(topo, DEVICE_CARD, &first);
    for (size_t i = first; i < first + cards; i++)
        if (topo_device(topo, i)->vendor_id == 0x15b3)
            network += topo_device(topo, i)->n_functions;
    cr_expect_eq(network,
                 walker_count_class(w, 0x0200, 0xff00) +
                     walker_count_class(w, 0x0c06, 0xffff),
                 "%s: %zu network functions", path, network);
    cr_expect_eq(topo_count(topo, DEVICE_NUMA, NULL), walker_count_numas(w),
                 "%s: NUMA nodes", path);
}

/* What the extender decodes from the slices is what was discovered. */
static void slices_compare(const struct topo *topo, const char *path)
{
    const struct slice_epoch epoch = {"boot", 1};
    struct slice *slices[SLICE_POOL_SLICES_MAX] = {0};
    const size_t n = slice_count(topo);
    struct error err = {0};
    for (size_t i = 0; i < n; i++) {
        cleanup_str struct str text = STR_INIT(SLICE_BODY_MAX);
        slice_encode(topo, &epoch, i, &text);
        int rc = slice_decode(text.data, text.size, &slices[i], &err);
        cr_assert_eq(rc, 0, "%s: %s", path, err.text);
    }
    cleanup_with(topo) struct topo *back = NULL;
    cr_assert_eq(slice_join(slices, n, &back, &err), 0, "%s: %s", path,
                 err.text);
    cr_assert_eq(topo_n_devices(back), topo_n_devices(topo), "%s", path);
    for (size_t i = 0; i < topo_n_devices(topo); i++) {
        const struct device *a = topo_device(topo, i);
        const struct device *b = topo_device(back, i);
        cr_expect_str_eq(a->id, b->id, "%s: %s", path, a->id);
        cr_expect_eq(a->numa, b->numa, "%s: %s", path, a->id);
        for (size_t j = 0; j < topo_n_devices(topo); j++)
            cr_expect_eq(topo_relation(topo, i, j), topo_relation(back, i, j),
                         "%s: %s to %zu", path, a->id, j);
    }
    for (size_t i = 0; i < n; i++)
        slice_unref(slices[i]);
}

static size_t host_compare(const char *xml, const char *fsroot)
{
    const char *path = xml ? xml : fsroot;
    const struct probe_source source = {.xml = xml, .fsroot = fsroot};
    struct error err = {0};
    cleanup_with(topo) struct topo *topo = NULL;
    int rc = probe_run(&source, "h1", NULL, &topo, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    struct walker *w = walker_create(xml, fsroot);
    cr_assert(w, "%s", path);
    size_t pairs = pairs_compare(w, topo, path);
    functions_compare(w, topo, path);
    counts_compare(w, topo, path);
    walker_destroy(w);
    slices_compare(topo, path);

    cleanup_str struct str tree = STR_INIT(STR_MAX_DEFAULT);
    print_tree(topo, &tree);
    bool says_none = strstr(str_text(&tree), "no card") != NULL;
    cr_expect_eq(says_none, topo_count(topo, DEVICE_CARD, NULL) == 0, "%s",
                 path);
    return pairs;
}

static int is_xml(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".xml") == 0;
}

static void folder_compare(const char *folder, int expected)
{
    cleanup_free char *dir = xasprintf("%s/%s", machine_dir(), folder);
    struct dirent **entries = NULL;
    int n = scandir(dir, &entries, is_xml, alphasort);
    size_t pairs = 0;
    cr_assert_geq(n, expected, "%d files in %s", n, dir);
    for (int i = 0; i < n; i++) {
        cleanup_free char *path = xasprintf("%s/%s", dir, entries[i]->d_name);
        pairs += host_compare(path, NULL);
        free(entries[i]);
    }
    free(entries);
    fprintf(stderr, "# %s: %d machines, %zu pairs equal the walker's\n", folder,
            n, pairs);
    cr_assert_gt(pairs, 0);
}

Test(probe, hosts_equal_the_walker, .timeout = 300)
{
    folder_compare("hosts", 25);
}

Test(probe, derived_hosts_equal_the_walker, .timeout = 300)
{
    folder_compare("hosts-derived", 10);
}

Test(probe, plafrim_equals_the_walker, .timeout = 300)
{
    folder_compare("fabric/plafrim/hwloc", 100);
}

/* HBM, CXL and a GPU's memory are NUMA nodes without CPUs; hwloc lends them
 * those of the node that the kernel names as their initiator. Here node 1
 * loses its own to node 0. */
Test(probe, the_kernel_says_which_nodes_have_cpus, .timeout = 180)
{
    static const char edit[] =
        "cd \"$1\"/sys/devices/system/node && "
        "chmod u+w node?/cpulist node?/cpumap && "
        "echo 0-31 >node0/cpulist && echo ffffffff >node0/cpumap && "
        "echo >node1/cpulist && echo 00000000 >node1/cpumap && "
        "mkdir -p node1/access0/initiators/node0";
    char *root = tmpdir_create();
    cleanup_free char *tree = machine_unpack("32intel64-2p8co2t+8ve.tar.bz2",
                                             root);
    const char *const sh[] = {"sh", "-c", edit, "sh", tree, NULL};
    cr_assert_eq(machine_run(sh), 0);
    const struct probe_source source = {.fsroot = tree};
    struct error err = {0};
    cleanup_with(topo) struct topo *topo = NULL;
    cr_assert_eq(probe_run(&source, "h1", NULL, &topo, &err), 0, "%s",
                 err.text);
    cr_expect_eq(topo_count(topo, DEVICE_NUMA, NULL), 1);
    cr_expect_null(topo_find(topo, "numa-1"));
    cr_expect_eq(topo_find(topo, "card-0000-1b-00")->numa, 0);
    tmpdir_remove(root);
}

static void compare_tree(const char *name, const char *tree, void *ctx)
{
    size_t *pairs = ctx;
    (void)name;
    *pairs += host_compare(NULL, tree);
}

Test(probe, sysfs_equals_the_walker, .timeout = 300)
{
    size_t pairs = 0;
    int n = machine_each_tree(compare_tree, &pairs);
    fprintf(stderr, "# sysfs: %d machines, %zu pairs equal the walker's\n", n,
            pairs);
}

/* The kernel says -1 or, on some hosts, 2147483647 when the firmware does
 * not tell a bus's NUMA node; all CPUs are then local. And a card tells its
 * serial number in its VPD. */
Test(probe, a_bus_without_a_numa_node, .timeout = 180)
{
    static const char edit[] =
        "cd \"$1\"/sys/devices/pci0000:80 && for d in . $(find . -name "
        "'0000:*' -type d); do [ -e $d/class ] || continue; chmod u+w "
        "$d/numa_node $d/local_cpus; "
        "echo $2 >$d/numa_node; echo ffff >$d/local_cpus; done; "
        "printf '\\220\\006\\000SN\\003PH1' >"
        "\"$1\"/sys/bus/pci/devices/0000:83:00.0/vpd; "
        "cd \"$1\"/sys/bus/pci/devices/0000:83:00.0 && "
        "echo 16 >sriov_totalvfs && echo 4 >sriov_numvfs";
    static const char *const values[] = {"-1", "2147483647"};
    char *root = tmpdir_create();
    cleanup_free char *tree = machine_unpack("32em64t-2n8c+1mic.tar.bz2", root);
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        const char *const sh[] = {"sh", "-c",      edit, "sh",
                                  tree, values[i], NULL};
        cr_assert_eq(machine_run(sh), 0);
        host_compare(NULL, tree);
        const struct probe_source source = {.fsroot = tree};
        struct error err = {0};
        cleanup_with(topo) struct topo *topo = NULL;
        cr_assert_eq(probe_run(&source, "h1", NULL, &topo, &err), 0, "%s",
                     err.text);
        const struct device *card = topo_find(topo, "card-0000-83-00");
        cr_assert(card);
        cr_expect_eq(card->numa, -1);
        cr_expect_eq(card->package, -1);
        cr_expect_str_eq(topo_identity(topo, card).serial, "PH1");
        cr_expect_eq(card->vfs, 4);
        cr_expect_eq(card->vfs_max, 16);
        cr_expect_eq(machine_relation(topo, card->id, "numa-1"), RELATION_SYS);
        cr_expect_eq(machine_relation(topo, card->id, "nic-0000-82-00-0"),
                     RELATION_PHB);
    }
    tmpdir_remove(root);
}

/* --- what is no topology ------------------------------------------------ */

/* Probe a file with this content; the error text into `ret_text`. */
static void refused(const char *content, size_t size,
                    char ret_text[ERROR_TEXT_MAX])
{
    char path[] = "/tmp/biga-test-probe-XXXXXX";
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, content, size), (ssize_t)size);
    close(fd);
    const struct probe_source source = {.xml = path};
    struct error err = {0};
    struct topo *topo = NULL;
    cr_expect_lt(probe_run(&source, "h1", NULL, &topo, &err), 0);
    cr_expect_null(topo);
    cr_expect(strstr(err.text, path), "no file named in: %s", err.text);
    snprintf(ret_text, ERROR_TEXT_MAX, "%s", err.text);
    unlink(path);
}

Test(probe, malformed_xml_is_an_error_and_no_crash)
{
    static const char *const texts[] = {
        "<topology version=\"2.0\"", /* ends hwloc 2.9 by a signal */
        "<topology>",
        "<topology><object type=\"",
        "<topology><object></t>",
        "<topology version=\"2.0\"><object type=\"Machine\"",
        "<topology version=\"2.0\"><distances2/></topology>",
        "<html></html>",
        "",
    };
    char text[ERROR_TEXT_MAX];
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        refused(texts[i], strlen(texts[i]), text);
    refused("<topology>\0</topology>", 22, text);
    cr_expect(strstr(text, "NUL at byte 10"), "%s", text);
}

Test(probe, a_cut_xml_is_refused_wherever_it_is_cut)
{
    cleanup_free char *path = xasprintf("%s/hosts/hwloc-16intel64-manyVFs.xml",
                                        machine_dir());
    size_t size;
    cleanup_free char *xml = testdata_read(path, &size);
    char text[ERROR_TEXT_MAX];
    for (size_t cut = 100; cut < size - 12; cut += size / 16)
        refused(xml, cut, text);
}

Test(probe, version_3_is_refused_in_words)
{
    static const char xml[] = "<?xml version=\"1.0\"?>\n"
                              "<topology version=\"3.0\">\n</topology>\n";
    char text[ERROR_TEXT_MAX];
    refused(xml, sizeof(xml) - 1, text);
    cr_expect(strstr(text, "is an hwloc XML of version 3"), "%s", text);
}

Test(probe, sources_that_are_not_there)
{
    static const struct {
        struct probe_source source;
        const char *text;
    } cases[] = {
        {{.xml = "/nonexistent.xml"}, "/nonexistent.xml"},
        {{.xml = "/"}, "regular file"},
        {{.fsroot = "/nonexistent"}, "/nonexistent: holds no /sys tree"},
        {{.hostfile = "/nonexistent"}, "/nonexistent"},
        {{.xml = "a", .fsroot = "b"}, "not from several"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err = {0};
        struct topo *topo = NULL;
        cr_expect_lt(probe_run(&cases[i].source, "h1", NULL, &topo, &err), 0);
        cr_expect(strstr(err.text, cases[i].text), "%s", err.text);
    }
}

Test(probe, hwloc_has_a_deadline)
{
    const struct scan_source live = {0};
    struct scan *scan = NULL;
    struct error err = {0};
    cr_expect_eq(scan_run(&live, 0, &scan, &err), -ETIMEDOUT);
    cr_expect_null(scan);
    cr_expect(strstr(err.text, "longer than 0 ms"), "%s", err.text);
    cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1, "a child was left");
}

Test(probe, the_live_host_has_cpus_and_leaves_no_trace)
{
    const struct probe_source source = {0};
    struct error err = {0};
    cleanup_with(topo) struct topo *topo = NULL;
    setenv("HWLOC_XMLFILE", "/nonexistent.xml", 1);
    cr_assert_eq(probe_run(&source, "h1", NULL, &topo, &err), 0, "%s",
                 err.text);
    size_t first;
    cr_assert_geq(topo_count(topo, DEVICE_NUMA, &first), 1);
    cr_expect_gt(topo_device(topo, first)->cpus, 0);
    cr_expect_null(getenv("HWLOC_FSROOT"));
    cr_expect_null(getenv("HWLOC_HIDE_ERRORS"));
}

/* --- the operator's file ------------------------------------------------ */

Test(probe, the_card_file_adds_excludes_and_describes)
{
    static const char json[] =
        "{\"cards\":["
        "{\"match\":{\"pci\":\"0000:9d:00.0\"},\"exclude\":true},"
        "{\"match\":{\"id\":\"15b3:a2dc\"},\"cores\":16,"
        "\"memory-mib\":32768},"
        "{\"match\":{\"pci\":\"0000:1a:00.0\"},\"cores\":8,"
        "\"fabric-port\":\"leaf1/7\"},"
        "{\"match\":{\"pci\":\"0000:1a:1f.0\"},\"arch\":\"gpu\"}]}";
    struct error err = {0};
    cleanup_with(cardfile) struct cardfile *cards = NULL;
    cr_assert_eq(cardfile_parse(json, sizeof(json) - 1, &cards, &err), 0, "%s",
                 err.text);
    cleanup_free char *path = xasprintf("%s/hosts-derived/dell-xe9680-8bf3.xml",
                                        machine_dir());
    const struct probe_source source = {.xml = path};
    cleanup_with(topo) struct topo *topo = NULL;
    cr_assert_eq(probe_run(&source, "h1", cards, &topo, &err), 0, "%s",
                 err.text);

    const struct device *d = topo_find(topo, "card-0000-1a-00");
    cr_assert(d);
    cr_expect_eq(d->cores, 8);
    cr_expect_eq(d->memory_mib, 32768);
    cr_expect_str_eq(topo_identity(topo, d).fabric_port, "leaf1/7");
    cr_expect_null(topo_find(topo, "card-0000-9d-00"));
    cr_expect(topo_find(topo, "nic-0000-9d-00-1"), "excluded: back to NICs");
    const struct device *added = topo_find(topo, "card-0000-1a-1f");
    cr_assert(added);
    cr_expect_str_eq(added->arch, "gpu");
    cr_expect_null(topo_find(topo, "gpu-0000-1a-1f-0"));
}

/* --- machines that are made up ------------------------------------------ */

#define SETS                                                  \
    "cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" " \
    "complete_nodeset=\"0x1\""
#define MACHINE(io)                                                     \
    "<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n"             \
    "<object type=\"Machine\" os_index=\"0\" gp_index=\"1\" "           \
    "allowed_cpuset=\"0x1\" allowed_nodeset=\"0x1\" " SETS ">\n"        \
    "<object type=\"NUMANode\" os_index=\"0\" gp_index=\"2\" "          \
    "local_memory=\"1048576\" " SETS "/>\n"                             \
    "<object type=\"PU\" os_index=\"0\" gp_index=\"3\" " SETS "/>\n" io \
    "</object>\n</topology>\n"
#define ROOT(inside)                                              \
    "<object type=\"Bridge\" gp_index=\"4\" bridge_type=\"0-1\" " \
    "depth=\"0\" bridge_pci=\"0000:[10-20]\">" inside "</object>\n"
#define BRIDGE(index, id, buses, busid, inside)                           \
    "<object type=\"Bridge\" gp_index=\"" index "\" bridge_type=\"1-1\" " \
    "depth=\"1\" bridge_pci=\"0000:[" buses "]\" pci_busid=\"" busid      \
    "\" pci_type=\"0604 [" id "] [0000:0000] 00\">" inside "</object>\n"
#define PCI(index, class_id, id, busid)                                 \
    "<object type=\"PCIDev\" gp_index=\"" index "\" pci_busid=\"" busid \
    "\" pci_type=\"" class_id " [" id "] [0000:0000] 00\"/>\n"

/* hwloc takes a gigabyte for the set of this CPU. */
Test(probe, a_number_that_costs_a_gigabyte_is_refused)
{
    static const char xml[] = MACHINE(
        "<object type=\"PU\" os_index=\"4294967295\" gp_index=\"4\" " SETS
        "/>");
    char text[ERROR_TEXT_MAX];
    refused(xml, sizeof xml - 1, text);
    cr_expect(strstr(text, "line 6: os_index of <object>: is \"4294967295\", "
                           "must be a number of at most 65535"),
              "%s", text);
}

static struct topo *made(const char *xml)
{
    char path[] = "/tmp/biga-test-probe-XXXXXX";
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, xml, strlen(xml)), (ssize_t)strlen(xml));
    close(fd);
    const struct probe_source source = {.xml = path};
    struct error err = {0};
    struct topo *topo = NULL;
    int rc = probe_run(&source, "h1", NULL, &topo, &err);
    unlink(path);
    cr_assert_eq(rc, 0, "%s", err.text);
    return topo;
}

/* An AMD Pensando card: a switch with two Ethernet functions and one for
 * management behind it, beside a second card. */
Test(probe, what_is_behind_a_cards_own_switch_is_one_card)
{
    cleanup_with(topo) struct topo *topo = made(MACHINE(ROOT(
        BRIDGE("5", "8086:2030", "11-15", "0000:10:00.0",
               BRIDGE("6", "1dd8:1000", "12-15", "0000:11:00.0",
                      BRIDGE("7", "1dd8:1001", "13-13", "0000:12:00.0",
                             PCI("8", "0200", "1dd8:1002", "0000:13:00.0"))
                          BRIDGE("9", "1dd8:1001", "14-14", "0000:12:01.0",
                                 PCI("10", "0200", "1dd8:1002", "0000:14:00.0"))
                              BRIDGE("11", "1dd8:1001", "15-15", "0000:12:02.0",
                                     PCI("12", "0200", "1dd8:1004",
                                         "0000:15:00.0"))))
            BRIDGE("13", "8086:2031", "16-18", "0000:10:01.0",
                   BRIDGE("14", "1dd8:1000", "17-18", "0000:16:00.0",
                          BRIDGE("15", "1dd8:1001", "18-18", "0000:17:00.0",
                                 PCI("16", "0200", "1dd8:1002",
                                     "0000:18:00.0")))))));
    cr_assert_eq(topo_count(topo, DEVICE_CARD, NULL), 2);
    cr_assert_eq(topo_count(topo, DEVICE_NIC, NULL), 0);
    cr_expect_eq(topo_find(topo, "card-0000-13-00")->n_functions, 3);
    cr_expect_eq(topo_find(topo, "card-0000-18-00")->n_functions, 1);
    cr_expect_eq(machine_relation(topo, "card-0000-13-00", "card-0000-18-00"),
                 RELATION_PHB);
}

/* An MI300A (class 1200), its BMC, and devices without a host bridge, as in
 * files that were written without bridges. */
Test(probe, classes_and_missing_host_bridges)
{
    cleanup_with(topo) struct topo *topo = made(
        MACHINE(PCI("5", "1200", "1002:74a0", "0000:10:00.0")
                    PCI("6", "1200", "1002:74a0", "0000:11:00.0")
                        PCI("7", "0300", "1a03:2000", "0000:12:00.0")
                            PCI("8", "0200", "17db:0501", "0000:13:00.0")));
    cr_assert_eq(topo_count(topo, DEVICE_GPU, NULL), 2);
    cr_assert_eq(topo_count(topo, DEVICE_NIC, NULL), 1);
    cr_expect_eq(topo_device(topo, 0)->root_domain, TOPO_ROOT_NONE);
    cr_expect_eq(topo_relation(topo, 0, 1), RELATION_NODE);
    slices_compare(topo, "without host bridges");
}

/* As files of hosts have it: hwloc shows a function a second time, and two
 * devices of different kinds share one address. */
Test(probe, what_is_there_twice_is_published_once)
{
    cleanup_with(topo) struct topo *topo = made(MACHINE(
        PCI("5", "0200", "15b3:a2dc", "0000:10:00.0")
            PCI("6", "0200", "15b3:a2dc", "0000:10:00.1")
                PCI("7", "0200", "15b3:a2dc", "0000:10:00.0")
                    PCI("8", "0300", "1002:73a0", "0000:11:00.0")
                        PCI("9", "0200", "15b3:1021", "0000:11:00.0")
                            PCI("10", "1200", "1002:74a0", "0000:11:00.0")));
    const struct device *card = topo_find(topo, "card-0000-10-00");
    cr_assert(card);
    cr_assert_eq(card->n_functions, 2);
    cr_expect_eq(card->functions[0].function, 0);
    cr_expect_eq(card->functions[1].function, 1);
    cr_expect_eq(topo_find(topo, "gpu-0000-11-00-0")->device_id, 0x73a0);
    cr_expect(topo_find(topo, "nic-0000-11-00-0"));
    cr_expect_eq(topo_n_devices(topo), 4);
    slices_compare(topo, "seen twice");
}
