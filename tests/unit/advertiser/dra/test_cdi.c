/* What a container gets of a card. */
#include "advertiser/dra/cdi.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "tests/lib/dra/drarig.h"

#define PCI "sys/bus/pci/devices/"

static void link_there(const struct drarig *r, const char *path,
                       const char *target)
{
    cleanup_free char *whole = xasprintf("%s/%s", r->root, path);
    cr_assert_eq(symlink(target, whole), 0);
}

static void write_sys(const struct drarig *r)
{
    drarig_write(r, PCI "0000:17:00.0/infiniband/mlx5_0/x", "");
    drarig_write(r, PCI "0000:17:00.0/infiniband_verbs/uverbs0/dev",
                 "231:192\n");
    drarig_write(r, PCI "0000:17:00.0/net/eth2/x", "");
    drarig_write(r, PCI "0000:17:00.2/infiniband/mlx5_4/x", "");
    drarig_write(r, PCI "0000:17:00.2/infiniband_verbs/uverbs4/dev",
                 "231:196\n");
    drarig_write(r, PCI "0000:17:00.2/infiniband_verbs/abi_version", "6\n");
    drarig_write(r, PCI "0000:17:00.2/net/eth2v0/x", "");
    link_there(r, PCI "0000:17:00.2/physfn", "../0000:17:00.0");
    drarig_write(r, PCI "0000:18:00.2/x", "");
    link_there(r, PCI "0000:18:00.2/driver", "../../bus/pci/drivers/vfio-pci");
    link_there(r, PCI "0000:18:00.2/iommu_group", "../kernel/iommu_groups/41");
    drarig_write(r, "sys/class/misc/rdma_cm/dev", "10:122\n");
}

static char *written(struct drarig *r, const char *cards,
                     const struct cardfile *file)
{
    cleanup_with(dra_record) struct dra_record *record = NULL;
    cleanup_str struct str json = STR_INIT(1 << 20);
    struct str out = STR_INIT(CDI_MAX);
    struct error err = {0};
    drarig_claim(r, "pair-0", "u-1", cards);
    cr_assert_eq(drarig_look_up(r, "default", "pair-0", &json, &err), 0);
    cr_assert_eq(dra_record_of_claim(str_text(&json), json.size, &record, &err),
                 0, "%s", err.text);
    r->host.cards = file;
    cr_assert_eq(cdi_write(record, &r->host, &out, &err), 0, "%s", err.text);
    cr_expect_eq(json_check(str_text(&out), out.size, &err), 0, "%s", err.text);
    return str_steal(&out);
}

Test(cdi, has_what_sys_tells_of_all_functions)
{
    struct drarig r;
    drarig_init(&r, NULL);
    write_sys(&r);
    cleanup_free char *text = written(&r, "card-0000-17-00", NULL);
    cr_expect_str_eq(
        text,
        "{\"cdiVersion\":\"0.5.0\",\"kind\":\"xpu.biga.dev/card\","
        "\"devices\":[{\"name\":\"u-1-card-0000-17-00\",\"containerEdits\":{"
        "\"env\":[\"BIGA_CARD_PCI=0000:17:00.0\","
        "\"BIGA_RDMA_DEVICE=mlx5_0,mlx5_4\","
        "\"BIGA_CARD_INTERFACES=eth2,eth2v0\","
        "\"BIGA_CARD_VFS=0000:17:00.2\","
        "\"BIGA_CARD_CLAIM_0000_17_00=pair-0/r0\"],"
        "\"deviceNodes\":["
        "{\"path\":\"/dev/infiniband/uverbs0\",\"type\":\"c\",\"major\":231,"
        "\"minor\":192,\"permissions\":\"rw\"},"
        "{\"path\":\"/dev/infiniband/uverbs4\",\"type\":\"c\",\"major\":231,"
        "\"minor\":196,\"permissions\":\"rw\"},"
        "{\"path\":\"/dev/infiniband/rdma_cm\",\"type\":\"c\",\"major\":10,"
        "\"minor\":122,\"permissions\":\"rw\"}]}}]}\n");
    drarig_fini(&r);
}

Test(cdi, has_devices_of_vfio_and_of_the_card_file)
{
    static const char file[] =
        "{\"cards\":[{\"match\":{\"id\":\"15b3:a2dc\"},"
        "\"device-nodes\":[\"/dev/rshim0\",\"/dev/vfio/41\"]}]}";
    struct drarig r;
    struct error err = {0};
    cleanup_with(cardfile) struct cardfile *cards = NULL;
    drarig_init(&r, NULL);
    write_sys(&r);
    cr_assert_eq(cardfile_parse(file, strlen(file), &cards, &err), 0, "%s",
                 err.text);
    cleanup_free char *text = written(&r, "card-0000-18-00", cards);
    cr_expect(strstr(text, "[{\"path\":\"/dev/vfio/41\",\"permissions\":\"rw\"}"
                           ",{\"path\":\"/dev/vfio/vfio\",\"permissions\":"
                           "\"rw\"},{\"path\":\"/dev/rshim0\",\"permissions\":"
                           "\"rw\"}]"),
              "%s", text);
    r.host.sysroot = NULL; /* the cards are described */
    cleanup_free char *other = written(&r, "card-0000-18-00", NULL);
    cr_expect(!strstr(other, "deviceNodes"), "%s", other);
    drarig_fini(&r);
}

/* Requests may have shares of one card. */
Test(cdi, has_each_card_once)
{
    struct drarig r;
    drarig_init(&r, NULL);
    cleanup_free char *text =
        written(&r, "card-0000-17-00,card-0000-18-00,card-0000-17-00", NULL);
    cr_expect(strstr(text, "BIGA_CARD_CLAIM_0000_17_00=pair-0/r0,pair-0/r2"),
              "%s", text);
    cr_expect(strstr(text, "BIGA_CARD_CLAIM_0000_18_00=pair-0/r1"), "%s", text);
    const char *first = strstr(text, "\"u-1-card-0000-17-00\"");
    cr_assert(first);
    cr_expect(!strstr(first + 1, "\"u-1-card-0000-17-00\""), "%s", text);
    drarig_fini(&r);
}
