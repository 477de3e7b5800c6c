/* What pods on the host get of its cards, NICs and GPUs. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "advertiser/act/core/actuator.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/card/actrig.h"
#include "tests/lib/card/hostroot.h"
#include "tests/lib/tmpdir.h"
#include "tests/lib/virtual.h"

#define CARD "0000:17:00.0"

static struct actrig r;
static char *root;

static void begin_as(const char *place)
{
    bool nodes;
    actrig_init(&r, 1);
    (void)snprintf(r.places[0].name, sizeof r.places[0].name, "%s", place);
    root = hostroot_create(&nodes);
    if (!nodes)
        cr_skip_test("device nodes are made by root alone");
}

static void begin(void)
{
    begin_as("host");
}

static void start(void)
{
    cleanup_with(topo) struct topo *topo = hostroot_topo();
    actrig_open(&r);
    actuator_set_host(
        r.a, host_side_create(topo, NULL, root, NODES_RDMA | NODES_GPU));
}

static void finish(void)
{
    actrig_fini(&r);
    tmpdir_remove(root);
}

/* `env` is told by the extender, `own` said by the pod. */
static void want(const char *name, const char *exclusive, struct cri_pairs env,
                 const char *own)
{
    struct error err = {0};
    cleanup_free char *spec = xasprintf(
        "{\"metadata\":{\"namespace\":\"lab\",\"name\":\"%s\",\"uid\":\"%s\","
        "\"annotations\":{\"biga.dev/exclusive\":\"%s\"}},\"spec\":{"
        "\"containers\":[{\"name\":\"a\",\"image\":\"i\",\"imagePullPolicy\":"
        "\"IfNotPresent\",\"env\":[%s]}]}}",
        name, name, exclusive, own);
    const struct act_pod pod = {.namespace = "lab",
                                .name = name,
                                .uid = name,
                                .place = r.places[0].name,
                                .owner = "extender",
                                .spec = spec,
                                .spec_size = strlen(spec),
                                .env = env,
                                .sriov_vfs = -1};
    cr_assert_eq(actuator_want(r.a, &pod, &err), 0, "%s", err.text);
}

static void want_card(const char *name, const char *exclusive)
{
    const struct cri_pair env[] = {{"BIGA_CARD_PCI", CARD},
                                   {"BIGA_RDMA_DEVICE", "mlx5_0"}};
    want(name, exclusive, (struct cri_pairs){env, 2}, "");
}

static void end(const char *name)
{
    struct error err = {0};
    cr_assert_eq(actuator_unwant(r.a, name, 0, &err), 0, "%s", err.text);
}

/* What its newest container has: its files, and these variables. */
static void expect(const char *name, const char *files, const char *rdma,
                   const char *vfs)
{
    cleanup_str struct str devices = STR_INIT(4096);
    char value[256];
    cr_assert(actrig_reach(&r, name, ACT_RUNNING), "%s", name);
    cardserver_given(r.cards[0], name, &devices);
    cr_expect_str_eq(str_text(&devices), files, "%s: %s", name,
                     str_text(&devices));
    cardserver_env(r.cards[0], "BIGA_RDMA_DEVICE", value, sizeof value);
    cr_expect_str_eq(value, rdma, "%s: %s", name, value);
    cardserver_env(r.cards[0], "BIGA_CARD_VFS", value, sizeof value);
    cr_expect_str_eq(value, vfs, "%s: %s", name, value);
}

#define IB "/dev/infiniband/"

TestSuite(act_host_devices, .init = virtual_begin, .fini = virtual_end,
          .timeout = 180);

Test(act_host_devices, each_that_shares_has_a_function)
{
    begin();
    start();
    want_card("x", "false");
    expect("x", IB "uverbs2 rw\n" IB "rdma_cm rw\n", "mlx5_2", "0000:17:00.2");
    want_card("y", "false");
    expect("y", IB "uverbs3 rw\n" IB "rdma_cm rw\n", "mlx5_3", "0000:17:00.3");
    want_card("v", "false"); /* one that is for VFIO, which is not given */
    expect("v", "", "", "0000:17:00.4");
    want_card("z", "false");
    expect("z", "", "", "");
    end("x");
    cr_assert(actrig_live(&r, 0, "x", 0));
    cr_assert(actrig_reach(&r, "x", ACT_GONE));
    want_card("w", "false");
    expect("w", IB "uverbs2 rw\n" IB "rdma_cm rw\n", "mlx5_2", "0000:17:00.2");
    finish();
}

Test(act_host_devices, an_advertiser_that_is_new_gives_none_twice)
{
    begin();
    start();
    want_card("x", "false");
    expect("x", IB "uverbs2 rw\n" IB "rdma_cm rw\n", "mlx5_2", "0000:17:00.2");
    actrig_close(&r);
    start();
    want_card("y", "false");
    expect("y", IB "uverbs3 rw\n" IB "rdma_cm rw\n", "mlx5_3", "0000:17:00.3");
    finish();
}

/* Nobody knows what it was given. */
Test(act_host_devices, none_while_somebody_runs_who_is_not_written_down)
{
    struct act_pod_status v = {0};
    begin();
    actrig_stray(&r, 0, "stray");
    start();
    want_card("x", "false");
    for (int64_t until = clock_ms() + 20000; clock_ms() < until;) {
        actrig_step(&r, 100);
        cr_assert_eq(actuator_find(r.a, "lab", "x", &v), 0);
        if (cardserver_live(r.cards[0], "stray") > 0)
            cr_assert_neq(v.state, ACT_RUNNING);
        if (strcmp(v.reason, "DevicesInUse") == 0)
            break;
    }
    cr_expect_str_eq(v.reason, "DevicesInUse");
    cr_assert(actrig_live(&r, 0, "stray", 0));
    expect("x", IB "uverbs2 rw\n" IB "rdma_cm rw\n", "mlx5_2", "0000:17:00.2");
    finish();
}

Test(act_host_devices, who_is_alone_has_all_of_its_card)
{
    begin();
    start();
    want_card("x", "true");
    expect("x",
           IB "uverbs0 rw\n" IB "uverbs2 rw\n" IB "uverbs3 rw\n" IB
              "rdma_cm rw\n",
           "mlx5_0,mlx5_2,mlx5_3", "0000:17:00.2,0000:17:00.3,0000:17:00.4");
    finish();
}

Test(act_host_devices, what_a_pod_says_of_itself_opens_nothing)
{
    const struct cri_pair env[] = {{"BIGA_NIC_PCI", "0000:3d:00.0"},
                                   {"BIGA_GPU_PCI", "0000:1b:00.0"}};
    static const char own[] =
        "{\"name\":\"BIGA_CARD_PCI\",\"value\":\"" CARD "\"},"
        "{\"name\":\"BIGA_RDMA_DEVICE\",\"value\":\"mine\"}";
    begin();
    start();
    want("x", "true", (struct cri_pairs){env, 2}, own);
    expect("x",
           IB "uverbs8 rw\n" IB
              "rdma_cm rw\n/dev/dri/renderD128 rw\n/dev/kfd rw\n",
           "mine", "");
    want("y", "true", (struct cri_pairs){NULL, 0}, own);
    expect("y", "", "mine", "");
    finish();
}

Test(act_host_devices, pods_on_cards_have_none_of_the_host)
{
    begin_as("card-0");
    start();
    want_card("x", "true");
    expect("x", "", "mlx5_0", "");
    finish();
}
