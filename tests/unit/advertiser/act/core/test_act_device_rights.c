/* What sets of a card's devices let pods have beside devices. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "advertiser/act/core/actuator.h"
#include "lib/base/mem.h"
#include "tests/lib/card/actrig.h"
#include "tests/lib/virtual.h"

#define MI (UINT64_C(1) << 20)
#define LOCK "\"securityContext\":{\"capabilities\":{\"add\":[\"IPC_LOCK\"]}},"
#define HUGE(amount) \
    "\"resources\":{\"limits\":{\"hugepages-2Mi\":\"" amount "\"}},"

static struct actrig r;

static void begin(void)
{
    actrig_init(&r, 1);
    struct act_place *p = &r.places[0];
    p->n_sets = 3;
    p->sets[0] =
        (struct act_device_set){.name = "rdma", .share = 9, .ipc_lock = true};
    p->sets[1] = (struct act_device_set){.name = "snap", .share = 9};
    p->sets[2] = (struct act_device_set){.name = "uio", .share = 9};
    cr_assert(hugepages_add(&p->sets[1].hugepages, 2 * MI, 16 * MI));
    cr_assert(hugepages_add(&p->sets[1].hugepages, 1024 * MI, 1024 * MI));
    cr_assert(hugepages_add(&p->sets[2].hugepages, 2 * MI, 8 * MI));
    r.config.helper_image = "biga-card:1";
    cardserver_exec(r.cards[0], 0, "", "");
    actrig_open(&r);
}

/* A container that asks so, and volumes. */
static int want(const char *sets, const char *asks, const char *volumes,
                struct error *err)
{
    cleanup_free char *spec = xasprintf(
        "{\"metadata\":{\"namespace\":\"lab\",\"name\":\"x\",\"uid\":\"x\","
        "\"annotations\":{\"biga.dev/devices\":\"%s\"}},\"spec\":{"
        "\"containers\":[{%s\"name\":\"a\",\"image\":\"i\",\"imagePullPolicy\":"
        "\"IfNotPresent\"}]%s}}",
        sets, asks, volumes);
    const struct act_pod pod = {.namespace = "lab",
                                .name = "x",
                                .uid = "x",
                                .place = "card-0",
                                .owner = "extender",
                                .spec = spec,
                                .spec_size = strlen(spec),
                                .sriov_vfs = -1};
    return actuator_want(r.a, &pod, err);
}

static void expect_given(const char *sets, const char *asks,
                         const char *volumes, const char *lines)
{
    struct error err = {0};
    cleanup_str struct str out = STR_INIT(4096);
    begin();
    cr_assert_eq(want(sets, asks, volumes, &err), 0, "%s", err.text);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cardserver_given(r.cards[0], "x", &out);
    cr_expect_str_eq(str_text(&out), lines);
    actrig_fini(&r);
}

static void expect_refusal(const char *sets, const char *asks, const char *text)
{
    struct error err = {0};
    begin();
    cr_expect_eq(want(sets, asks, "", &err), -EPERM, "%s", err.text);
    cr_expect(strstr(err.text, text), "%s", err.text);
    actrig_fini(&r);
}

TestSuite(act_device_rights, .init = virtual_begin, .fini = virtual_end,
          .timeout = 180);

Test(act_device_rights, a_set_lets_memory_be_locked)
{
    expect_given("rdma", LOCK, "",
                 "capability IPC_LOCK\nhugepages 2MB 0\nhugepages 1GB 0\n");
}

/* Who does not ask gets none, and no huge pages. */
Test(act_device_rights, nothing_is_given_unasked)
{
    expect_given("rdma,snap", "", "", "hugepages 2MB 0\nhugepages 1GB 0\n");
}

Test(act_device_rights, other_sets_do_not)
{
    expect_refusal("snap", LOCK, "would have to give --allow IPC_LOCK");
    expect_refusal("", LOCK, "would have to give --allow IPC_LOCK");
}

Test(act_device_rights, nor_is_any_other_capability_let)
{
    expect_refusal("rdma",
                   "\"securityContext\":{\"capabilities\":{\"add\":["
                   "\"NET_ADMIN\"]}},",
                   "would have to give --allow NET_ADMIN");
    expect_refusal("rdma", "\"securityContext\":{\"privileged\":true},",
                   "would have to give --allow privileged");
}

Test(act_device_rights, sets_give_huge_pages_together)
{
    expect_given("snap", HUGE("16Mi"), "",
                 "hugepages 2MB 16777216\nhugepages 1GB 0\n");
    expect_given("snap,uio", HUGE("24Mi"), "",
                 "hugepages 2MB 25165824\nhugepages 1GB 0\n");
}

Test(act_device_rights, and_no_more)
{
    expect_refusal("snap", HUGE("18Mi"),
                   "18432 KiB of hugepages-2Mi, and may have 16384 KiB by the "
                   "devices \"snap\" of card-0");
    expect_refusal("", HUGE("2Mi"), "and may have 0 KiB");
    expect_refusal("uio",
                   "\"resources\":{\"limits\":{\"hugepages-1Gi\":\"1Gi\"}},",
                   "1048576 KiB of hugepages-1Gi, and may have 0 KiB");
}

Test(act_device_rights, volumes_are_of_the_cards_hugetlbfs)
{
    expect_given("snap",
                 HUGE("4Mi") "\"volumeMounts\":[{\"name\":\"v\","
                             "\"mountPath\":\"/huge\"}],",
                 ",\"volumes\":[{\"name\":\"v\",\"emptyDir\":{\"medium\":"
                 "\"HugePages\"}}]",
                 "hugepages 2MB 4194304\nhugepages 1GB 0\n"
                 "/huge from /dev/hugepages-2Mi/biga/x/v\n");
}
