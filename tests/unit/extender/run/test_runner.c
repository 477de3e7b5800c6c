#include "extender/run/runner_private.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "extender/run/embedded.h"
#include "extender/serve/app.h"
#include "lib/io/clock.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/simapp.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/sim/world.h"

static void start(void)
{
    simapp_begin(NULL);
}

TestSuite(runner, .init = start, .fini = simapp_end);

/* --- pairs ---------------------------------------------------------------- */

static const struct simapp_pod pair_specs[] = {
    {.name = "h", .role = "host", .job = "one"},
    {.name = "x", .role = "xpu", .job = "one"},
};

Test(runner, a_pair_runs_and_ends)
{
    cr_assert_eq(simapp_apply(pair_specs, 2), 0);
    simapp_settle();
    simapp_expect("h", POD_STATE_RUNNING, "", "");
    simapp_expect("x", POD_STATE_RUNNING, "", "");
    cr_expect_str_eq(simapp_find("h")->place, "host");
    cr_expect(strstr(simapp_find("x")->place, "card-"));
    cr_expect(strstr(simapp_find("h")->env, "\"BIGA_JOB\":\"one\""), "%s",
              simapp_find("h")->env);
    cr_expect_str_eq(simapp_find("h")->pair, simapp_find("x")->pair);

    cr_assert_eq(simapp_delete("h"), 0);
    simapp_settle();
    cr_expect_not(simapp_has("h"));
    cr_expect_not(simapp_has("x"), "ends with its host pod");
    cr_expect_eq(simapp_allocations(), 0);
}

Test(runner, an_xpu_pod_that_fails_is_told_on_its_host_pod)
{
    struct simapp_pod specs[] = {
        {.name = "h", .role = "host", .job = "one"},
        {.name = "x",
         .role = "xpu",
         .job = "one",
         .notes = ",\"test/fails\":\"1\""},
    };
    cr_assert_eq(simapp_apply(specs, 2), 0);
    simapp_settle();
    simapp_expect("x", POD_STATE_FAILED, "ImageMissing",
                  "no image on the card");
    simapp_expect("h", POD_STATE_CREATING, "XpuPodFailed", "ImageMissing");
    cr_expect_eq(simapp_allocations(), 2, "the pair keeps its place");

    cr_assert_eq(simapp_delete("x"), 0);
    simapp_settle();
    cr_expect_not(simapp_has("x"));
    simapp_expect("h", POD_STATE_CREATING, "WaitsForPair", "");
    specs[1].notes = NULL;
    cr_assert_eq(simapp_apply(&specs[1], 1), 0);
    simapp_settle();
    simapp_expect("h", POD_STATE_RUNNING, "", "");
}

Test(runner, what_has_ended_well_gives_its_place_back)
{
    const struct simapp_pod specs[] = {
        {.name = "h",
         .role = "host",
         .job = "one",
         .notes = ",\"test/ends\":\"1\""},
        {.name = "x", .role = "xpu", .job = "one"},
    };
    cr_assert_eq(simapp_apply(specs, 2), 0);
    simapp_settle();
    simapp_expect("h", POD_STATE_GONE, "Completed", "");
    simapp_expect("x", POD_STATE_GONE, "HostPodEnded", "delete it");
    cr_expect_eq(simapp_allocations(), 0);
    simapp_settle();
    cr_expect_eq(simapp_allocations(), 0, "it is not placed again");
    cr_assert_eq(simapp_delete("h"), 0);
    simapp_settle();
    cr_expect_not(simapp_has("h"));
    cr_expect_not(simapp_has("x"));
}

/* --- order ---------------------------------------------------------------- */

Test(runner, by_priority_then_as_applied)
{
    struct simapp_pod all[SIMAPP_NODES * SIMAPP_CARDS + 2];
    char names[SIMAPP_NODES * SIMAPP_CARDS + 2][16];
    size_t n = ARRAY_LEN(all);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(names[i], sizeof names[i], "x%zu", i);
        all[i] = (struct simapp_pod){.name = names[i], .role = "xpu"};
    }
    all[n - 1].priority = 5;
    cr_assert_eq(simapp_apply(all, n), 0);
    simapp_settle();
    simapp_expect("x8", POD_STATE_PENDING, "NoPlace", "");
    simapp_expect("x9", POD_STATE_RUNNING, "", "");
    simapp_expect("x7", POD_STATE_PENDING, "NoPlace", "");
    cr_assert_eq(simapp_delete("x0"), 0);
    simapp_settle();
    simapp_expect("x7", POD_STATE_RUNNING, "", "");
    simapp_expect("x8", POD_STATE_PENDING, "NoPlace", "");
}

/* --- jobs ----------------------------------------------------------------- */

Test(runner, a_job_begins_when_it_is_whole)
{
    struct simapp_pod specs[16];
    char names[16][16];
    size_t n = simapp_job(specs, names, "ring", 4);
    cr_assert_eq(simapp_apply(specs, n - 1), 0);
    simapp_settle();
    simapp_expect("ring-h0", POD_STATE_PENDING, "JobIncomplete",
                  "the xPU pod of pair 3");
    cr_expect_eq(simapp_allocations(), 0);
    cr_assert_eq(simapp_apply(&specs[n - 1], 1), 0);
    simapp_settle();
    for (size_t i = 0; i < n; i++)
        simapp_expect(names[i], POD_STATE_RUNNING, "", "");
    simapp_delete_all(names, n);
    simapp_settle();
    for (size_t i = 0; i < n; i++)
        cr_expect_not(simapp_has(names[i]));
    cr_expect_eq(simapp_allocations(), 0);
}

Test(runner, a_job_of_which_one_fails_is_torn_down)
{
    struct simapp_pod specs[16];
    char names[16][16];
    size_t n = simapp_job(specs, names, "ring", 4);
    specs[5].notes = ",\"test/fails\":\"1\"";
    cr_assert_eq(simapp_apply(specs, n), 0);
    simapp_settle();
    simapp_expect(names[5], POD_STATE_FAILED, "ImageMissing", "no image");
    simapp_expect(names[0], POD_STATE_FAILED, "JobTornDown",
                  "pair 2 of the job could not start: pod ns/ring-x2 on node ");
    simapp_expect(names[7], POD_STATE_FAILED, "JobTornDown", "ImageMissing");
    cr_expect_eq(simapp_allocations(), 0, "its places are given back");
    simapp_delete_all(names, n);
    simapp_settle();
    cr_expect_not(simapp_has(names[0]));
    specs[5].notes = NULL;
    cr_assert_eq(simapp_apply(specs, n), 0);
    simapp_settle();
    simapp_expect(names[5], POD_STATE_RUNNING, "", "");
}

Test(runner, a_job_waits_for_room_as_a_whole)
{
    struct simapp_pod specs[32];
    char names[32][16];
    size_t a = simapp_job(specs, names, "a", 6);
    size_t b = simapp_job(specs + a, names + a, "b", 4);
    cr_assert_eq(simapp_apply(specs, a + b), 0);
    simapp_settle();
    simapp_expect("a-x5", POD_STATE_RUNNING, "", "");
    simapp_expect("b-h0", POD_STATE_PENDING, "NoPlace", "");
    simapp_expect("b-x3", POD_STATE_PENDING, "JobNotPlaced",
                  "waits for pod b-h0");
    cr_expect_eq(simapp_allocations(), a);
    simapp_delete_all(names, a);
    simapp_settle();
    simapp_expect("b-x3", POD_STATE_RUNNING, "", "");
}

/* --- buddies -------------------------------------------------------------- */

#define BUDDY_HOST                                                            \
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"h\","   \
    "\"namespace\":\"ns\",\"labels\":{\"biga.dev/role\":\"host\"},"           \
    "\"annotations\":{\"biga.dev/buddy\":\"dpu\"}},\"spec\":{\"containers\":" \
    "[{\"name\":\"c\",\"image\":\"i\"}]}}"
#define BUDDY_TEMPLATE                                                        \
    "{\"apiVersion\":\"v1\",\"kind\":\"PodTemplate\",\"metadata\":{\"name\":" \
    "\"dpu\",\"namespace\":\"ns\"},\"template\":{\"spec\":{\"containers\":"   \
    "[{\"name\":\"c\",\"image\":\"i\"}]}}}"

static int post_pods(const char *body, struct raw_reply *reply)
{
    return world_call(simapp_server, SERVER_READ, "POST", "/v1/pods",
                      (struct jtext){body, strlen(body), false}, reply);
}

Test(runner, a_buddy_comes_and_goes_with_its_host_pod)
{
    struct raw_reply reply = {0};
    cr_expect_eq(post_pods(BUDDY_HOST, &reply), 400);
    cr_expect(strstr(str_text(&reply.body), "PodTemplate that is applied"),
              "%s", str_text(&reply.body));
    cr_expect_eq(post_pods(BUDDY_HOST BUDDY_TEMPLATE, &reply), 200, "%s",
                 str_text(&reply.body));
    simapp_settle();
    simapp_expect("h-xpu", POD_STATE_RUNNING, "", "");
    simapp_expect("h", POD_STATE_RUNNING, "", "");
    simapp_expect_shown("/metrics",
                        "biga_bind_wait_seconds_count{role=\"host\"} 1");
    simapp_expect_shown("/metrics",
                        "biga_bind_wait_seconds_count{role=\"xpu\"} 1");
    cr_expect_str_eq(simapp_find("h")->pair, simapp_find("h-xpu")->pair);
    cr_expect_eq(post_pods(BUDDY_TEMPLATE BUDDY_HOST, &reply), 200, "%s",
                 str_text(&reply.body));
    cr_expect_not(strstr(str_text(&reply.body), "created"), "%s",
                  str_text(&reply.body));
    cr_assert_eq(simapp_delete("h"), 0);
    simapp_settle();
    cr_expect_not(simapp_has("h-xpu"));
    cr_expect_not(simapp_has("h"));
    raw_reply_fini(&reply);
}

/* --- what is shown -------------------------------------------------------- */

Test(runner, says_why)
{
    struct simapp_pod specs[16];
    char names[16][16];
    size_t n = simapp_job(specs, names, "ring", 2);
    specs[1].notes = ",\"test/fails\":\"1\"";
    cr_assert_eq(simapp_apply(specs, n - 1), 0);
    simapp_settle();
    simapp_expect_shown("/v1/why?pod=ns/ring-h0", "JobIncomplete");
    simapp_expect_shown("/v1/why?job=ns/ring", "the xPU pod of pair 1");
    cr_assert_eq(simapp_apply(&specs[n - 1], 1), 0);
    runner_settle(simapp_runner());
    simapp_expect_shown("/v1/why?pod=ns/ring-x0", "the pod is wanted");
    simapp_expect_shown("/v1/allocations", "\"state\":\"wanted\"");
    simapp_settle();
    simapp_expect_shown("/v1/why?job=ns/ring", "ImageMissing");
    simapp_expect_shown("/v1/why?pod=ns/ring-h1", "JobTornDown");
    simapp_expect_shown("/metrics", "biga_pods{state=\"failed\"} 4");
    simapp_expect_shown("/metrics", "biga_places{health=\"ready\"} 2");
}

/* Nobody asks for its pods there. */
Test(runner, says_that_a_node_does_not_ask)
{
    cr_assert_eq(simapp_apply(pair_specs, 2), 0);
    runner_settle(simapp_runner());
    simapp_expect_shown("/v1/why?pod=ns/x", "has not asked for its pods");
}

/* Its places are given back, and it says why. */
Test(runner, a_job_does_not_stay_placed_in_part)
{
    struct simapp_pod specs[16], others[8];
    char names[16][16], more[8][16];
    size_t n = simapp_job(specs, names, "ring", 6);
    cr_assert_eq(simapp_apply(specs, n), 0);
    runner_settle(simapp_runner());
    for (unsigned i = 0; i < SIMAPP_NODES; i++)
        (void)simnode_ask(&simapp_nodes[i], 0);
    cr_assert_eq(simapp_delete(names[n - 2]), 0);
    cr_assert_eq(simapp_delete(names[n - 1]), 0);
    for (unsigned i = 0; i < SIMAPP_NODES; i++)
        for (size_t k = n - 2; k < n; k++) {
            struct simnode_pod *p = simnode_find(&simapp_nodes[i], names[k]);
            if (p)
                p->state = POD_STATE_GONE;
            if (p)
                p->changed = true;
        }
    for (unsigned i = 0; i < SIMAPP_NODES; i++)
        simnode_tell(&simapp_nodes[i], false);
    runner_settle(simapp_runner());
    cr_assert_not(simapp_has(names[n - 1]));
    for (unsigned i = 0; i < 3; i++) {
        (void)snprintf(more[i], sizeof more[i], "other%u", i);
        others[i] = (struct simapp_pod){.name = more[i], .role = "xpu"};
    }
    cr_assert_eq(simapp_apply(others, 3), 0);
    runner_settle(simapp_runner());
    cr_assert_eq(simapp_apply(&specs[n - 2], 2), 0);
    runner_settle(simapp_runner());
    simapp_expect(names[n - 2], POD_STATE_PENDING, "NoPlace", "");
    simapp_expect(names[0], POD_STATE_WANTED, "", "");
    clock_set_fake(clock_ms() + RUNNER_STUCK_MS);
    runner_settle(simapp_runner());
    clock_set_fake(-1);
    simapp_expect(names[0], POD_STATE_FAILED, "JobTornDown", "ring-h5");
    simapp_settle();
    cr_expect_eq(simapp_allocations(), 3);
}

/* --- what is given back by hand ------------------------------------------ */

static void expect_released(const char *pod, int expected, const char *part)
{
    cr_expect_eq(simapp_release(pod, part), expected, "%s", pod);
}

/* It may well run until its node says that nothing of it is left. */
Test(runner, a_node_that_answers_gives_back_by_itself)
{
    cr_assert_eq(simapp_apply(pair_specs, 2), 0);
    simapp_settle();
    expect_released("x", 409, "delete it (biga delete)");
    cr_assert_eq(simapp_delete("x"), 0);
    expect_released("x", 409, "may still run on node node00");
    cr_expect_eq(simapp_allocations(), 2);
    cr_assert_eq(simapp_delete("h"), 0);
    simapp_settle();
    cr_expect_not(simapp_has("x"));
    expect_released("x", 404, "ns/x");
}

/* It answers, whatever of its topology is missing; a silent one may be gone. */
Test(runner, a_node_that_lacks_slices_gives_back_by_itself)
{
    struct writer *w = server_app(simapp_server)->writer;
    clock_set_fake(clock_ms());
    cr_assert_eq(simapp_apply(pair_specs, 2), 0);
    simapp_settle();
    for (unsigned i = 0; i < SIMAPP_NODES; i++)
        cr_assert_eq(sim_publish_one(w, simapp_nodes[i].name, "boot-1", 2, 0),
                     0);
    cr_assert_eq(simapp_delete("x"), 0);
    writer_sweep(w);
    expect_released("x", 409, "may still run on node node00");
    cr_expect_eq(simapp_allocations(), 2);
    clock_set_fake(clock_ms() + INT64_C(7200000));
    writer_sweep(w);
    expect_released("x", 200, "\"released\"");
    clock_set_fake(-1);
}

/* Its node has said that it is over, but not yet that nothing is left. */
Test(runner, what_has_failed_is_not_given_back_by_hand)
{
    struct simapp_pod failing = pair_specs[1];
    failing.notes = ",\"test/fails\":\"1\"";
    cr_assert_eq(simapp_apply(pair_specs, 1), 0);
    cr_assert_eq(simapp_apply(&failing, 1), 0);
    simapp_settle();
    simapp_expect("x", POD_STATE_FAILED, "ImageMissing", "");
    expect_released("x", 409, "may still run on node node00");
    cr_expect_eq(simapp_allocations(), 2);
}

/* --- what nodes have said ------------------------------------------------ */

Test(runner, forgets_what_was_said_of_pods_without_a_place)
{
    struct app *app = server_app(simapp_server);
    struct node_reports *told = server_embedded(simapp_server)->store.reports;
    cr_assert_eq(simapp_apply(pair_specs, 2), 0);
    simapp_settle();
    cr_assert_eq(node_reports_n_pods(told), 2);
    cr_assert_eq(simapp_delete("x"), 0);
    clock_set_fake(clock_ms() + INT64_C(7200000));
    writer_sweep(app->writer);
    expect_released("x", 200, "\"released\"");
    clock_set_fake(-1);
    runner_settle(simapp_runner());
    cr_expect_eq(node_reports_n_pods(told), 1,
                 "its place was given back by hand");

    /* said while its place was given back */
    struct pod_status *late = pod_status_create(0);
    late->state = POD_STATE_STOPPING;
    node_reports_put(told, "00000000-0000-4000-8000-00000000dead", "node000",
                     late);
    pod_status_unref(late);
    runner_settle(simapp_runner());
    cr_expect_eq(node_reports_n_pods(told), 1);
}

/* --- configuration -------------------------------------------------------- */

Test(runner, waits_for_its_configuration)
{
    const char *json =
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"x\","
        "\"namespace\":\"ns\",\"uid\":\"00000000-0000-4000-8000-0000000000ff\","
        "\"labels\":{\"biga.dev/role\":\"xpu\"}},\"spec\":{\"containers\":[{"
        "\"name\":\"c\",\"image\":\"i\",\"env\":[{\"name\":\"A\",\"valueFrom\":"
        "{\"configMapKeyRef\":{\"name\":\"conf\",\"key\":\"k\"}}}]}]}}";
    const char *conf = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                       "\"metadata\":{\"name\":\"conf\",\"namespace\":\"ns\"},"
                       "\"data\":{\"k\":\"v\"}}";
    struct error err = {0};
    struct pod_change c[2] = {{.kind = APPLIED_APPLY}, {.kind = CONFIG_APPLY}};
    cr_assert_eq(applied_pod_create(
                     json, strlen(json), "00000000-0000-4000-8000-0000000000ff",
                     &server_app(simapp_server)->demand, &c[0].pod, &err),
                 0, "%s", err.text);
    cr_assert_eq(simapp_change(c, 1), 0);
    simapp_settle();
    simapp_expect("x", POD_STATE_PENDING, "ConfigMissing", "conf");
    cr_assert_eq(applied_config_create(conf, strlen(conf), &c[1].config, &err),
                 0, "%s", err.text);
    cr_assert_eq(simapp_change(&c[1], 1), 0);
    simapp_settle();
    simapp_expect("x", POD_STATE_RUNNING, "", "");
    applied_pod_unref(c[0].pod);
    applied_config_unref(c[1].config);
}

/* --- waiting -------------------------------------------------------------- */

Test(runner, a_node_waits_for_news)
{
    simnode_ask(&simapp_nodes[0], 0);
    cr_expect(simapp_nodes[0].resend);
    simnode_tell(&simapp_nodes[0], true);
    uint64_t version = simapp_nodes[0].version;
    simnode_ask(&simapp_nodes[0], 1);
    cr_expect_eq(simapp_nodes[0].version, version, "nothing new");
    cr_expect_not(simapp_nodes[0].resend);
    simapp_settle();
    cr_assert_eq(simapp_apply(pair_specs, 2), 0);
    runner_settle(simapp_runner());
    size_t n = 0;
    for (unsigned i = 0; i < SIMAPP_NODES; i++)
        n += simnode_ask(&simapp_nodes[i], 0);
    cr_expect_eq(n, 2);
}

/* --- very many ------------------------------------------------------------ */

enum { MANY = 5000, BEATS = 20 };

static void apply_many(unsigned n_kinds)
{
    struct simapp_pod specs[50];
    char names[50][16], notes[50][64];
    for (unsigned i = 0; i < MANY; i += 50) {
        for (unsigned k = 0; k < 50; k++) {
            (void)snprintf(names[k], sizeof names[k], "p%u", i + k);
            (void)snprintf(notes[k], sizeof notes[k],
                           ",\"biga.dev/card-memory-mib\":\"%u\"",
                           1 + (i + k) % n_kinds);
            specs[k] = (struct simapp_pod){
                .name = names[k], .role = "xpu", .notes = notes[k]};
        }
        cr_assert_eq(simapp_apply(specs, 50), 0);
    }
}

/* A node says the same again and again: how many pods are held against all
 * nodes for that? */
static unsigned long beat_tries(void)
{
    unsigned long before = simapp_runner()->tries;
    for (unsigned i = 0; i < BEATS; i++) {
        simnode_tell(&simapp_nodes[0], true);
        runner_settle(simapp_runner());
    }
    return simapp_runner()->tries - before;
}

static void wait_long(unsigned n_kinds)
{
    apply_many(n_kinds);
    simapp_settle();
    simapp_expect("p4999", POD_STATE_PENDING, "NoPlace", "");
    cr_expect_geq(simapp_runner()->tries, MANY);
    cr_expect_eq(beat_tries(), 0);

    /* who comes first and who counts more is served first, all the same */
    const struct simapp_pod urgent = {
        .name = "urgent", .role = "xpu", .priority = 1};
    cr_assert_eq(simapp_apply(&urgent, 1), 0);
    cr_assert_eq(simapp_delete("p0"), 0);
    cr_assert_eq(simapp_delete("p1"), 0);
    simapp_settle();
    simapp_expect("urgent", POD_STATE_RUNNING, "", "");
    simapp_expect("p8", POD_STATE_RUNNING, "", "");
    simapp_expect("p9", POD_STATE_PENDING, "NoPlace", "");
}

Test(runner, very_many_of_a_kind_wait)
{
    wait_long(1);
}

Test(runner, very_many_of_all_kinds_wait)
{
    wait_long(MANY);
}
