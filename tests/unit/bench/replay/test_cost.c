/* The communication model: by hand where that is possible, and its inputs. */
#include <criterion/criterion.h>
#include <string.h>

#include "bench/replay/cost.h"
#include "bench/replay/costs_text.h"
#include "tests/lib/testdata.h"

/* 1 GB/s at PIX, half of it at SYS; 1, 2, 3, 4 us. */
static const struct costs_model simple = {
    .bytes_per_s = {1e9, 1e9, 1e9, 1e9, 1e9, 5e8},
    .alpha_s = {1e-6, 2e-6, 3e-6, 4e-6},
    .factor = {1, 1, 1, 0.5},
};

static double cost(const struct costs_model *m, enum collective what,
                   double bytes, const struct cost_place *places, size_t n)
{
    static struct profile p;
    p.n = 1;
    p.calls[0] = (struct profile_call){what, bytes, 1};
    static const struct cost_net alone;
    return cost_job(m, &p, &alone, places, n);
}

/* Four pairs, two on each of two nodes of unknown place. */
static const struct cost_place four[] = {
    {0, FABRIC_NONE, RELATION_PIX},
    {0, FABRIC_NONE, RELATION_PIX},
    {1, FABRIC_NONE, RELATION_PIX},
    {1, FABRIC_NONE, RELATION_PIX},
};

static void assert_near(double got, double want)
{
    cr_assert_float_eq(got, want, want * 1e-9, "is %.12g, not %.12g", got,
                       want);
}

Test(cost, one_pair_talks_to_nobody)
{
    assert_near(1 + cost(&simple, COLL_ALLTOALL, 1e6, four, 1), 1);
}

Test(cost, a_link_is_alpha_and_bytes_over_bandwidth)
{
    /* on one node: one step of 1 us, 1000 bytes at 1 GB/s */
    assert_near(cost(&simple, COLL_BCAST, 1000, four, 2), 1e-6 + 1e-6);
}

Test(cost, a_step_is_as_slow_as_its_slowest_link)
{
    /* both steps of the tree cross: 4 us each, half the bandwidth */
    assert_near(cost(&simple, COLL_BARRIER, 0, four, 4), 8e-6);
    assert_near(cost(&simple, COLL_BCAST, 1000, four, 4), 8e-6 + 4e-6);
    /* the ring takes three steps of a quarter each */
    assert_near(cost(&simple, COLL_ALLGATHER, 4000, four, 4),
                3 * (4e-6 + 2e-6));
}

Test(cost, all_to_all_sends_to_each_other_rank)
{
    /* one on the node, two elsewhere */
    assert_near(cost(&simple, COLL_ALLTOALL, 1000, four, 4),
                1e-6 + 1e-6 + 2 * (4e-6 + 2e-6));
}

Test(cost, allreduce_takes_the_better_way)
{
    /* short: recursive doubling, two steps */
    assert_near(cost(&simple, COLL_ALLREDUCE, 8, four, 4), 8e-6 + 2 * 16e-9);
    /* long: the ring, six steps of a quarter at half the bandwidth */
    assert_near(cost(&simple, COLL_ALLREDUCE, 4e9, four, 4), 6 * (4e-6 + 2.0));
}

Test(cost, the_worst_relation_of_both_ends_counts)
{
    struct cost_place places[2] = {four[0], four[1]};
    places[1].relation = RELATION_SYS;
    assert_near(cost(&simple, COLL_BCAST, 1e9, places, 2), 1e-6 + 2);
}

/* --- shared links ------------------------------------------------------- */

static struct fabric *read_fabric(const char *text)
{
    const struct fabric_source source = {.name = "t",
                                         .text = text,
                                         .size = strlen(text),
                                         .format = FABRIC_SLURM};
    const struct fabric_labels labels = {.n_keys = 0};
    struct fabric *fabric = NULL;
    struct error err = {0};
    cr_assert_eq(fabric_read(&source, 1, &labels, &fabric, &err), 0, "%s",
                 err.text);
    return fabric;
}

static int32_t leaf_of(const struct fabric *fabric, const char *host)
{
    return fabric_find(fabric, host, strlen(host))->leaf;
}

/* What was measured of RoCE over two switches with a link of 200 Gbit/s
 * between them, three hosts each (bench/replay/costs.json has the source):
 * Gbit/s of each flow, alone and with others. */
static const struct {
    double alone, intra, opposite, together;
} measured = {109.08, 109.27, 109.10, 81.91};

struct testbed {
    struct costs_model m;
    struct fabric *fabric;
    double links[3], others[3]; /* leaf, leaf, spine */
    struct profile p;
};

static void set_up(struct testbed *t)
{
    struct error err = {0};
    cr_assert_eq(costs_read("c", replay_costs_text, strlen(replay_costs_text),
                            &t->m, &err),
                 0, "%s", err.text);
    t->fabric = read_fabric("SwitchName=l1 Nodes=a,b,c\n"
                            "SwitchName=l2 Nodes=d,e,f\n"
                            "SwitchName=s Switches=l1,l2\n");
    for (size_t i = 0; i < 3; i++) {
        t->links[i] = 200 / measured.alone;
        t->others[i] = 0;
    }
    t->p.n = 1;
    t->p.calls[0] = (struct profile_call){COLL_BCAST, 1e12, 1};
}

/* Of two pairs on these hosts. */
static double time_of(const struct testbed *t, const char *a, const char *b,
                      bool shared)
{
    const struct cost_net net = {.fabric = t->fabric,
                                 .links = shared ? t->links : NULL,
                                 .others = t->others};
    const struct cost_place places[2] = {
        {a[0], leaf_of(t->fabric, a), RELATION_PIX},
        {b[0], leaf_of(t->fabric, b), RELATION_PIX}};
    return cost_job(&t->m, &t->p, &net, places, 2);
}

Test(cost, shared_uplinks_are_as_slow_as_was_measured)
{
    static struct testbed t;
    set_up(&t);
    int32_t l1 = leaf_of(t.fabric, "a"), l2 = leaf_of(t.fabric, "d");
    /* a pair of hosts uses the link once each way, which nobody noticed */
    double alone = time_of(&t, "a", "d", false);
    cr_assert_float_eq(time_of(&t, "a", "d", true) / alone,
                       measured.alone / measured.opposite, 0.01);
    /* another pair of hosts beside it */
    t.others[l1] = t.others[l2] = 1;
    cr_assert_float_eq(time_of(&t, "a", "d", true) / alone,
                       measured.alone / measured.together, 0.01);
    /* below one switch that does not matter */
    cr_assert_float_eq(time_of(&t, "a", "b", true) /
                           time_of(&t, "a", "b", false),
                       measured.alone / measured.intra, 0.01);
    /* as many again take as much again */
    t.others[l1] = t.others[l2] = 3;
    cr_assert_float_eq(time_of(&t, "a", "d", true) / alone,
                       2 * measured.alone / measured.together, 0.01);
    fabric_unref(t.fabric);
}

Test(cost, a_jobs_own_flows_share_links_too)
{
    static struct testbed t;
    set_up(&t);
    int32_t l1 = leaf_of(t.fabric, "a"), l2 = leaf_of(t.fabric, "d");
    /* ranks in turn on both leaves: the ring goes up twice from each */
    const struct cost_place in_turn[4] = {{0, l1, RELATION_PIX},
                                          {3, l2, RELATION_PIX},
                                          {1, l1, RELATION_PIX},
                                          {4, l2, RELATION_PIX}};
    const struct cost_place in_runs[4] = {in_turn[0], in_turn[2], in_turn[1],
                                          in_turn[3]};
    const struct cost_net net = {t.fabric, t.links, t.others};
    t.p.calls[0].what = COLL_ALLGATHER;
    cr_assert_float_eq(cost_job(&t.m, &t.p, &net, in_turn, 4) /
                           cost_job(&t.m, &t.p, &net, in_runs, 4),
                       measured.alone / measured.together, 0.01);
    /* each of two ranks of a leaf sends to the other leaf in two of three
     * steps: 4 / 3 flows, which fit */
    t.p.calls[0].what = COLL_ALLTOALL;
    double alone = cost_job(&t.m, &t.p, &net, in_runs, 4);
    t.others[l1] = 1; /* 7 / 3 */
    double two_steps = 2 / 0.85, links = 200 / measured.alone * 0.82;
    cr_assert_float_eq(cost_job(&t.m, &t.p, &net, in_runs, 4) / alone,
                       (1 + two_steps * 7 / 3 / links) / (1 + two_steps),
                       0.001);
    fabric_unref(t.fabric);
}

/* --- constants ---------------------------------------------------------- */

Test(costs, those_that_are_compiled_in_are_read)
{
    struct costs_model m;
    struct error err = {0};
    cr_assert_eq(
        costs_read("c", replay_costs_text, strlen(replay_costs_text), &m, &err),
        0, "%s", err.text);
    for (unsigned r = 1; r < RELATION_COUNT; r++)
        cr_assert_leq(m.bytes_per_s[r], m.bytes_per_s[r - 1]);
    for (unsigned t = 1; t < COST_TIERS; t++)
        cr_assert_geq(m.alpha_s[t], m.alpha_s[t - 1]);
    cr_assert_float_eq(m.tapered, 2, 1e-9);
    cr_assert_float_eq(m.contended, 0.82, 1e-9);
}

Test(costs, what_is_wrong_is_named)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"{\"relations\":[],\"tiers\":[]}",
         "c: must tell of each relation (PIX to SYS) and each tier (node, "
         "leaf, "
         "spine, core)"},
        {"{\"relations\":[{\"relation\":\"PIX\",\"mb_per_s\":0}],\"tiers\":[]}",
         "c: relations[0].mb_per_s: is 0, must be 1 to 100000000"},
        {"{\"relations\":[],\"tiers\":[{\"tier\":\"moon\",\"alpha_ns\":1,"
         "\"percent\":1}]}",
         "c: tiers[0].tier: is \"moon\", must be node, leaf, spine or core"},
        {"{\"relations\":[],\"tiers\":[],\"uplinks\":{"
         "\"cards_per_100_links\":0,\"contended_percent\":1}}",
         "c: uplinks.cards_per_100_links: is 0, must be 1 to 1000000"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct costs_model m;
        struct error err = {0};
        const char *text = cases[i].text;
        cr_assert_lt(costs_read("c", text, strlen(text), &m, &err), 0);
        cr_assert_str_eq(err.text, cases[i].why);
    }
}

/* --- profiles ----------------------------------------------------------- */

static double bytes_of(const struct profile *p, enum collective what,
                       uint64_t *ret_count)
{
    double bytes = 0;
    *ret_count = 0;
    for (size_t i = 0; i < p->n; i++)
        if (p->calls[i].what == what) {
            bytes += p->calls[i].bytes * (double)p->calls[i].count;
            *ret_count += p->calls[i].count;
        }
    return bytes;
}

static void read_profile(const char *text, struct profile *p)
{
    struct error err = {0};
    cr_assert_eq(profile_read("p", text, strlen(text), p, &err), 0, "%s",
                 err.text);
}

Test(profile, aicb_csv)
{
    static struct profile p;
    uint64_t n;
    read_profile("[rank0 ~ rank127]\ncomm_type,comm_group,comm_group_size,"
                 "msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,"
                 "count\n"
                 "CommType.all_reduce,CommGroup.dp_group,16,8,i,,,,,,,2\n"
                 "CommType.all_reduce,CommGroup.dp_group,16,8,i,,,,,,,1\n"
                 "CommType.barrier,CommGroup.all,16,0,i,,,,,,,1\n"
                 "CommType.isend,CommGroup.pp_group,2,64,i,,,,,,,1\n",
                 &p);
    cr_assert_float_eq(bytes_of(&p, COLL_ALLREDUCE, &n), 24, 0);
    cr_assert_eq(n, 3);
    (void)bytes_of(&p, COLL_BARRIER, &n);
    cr_assert_eq(n, 1);
    cr_assert_eq(p.n_skipped, 1);
}

Test(profile, time_independent_trace)
{
    static struct profile p;
    uint64_t n;
    read_profile("0 init 1\n0 compute 100\n0 bcast 3\n0 barrier\n"
                 "0 allreduce 32 125 1\n0 alltoall 10 10\n"
                 "0 alltoallv 30 10 20  30 20 10\n0 finalize\n",
                 &p);
    cr_assert_float_eq(bytes_of(&p, COLL_BCAST, &n), 24, 0);
    cr_assert_float_eq(bytes_of(&p, COLL_ALLREDUCE, &n), 128, 0); /* ints */
    cr_assert_float_eq(bytes_of(&p, COLL_ALLTOALL, &n), 80, 0);
    cr_assert_float_eq(bytes_of(&p, COLL_ALLTOALLV, &n), 15 * 8, 0);
    cr_assert_eq(p.n_skipped, 2);
}

Test(profile, ucc_matrices)
{
    static struct profile p;
    uint64_t n;
    read_profile("[format]\nversion = 1.0\n\n[collective]\ntype = ALLTOALLV\n"
                 "team_size = 2\ndatatype = INT32\ncounts = {\n    1,2\n    "
                 "3,6\n}\n",
                 &p);
    cr_assert_float_eq(bytes_of(&p, COLL_ALLTOALLV, &n), 12, 0);
    cr_assert_eq(n, 1);
}

Test(profile, errors_name_the_line)
{
    static const char *const wrong[][2] = {
        {"0 bcast x\n", "p:1: \"x\" is no number"},
        {"0 barrier\n0\n", "p:2: has no action"},
        {"[format]\n", "p: has no collective"},
        {"CommType.all_reduce,a,1,-5,,,,,,,,1\n",
         "p:1: -5 bytes, 1 times: must be 0 to 1e+15, 1 to 1e9"},
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        static struct profile p;
        struct error err = {0};
        cr_assert_lt(
            profile_read("p", wrong[i][0], strlen(wrong[i][0]), &p, &err), 0);
        cr_assert_str_eq(err.text, wrong[i][1]);
    }
}

Test(profile, real_ones_are_read)
{
    static const char *const files[] = {
        "collectives/aicb/G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1.csv",
        "collectives/ti32/ti_trace0.txt",
        "collectives/ucc/alltoallv_4.ptini",
        "collectives/ucc/alltoallv_16.ptini",
    };
    if (!testdata_dir())
        cr_skip_test("no shared data: no profile is read");
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        static struct profile p;
        struct error err = {0};
        size_t size = 0;
        cleanup_free char *path = xasprintf("%s/%s", testdata_dir(), files[i]);
        cleanup_free char *text = testdata_read(path, &size);
        cr_assert_eq(profile_read(path, text, size, &p, &err), 0, "%s",
                     err.text);
    }
}
