/* Every real machine comes out of its slices as it went in. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "advertiser/hosts.h"
#include "advertiser/probe.h"
#include "model/slice.h"
#include "tests/lib/roundtrip.h"
#include "tests/lib/testdata.h"

static const char *data_or_skip(void)
{
    const char *dir = testdata_dir();
    if (!dir)
        cr_skip_test("the machines of ../shared/data are not there");
    return dir;
}

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
    cleanup_free char *dir = xasprintf("%s/%s", data_or_skip(), folder);
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

Test(slice_machines, sysfs, .timeout = 300)
{
    cleanup_free char *dir = xasprintf("%s/sysfs", data_or_skip());
    char root[] = "/tmp/biga-test-slice-XXXXXX";
    struct dirent **entries = NULL;
    int n = scandir(dir, &entries, is_archive, alphasort);
    cr_assert_geq(n, 7);
    cr_assert(mkdtemp(root));
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        cleanup_free char *archive = xasprintf("%s/%s", dir, name);
        cleanup_free char *tree = xasprintf(
            "%s/%.*s", root, (int)(strstr(name, ".tar.bz2") - name), name);
        const char *const untar[] = {"tar", "xjf", archive, "-C", root, NULL};
        cr_assert_eq(run(untar), 0, "tar cannot unpack %s", archive);
        const struct probe_source source = {.fsroot = tree};
        (void)assert_roundtrip(&source, name);
        free(entries[i]);
    }
    free(entries);
    const char *const clean[] = {"rm", "-rf", root, NULL};
    cr_expect_eq(run(clean), 0);
}

Test(slice_machines, compiled_in_hosts)
{
    for (size_t i = 0; i < n_host_shapes; i++) {
        const struct probe_source source = {.hostfile = host_shapes[i].name};
        (void)assert_roundtrip(&source, host_shapes[i].name);
    }
}
