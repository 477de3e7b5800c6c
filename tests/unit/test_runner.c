#include "extender/runner.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include "extender/app.h"
#include "extender/snapshot.h"
#include "tests/lib/randnode.h"
#include "tests/lib/rawclient.h"
#include "tests/lib/simnode.h"
#include "tests/lib/simstate.h"
#include "tests/lib/tmpdir.h"
#include "tests/lib/world.h"

enum { NODES = 2, CARDS = 4 };

static struct server *server;
static struct simnode nodes[NODES];
static unsigned n_applied;

static void begin(const char *dir)
{
    server = world_start_in(dir);
    world_publish(server, NODES, CARDS);
    for (unsigned i = 0; i < NODES; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "node%03u", i);
        simnode_init(&nodes[i], server, name);
    }
}

static void start(void)
{
    begin(NULL);
}

static void stop(void)
{
    server_stop(server);
}

TestSuite(runner, .init = start, .fini = stop);

/* --- pods ----------------------------------------------------------------- */

struct spec {
    const char *name, *role, *job;
    int pair, size;
    const char *notes; /* more annotations: ,"k":"v" */
    int priority;
};

static void spec_json(const struct spec *p, const char *uid, struct str *out)
{
    str_addf(out,
             "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{"
             "\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"%s\","
             "\"labels\":{\"biga.dev/role\":\"%s\"",
             p->name, uid, p->role);
    if (p->job)
        str_addf(out, ",\"biga.dev/job\":\"%s\",\"biga.dev/pair\":\"%d\"",
                 p->job, p->pair);
    str_addf(out, "},\"annotations\":{\"biga.dev/exclusive\":\"true\"");
    if (p->size)
        str_addf(out, ",\"biga.dev/size\":\"%d\"", p->size);
    str_addf(out,
             "%s}},\"spec\":{\"priority\":%d,\"containers\":[{\"name\":\"c\","
             "\"image\":\"busybox\",\"resources\":{\"requests\":{"
             "\"biga.dev/card\":1}}}]}}",
             p->notes ? p->notes : "", p->priority);
}

static struct applied_pod *make(const struct spec *p)
{
    cleanup_str struct str json = STR_INIT(65536);
    struct error err = {0};
    struct applied_pod *pod = NULL;
    char uid[PODS_UID_SIZE];
    (void)snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012u",
                   ++n_applied);
    spec_json(p, uid, &json);
    cr_assert_eq(applied_pod_create(json.data, json.size, uid,
                                    &server_app(server)->demand, &pod, &err),
                 0, "%s", err.text);
    return pod;
}

static int change(struct pod_change *changes, size_t n)
{
    struct writer_op op = {.kind = WRITER_PODS,
                           .changes = changes,
                           .n_changes = n,
                           .out = STR_INIT(65536)};
    int r = writer_run(server_app(server)->writer, &op);
    str_fini(&op.out);
    return r;
}

static int apply(const struct spec *specs, size_t n)
{
    struct pod_change changes[64] = {0};
    cr_assert_leq(n, ARRAY_LEN(changes));
    for (size_t i = 0; i < n; i++)
        changes[i] = (struct pod_change){.kind = PODS_APPLY,
                                         .pod = make(&specs[i])};
    int r = change(changes, n);
    for (size_t i = 0; i < n; i++)
        applied_pod_unref(changes[i].pod);
    return r;
}

static int delete (const char *name)
{
    struct pod_change c = {
        .kind = PODS_DELETE, .namespace = "ns", .name = name, .grace_s = -1};
    return change(&c, 1);
}

/* Those that are not gone already with others. */
static void delete_all(char names[][16], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int r = delete (names[i]);
        cr_assert(r == 0 || r == -ENOENT, "%s: %d", names[i], r);
    }
}

static struct pod_status *status_of(const char *name)
{
    cleanup_with(pod_set) struct pod_set *set =
        pods_get(server_app(server)->pods);
    struct applied_pod *p = pod_set_find(set, "ns", name);
    cr_assert(p, "pod %s is not there", name);
    return pod_status_ref(p->status);
}

static void expect(const char *name, enum pod_state state, const char *reason,
                   const char *part)
{
    struct pod_status *s = status_of(name);
    cr_expect_eq(s->state, state, "%s is %s: %s: %s", name,
                 pod_state_name(s->state), s->reason, s->message);
    cr_expect_str_eq(s->reason, reason, "%s: %s", name, s->message);
    cr_expect(strstr(s->message, part), "%s: \"%s\" lacks \"%s\"", name,
              s->message, part);
    pod_status_unref(s);
}

static bool is_there(const char *name)
{
    cleanup_with(pod_set) struct pod_set *set =
        pods_get(server_app(server)->pods);
    return pod_set_find(set, "ns", name) != NULL;
}

static size_t n_allocations(void)
{
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(server_app(server)->writer);
    return alloc_index_size(s->allocations);
}

static void settle(void)
{
    cleanup_str struct str why = STR_INIT(4096);
    simnode_settle(nodes, NODES);
    for (unsigned i = 0; i < NODES; i++)
        cr_assert(simnode_check(&nodes[i], &why), "%s", str_text(&why));
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(server_app(server)->writer);
    cr_assert(sim_check(s, &why), "%s", str_text(&why));
}

static struct simnode_pod *find(const char *name)
{
    for (unsigned i = 0; i < NODES; i++)
        if (simnode_find(&nodes[i], name))
            return simnode_find(&nodes[i], name);
    return NULL;
}

/* --- pairs ---------------------------------------------------------------- */

static const struct spec pair_specs[] = {
    {.name = "h", .role = "host", .job = "one"},
    {.name = "x", .role = "xpu", .job = "one"},
};

Test(runner, a_pair_runs_and_ends)
{
    cr_assert_eq(apply(pair_specs, 2), 0);
    settle();
    expect("h", PODS_RUNNING, "", "");
    expect("x", PODS_RUNNING, "", "");
    cr_expect_str_eq(find("h")->place, "host");
    cr_expect(strstr(find("x")->place, "card-"));
    cr_expect(strstr(find("h")->env, "\"BIGA_JOB\":\"one\""), "%s",
              find("h")->env);
    cr_expect_str_eq(find("h")->pair, find("x")->pair);

    cr_assert_eq(delete ("h"), 0);
    settle();
    cr_expect_not(is_there("h"));
    cr_expect_not(is_there("x"), "ends with its host pod");
    cr_expect_eq(n_allocations(), 0);
}

Test(runner, an_xpu_pod_that_fails_is_told_on_its_host_pod)
{
    const struct spec specs[] = {
        {.name = "h", .role = "host", .job = "one"},
        {.name = "x",
         .role = "xpu",
         .job = "one",
         .notes = ",\"test/fails\":\"1\""},
    };
    cr_assert_eq(apply(specs, 2), 0);
    settle();
    expect("x", PODS_FAILED, "ImageMissing", "no image on the card");
    expect("h", PODS_CREATING, "XpuPodFailed", "ImageMissing");
    cr_expect_eq(n_allocations(), 2, "or the host pod would begin alone");

    cr_assert_eq(delete ("x"), 0);
    settle();
    cr_expect_not(is_there("x"));
    expect("h", PODS_RUNNING, "", "");
}

Test(runner, what_has_ended_well_gives_its_place_back)
{
    const struct spec specs[] = {
        {.name = "h",
         .role = "host",
         .job = "one",
         .notes = ",\"test/ends\":\"1\""},
        {.name = "x", .role = "xpu", .job = "one"},
    };
    cr_assert_eq(apply(specs, 2), 0);
    settle();
    expect("h", PODS_GONE, "Completed", "");
    expect("x", PODS_GONE, "HostPodEnded", "delete it");
    cr_expect_eq(n_allocations(), 0);
    settle();
    cr_expect_eq(n_allocations(), 0, "it is not placed again");
    cr_assert_eq(delete ("h"), 0);
    settle();
    cr_expect_not(is_there("h"));
    cr_expect_not(is_there("x"));
}

/* --- order ---------------------------------------------------------------- */

Test(runner, by_priority_then_as_applied)
{
    struct spec all[NODES * CARDS + 2];
    char names[NODES * CARDS + 2][16];
    size_t n = ARRAY_LEN(all);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(names[i], sizeof names[i], "x%zu", i);
        all[i] = (struct spec){.name = names[i], .role = "xpu"};
    }
    all[n - 1].priority = 5;
    cr_assert_eq(apply(all, n), 0);
    settle();
    expect("x8", PODS_PENDING, "NoPlace", "");
    expect("x9", PODS_RUNNING, "", "");
    expect("x7", PODS_PENDING, "NoPlace", "");
    cr_assert_eq(delete ("x0"), 0);
    settle();
    expect("x7", PODS_RUNNING, "", "");
    expect("x8", PODS_PENDING, "NoPlace", "");
}

/* --- jobs ----------------------------------------------------------------- */

static size_t job_specs(struct spec *specs, char names[][16], const char *job,
                        int size)
{
    size_t n = 0;
    for (int pair = 0; pair < size; pair++)
        for (unsigned x = 0; x < 2; x++, n++) {
            (void)snprintf(names[n], 16, "%s-%s%d", job, x ? "x" : "h", pair);
            specs[n] = (struct spec){.name = names[n],
                                     .role = x ? "xpu" : "host",
                                     .job = job,
                                     .pair = pair,
                                     .size = size};
        }
    return n;
}

Test(runner, a_job_begins_when_it_is_whole)
{
    struct spec specs[16];
    char names[16][16];
    size_t n = job_specs(specs, names, "ring", 4);
    cr_assert_eq(apply(specs, n - 1), 0);
    settle();
    expect("ring-h0", PODS_PENDING, "JobIncomplete", "the xPU pod of pair 3");
    cr_expect_eq(n_allocations(), 0);
    cr_assert_eq(apply(&specs[n - 1], 1), 0);
    settle();
    for (size_t i = 0; i < n; i++)
        expect(names[i], PODS_RUNNING, "", "");
    delete_all(names, n);
    settle();
    for (size_t i = 0; i < n; i++)
        cr_expect_not(is_there(names[i]));
    cr_expect_eq(n_allocations(), 0);
}

Test(runner, a_job_of_which_one_fails_is_torn_down)
{
    struct spec specs[16];
    char names[16][16];
    size_t n = job_specs(specs, names, "ring", 4);
    specs[5].notes = ",\"test/fails\":\"1\"";
    cr_assert_eq(apply(specs, n), 0);
    settle();
    expect(names[5], PODS_GONE, "ImageMissing", "no image");
    expect(names[0], PODS_GONE, "JobTornDown",
           "pair 2 of the job could not start: pod ns/ring-x2 on node ");
    expect(names[7], PODS_GONE, "JobTornDown", "ImageMissing");
    cr_expect_eq(n_allocations(), 0, "its places are given back");
    delete_all(names, n);
    settle();
    cr_expect_not(is_there(names[0]));
    specs[5].notes = NULL;
    cr_assert_eq(apply(specs, n), 0);
    settle();
    expect(names[5], PODS_RUNNING, "", "");
}

Test(runner, a_job_waits_for_room_as_a_whole)
{
    struct spec specs[32];
    char names[32][16];
    size_t a = job_specs(specs, names, "a", 6);
    size_t b = job_specs(specs + a, names + a, "b", 4);
    cr_assert_eq(apply(specs, a + b), 0);
    settle();
    expect("a-x5", PODS_RUNNING, "", "");
    expect("b-h0", PODS_PENDING, "NoPlace", "");
    expect("b-x3", PODS_PENDING, "JobNotPlaced", "waits for pod b-h0");
    cr_expect_eq(n_allocations(), a);
    delete_all(names, a);
    settle();
    expect("b-x3", PODS_RUNNING, "", "");
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
    return world_call(server, SERVER_READ, "POST", "/v1/pods",
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
    settle();
    expect("h-xpu", PODS_RUNNING, "", "");
    expect("h", PODS_RUNNING, "", "");
    cr_expect_str_eq(find("h")->pair, find("h-xpu")->pair);
    cr_expect_eq(post_pods(BUDDY_TEMPLATE BUDDY_HOST, &reply), 200, "%s",
                 str_text(&reply.body));
    cr_expect_not(strstr(str_text(&reply.body), "created"), "%s",
                  str_text(&reply.body));
    cr_assert_eq(delete ("h"), 0);
    settle();
    cr_expect_not(is_there("h-xpu"));
    cr_expect_not(is_there("h"));
    raw_reply_fini(&reply);
}

/* --- services ------------------------------------------------------------- */

enum { COPIES = 4 };

static void apply_service(const char *notes)
{
    struct spec specs[COPIES];
    char names[COPIES][16];
    for (unsigned i = 0; i < COPIES; i++) {
        (void)snprintf(names[i], sizeof names[i], "s%u", i);
        specs[i] = (struct spec){.name = names[i],
                                 .role = "service",
                                 .job = "agent",
                                 .notes = notes};
    }
    cr_assert_eq(apply(specs, COPIES), 0);
}

/* How many run, and how many of them as applied last. */
static unsigned count_ready(const char *part, unsigned *ret_new)
{
    cleanup_with(pod_set) struct pod_set *set =
        pods_get(server_app(server)->pods);
    unsigned n = 0;
    *ret_new = 0;
    for (size_t i = 0; i < set->n_pods; i++) {
        const struct applied_pod *p = set->pods[i];
        n += p->status->ready && !p->deleting;
        *ret_new += p->status->ready && strstr(p->json, part);
    }
    return n;
}

/* With a restart at one step, unless that is none. */
static void roll_service(const char *dir, unsigned restart_at)
{
    unsigned least = COPIES, n_new = 0, step = 0;
    begin(dir);
    apply_service(NULL);
    settle();
    cr_expect_eq(count_ready("test/v2", &n_new), COPIES);
    apply_service(",\"test/v2\":\"1\"");
    for (; n_new < COPIES && step < 64; step++) {
        if (step == restart_at) {
            server_stop(server);
            server = world_start_in(dir);
            for (unsigned i = 0; i < NODES; i++)
                nodes[i].server = server;
        }
        runner_settle(server_app(server)->runner);
        for (unsigned i = 0; i < NODES; i++) {
            (void)simnode_ask(&nodes[i], 0);
            (void)simnode_step(&nodes[i]);
            simnode_tell(&nodes[i], false);
        }
        unsigned n = count_ready("test/v2", &n_new);
        if (step > restart_at + 2 || step < restart_at)
            least = n < least ? n : least;
    }
    settle();
    cr_expect_eq(n_new, COPIES, "restarted at %u", restart_at);
    cr_expect_geq(least, (unsigned)COPIES - 1, "%u, restarted at %u", least,
                  restart_at);
    server_stop(server);
}

Test(runner_restart, a_service_rolls_card_by_card)
{
    for (unsigned at = 0; at < 20; at += 3) {
        char *dir = tmpdir_create();
        n_applied = 0;
        roll_service(dir, at);
        tmpdir_remove(dir);
    }
}

Test(runner, a_roll_halts_at_what_does_not_start)
{
    unsigned n_new;
    apply_service(NULL);
    settle();
    apply_service(",\"test/fails\":\"1\"");
    settle();
    cr_expect_eq(count_ready("test/fails", &n_new), COPIES - 1);
    cr_expect_eq(n_new, 0);
    expect("s0", PODS_GONE, "ImageMissing", "");
    apply_service(",\"test/v3\":\"1\"");
    settle();
    cr_expect_eq(count_ready("test/v3", &n_new), COPIES);
    cr_expect_eq(n_new, COPIES);
}

Test(runner, a_service_that_is_deleted_is_not_replaced)
{
    apply_service(NULL);
    settle();
    apply_service(",\"test/v2\":\"1\"");
    runner_settle(server_app(server)->runner);
    cr_assert_eq(delete ("s0"), 0);
    cr_assert_eq(delete ("s3"), 0);
    settle();
    cr_expect_not(is_there("s0"));
    cr_expect_not(is_there("s3"));
    expect("s2", PODS_RUNNING, "", "");
    cr_expect_eq(n_allocations(), 2);
}

/* --- what is shown -------------------------------------------------------- */

static void expect_shown(const char *path, const char *part)
{
    struct raw_reply reply = {0};
    int status = world_call(server, SERVER_READ, "GET", path,
                            (struct jtext){"", 0, false}, &reply);
    cr_expect_eq(status, 200, "%s: %d: %s", path, status,
                 str_text(&reply.body));
    cr_expect(strstr(str_text(&reply.body), part), "%s lacks %s: %s", path,
              part, str_text(&reply.body));
    raw_reply_fini(&reply);
}

Test(runner, says_why)
{
    struct spec specs[16];
    char names[16][16];
    size_t n = job_specs(specs, names, "ring", 2);
    specs[1].notes = ",\"test/fails\":\"1\"";
    cr_assert_eq(apply(specs, n - 1), 0);
    settle();
    expect_shown("/v1/why?pod=ns/ring-h0", "JobIncomplete");
    expect_shown("/v1/why?job=ns/ring", "the xPU pod of pair 1");
    cr_assert_eq(apply(&specs[n - 1], 1), 0);
    runner_settle(server_app(server)->runner);
    expect_shown("/v1/why?pod=ns/ring-x0", "the pod is wanted");
    expect_shown("/v1/allocations", "\"state\":\"wanted\"");
    settle();
    expect_shown("/v1/why?job=ns/ring", "ImageMissing");
    expect_shown("/v1/why?pod=ns/ring-h1", "JobTornDown");
    expect_shown("/metrics", "biga_pods{state=\"gone\"} 4");
    expect_shown("/metrics", "biga_places{health=\"ready\"} 2");
}

/* Nobody asks for its pods there. */
Test(runner, says_that_a_node_does_not_ask)
{
    cr_assert_eq(apply(pair_specs, 2), 0);
    runner_settle(server_app(server)->runner);
    expect_shown("/v1/why?pod=ns/x", "has not asked for its pods");
    cr_assert_eq(delete ("x"), 0);
    runner_settle(server_app(server)->runner);
    expect_shown("/v1/why?pod=ns/x", "biga release ns/x");
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
    struct pod_change c[2] = {{.kind = PODS_APPLY}, {.kind = CONFIG_APPLY}};
    cr_assert_eq(applied_pod_create(
                     json, strlen(json), "00000000-0000-4000-8000-0000000000ff",
                     &server_app(server)->demand, &c[0].pod, &err),
                 0, "%s", err.text);
    cr_assert_eq(change(c, 1), 0);
    settle();
    expect("x", PODS_PENDING, "ConfigMissing", "conf");
    cr_assert_eq(applied_config_create(conf, strlen(conf), &c[1].config, &err),
                 0, "%s", err.text);
    cr_assert_eq(change(&c[1], 1), 0);
    settle();
    expect("x", PODS_RUNNING, "", "");
    applied_pod_unref(c[0].pod);
    applied_config_unref(c[1].config);
}

/* --- restarts ------------------------------------------------------------- */

static void restart(const char *dir)
{
    server_stop(server);
    server = world_start_in(dir);
    for (unsigned i = 0; i < NODES; i++)
        nodes[i].server = server;
}

/* At every point of a job's life. */
Test(runner_restart, goes_on_where_it_was)
{
    for (unsigned at = 0; at < 12; at++) {
        char *dir = tmpdir_create();
        struct spec specs[16];
        char names[16][16];
        n_applied = 0;
        begin(dir);
        size_t n = job_specs(specs, names, "ring", 3);
        cr_assert_eq(apply(specs, n), 0);
        for (unsigned step = 0; step < 12; step++) {
            if (step == at)
                restart(dir);
            if (step == 5)
                delete_all(names, n);
            if (step % 2)
                runner_settle(server_app(server)->runner);
            for (unsigned i = 0; i < NODES; i++) {
                (void)simnode_ask(&nodes[i], 0);
                (void)simnode_step(&nodes[i]);
                simnode_tell(&nodes[i], false);
            }
        }
        settle();
        for (size_t i = 0; i < n; i++)
            cr_expect_not(is_there(names[i]), "%s, restarted at %u", names[i],
                          at);
        cr_expect_eq(n_allocations(), 0, "restarted at %u", at);
        server_stop(server);
        tmpdir_remove(dir);
    }
}

/* What was torn down, or has finished, is not begun again. */
Test(runner_restart, what_is_over_stays_over)
{
    char *dir = tmpdir_create();
    struct spec specs[16];
    char names[16][16];
    begin(dir);
    size_t n = job_specs(specs, names, "ring", 2);
    specs[3].notes = ",\"test/fails\":\"1\"";
    cr_assert_eq(apply(specs, n), 0);
    settle();
    expect(names[0], PODS_GONE, "JobTornDown", "ImageMissing");
    restart(dir);
    settle();
    expect(names[0], PODS_FAILED, "JobTornDown", "ImageMissing");
    cr_expect_eq(n_allocations(), 0);
    stop();
    tmpdir_remove(dir);
}

/* --- waiting -------------------------------------------------------------- */

Test(runner, a_node_waits_for_news)
{
    simnode_ask(&nodes[0], 0);
    cr_expect(nodes[0].resend);
    simnode_tell(&nodes[0], true);
    uint64_t version = nodes[0].version;
    simnode_ask(&nodes[0], 1);
    cr_expect_eq(nodes[0].version, version, "nothing new");
    cr_expect_not(nodes[0].resend);
    settle();
    cr_assert_eq(apply(pair_specs, 2), 0);
    runner_settle(server_app(server)->runner);
    size_t n = 0;
    for (unsigned i = 0; i < NODES; i++)
        n += simnode_ask(&nodes[i], 0);
    cr_expect_eq(n, 2);
}

/* --- by chance ------------------------------------------------------------ */

static void random_apply(char names[][16], size_t *n, unsigned serial)
{
    struct spec specs[16];
    char job[12];
    int size = (int)roll(3) + 1;
    (void)snprintf(job, sizeof job, "j%u", serial);
    size_t added = job_specs(specs, names + *n, job, size);
    for (size_t i = 0; i < added; i++) {
        if (size == 1)
            specs[i].size = 0;
        if (odds(8))
            specs[i].notes = ",\"test/fails\":\"1\"";
        else if (odds(10))
            specs[i].notes = ",\"test/ends\":\"1\"";
        specs[i].priority = (int)roll(3);
    }
    cr_assert_eq(apply(specs, added), 0);
    *n += added;
}

Test(runner_restart, keeps_its_promises_by_chance)
{
    enum { ROUNDS = 120, NAMES = 2048 };
    static char names[NAMES][16];
    size_t n = 0;
    char *dir = tmpdir_create();
    uint64_t seed = chance_init();
    begin(dir);
    for (unsigned round = 0; round < ROUNDS; round++) {
        cleanup_str struct str why = STR_INIT(4096);
        if (odds(30) && n + 16 < NAMES)
            random_apply(names, &n, round);
        if (odds(40) && n > 0)
            (void)delete (names[roll((uint32_t)n)]); /* or it is gone */
        if (odds(5))
            restart(dir);
        if (odds(50))
            runner_settle(server_app(server)->runner);
        struct simnode *node = &nodes[roll(NODES)];
        if (odds(80))
            (void)simnode_ask(node, 0);
        if (odds(80))
            (void)simnode_step(node);
        if (odds(80))
            simnode_tell(node, odds(10));
        for (unsigned i = 0; i < NODES; i++)
            cr_assert(simnode_check(&nodes[i], &why), "seed %llu round %u: %s",
                      (unsigned long long)seed, round, str_text(&why));
    }
    for (size_t i = 0; i < n; i++)
        (void)delete (names[i]); /* or it is gone */
    settle();
    cr_expect_eq(n_allocations(), 0, "seed %llu", (unsigned long long)seed);
    for (size_t i = 0; i < n; i++)
        cr_expect_not(is_there(names[i]), "seed %llu: %s",
                      (unsigned long long)seed, names[i]);
    stop();
    tmpdir_remove(dir);
}
