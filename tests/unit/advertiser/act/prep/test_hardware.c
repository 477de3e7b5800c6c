/* What a card is now, from trees and a command that stand in for a host's. */
#include "advertiser/act/prep/hardware.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/mem.h"
#include "tests/lib/card/fakedevlink.h"
#include "tests/lib/tmpdir.h"

static char *top;
static struct fakedevlink d;
static struct prep_config config;

static void begin(void)
{
    static char dev[256];
    top = tmpdir_create();
    cleanup_free char *dir = xasprintf("%s/devlink", top);
    fakedevlink_init(&d, dir);
    (void)snprintf(dev, sizeof dev, "%s/dev", dir);
    config = (struct prep_config){
        .sysfs = d.sysfs, .dev = dev, .devlink = d.command};
}

static void end(void)
{
    fakedevlink_fini(&d);
    tmpdir_remove(top);
}

TestSuite(hardware, .init = begin, .fini = end, .timeout = 120);

static void make_dir(const char *name)
{
    cleanup_free char *path = xasprintf("%s/%s", d.dir, name);
    cr_assert_eq(mkdir(path, 0755), 0, "%s", path);
}

static void put_all(void)
{
    static const char function[] = "sys/bus/pci/devices/" FAKEDEVLINK_PCI;
    cleanup_free char *now = xasprintf("%s/sriov_numvfs", function);
    cleanup_free char *max = xasprintf("%s/sriov_totalvfs", function);
    fakedevlink_put(&d, now, "4\n");
    fakedevlink_put(&d, max, "16\n");
    fakedevlink_put(&d, "ports/32768", "88 active\n");
    fakedevlink_put(&d, "info",
                    "{\"info\":{\"pci/" FAKEDEVLINK_PCI
                    "\":{\"driver\":\"mlx5_core\",\"serial_number\":\"MT22\","
                    "\"versions\":{\"fixed\":{\"fw.psid\":\"MT_0884\"},"
                    "\"running\":{\"fw.version\":\"32.39.1002\"},"
                    "\"stored\":{\"fw\":\"32.41.1000\"}}}}}");
    fakedevlink_put(&d, "eswitch",
                    "{\"dev\":{\"pci/" FAKEDEVLINK_PCI
                    "\":{\"mode\":\"switchdev\"}}}");
    make_dir("dev");
    make_dir("dev/rshim0");
    make_dir("dev/rshim3");
    fakedevlink_put(&d, "dev/rshim0/misc",
                    "BF_MODE   NIC mode\nDEV_NAME  pcie-0000:18:00.2\n");
    fakedevlink_put(&d, "dev/rshim3/misc",
                    "BF_MODE   DPU mode\nDEV_NAME  pcie-0000:17:00.2\n"
                    "OPN_STR   900-9D3B6\n");
}

Test(hardware, is_told)
{
    struct hardware h;
    put_all();
    hardware_look(&config, FAKEDEVLINK_PCI, &h);
    cr_expect_str_eq(h.info.driver, "mlx5_core");
    cr_expect_str_eq(h.info.serial, "MT22");
    cr_expect_str_eq(h.info.firmware, "32.39.1002");
    cr_expect_str_eq(h.info.stored, "32.41.1000");
    cr_expect_str_eq(h.info.psid, "MT_0884");
    cr_expect_str_eq(h.eswitch, "switchdev");
    cr_expect_str_eq(h.rshim.mode, "DPU mode");
    cr_expect_str_eq(h.rshim.part, "900-9D3B6");
    cr_expect_eq(h.vfs, 4);
    cr_expect_eq(h.vfs_max, 16);
    cr_expect_eq(h.sfs, 1);
}

Test(hardware, that_nobody_tells_is_unknown)
{
    struct hardware h;
    fakedevlink_put(&d, "fail", "show kernel answers: No such device\n");
    fakedevlink_put(&d, "info", "{\"info\":{}}");
    fakedevlink_put(&d, "eswitch", "no JSON");
    hardware_look(&config, FAKEDEVLINK_PCI, &h);
    cr_expect_str_eq(h.info.driver, "");
    cr_expect_str_eq(h.info.firmware, "");
    cr_expect_str_eq(h.eswitch, "");
    cr_expect_str_eq(h.rshim.mode, "");
    cr_expect_eq(h.vfs, -1);
    cr_expect_eq(h.vfs_max, -1);
    cr_expect_eq(h.sfs, -1);
    config.devlink = "/none/devlink";
    hardware_look(&config, FAKEDEVLINK_PCI, &h);
    cr_expect_eq(h.sfs, -1);
}

Test(hardware, an_rshim_belongs_to_one_card)
{
    static const struct {
        const char *device, *pci;
        bool is;
    } cases[] = {
        {"pcie-0000:17:00.2", "0000:17:00.0", true},
        {"pcie-0001:17:00.2", "0000:17:00.0", false},
        {"pcie-17:00.2", "0000:17:00.0", true},
        {"pcie-17:00.2 (BF2)", "0000:17:00.0", true},
        {"pcie-17:00.2", "0001:17:00.0", false},
        {"pcie-17:00", "0000:17:00.0", false},
        {"pcie-", "0000:17:00.0", false},
        {"usb-1.2", "0000:17:00.0", false},
        {"pcie-0000:17:00.2", "", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct rshim rshim = {.device = ""};
        (void)snprintf(rshim.device, sizeof rshim.device, "%s",
                       cases[i].device);
        cr_expect_eq(rshim_is_of(&rshim, cases[i].pci), cases[i].is, "%s %s",
                     cases[i].device, cases[i].pci);
    }
}
