/* Every real machine comes out of its slices as it went in. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "advertiser/describe/hosts.h"
#include "advertiser/probe/probe.h"
#include "model/slice/slice.h"
#include "tests/lib/machine.h"
#include "tests/lib/roundtrip.h"

static size_t assert_roundtrip(const struct probe_source *source,
                               const char *name)
{
    cleanup_with(topo) struct topo *topo = NULL;
    struct error err = {0};
    cr_assert_eq(probe_run(source, "h1", NULL, &topo, &err), 0, "%s", err.text);
    cr_expect(roundtrip(topo), "%s", name);
    return topo_n_devices(topo);
}

static int is_xml(const struct dirent *entry)
{
    return strstr(entry->d_name, ".xml") != NULL;
}

static void assert_folder(const char *folder, int expected)
{
    cleanup_free char *dir = xasprintf("%s/%s", machine_dir(), folder);
    struct dirent **entries = NULL;
    int n = scandir(dir, &entries, is_xml, alphasort);
    size_t devices = 0;
    cr_assert_geq(n, expected, "%d files in %s", n, dir);
    for (int i = 0; i < n; i++) {
        cleanup_free char *path = xasprintf("%s/%s", dir, entries[i]->d_name);
        const struct probe_source source = {.xml = path};
        devices += assert_roundtrip(&source, path);
        free(entries[i]);
    }
    free(entries);
    fprintf(stderr, "# %s: %d machines, %zu devices\n", folder, n, devices);
    cr_assert_gt(devices, 0);
}

Test(slice_machines, hosts, .timeout = 300)
{
    assert_folder("hosts", 25);
}

Test(slice_machines, derived_hosts, .timeout = 300)
{
    assert_folder("hosts-derived", 10);
}

static void roundtrip_tree(const char *name, const char *tree, void *ctx)
{
    const struct probe_source source = {.fsroot = tree};
    (void)ctx;
    (void)assert_roundtrip(&source, name);
}

Test(slice_machines, sysfs, .timeout = 300)
{
    (void)machine_each_tree(roundtrip_tree, NULL); /* it asserts the number */
}

Test(slice_machines, compiled_in_hosts)
{
    for (size_t i = 0; i < n_host_shapes; i++) {
        const struct probe_source source = {.hostfile = host_shapes[i].name};
        (void)assert_roundtrip(&source, host_shapes[i].name);
    }
}
