/* A real subnet and the machines on it.  The dump is read here once more, in
 * the simplest way there is, to compare with. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "model/fabric/fabric.h"
#include "tests/lib/testdata.h"

static char *dump;
static size_t dump_size;
static struct fabric *fabric;

static void read_dump(const char *dir)
{
    char path[512];
    (void)snprintf(path, sizeof path,
                   "%s/fabric/plafrim/ib-raw/"
                   "ib-subnet-fe80:0000:0000:0000.txt",
                   dir);
    cleanup_file FILE *f = fopen(path, "r");
    cr_assert_not_null(f, "%s", path);
    dump = xmalloc(1 << 20);
    dump_size = fread(dump, 1, (1 << 20) - 1, f);
    dump[dump_size] = '\0';
}

static void set_up(void)
{
    const char *dir = testdata_dir();
    struct error err = {0};
    if (!dir) {
        (void)printf("no test data: the dump of plafrim is not there\n");
        cr_skip_test("no test data");
    }
    read_dump(dir);
    struct fabric_source source = {"plafrim", dump, dump_size, FABRIC_AUTO};
    cr_assert_eq(fabric_read(&source, 1, NULL, &fabric, &err), 0, "%s",
                 err.text);
}

static void tear_down(void)
{
    fabric_unref(fabric);
    free(dump);
}

TestSuite(fabric_plafrim, .init = set_up, .fini = tear_down);

/* The leaf's GUID of a host, out of the lines that begin with "CA"; counts
 * them. */
static size_t plain_leaf(const char *host, char guid[17])
{
    size_t found = 0;
    for (const char *line = dump; line; line = strchr(line, '\n')) {
        char name[64], far[32];
        line += *line == '\n';
        if (sscanf(line, "CA %*d %*d %*s %*s %*s - SW %*d %*d 0x%31s ( '%63s",
                   far, name) == 2 &&
            strcmp(name, host) == 0) {
            found++;
            memcpy(guid, far, 16);
            guid[16] = '\0';
        }
    }
    return found;
}

/* What people call the switch of that GUID. */
static bool plain_name(const char *guid, char name[65])
{
    for (const char *line = dump; line; line = strchr(line, '\n')) {
        char own[32];
        line += *line == '\n';
        if (sscanf(line, "SW %*d %*d 0x%31s", own) != 1 ||
            strcmp(own, guid) != 0)
            continue;
        const char *from = strchr(line, '\'');
        const char *to = from ? strchr(from + 1, '\'') : NULL;
        if (!to)
            return false;
        (void)snprintf(name, 65, "%.*s", (int)(to - from - 1), from + 1);
        return true;
    }
    return false;
}

Test(fabric_plafrim, every_host_with_an_adapter_has_its_leaf)
{
    char path[512], guid[17], name[65];
    size_t n_hosts = 0, n_placed = 0, n_rails = 0;
    (void)snprintf(path, sizeof path, "%s/fabric/plafrim/hwloc",
                   testdata_dir());
    DIR *dir = opendir(path);
    cr_assert_not_null(dir, "%s", path);
    for (struct dirent *e; (e = readdir(dir));) {
        char host[64];
        size_t size = strlen(e->d_name);
        if (size < 5 || strcmp(e->d_name + size - 4, ".xml") != 0)
            continue;
        (void)snprintf(host, sizeof host, "%.*s", (int)size - 4, e->d_name);
        n_hosts++;
        size_t n = plain_leaf(host, guid);
        const struct fabric_host *h = fabric_find(fabric, host, strlen(host));
        cr_expect_eq(n > 0, h != NULL, "%s", host);
        if (!h || n == 0)
            continue;
        n_placed++;
        n_rails += n > 1;
        cr_assert(plain_name(guid, name), "%s", guid);
        cr_expect_eq(h->n_ports, n, "%s", host);
        cr_expect_str_eq(h->ports[h->n_ports - 1].leaf, name, "%s", host);
        cr_expect_str_eq(fabric_domain(fabric, h->leaf)->name, name);
        cr_expect_eq(fabric_domain(fabric, h->leaf)->tier, 0);
    }
    (void)closedir(dir);
    (void)printf("plafrim: %zu machines, %zu with an adapter in the dump (%zu "
                 "with several), all of these placed; %zu hosts, %zu domains, "
                 "%u tiers\n",
                 n_hosts, n_placed, n_rails, fabric_n_hosts(fabric),
                 fabric_n_domains(fabric), fabric_n_tiers(fabric));
    for (size_t i = 0; i < fabric_n_domains(fabric); i++) {
        const struct fabric_domain *d = fabric_domain(fabric, (int32_t)i);
        (void)printf("  %-5s %s: %u leaf switches, %u hosts, in %d\n",
                     fabric_tier_name(d->tier), d->name, d->n_switches,
                     d->n_hosts, d->parent);
    }
    cr_expect_geq(n_placed, 100);
}

Test(fabric_plafrim, adapters_are_found_by_either_guid)
{
    /* Port1GID0 and NodeGUID of bonobo001.xml */
    const struct fabric_host *h = fabric_find(fabric, "bonobo001", 9);
    cr_assert_not_null(h);
    cr_expect_str_eq(h->ports[0].guid, "0002c9030002a0ce");
    cr_expect_str_eq(h->ports[0].device, "HCA-1");
    cr_expect_eq(h->ports[0].speed_gbit_s, 20, "4x DDR");
    cr_expect_eq(fabric_find_guid(fabric, "0002:c903:0002:a0ce"), h);
    cr_expect_eq(fabric_find_guid(fabric, "0x0002c9030002a0cf"), h);
    cr_expect_null(fabric_find_guid(fabric, "0002:c903:0002:a0d1"));
}

/* Each machine says the GUIDs of its own adapters. */
Test(fabric_plafrim, machines_and_dump_agree_on_guids)
{
    static const char mark[] = "\"NodeGUID\" value=\"";
    char path[512];
    size_t n_guids = 0, n_found = 0;
    for (size_t i = 0; i < fabric_n_hosts(fabric); i++) {
        const struct fabric_host *h = fabric_host(fabric, i);
        (void)snprintf(path, sizeof path, "%s/fabric/plafrim/hwloc/%s.xml",
                       testdata_dir(), h->name);
        if (access(path, R_OK) != 0)
            continue;
        bool found = false;
        size_t size;
        cleanup_free char *xml = testdata_read(path, &size);
        for (char *p = xml; (p = strstr(p, mark));) {
            p += sizeof mark - 1;
            cleanup_free char *guid = xstrndup(p, strcspn(p, "\""));
            const struct fabric_host *by = fabric_find_guid(fabric, guid);
            cr_expect(!by || by == h, "%s: %s", h->name, guid);
            found = found || by == h;
            n_guids++;
        }
        n_found += found;
        cr_expect(found || !strstr(xml, mark), "%s", h->name);
    }
    (void)printf("plafrim: %zu machines found by one of %zu GUIDs\n", n_found,
                 n_guids);
    cr_expect_geq(n_found, 100);
}

/* The dump as it would be had no host told its adapters a name. */
static struct fabric *read_without_names(void)
{
    cleanup_str struct str text = STR_INIT(1 << 21);
    struct fabric *f = NULL;
    struct error err = {0};
    for (const char *p = dump; *p;) {
        size_t size = strcspn(p, "'");
        const char *end = p[size] ? strchr(p + size + 1, '\'') : NULL;
        str_add_n(&text, p, size);
        p += size;
        if (!end)
            continue;
        if (memmem(p, (size_t)(end - p), " HCA-", 5))
            str_add(&text, "'MT25408 ConnectX Mellanox Technologies'");
        else
            str_add_n(&text, p, (size_t)(end + 1 - p));
        p = end + 1;
    }
    struct fabric_source source = {"nameless", text.data, text.size,
                                   FABRIC_AUTO};
    cr_assert_eq(fabric_read(&source, 1, NULL, &f, &err), 0, "%s", err.text);
    return f;
}

Test(fabric_plafrim, without_names_machines_are_where_they_were)
{
    cleanup_with(fabric) struct fabric *f = read_without_names();
    cr_expect_eq(fabric_n_hosts(f), fabric_n_hosts(fabric));
    cr_expect_eq(fabric_n_domains(f), fabric_n_domains(fabric));
    for (size_t i = 0; i < fabric_n_hosts(fabric); i++) {
        const struct fabric_host *h = fabric_host(fabric, i);
        const struct fabric_host *by = fabric_find_guid(f, h->ports[0].guid);
        cr_assert_not_null(by, "%s", h->name);
        cr_expect_eq(strncmp(by->name, "guid-", 5), 0, "%s", by->name);
        cr_expect_str_eq(fabric_domain(f, by->leaf)->name,
                         fabric_domain(fabric, h->leaf)->name, "%s", h->name);
    }
}

/* netloc's reading of the same dump, "…,'HOST HCA-1' - 'SWITCH' ,…". */
Test(fabric_plafrim, agrees_with_netloc)
{
    char path[512], host[64], name[65];
    size_t n = 0, size;
    (void)snprintf(path, sizeof path,
                   "%s/fabric/plafrim/netloc/IB-fe80:0000:0000:0000-nodes.txt",
                   testdata_dir());
    cleanup_free char *text = testdata_read(path, &size);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *quote = strchr(line, '\'');
        const char *end = strchrnul(line, '\n');
        if (!quote || quote > end ||
            sscanf(quote, "'%63[^ '] HCA-%*d' - '%64[^']'", host, name) != 2)
            continue;
        const struct fabric_host *h = fabric_find(fabric, host, strlen(host));
        cr_assert_not_null(h, "%s", host);
        cr_expect_str_eq(h->ports[0].leaf, name, "%s", host);
        n++;
    }
    (void)printf("plafrim: %zu links of hosts as netloc has them\n", n);
    cr_expect_eq(n, fabric_n_hosts(fabric));
}

/* Lines in another order are the same subnet. */
Test(fabric_plafrim, the_order_of_lines_is_no_matter)
{
    cleanup_str struct str turned = STR_INIT(1 << 21);
    cleanup_with(fabric) struct fabric *other = NULL;
    struct error err = {0};
    size_t end = dump_size;
    for (size_t i = dump_size; i-- > 0;) {
        if (i > 0 && dump[i - 1] != '\n')
            continue;
        str_add_n(&turned, dump + i, end - i);
        if (end == i || dump[end - 1] != '\n')
            str_add_c(&turned, '\n');
        end = i;
    }
    struct fabric_source source = {"turned", turned.data, turned.size,
                                   FABRIC_IB};
    cr_assert_eq(fabric_read(&source, 1, NULL, &other, &err), 0, "%s",
                 err.text);
    cr_expect_eq(fabric_hash(other), fabric_hash(fabric));
}
