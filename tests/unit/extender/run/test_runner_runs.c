/* Where applied pods are placed: on nodes that run them. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "extender/serve/app.h"
#include "lib/io/clock.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/simapp.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/world.h"

static void start(void)
{
    simapp_begin(NULL);
}

TestSuite(runner_runs, .init = start, .fini = simapp_end);

static const struct simapp_pod pair_specs[] = {
    {.name = "h", .role = "host", .job = "one"},
    {.name = "x", .role = "xpu", .job = "one"},
};

/* What a node's advertiser says now. */
static void says(unsigned node, int64_t generation, enum topo_runs runs,
                 unsigned cards)
{
    cleanup_with(topo) struct topo *topo =
        simhost_runs(simapp_nodes[node].name, SIMAPP_CARDS, runs, cards);
    world_publish_topo(simapp_server, topo, generation);
}

static const struct allocation *place_of(const struct snapshot *s,
                                         const char *name)
{
    const struct allocation *a = alloc_index_find(s->allocations, "ns", name);
    cr_assert(a, "%s has no place", name);
    return a;
}

static void expect_place(const char *name, unsigned node, unsigned card)
{
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(server_app(simapp_server)->writer);
    cleanup_with(topo) struct topo *topo = simhost_topo("h", SIMAPP_CARDS);
    const struct allocation *a = place_of(s, name);
    size_t first;
    (void)topo_count(topo, DEVICE_CARD, &first);
    cr_expect_str_eq(a->node, simapp_nodes[node].name, "%s", name);
    cr_expect_str_eq(a->cards[0], topo_device(topo, first + card)->id, "%s",
                     name);
}

Test(runner_runs, pods_go_where_they_are_run)
{
    says(0, 2, TOPO_RUNS_NONE, 0);
    says(1, 2, TOPO_RUNS_PODS, 0xc);
    cr_assert_eq(simapp_apply(pair_specs, 2), 0);
    simapp_settle();
    simapp_expect("h", POD_STATE_RUNNING, "", "");
    expect_place("h", 1, 2);
    expect_place("x", 1, 2);
}

/* A host pod alone needs no runtime of its card. */
Test(runner_runs, what_belongs_to_a_pod_counts)
{
    says(0, 2, TOPO_RUNS_NONE, 0);
    says(1, 2, TOPO_RUNS_PODS, 0x8);
    cr_assert_eq(simapp_apply(pair_specs, 1), 0);
    runner_settle(simapp_runner());
    expect_place("h", 1, 0);
    const struct simapp_pod alone = {.name = "a", .role = "service"};
    cr_assert_eq(simapp_apply(&alone, 1), 0);
    runner_settle(simapp_runner());
    expect_place("a", 1, 3);
}

/* A host pod goes where there is room for its xPU pod, whose cores it does not
 * state. */
Test(runner_runs, what_the_xpu_pod_needs_counts)
{
    const struct simapp_pod busy = {
        .name = "s", .role = "service", .shares = true, .cores = 14};
    const struct simapp_pod pair[] = {
        {.name = "h", .role = "host", .job = "one", .shares = true},
        {.name = "x", .role = "xpu", .job = "one", .shares = true, .cores = 4},
    };
    says(0, 2, TOPO_RUNS_NONE, 0);
    says(1, 2, TOPO_RUNS_PODS, 0x3);
    cr_assert_eq(simapp_apply(&busy, 1), 0);
    runner_settle(simapp_runner());
    expect_place("s", 1, 0);
    cr_assert_eq(simapp_apply(pair, 2), 0);
    simapp_settle();
    expect_place("h", 1, 1);
    expect_place("x", 1, 1);
}

Test(runner_runs, says_what_to_start)
{
    const struct simapp_pod one = {.name = "a", .role = "xpu"};
    struct simapp_pod specs[16];
    char names[16][16];
    size_t n = simapp_job(specs, names, "ring", 2);
    says(0, 2, TOPO_RUNS_NONE, 0);
    says(1, 2, TOPO_RUNS_PODS, 0);
    cr_assert_eq(simapp_apply(&one, 1), 0);
    runner_settle(simapp_runner());
    simapp_expect("a", POD_STATE_PENDING, "NoPlace", "1: runs no pods");
    simapp_expect_shown("/v1/why?pod=ns/a",
                        "\"reason\":\"no-runtime\",\"nodes\":1");
    says(1, 3, TOPO_RUNS_NONE, 0);
    runner_settle(simapp_runner());
    simapp_expect("a", POD_STATE_PENDING, "NoPlace",
                  "fits none of 2 nodes; 2: runs no pods: start its "
                  "biga-advertiser with --actuate");
    simapp_expect_shown("/v1/why?pod=ns/a",
                        "\"reason\":\"runs-no-pods\",\"nodes\":2");
    cr_assert_eq(simapp_apply(specs, n), 0);
    runner_settle(simapp_runner());
    simapp_expect_shown("/v1/why?pod=ns/ring-h0",
                        "\"reason\":\"runs-no-pods\",\"nodes\":2");
    says(0, 3, TOPO_RUNS_PODS, 0xf);
    simapp_settle();
    simapp_expect("a", POD_STATE_RUNNING, "", "");
    simapp_expect("ring-h1", POD_STATE_RUNNING, "", "");
}

/* A kubelet runs those that kube-scheduler asks about; and an advertiser that
 * does not say is older, and may well run pods. */
Test(runner_runs, others_are_left_alone)
{
    cleanup_str struct str body = STR_INIT(1 << 20);
    const struct world_pod pod = {
        .name = "k", .role = "xpu", .cards = 1, .cores = 1, .memory_mib = 1};
    struct raw_reply reply = {0};
    says(0, 2, TOPO_RUNS_NONE, 0);
    world_args_json(&pod, SIMAPP_NODES, &body);
    cr_assert_eq(world_call(simapp_server, SERVER_SCHEDULER, "POST",
                            "/v1/scheduler/filter",
                            (struct jtext){body.data, body.size, false},
                            &reply),
                 200);
    cr_expect(strstr(str_text(&reply.body), "node000"), "%s",
              str_text(&reply.body));
    raw_reply_fini(&reply);
    cr_assert_eq(simapp_apply(pair_specs, 2), 0);
    simapp_settle();
    expect_place("x", 1, 0);
    simapp_expect("x", POD_STATE_RUNNING, "", "");
}

/* One that is not applied yet. */
Test(runner_runs, is_simulated)
{
    static const struct {
        const char *path, *part;
        int status;
    } cases[] = {
        {"/v1/simulate", "\"state\":\"placed\"", 200},
        {"/v1/simulate?applied=false", "\"state\":\"placed\"", 200},
        {"/v1/simulate?applied=true", "\"reason\":\"runs-no-pods\"", 200},
        {"/v1/simulate?applied=1", "applied: is \\\"1\\\"", 400},
        {"/v1/simulate?apply=true", "apply", 400},
    };
    says(0, 2, TOPO_RUNS_NONE, 0);
    says(1, 2, TOPO_RUNS_NONE, 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct world_pod pod = {
            .name = "k", .role = "xpu", .cards = 1, .cores = 1};
        cleanup_str struct str body = STR_INIT(65536);
        struct raw_reply reply = {0};
        world_pod_json(&pod, &body);
        cr_expect_eq(
            world_call(simapp_server, SERVER_READ, "POST", cases[i].path,
                       (struct jtext){body.data, body.size, false}, &reply),
            cases[i].status);
        cr_expect(strstr(str_text(&reply.body), cases[i].part), "%s: %s",
                  cases[i].path, str_text(&reply.body));
        raw_reply_fini(&reply);
    }
}

/* What runs there goes on, and nothing new comes. */
Test(runner_runs, a_node_that_runs_pods_no_more_keeps_those_it_has)
{
    const struct simapp_pod second = {.name = "a", .role = "xpu"};
    cr_assert_eq(simapp_apply(pair_specs, 2), 0);
    simapp_settle();
    says(0, 2, TOPO_RUNS_NONE, 0);
    cr_assert_eq(simapp_apply(&second, 1), 0);
    simapp_settle();
    simapp_expect("x", POD_STATE_RUNNING, "", "");
    expect_place("x", 0, 0);
    expect_place("a", 1, 0);
}
