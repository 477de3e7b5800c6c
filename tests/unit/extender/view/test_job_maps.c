#include "extender/view/job_maps.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "lib/base/mem.h"
#include "model/topo/topo_builder.h"
#include "tests/lib/sim/simhost.h"

enum { RANKS_MAX = 8 };

/* A job being put on nodes. */
static struct map_rank ranks[RANKS_MAX];
static size_t n_ranks;
static struct topo *topos[RANKS_MAX];
static size_t n_topos;

struct card_text {
    const char *pci, *rdma, *interface, *endpoint;
    int numa, package;
};

static struct topo *make_node(const char *name, const char *const cpu_lists[2],
                              uint32_t cpus, const struct card_text *cards,
                              size_t n)
{
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create(name);
    struct topo *topo = NULL;
    struct error err = {0};
    char id[TOPO_ID_MAX + 1];
    for (int i = 0; i < 2; i++) {
        struct device d = {.kind = DEVICE_NUMA,
                           .id = i ? "numa-1" : "numa-0",
                           .numa = i,
                           .package = i,
                           .cpus = cpus,
                           .cpu_list = cpu_lists[i]};
        topo_builder_add(b, &d, NULL);
    }
    for (size_t i = 0; i < n; i++) {
        struct device d = {.kind = DEVICE_CARD,
                           .id = id,
                           .numa = cards[i].numa,
                           .package = cards[i].package,
                           .has_pci = true,
                           .rdma = cards[i].rdma,
                           .interface = cards[i].interface};
        const struct identity own = {.endpoint = cards[i].endpoint};
        cr_assert_eq(pci_addr_parse(cards[i].pci, &d.pci, &err), 0);
        device_id_format(DEVICE_CARD, &d.pci, id);
        topo_builder_add(b, &d, &own);
    }
    cr_assert_eq(topo_build(b, &topo, &err), 0, "%s", err.text);
    topos[n_topos++] = topo;
    return topo;
}

/* The next rank, on cards of a node by their indexes; "" ends them. */
static void put(const char *node, struct topo *topo, int numa,
                const char *card_a, const char *card_b)
{
    struct demand demand = {.role = ROLE_HOST, .pair = (int32_t)n_ranks};
    struct allocation *a = allocation_create(&demand, node);
    a->n_cards = card_b ? 2 : 1;
    a->cards = xcalloc(2, sizeof *a->cards);
    (void)snprintf(a->cards[0], sizeof a->cards[0], "%s", card_a);
    if (card_b)
        (void)snprintf(a->cards[1], sizeof a->cards[1], "%s", card_b);
    a->numa = numa;
    ranks[n_ranks] =
        (struct map_rank){.rank = (int32_t)n_ranks, .place = a, .topo = topo};
    n_ranks++;
}

static void clear(void)
{
    for (size_t i = 0; i < n_ranks; i++)
        allocation_unref((struct allocation *)ranks[i].place);
    for (size_t i = 0; i < n_topos; i++)
        topo_unref(topos[i]);
    n_ranks = n_topos = 0;
}

TestSuite(job_maps, .fini = clear);

static void expect_map(enum map_format format, const char *golden)
{
    cleanup_str struct str out = STR_INIT(65536);
    struct error err = {0};
    cr_assert_eq(map_write(format, ranks, n_ranks, &out, &err), 0, "%s: %s",
                 map_format_name(format), err.text);
    cr_expect_str_eq(str_text(&out), golden, "%s is\n%s",
                     map_format_name(format), str_text(&out));
}

static void expect_refusal(enum map_format format, const char *text)
{
    cleanup_str struct str out = STR_INIT(65536);
    struct error err = {0};
    cr_expect_eq(map_write(format, ranks, n_ranks, &out, &err), -ENODATA);
    cr_expect_str_eq(err.text, text, "%s", err.text);
}

static const char *const cpu_lists[2] = {"0-15;32-47", "16-31;48-63"};

static const struct card_text cards[] = {
    {"0000:21:00.0", "mlx5_0", "ens1f0np0", "tcp://bf2-a.cluster:2376", 0, 0},
    {"0000:a1:00.0", "mlx5_4", "ens5f0np0", "", 1, 1},
};

/* Four pairs on two nodes: two share a NUMA node, one has both cards. */
static void four_pairs(void)
{
    struct topo *a = make_node("host-a", cpu_lists, 32, cards, 2);
    struct topo *b = make_node("host-b", cpu_lists, 32, cards, 2);
    put("host-b", b, 1, "card-0000-a1-00", NULL);
    put("host-a", a, 0, "card-0000-21-00", NULL);
    put("host-b", b, 0, "card-0000-21-00", "card-0000-a1-00");
    put("host-b", b, 1, "card-0000-a1-00", NULL);
}

Test(job_maps, hostfile)
{
    four_pairs();
    expect_map(MAP_HOSTFILE, "host-b slots=3 max_slots=3\n"
                             "host-a slots=1 max_slots=1\n");
}

static void name_pod(size_t rank, const char *name)
{
    struct demand *d = &((struct allocation *)ranks[rank].place)->demand;
    (void)snprintf(d->name, sizeof d->name, "%s", name);
}

Test(job_maps, pod_hostfile)
{
    static const char *const names[] = {"ring-0", "other", "ring-2", "ring-3"};
    four_pairs();
    for (size_t i = 0; i < n_ranks; i++)
        name_pod(i, names[i]);
    expect_map(MAP_POD_HOSTFILE, "ring-0 slots=1 max_slots=1\n"
                                 "other slots=1 max_slots=1\n"
                                 "ring-2 slots=1 max_slots=1\n"
                                 "ring-3 slots=1 max_slots=1\n");
    ((struct allocation *)ranks[2].place)->demand.role = ROLE_XPU;
    expect_refusal(MAP_POD_HOSTFILE, "rank 2 has no host pod yet");
}

Test(job_maps, dpu_hostfile)
{
    four_pairs();
    expect_map(MAP_DPU_HOSTFILE, "host-b-card-0000-a1-00 slots=3 max_slots=3\n"
                                 "bf2-a.cluster slots=2 max_slots=2\n");
}

Test(job_maps, rankfile)
{
    four_pairs();
    expect_map(MAP_RANKFILE, "rank 0=host-b slot=16-23,48-55\n"
                             "rank 1=host-a slot=0-15,32-47\n"
                             "rank 2=host-b slot=0-15,32-47\n"
                             "rank 3=host-b slot=24-31,56-63\n");
}

Test(job_maps, ucx)
{
    four_pairs();
    expect_map(MAP_UCX, "0 host-b UCX_NET_DEVICES=mlx5_4:1\n"
                        "1 host-a UCX_NET_DEVICES=mlx5_0:1\n"
                        "2 host-b UCX_NET_DEVICES=mlx5_0:1,mlx5_4:1\n"
                        "3 host-b UCX_NET_DEVICES=mlx5_4:1\n");
}

/* Those of the pair, where it has any, in place of its cards. */
Test(job_maps, nics)
{
    struct topo *board = simhost_board("host-a", 1, 1);
    topos[n_topos++] = board;
    put("host-a", board, 0, "card-0000-14-00", NULL);
    struct allocation *a = (struct allocation *)ranks[0].place;
    a->nics = xcalloc(2, sizeof *a->nics);
    a->n_nics = 2;
    (void)snprintf(a->nics[0], sizeof a->nics[0], "nic-0000-12-00-0");
    (void)snprintf(a->nics[1], sizeof a->nics[1], "nic-0000-42-00-0");
    expect_map(MAP_UCX, "0 host-a UCX_NET_DEVICES=mlx5_0:1,mlx5_3:1\n");
    expect_map(MAP_NCCL, "0 host-a NCCL_IB_HCA==mlx5_0:1,mlx5_3:1\n");
    (void)snprintf(a->nics[1], sizeof a->nics[1], "nic-0000-02-00-0");
    expect_refusal(MAP_NCCL, "rank 0: NIC nic-0000-02-00-0 of node host-a has "
                             "no known RDMA device");
}

Test(job_maps, nccl)
{
    four_pairs();
    expect_map(MAP_NCCL, "0 host-b NCCL_IB_HCA==mlx5_4:1\n"
                         "1 host-a NCCL_IB_HCA==mlx5_0:1\n"
                         "2 host-b NCCL_IB_HCA==mlx5_0:1,mlx5_4:1\n"
                         "3 host-b NCCL_IB_HCA==mlx5_4:1\n");
}

Test(job_maps, urom)
{
    four_pairs();
    expect_map(MAP_UROM,
               "host-b dpu host-b-card-0000-a1-00 0000:a1:00.0 mlx5_4:1\n"
               "host-a dpu bf2-a.cluster 0000:21:00.0 mlx5_0:1\n"
               "host-b dpu bf2-a.cluster 0000:21:00.0 mlx5_0:1\n");
}

Test(job_maps, no_ranks_are_no_lines)
{
    for (int i = 0; i < MAP_FORMATS; i++)
        expect_map((enum map_format)i, "");
}

Test(job_maps, without_cpu_lists_ranks_are_bound_to_packages)
{
    static const char *const none[2] = {"", ""};
    struct topo *a = make_node("host-a", none, 32, cards, 2);
    put("host-a", a, 1, "card-0000-a1-00", NULL);
    put("host-a", a, -1, "card-0000-21-00", NULL);
    expect_map(MAP_RANKFILE, "rank 0=host-a slot=1:*\n"
                             "rank 1=host-a slot=0:*\n");
}

Test(job_maps, a_pair_of_two_numa_nodes_is_bound_where_it_was_placed)
{
    struct topo *a = make_node("host-a", cpu_lists, 32, cards, 2);
    put("host-a", a, 1, "card-0000-21-00", "card-0000-a1-00");
    expect_map(MAP_RANKFILE, "rank 0=host-a slot=16-31,48-63\n");
}

Test(job_maps, more_ranks_than_cpus_are_refused)
{
    static const char *const few[2] = {"0-1", "2-3"};
    struct topo *a = make_node("host-a", few, 2, cards, 2);
    for (int i = 0; i < 3; i++)
        put("host-a", a, 0, "card-0000-21-00", NULL);
    expect_refusal(MAP_RANKFILE, "rank 0: NUMA node 0 of node host-a has 2 "
                                 "CPUs for 3 ranks of the job");
}

Test(job_maps, what_is_not_known_is_told)
{
    static const char *const none[2] = {"", ""};
    static const struct card_text bare[] = {
        {"0000:21:00.0", "", "eth2", "", -1, -1},
        {"0000:22:00.0", "", "", "", -1, -1},
    };
    struct topo *a = make_node("host-a", none, 32, bare, 2);
    put("host-a", a, -1, "card-0000-21-00", NULL);
    expect_map(MAP_UCX, "0 host-a UCX_NET_DEVICES=eth2\n");
    expect_refusal(MAP_UROM, "rank 0: card card-0000-21-00 of node host-a has "
                             "no known RDMA device");
    expect_refusal(MAP_NCCL, "rank 0: card card-0000-21-00 of node host-a has "
                             "no known RDMA device");
    expect_refusal(MAP_RANKFILE,
                   "rank 0: neither the CPUs nor the package near its card "
                   "are known of node host-a");
    put("host-a", a, -1, "card-0000-22-00", NULL);
    expect_refusal(MAP_UCX, "rank 1: card card-0000-22-00 of node host-a has "
                            "no known RDMA or network device");
}

Test(job_maps, a_node_that_is_gone_has_hosts_only)
{
    put("host-z", NULL, -1, "card-0000-21-00", NULL);
    expect_map(MAP_HOSTFILE, "host-z slots=1 max_slots=1\n");
    expect_map(MAP_DPU_HOSTFILE,
               "host-z-card-0000-21-00 slots=1 max_slots=1\n");
    expect_refusal(MAP_UCX, "rank 0: card card-0000-21-00 of node host-z has "
                            "no known RDMA or network device");
}

Test(job_maps, texts_of_nodes_add_no_lines)
{
    static const struct card_text evil[] = {
        {"0000:21:00.0", "mlx5_0\nrank 9=x", "eth 2", "tcp://a b\nc:1", 0, 0},
        {"0000:22:00.0", "", "", "tcp://[fe80::1]:2376", 0, 0},
    };
    struct topo *a = make_node("host-a", cpu_lists, 32, evil, 2);
    put("host-a", a, 0, "card-0000-21-00", "card-0000-22-00");
    expect_map(MAP_DPU_HOSTFILE, "host-a-card-0000-21-00 slots=1 max_slots=1\n"
                                 "fe80::1 slots=1 max_slots=1\n");
    expect_refusal(MAP_UCX, "rank 0: card card-0000-21-00 of node host-a has "
                            "no known RDMA or network device");
    expect_refusal(MAP_UROM, "rank 0: card card-0000-21-00 of node host-a has "
                             "no known RDMA device");
    expect_refusal(MAP_NCCL, "rank 0: card card-0000-21-00 of node host-a has "
                             "no known RDMA device");
}

Test(job_maps, formats_have_names)
{
    enum map_format format;
    struct error err = {0};
    for (int i = 0; i < MAP_FORMATS; i++) {
        const char *name = map_format_name((enum map_format)i);
        cr_assert_eq(map_format_parse(name, &format, &err), 0);
        cr_expect_eq((int)format, i);
    }
    cr_expect_eq(map_format_parse("Hostfile", &format, &err), -EINVAL);
    cr_expect(strstr(err.text, "\"dpu-hostfile\""), "%s", err.text);
}
