#include "tests/lib/machine.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "advertiser/probe/probe.h"
#include "tests/lib/testdata.h"
#include "tests/lib/tmpdir.h"

const char *machine_dir(void)
{
    const char *dir = testdata_dir();
    if (!dir) {
        fprintf(stderr, "# skipped: no machines in ../shared/data\n");
        cr_skip_test("no machines in ../shared/data");
    }
    return dir;
}

struct topo *machine_probe(const char *name)
{
    cleanup_free char *path = xasprintf("%s/%s", machine_dir(), name);
    const struct probe_source source = {.xml = path};
    struct error err = {0};
    struct topo *topo = NULL;
    int rc = probe_run(&source, "h1", NULL, &topo, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    return topo;
}

int machine_run(const char *const argv[])
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

char *machine_unpack(const char *name, const char *root)
{
    cleanup_free char *archive = xasprintf("%s/sysfs/%s", machine_dir(), name);
    const char *const untar[] = {"tar", "xjf", archive, "-C", root, NULL};
    fprintf(stderr, "# unpacking %s\n", name);
    cr_assert_eq(machine_run(untar), 0, "tar cannot unpack %s", archive);
    return xasprintf("%s/%.*s", root, (int)(strstr(name, ".tar.bz2") - name),
                     name);
}

static int is_archive(const struct dirent *entry)
{
    return strstr(entry->d_name, ".tar.bz2") != NULL;
}

int machine_each_tree(machine_tree_f *visit, void *ctx)
{
    cleanup_free char *dir = xasprintf("%s/sysfs", machine_dir());
    char *root = tmpdir_create();
    struct dirent **entries = NULL;
    int n = scandir(dir, &entries, is_archive, alphasort);
    cr_assert_geq(n, 7);
    for (int i = 0; i < n; i++) {
        cleanup_free char *tree = machine_unpack(entries[i]->d_name, root);
        visit(entries[i]->d_name, tree, ctx);
        free(entries[i]);
    }
    free(entries);
    tmpdir_remove(root);
    return n;
}

enum relation machine_relation(const struct topo *topo, const char *a,
                               const char *b)
{
    const struct device *first = topo_device(topo, 0);
    const struct device *da = topo_find(topo, a), *db = topo_find(topo, b);
    cr_assert(da && db, "%s or %s is not there", a, b);
    return topo_relation(topo, (size_t)(da - first), (size_t)(db - first));
}
