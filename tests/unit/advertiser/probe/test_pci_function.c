#include "advertiser/probe/pci_function.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/mem.h"
#include "tests/lib/tmpdir.h"

#define PCI "0000:17:00.0"

static char *root;

/* With the folders above it. */
static void put(const char *name, const char *text)
{
    cleanup_free char *path = xasprintf("%s/sys/%s", root, name);
    for (char *p = strchr(path + strlen(root) + 1, '/'); p;
         p = strchr(p + 1, '/')) {
        *p = '\0';
        (void)mkdir(path, 0700);
        *p = '/';
    }
    FILE *f = fopen(path, "we");
    cr_assert(f, "%s", path);
    (void)fputs(text, f);
    cr_assert_eq(fclose(f), 0);
}

static struct pci_function look(const char *interface)
{
    struct pci_function l;
    memset(&l, 'x', sizeof l);
    pci_function_read(root, PCI, interface, &l);
    return l;
}

static void begin(void)
{
    root = tmpdir_create();
}

static void end(void)
{
    tmpdir_remove(root);
}

TestSuite(pci_function, .init = begin, .fini = end);

Test(pci_function, everything_is_told)
{
    put("class/net/eth2/operstate", "up\n");
    put("class/net/eth2/speed", "200000\n");
    put("class/net/eth2/compat/devlink/mode", "switchdev\n");
    put("bus/pci/devices/" PCI "/sriov_totalvfs", "16\n");
    put("bus/pci/devices/" PCI "/sriov_numvfs", "8\n");
    struct pci_function l = look("eth2");
    cr_expect_str_eq(l.link, "up");
    cr_expect_eq(l.link_mbps, 200000);
    cr_expect_str_eq(l.mode, "switchdev");
    cr_expect_eq(l.vfs, 8);
    cr_expect_eq(l.vfs_max, 16);
    l = look(""); /* it has no interface */
    cr_expect_str_empty(l.link);
    cr_expect_eq(l.vfs, 8);
    l = look("../net/eth2");
    cr_expect_str_empty(l.link);
}

Test(pci_function, what_is_not_told_is_unknown)
{
    struct pci_function l = look("eth2");
    cr_expect_str_empty(l.link);
    cr_expect_str_empty(l.mode);
    cr_expect_eq(l.link_mbps, 0);
    cr_expect_eq(l.vfs, 0);
    cr_expect_eq(l.vfs_max, 0);
    put("class/net/eth2/operstate", "down\n");
    put("class/net/eth2/speed", "-1\n");
    put("class/net/eth2/compat/devlink/mode", "");
    l = look("eth2");
    cr_expect_str_eq(l.link, "down");
    cr_expect_eq(l.link_mbps, 0);
    cr_expect_str_empty(l.mode);
}

Test(pci_function, nonsense_is_unknown)
{
    static const char *const texts[] = {
        "\n",
        "99999999999999999999\n",
        "4294967295\n",
        "a\tb\n",
        "a name that is longer than any of these words is\n",
        "x\n"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        put("class/net/eth2/speed", texts[i]);
        put("bus/pci/devices/" PCI "/sriov_totalvfs", texts[i]);
        put("bus/pci/devices/" PCI "/sriov_numvfs", "8\n");
        struct pci_function l = look("eth2");
        cr_expect_eq(l.link_mbps, 0, "%s", texts[i]);
        cr_expect_eq(l.vfs_max, 0, "%s", texts[i]);
        cr_expect_eq(l.vfs, 0, "%s", texts[i]);
    }
    put("class/net/eth2/operstate", "UP <b>\n");
    cr_expect_str_empty(look("eth2").link);
}
