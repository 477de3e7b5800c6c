/* Claims are prepared once, unprepared once, and nothing is left of them. */
#include "advertiser/dra/dra_claims.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/topo/topo_builder.h"
#include "tests/lib/dra/drarig.h"

#define CARD "card-0000-17-00"
#define OTHER "card-0000-18-00"

static void expect_prepared(struct drarig *r, const char *name, const char *uid)
{
    struct error err = {0};
    cr_expect_eq(drarig_prepare(r, name, uid, &err), 0, "%s", err.text);
    cr_expect(drarig_has_record(r, uid));
    cr_expect(drarig_has_cdi(r, uid));
}

static void expect_refused(struct drarig *r, const char *name, const char *uid,
                           int code, const char *text)
{
    struct error err = {0};
    cr_expect_eq(drarig_prepare(r, name, uid, &err), -code, "%s: %d %s", name,
                 err.code, err.text);
    cr_expect(strstr(err.text, text), "%s", err.text);
    cr_expect(strstr(err.text, "ResourceClaim default/"), "%s", err.text);
    cr_expect(!drarig_has_record(r, uid));
    cr_expect(!drarig_has_cdi(r, uid));
}

Test(dra_claims, are_prepared_once_and_unprepared_once)
{
    struct drarig r;
    struct error err = {0};
    struct stat before, after;
    drarig_init(&r, NULL);
    drarig_open(&r);
    drarig_claim(&r, "a", "u-1", CARD "," OTHER);
    expect_prepared(&r, "a", "u-1");
    cleanup_free char *path = xasprintf("%s/u-1.json", r.dir);
    cr_assert_eq(stat(path, &before), 0);
    expect_prepared(&r, "a", "u-1");
    cr_assert_eq(stat(path, &after), 0);
    cr_expect_eq(before.st_ino, after.st_ino, "it was written again");
    cr_expect_eq(drarig_n_files(&r), 2u);
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(drarig_unprepare(&r, "a", "u-1", &err), 0, "%s", err.text);
        cr_expect_eq(drarig_n_files(&r), 0u);
    }
    cr_expect_eq(drarig_unprepare(&r, "never", "u-9", &err), 0);
    cr_expect_eq(drarig_unprepare(&r, "never", "../../etc", &err), 0);
    drarig_fini(&r);
}

Test(dra_claims, are_there_again_after_a_restart)
{
    struct drarig r;
    struct error err = {0};
    drarig_init(&r, NULL);
    drarig_open(&r);
    drarig_claim(&r, "a", "u-1", CARD);
    drarig_claim(&r, "b", "u-2", OTHER);
    expect_prepared(&r, "a", "u-1");
    expect_prepared(&r, "b", "u-2");
    drarig_close(&r);
    /* of a boot: CDI files are gone; and what a kill may leave */
    cleanup_free char *cdi = drarig_cdi(&r, "u-1");
    cleanup_free char *gone = xasprintf("%s/xpu.biga.dev-claim_u-1.json",
                                        r.cdi_dir);
    cr_assert_eq(unlink(gone), 0);
    drarig_write(&r, "run/cdi/xpu.biga.dev-claim_u-8.json", "{}");
    drarig_write(&r, "run/cdi/xpu.biga.dev-claim_u-2.json.new", "{");
    drarig_write(&r, "run/cdi/nvidia.yaml", "{}");
    drarig_write(&r, "kubelet/plugins/xpu.biga.dev/claims/u-7.json.new", "{");
    drarig_write(&r, "kubelet/plugins/xpu.biga.dev/claims/u-6.json", "{\"a");
    drarig_open(&r);
    cleanup_free char *again = drarig_cdi(&r, "u-1");
    cr_expect_str_eq(again, cdi);
    cr_expect(drarig_has_cdi(&r, "u-2"));
    cr_expect_eq(drarig_n_files(&r), 5u, "%zu", drarig_n_files(&r));
    cr_expect_eq(drarig_unprepare(&r, "a", "u-1", &err), 0);
    cr_expect_eq(drarig_unprepare(&r, "b", "u-2", &err), 0);
    cr_expect_eq(drarig_n_files(&r), 1u, "that of others stays");
    drarig_fini(&r);
}

Test(dra_claims, are_refused_by_name)
{
    struct drarig r;
    drarig_init(&r, NULL);
    drarig_open(&r);
    drarig_claim(&r, "a", "u-1", CARD);
    drarig_claim(&r, "none", "u-2", "");
    drarig_claim(&r, "gone-card", "u-3", "card-0000-99-00");
    drarig_claim(&r, "gpu", "u-4", "gpu-0000-1b-00-0");
    drarig_claim(&r, "allocated", "u-5", "card-0000-19-00");
    expect_refused(&r, "a", "u-0", ENOENT, "made anew");
    expect_refused(&r, "none", "u-2", EAGAIN, "not allocated");
    expect_refused(&r, "gone-card", "u-3", ENODEV, "card-0000-99-00");
    expect_refused(&r, "gpu", "u-4", EINVAL, "is a gpu");
    expect_refused(&r, "allocated", "u-5", EPERM, "--claims");
    expect_refused(&r, "missing", "u-6", ENOENT, "not found");
    expect_refused(&r, "../secrets", "u-7", EINVAL, "must be names");
    expect_refused(&r, "a", "../u", EINVAL, "uid");
    drarig_claim_json(&r, "bad", "{\"metadata\":{\"uid\":7}}");
    expect_refused(&r, "bad", "u-8", EINVAL, "ResourceClaim");
    r.fails = -ETIMEDOUT;
    expect_refused(&r, "a", "u-1", ETIMEDOUT, "told to fail");
    cr_expect_eq(drarig_n_files(&r), 0u);
    drarig_fini(&r);
}

/* A claim that outlives its pods may get another card for the next. */
Test(dra_claims, of_another_allocation_are_prepared_anew)
{
    struct drarig r;
    drarig_init(&r, NULL);
    drarig_open(&r);
    drarig_claim(&r, "a", "u-1", CARD);
    expect_prepared(&r, "a", "u-1");
    drarig_claim(&r, "a", "u-1", OTHER);
    expect_prepared(&r, "a", "u-1");
    cleanup_free char *cdi = drarig_cdi(&r, "u-1");
    cr_expect(strstr(cdi, "\"u-1-" OTHER "\""), "%s", cdi);
    cr_expect(!strstr(cdi, CARD), "%s", cdi);
    cr_expect_eq(drarig_n_files(&r), 2u);
    drarig_fini(&r);
}

Test(dra_claims, that_are_gone_are_unprepared_after_a_grace)
{
    struct drarig r;
    drarig_init(&r, NULL);
    drarig_open(&r);
    drarig_claim(&r, "a", "u-1", CARD);
    drarig_claim(&r, "b", "u-2", OTHER);
    expect_prepared(&r, "a", "u-1");
    expect_prepared(&r, "b", "u-2");
    cr_expect(dra_claims_sweep(r.open, 0));
    cr_expect(dra_claims_sweep(r.open, 0));
    cr_expect(!dra_claims_sweep(r.open, 0), "that was all");
    drarig_claim(&r, "a", NULL, NULL);
    drarig_claim(&r, "b", "u-3", OTHER); /* another of its name */
    cr_expect(dra_claims_sweep(r.open, 100));
    cr_expect(dra_claims_sweep(r.open, 500));
    cr_expect(!dra_claims_sweep(r.open, 500));
    cr_expect(dra_claims_sweep(r.open, 1100));
    cr_expect(dra_claims_sweep(r.open, 1100));
    cr_expect(!drarig_has_record(&r, "u-1"));
    cr_expect(drarig_has_record(&r, "u-2"), "its grace is not over");
    cr_expect(!dra_claims_sweep(r.open, 1500));
    cr_expect(dra_claims_sweep(r.open, 1500));
    cr_expect_eq(drarig_n_files(&r), 0u);
    drarig_fini(&r);
}

Test(dra_claims, are_not_gone_because_nobody_answers)
{
    struct drarig r;
    drarig_init(&r, NULL);
    drarig_open(&r);
    drarig_claim(&r, "a", "u-1", CARD);
    expect_prepared(&r, "a", "u-1");
    r.fails = -ETIMEDOUT;
    for (int64_t ms = 0; ms < 10000; ms += 1000)
        cr_expect(!dra_claims_sweep(r.open, ms), "the round ends at once");
    r.fails = -EACCES;
    for (int64_t ms = 10000; ms < 20000; ms += 1000)
        (void)dra_claims_sweep(r.open, ms); /* either */
    cr_expect(drarig_has_cdi(&r, "u-1"));
    /* was away for a moment, and that is forgotten */
    r.fails = -ENOENT;
    cr_expect(dra_claims_sweep(r.open, 20000) ||
              dra_claims_sweep(r.open, 20000));
    r.fails = 0;
    cr_expect(dra_claims_sweep(r.open, 20500) ||
              dra_claims_sweep(r.open, 20500));
    r.fails = -ENOENT;
    cr_expect(dra_claims_sweep(r.open, 30000) ||
              dra_claims_sweep(r.open, 30000));
    cr_expect(drarig_has_cdi(&r, "u-1"));
    drarig_fini(&r);
}

/* Cards come and go, and what is prepared follows those that are there. */
Test(dra_claims, of_cards_that_are_away_stay_as_they_are)
{
    struct drarig r;
    drarig_init(&r, NULL);
    drarig_open(&r);
    drarig_claim(&r, "a", "u-1", CARD);
    expect_prepared(&r, "a", "u-1");
    cleanup_free char *before = drarig_cdi(&r, "u-1");
    drarig_write(&r, "sys/bus/pci/devices/0000:17:00.0/infiniband/mlx5_7/x",
                 "");
    dra_claims_restore(r.open, &r.host);
    cleanup_free char *after = drarig_cdi(&r, "u-1");
    cr_expect(!strstr(before, "mlx5_7"));
    cr_expect(strstr(after, "BIGA_RDMA_DEVICE=mlx5_7"), "%s", after);
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("n1");
    cleanup_with(topo) struct topo *empty = NULL;
    cr_assert_eq(topo_build(b, &empty, NULL), 0);
    const struct cdi_host away = {.topo = empty, .sysroot = r.root};
    dra_claims_restore(r.open, &away);
    cleanup_free char *still = drarig_cdi(&r, "u-1");
    cr_expect_str_eq(still, after);
    drarig_fini(&r);
}

Test(dra_claims, that_cannot_be_written_down_are_not_prepared)
{
    struct drarig r;
    struct error err = {0};
    drarig_init(&r, NULL);
    drarig_open(&r);
    drarig_claim(&r, "a", "u-1", CARD);
    /* a folder is in the way, as a disk that is full is */
    drarig_write(&r, "kubelet/plugins/xpu.biga.dev/claims/u-1.json.new/x", "");
    cr_expect_lt(drarig_prepare(&r, "a", "u-1", &err), 0);
    cr_expect(strstr(err.text, "u-1.json.new"), "%s", err.text);
    cr_expect(!drarig_has_cdi(&r, "u-1"));
    drarig_fini(&r);
}

#define PCI "sys/bus/pci/devices/"

/* The card 0000:17:00 has that virtual function, with RDMA device mlx5_N. */
static void add_vf(struct drarig *r, const char *pci, int n)
{
    cleanup_free char *device = xasprintf(PCI "%s/infiniband/mlx5_%d/x", pci,
                                          n);
    cleanup_free char *up = xasprintf("%s/" PCI "%s/physfn", r->root, pci);
    cleanup_free char *down = xasprintf("%s/" PCI "0000:17:00.0/virtfn%d",
                                        r->root, n - 1);
    cleanup_free char *to = xasprintf("../%s", pci);
    drarig_write(r, device, "");
    cr_assert_eq(symlink("../0000:17:00.0", up), 0);
    cr_assert_eq(symlink(to, down), 0);
}

/* What that claim's CDI file says of virtual functions and RDMA devices. */
static void expect_part(struct drarig *r, const char *uid, const char *rdma,
                        const char *vfs)
{
    cleanup_free char *text = drarig_cdi(r, uid);
    cleanup_free char *devices = xasprintf("BIGA_RDMA_DEVICE=%s\"", rdma);
    cleanup_free char *functions = xasprintf("BIGA_CARD_VFS=%s\"", vfs);
    cr_expect_eq(strstr(text, devices) != NULL, *rdma != '\0', "%s", text);
    cr_expect_eq(strstr(text, functions) != NULL, *vfs != '\0', "%s", text);
}

/* Of a card that is shared each claim has one virtual function, and keeps it. */
Test(dra_claims, a_share_is_a_virtual_function)
{
    struct drarig r;
    struct error err = {0};
    drarig_init(&r, NULL);
    drarig_write(&r, PCI "0000:17:00.0/infiniband/mlx5_0/x", "");
    add_vf(&r, "0000:17:00.1", 1);
    add_vf(&r, "0000:17:00.2", 2);
    drarig_open(&r);
    drarig_claim(&r, "a", "u-1", "card-0000-17-00*2,card-0000-17-00*1");
    drarig_claim(&r, "b", "u-2", "card-0000-17-00*2");
    drarig_claim(&r, "c", "u-3", "card-0000-17-00*1");
    cr_assert_eq(drarig_prepare(&r, "a", "u-1", &err), 0, "%s", err.text);
    cr_assert_eq(drarig_prepare(&r, "b", "u-2", &err), 0, "%s", err.text);
    expect_part(&r, "u-1", "mlx5_1", "0000:17:00.1");
    expect_part(&r, "u-2", "mlx5_2", "0000:17:00.2");
    drarig_close(&r);
    drarig_open(&r);
    cr_assert_eq(drarig_prepare(&r, "b", "u-2", &err), 0, "%s", err.text);
    expect_part(&r, "u-2", "mlx5_2", "0000:17:00.2");
    cr_assert_eq(drarig_prepare(&r, "c", "u-3", &err), 0, "%s", err.text);
    expect_part(&r, "u-3", "", "");
    cr_assert_eq(drarig_unprepare(&r, "a", "u-1", &err), 0, "%s", err.text);
    cr_assert_eq(drarig_prepare(&r, "c", "u-3", &err), 0, "%s", err.text);
    expect_part(&r, "u-3", "mlx5_1", "0000:17:00.1");
    drarig_fini(&r);
}

/* A share that leaves nothing to others is the whole card. */
Test(dra_claims, all_cores_are_the_whole_card)
{
    struct drarig r;
    struct error err = {0};
    drarig_init(&r, NULL);
    drarig_write(&r, PCI "0000:17:00.0/infiniband/mlx5_0/x", "");
    add_vf(&r, "0000:17:00.1", 1);
    drarig_open(&r);
    drarig_claim(&r, "a", "u-1", "card-0000-17-00*8");
    cr_assert_eq(drarig_prepare(&r, "a", "u-1", &err), 0, "%s", err.text);
    expect_part(&r, "u-1", "mlx5_0,mlx5_1", "0000:17:00.1");
    drarig_fini(&r);
}
