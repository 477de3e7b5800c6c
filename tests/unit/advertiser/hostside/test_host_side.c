/* What a pod on the host gets of its devices. */
#include "advertiser/hostside/host_side.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"
#include "tests/lib/card/hostroot.h"
#include "tests/lib/tmpdir.h"

#define CARD "0000:17:00.0"
#define OTHER "0000:18:00.0"

struct rig {
    char *root;
    struct host_side *side;
};

static void begin(struct rig *r, const char *kinds)
{
    struct error err = {0};
    unsigned bits = 0;
    bool nodes;
    cleanup_with(topo) struct topo *topo = hostroot_topo();
    r->root = hostroot_create(&nodes);
    cr_assert_eq(host_side_kinds(kinds, &bits, &err), 0, "%s", err.text);
    r->side = host_side_create(topo, NULL, r->root, bits);
    if (!nodes)
        cr_skip_test("device nodes are made by root alone");
}

static void end(struct rig *r)
{
    host_side_unref(r->side);
    tmpdir_remove(r->root);
}

/* "uverbs0 rdma_cm | mlx5_0 | eth0 | VFs": the files without their folders. */
static char *found(struct rig *r, const struct host_side_given *given)
{
    struct str text = STR_INIT(4096);
    cleanup_free struct device_nodes *n = xcalloc(1, sizeof *n);
    device_nodes_init(n);
    cr_assert(host_side_look(r->side, given, n));
    for (size_t i = 0; i < n->n; i++)
        str_addf(&text, "%s ", n->nodes[i].path + strlen("/dev/"));
    str_addf(&text, "| %s | %s | %s", str_text(&n->rdma),
             str_text(&n->interfaces), str_text(&n->vfs));
    device_nodes_fini(n);
    return str_steal(&text);
}

static void expect(struct rig *r, const struct host_side_given *given,
                   const char *wanted)
{
    cleanup_free char *text = found(r, given);
    cr_expect_str_eq(text, wanted);
}

Test(host_side, a_card_of_its_own_with_all_functions)
{
    struct rig r;
    begin(&r, "rdma,vfio");
    expect(&r,
           &(struct host_side_given){CARD, "", "", .exclusive = true,
                                     .functions = ""},
           "infiniband/uverbs0 infiniband/uverbs2 infiniband/uverbs3 vfio/41 "
           "vfio/vfio infiniband/rdma_cm | mlx5_0,mlx5_2,mlx5_3 | "
           "eth0,eth2,eth3 | 0000:17:00.2,0000:17:00.3,0000:17:00.4");
    end(&r);
}

Test(host_side, a_share_is_a_virtual_function)
{
    struct rig r;
    char functions[HOST_SIDE_FUNCTIONS_MAX];
    begin(&r, "rdma,vfio");
    struct host_side_given given = {CARD "," OTHER, "", "", .functions = ""};
    host_side_choose(r.side, &given, "0000:17:00.2", functions);
    cr_assert_str_eq(functions, "0000:17:00.3");
    given.functions = functions;
    expect(&r, &given,
           "infiniband/uverbs3 infiniband/rdma_cm infiniband/uverbs5 | "
           "mlx5_3,mlx5_5 | eth3,eth5 | 0000:17:00.3");
    /* it stays its own */
    char again[HOST_SIDE_FUNCTIONS_MAX];
    host_side_choose(r.side, &given, "0000:17:00.4", again);
    cr_expect_str_eq(again, functions);
    given.functions = "0000:17:00.4";
    given.cards = CARD;
    expect(&r, &given, "vfio/41 vfio/vfio |  |  | 0000:17:00.4");
    end(&r);
}

Test(host_side, no_virtual_function_is_free)
{
    struct rig r;
    char functions[HOST_SIDE_FUNCTIONS_MAX];
    begin(&r, "rdma,vfio");
    struct host_side_given given = {CARD, "", "", .functions = ""};
    host_side_choose(r.side, &given, "0000:17:00.2,0000:17:00.3,0000:17:00.4",
                     functions);
    cr_expect_str_eq(functions, "");
    expect(&r, &given, "|  |  | ");
    given.functions = "0000:17:00.0"; /* which is no virtual one */
    expect(&r, &given, "|  |  | ");
    end(&r);
}

Test(host_side, nics_and_gpus_by_their_addresses)
{
    struct rig r;
    begin(&r, "rdma,gpu");
    expect(&r,
           &(struct host_side_given){"", "0000:3d:00.0", "0000:1b:00.0",
                                     .functions = ""},
           "infiniband/uverbs8 infiniband/rdma_cm dri/renderD128 kfd |  |  | ");
    /* there is no /dev/nvidia-uvm */
    expect(&r,
           &(struct host_side_given){"", "", "0000:1c:00.0,0000:1d:00.0",
                                     .functions = ""},
           "nvidia1 nvidiactl |  |  | ");
    /* a card is no NIC */
    expect(
        &r,
        &(struct host_side_given){"0000:3d:00.0", CARD, CARD, .functions = ""},
        "|  |  | ");
    end(&r);
}

Test(host_side, what_is_not_what_sys_tells_is_left_out)
{
    struct rig r;
    begin(&r, "rdma");
    hostroot_file(r.root,
                  "sys/bus/pci/devices/0000:18:00.0/infiniband_verbs/uverbs5/"
                  "dev",
                  "231:0\n");
    expect(&r,
           &(struct host_side_given){OTHER, "", "", .exclusive = true,
                                     .functions = ""},
           "infiniband/rdma_cm | mlx5_5 | eth5 | ");
    end(&r);
}

Test(host_side, what_the_operator_does_not_say_is_not_given)
{
    struct rig r;
    begin(&r, "none");
    expect(&r,
           &(struct host_side_given){OTHER, "0000:3d:00.0", "0000:1b:00.0",
                                     .functions = ""},
           "| mlx5_5 | eth5 | ");
    end(&r);
}

Test(host_side, a_host_that_is_described)
{
    cleanup_with(topo) struct topo *topo = hostroot_topo();
    cleanup_with(host_side) struct host_side *side =
        host_side_create(topo, NULL, NULL, NODES_ALL);
    struct device_nodes n;
    char functions[HOST_SIDE_FUNCTIONS_MAX];
    const struct host_side_given given = {CARD, "", "", .functions = ""};
    device_nodes_init(&n);
    cr_expect_not(host_side_look(side, &given, &n));
    host_side_choose(side, &given, "", functions);
    cr_expect_str_eq(functions, "");
    device_nodes_fini(&n);
}

Test(host_side, words_of_kinds)
{
    struct error err = {0};
    unsigned kinds = 0;
    cr_assert_eq(host_side_kinds("rdma,vfio,gpu,named", &kinds, &err), 0);
    cr_expect_eq(kinds, (unsigned)NODES_ALL);
    cr_assert_eq(host_side_kinds("none", &kinds, &err), 0);
    cr_expect_eq(kinds, 0u);
    cr_assert_eq(host_side_kinds(HOST_SIDE_KINDS, &kinds, &err), 0);
    cr_expect_eq(kinds, (unsigned)(NODES_RDMA | NODES_GPU));
    cr_expect_lt(host_side_kinds("rdma,none", &kinds, &err), 0);
    cr_expect(strstr(err.text, "has \"none\", must be rdma, gpu"), "%s",
              err.text);
}
