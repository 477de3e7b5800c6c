/* Real machines through probe, compared with a walk of hwloc's own tree;
 * and every trap that real machines have set. */
#include "advertiser/probe.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "advertiser/print.h"
#include "model/base/str.h"
#include "tests/lib/testdata.h"
#include "tests/lib/walker.h"

static const char *data_or_skip(void)
{
    const char *dir = testdata_dir();
    if (!dir)
        cr_skip_test("the machines of ../shared/data are not there");
    return dir;
}

static struct topo *probe_xml(const char *path)
{
    const struct probe_source source = {.xml = path};
    struct error err = {0};
    struct topo *topo = NULL;
    int rc = probe_run(&source, "h1", NULL, &topo, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    return topo;
}

static struct topo *probe_data(const char *name)
{
    cleanup_free char *path = xasprintf("%s/%s", data_or_skip(), name);
    return probe_xml(path);
}

static enum relation related(const struct topo *topo, const char *a,
                             const char *b)
{
    const struct device *first = topo_device(topo, 0);
    const struct device *da = topo_find(topo, a), *db = topo_find(topo, b);
    cr_assert(da && db, "%s or %s is not there", a, b);
    return topo_relation(topo, (size_t)(da - first), (size_t)(db - first));
}

/* --- equal to the walker ------------------------------------------------------ */

static void thing_name(const struct device *d, char ret_name[64])
{
    char pci[PCI_ADDR_TEXT_MAX];
    pci_addr_format(&d->pci, pci);
    if (d->kind == DEVICE_NUMA)
        snprintf(ret_name, 64, "numa-%d", d->numa);
    else if (d->kind == DEVICE_CARD)
        snprintf(ret_name, 64, "%s", pci);
    else
        snprintf(ret_name, 64, "%s/%04x:%04x", pci, d->vendor_id,
                 d->device_id);
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
    cleanup_free char *dir = xasprintf("%s/%s", data_or_skip(), folder);
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
    fprintf(stderr, "# %s: %d machines, %zu pairs equal the walker's\n",
            folder, n, pairs);
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

/* Run a program and wait; 0 when it succeeds. */
static int run(const char *const argv[])
{
    pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    int status;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int is_archive(const struct dirent *entry)
{
    return strstr(entry->d_name, ".tar.bz2") != NULL;
}

Test(probe, sysfs_equals_the_walker, .timeout = 300)
{
    cleanup_free char *dir = xasprintf("%s/sysfs", data_or_skip());
    char root[] = "/tmp/biga-test-probe-XXXXXX";
    cr_assert(mkdtemp(root));
    struct dirent **entries = NULL;
    int n = scandir(dir, &entries, is_archive, alphasort);
    size_t pairs = 0;
    cr_assert_geq(n, 7);
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        cleanup_free char *archive = xasprintf("%s/%s", dir, name);
        const char *const untar[] = {"tar", "xjf", archive, "-C", root, NULL};
        fprintf(stderr, "# unpacking %s\n", name);
        cr_assert_eq(run(untar), 0, "tar cannot unpack %s", archive);
        cleanup_free char *tree =
            xasprintf("%s/%.*s", root,
                      (int)(strstr(name, ".tar.bz2") - name), name);
        pairs += host_compare(NULL, tree);
        free(entries[i]);
    }
    free(entries);
    const char *const clean[] = {"rm", "-rf", root, NULL};
    cr_expect_eq(run(clean), 0);
    fprintf(stderr, "# sysfs: %d machines, %zu pairs equal the walker's\n", n,
            pairs);
}

/* --- what real machines got wrong before --------------------------------------- */

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
        probe_data("hosts/mpibind-coral-lassen-hwloc1.xml");
    cr_assert_eq(topo_count(topo, DEVICE_NUMA, NULL), 2);
    cr_assert(topo_find(topo, "numa-0") && topo_find(topo, "numa-8"));
    cr_assert_eq(count_numa(topo, DEVICE_GPU, 0), 2);
    cr_assert_eq(count_numa(topo, DEVICE_GPU, 8), 2);
}

/* Of 1, 3 | 5, 7 and of CPUs that alternate between sockets. */
Test(probe, numa_indexes_need_not_be_in_order)
{
    cleanup_with(topo) struct topo *oci =
        probe_data("hosts-derived/oci-bm-gpu-b4.xml");
    static const struct {
        const char *id;
        int package;
    } numas[] = {{"numa-1", 0}, {"numa-3", 0}, {"numa-5", 1}, {"numa-7", 1}};
    for (size_t i = 0; i < ARRAY_LEN(numas); i++) {
        const struct device *d = topo_find(oci, numas[i].id);
        cr_assert(d);
        cr_expect_eq(d->package, numas[i].package, "%s", numas[i].id);
    }
    cr_expect_eq(related(oci, "numa-1", "numa-3"), RELATION_SOCKET);
    cr_expect_eq(related(oci, "numa-3", "numa-5"), RELATION_SYS);

    cleanup_with(topo) struct topo *xeon =
        probe_data("hosts/hwloc-24em64t-2n6c2t-pci.xml");
    cr_expect_eq(topo_find(xeon, "numa-0")->cpus, 12);
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
        cleanup_with(topo) struct topo *topo = probe_data(hosts[i].file);
        cr_expect_eq(topo_count(topo, DEVICE_GPU, NULL), hosts[i].gpus, "%s",
                     hosts[i].file);
    }
}

/* MI250X is a display controller of class 0380; a Slingshot adapter has no
 * OpenFabrics device and is a NIC all the same. */
Test(probe, mi250x_and_slingshot)
{
    cleanup_with(topo) struct topo *topo =
        probe_data("hosts/mpibind-eas-tioga.xml");
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
        probe_data("hosts/mpibind-g4dnmetal.xml");
    const struct device *efa = topo_find(topo, "nic-0000-c5-00-0");
    cr_assert(efa);
    cr_expect_str_eq(efa->interface, "");
    cleanup_with(topo) struct topo *p4d =
        probe_data("hosts-derived/aws-p4d-a100.xml");
    cr_expect_eq(topo_count(p4d, DEVICE_NIC, NULL), 4);
}

/* The north-south card of the XE9680 is dual-port, and PIX to a GPU as the
 * east-west one beside it. */
Test(probe, a_dual_port_card_is_one)
{
    cleanup_with(topo) struct topo *topo =
        probe_data("hosts-derived/dell-xe9680-8bf3.xml");
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
    cr_expect_eq(related(topo, "card-0000-9d-00", "gpu-0000-9c-1f-0"),
                 RELATION_PIX);
    cr_expect_eq(related(topo, "card-0000-9c-00", "gpu-0000-9c-1f-0"),
                 RELATION_PIX);
}

/* A card without a NUMA node known is near no other by guess. */
Test(probe, unknown_numa_nodes_are_not_equal)
{
    cleanup_with(topo) struct topo *topo =
        probe_data("hosts/mpibind-knl-snc4-flat-hwloc1.xml");
    cr_assert_eq(topo_find(topo, "nic-0000-01-00-0")->numa, -1);
    cr_expect_eq(related(topo, "nic-0000-01-00-0", "numa-0"),
                 RELATION_SOCKET);
    cleanup_str struct str out = STR_INIT(STR_MAX_DEFAULT);
    print_relations(topo, &out);
    cr_expect(strstr(str_text(&out),
                     "{\"id\":\"nic-0000-01-00-0\",\"kind\":\"nic\","
                     "\"pci\":\"0000:01:00.0\",\"numa\":null}"));
}

/* --- the vendor's own description ------------------------------------------------ */

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
    cr_expect_eq(d->numa, (int)strtol(p->numa, NULL, 10), "%s: numa %d",
                 p->pci, d->numa);
    enum relation relation = nearest_gpu(topo, d);
    if (strncmp(p->gpu, "GPU", 3) == 0) {
        size_t first, self = (size_t)(d - topo_device(topo, 0));
        topo_count(topo, DEVICE_GPU, &first);
        relation = topo_relation(
            topo, self, first + strtoul(p->gpu + 3, NULL, 10));
    }
    cr_expect_str_eq(relation_name(relation), p->proximity, "%s to %s",
                     p->pci, p->gpu);
}

static void preset_compare(const char *preset, const char *xml,
                           size_t functions)
{
    cleanup_with(topo) struct topo *topo = probe_data(xml);
    cr_assert_eq(topo_count(topo, DEVICE_CARD, NULL), 9);
    cr_assert_eq(topo_count(topo, DEVICE_GPU, NULL), 8);
    cleanup_free char *path = xasprintf("%s/%s", data_or_skip(), preset);
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

/* --- what is no topology ----------------------------------------------------------- */

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
    cleanup_free char *path =
        xasprintf("%s/hosts/hwloc-16intel64-manyVFs.xml", data_or_skip());
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

/* --- the operator's file -------------------------------------------------------------- */

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
    cr_assert_eq(cardfile_parse(json, sizeof(json) - 1, &cards, &err), 0,
                 "%s", err.text);
    cleanup_free char *path =
        xasprintf("%s/hosts-derived/dell-xe9680-8bf3.xml", data_or_skip());
    const struct probe_source source = {.xml = path};
    cleanup_with(topo) struct topo *topo = NULL;
    cr_assert_eq(probe_run(&source, "h1", cards, &topo, &err), 0, "%s",
                 err.text);

    const struct device *d = topo_find(topo, "card-0000-1a-00");
    cr_assert(d);
    cr_expect_eq(d->cores, 8);
    cr_expect_eq(d->memory_mib, 32768);
    cr_expect_str_eq(d->fabric_port, "leaf1/7");
    cr_expect_null(topo_find(topo, "card-0000-9d-00"));
    cr_expect(topo_find(topo, "nic-0000-9d-00-1"), "excluded: back to NICs");
    const struct device *added = topo_find(topo, "card-0000-1a-1f");
    cr_assert(added);
    cr_expect_str_eq(added->arch, "gpu");
    cr_expect_null(topo_find(topo, "gpu-0000-1a-1f-0"));
}
