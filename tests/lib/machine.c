#include "tests/lib/machine.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "advertiser/probe.h"
#include "tests/lib/testdata.h"

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

enum relation machine_relation(const struct topo *topo, const char *a,
                               const char *b)
{
    const struct device *first = topo_device(topo, 0);
    const struct device *da = topo_find(topo, a), *db = topo_find(topo, b);
    cr_assert(da && db, "%s or %s is not there", a, b);
    return topo_relation(topo, (size_t)(da - first), (size_t)(db - first));
}
