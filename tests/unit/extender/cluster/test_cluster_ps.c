#include "extender/cluster/cluster_ps.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "tests/lib/sim/simstate.h"

static void put_json(struct cluster_ps *c, const char *json)
{
    struct kube_pod pod;
    struct demand_config config;
    struct error err = {0};
    demand_config_default(&config);
    cr_assert_eq(kube_pod_read(json, strlen(json), &config, &pod, &err), 0,
                 "%s", err.text);
    const struct pod_listener l = cluster_ps_listener(c);
    l.put(l.ctx, &pod);
}

/* A pod of that name and status, as the API server has it, put. */
static void put(struct cluster_ps *c, const char *name, const char *node,
                const char *status)
{
    cleanup_free char *json = xasprintf(
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"u-%s\","
        "\"labels\":{\"biga.dev/role\":\"service\"}},"
        "\"spec\":{\"nodeName\":\"%s\"},\"status\":{%s}}",
        name, name, node, status);
    put_json(c, json);
}

static void expect(struct cluster_ps *c, const char *name, enum pod_state state,
                   const char *reason, const char *message)
{
    cleanup_with(cluster_ps_pod) struct cluster_ps_pod *p =
        cluster_ps_find(c, "ns", name);
    cr_assert(p);
    cr_expect_eq(p->state, state, "%s", pod_state_name(p->state));
    cr_expect_str_eq(p->reason, reason);
    cr_expect_str_eq(p->message, message);
}

#define WAITING(reason, message)                                             \
    "\"phase\":\"Pending\",\"containerStatuses\":[{\"state\":{\"running\":{" \
    "}}},{\"state\":{\"waiting\":{\"reason\":\"" reason                      \
    "\",\"message\":\"" message "\"}}}]"

/* What biga-cri says comes through the kubelet's own words. */
Test(cluster_ps, reasons_are_those_of_cards)
{
    struct cluster_ps *c = cluster_ps_create();
    put(c, "a", "n1",
        WAITING("ErrImagePull",
                "rpc error: code = FailedPrecondition desc = ImageArch: image "
                "x is for amd64, and card-1 is arm64"));
    expect(c, "a", POD_STATE_CREATING, "ImageArch",
           "image x is for amd64, and card-1 is arm64");
    put(c, "a", "n1",
        WAITING("ImagePullBackOff",
                "Back-off: ErrImagePull: rpc error: code = Unknown desc = "
                "failed: rpc error: code = X desc = SpecRefused: no: never"));
    expect(c, "a", POD_STATE_CREATING, "SpecRefused", "no: never");
    put(c, "a", "n1", WAITING("CrashLoopBackOff", "back-off 10s"));
    expect(c, "a", POD_STATE_CREATING, "CrashLoopBackOff", "back-off 10s");
    cluster_ps_destroy(c);
}

Test(cluster_ps, states_are_those_of_pods)
{
    struct cluster_ps *c = cluster_ps_create();
    size_t n;
    put(c, "b", "",
        "\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\","
        "\"status\":\"False\",\"reason\":\"Unschedulable\"}]");
    expect(c, "b", POD_STATE_PENDING, "NoPlace", "");
    put(c, "a", "n1",
        "\"phase\":\"Running\",\"podIP\":\"192.0.2.1\",\"conditions\":[{"
        "\"type\":\"biga.dev/CardLost\",\"status\":\"True\",\"message\":"
        "\"it does not answer\"}]");
    expect(c, "a", POD_STATE_RUNNING, "CardLost", "it does not answer");
    const struct cluster_ps_filter all = {.state = POD_STATES, .most = 10};
    struct cluster_ps_pod **list = cluster_ps_list(c, &all, &n);
    cr_assert_eq(n, 2);
    cr_expect_str_eq(list[0]->name, "a");
    cr_expect_str_eq(list[0]->address, "192.0.2.1");
    cr_expect_str_eq(list[0]->labels, "{\"biga.dev/role\":\"service\"}");
    cr_expect_str_eq(list[1]->name, "b");
    put(c, "a", "n1",
        "\"phase\":\"Failed\",\"containerStatuses\":[{\"restartCount\":3,"
        "\"state\":{\"terminated\":{\"reason\":\"Error\"}}}]");
    expect(c, "a", POD_STATE_FAILED, "Error", "");
    cr_expect_str_eq(list[0]->reason, "CardLost", "it is as it was");
    put(c, "a", "n1",
        "\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"why\"");
    expect(c, "a", POD_STATE_FAILED, "Evicted", "why");
    put(c, "a", "n1", "\"phase\":\"Succeeded\"");
    expect(c, "a", POD_STATE_GONE, "", "");
    const struct pod_listener l = cluster_ps_listener(c);
    l.gone(l.ctx, "u-a");
    cr_assert_null(cluster_ps_find(c, "ns", "a"));
    for (size_t i = 0; i < n; i++)
        cluster_ps_pod_unref(list[i]);
    free(list);
    cluster_ps_destroy(c);
}

/* --- as jobs are counted from them ----------------------------------------- */

static void see(void *arg, const struct job_pod *pod)
{
    struct job_pod *seen = arg;
    *seen = *pod;
}

static void put_timed(struct cluster_ps *c, const char *status)
{
    cleanup_free char *json = xasprintf(
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u\","
        "\"creationTimestamp\":\"2026-01-02T03:04:05Z\","
        "\"labels\":{\"biga.dev/role\":\"host\",\"biga.dev/job\":\"j\"},"
        "\"annotations\":{\"biga.dev/size\":\"3\"}},"
        "\"spec\":{},\"status\":{\"startTime\":\"2026-01-02T03:04:06Z\",%s}}",
        status);
    put_json(c, json);
}

static void see_ended(void *arg, const struct job_told *job)
{
    struct job_told *seen = arg;
    *seen = *job;
}

Test(cluster_ps, tells_since_when)
{
    enum { CREATED_S = 1767323045 };
    struct cluster_ps *c = cluster_ps_create();
    struct job_pod p = {0};
    put_timed(c, "\"phase\":\"Pending\",\"conditions\":[{\"type\":"
                 "\"PodScheduled\",\"status\":\"False\",\"reason\":"
                 "\"Unschedulable\"}]");
    uint64_t version = cluster_ps_version(c);
    cluster_ps_each(c, &(struct pods_asked){.namespace = "other"}, see, &p);
    cr_expect_null(p.name);
    cluster_ps_each(c, &(struct pods_asked){.namespace = "ns"}, see, &p);
    cr_expect_eq(p.submitted_s, CREATED_S);
    cr_expect_eq(p.started_s, 0, "it does not run");
    cr_expect_eq(p.size, 3);
    cr_expect_not(p.told, "it is to be judged");
    put_timed(c, "\"phase\":\"Failed\",\"containerStatuses\":["
                 "{\"state\":{\"terminated\":{\"finishedAt\":"
                 "\"2026-01-02T03:05:00Z\",\"reason\":\"Error\"}}},"
                 "{\"state\":{\"terminated\":{\"finishedAt\":"
                 "\"2026-01-02T03:04:30Z\"}}}]");
    cr_expect_neq(cluster_ps_version(c), version);
    cluster_ps_each(c, &(struct pods_asked){0}, see, &p);
    cr_expect_eq(p.started_s, CREATED_S + 1);
    cr_expect_eq(p.ended_s, CREATED_S + 55, "the later one");
    const struct pod_listener l = cluster_ps_listener(c);
    l.gone(l.ctx, "u");
    struct job_told job = {0};
    ended_jobs_each(cluster_ps_ended(c), CREATED_S, see_ended, &job);
    cr_expect_str_eq(job.name, "j");
    cr_expect_eq(job.state, JOB_FAILED);
    cr_expect_str_eq(job.reason, "Error");
    cluster_ps_destroy(c);
}

/* --- in order ----------------------------------------------------------------- */

enum { PODS = 60, CHANGES = 1200 };

/* What is there, by number; of some jobs and namespaces, in some states. */
static struct there {
    bool is;
    unsigned job, state;
} there[PODS];

static void put_any(struct cluster_ps *c, unsigned i)
{
    static const char *const phases[] = {"Pending", "Running", "Succeeded"};
    cleanup_free char *json = xasprintf(
        "{\"metadata\":{\"name\":\"p%02u\",\"namespace\":\"ns%u\",\"uid\":"
        "\"u%u\",\"labels\":{\"biga.dev/role\":\"host\",\"biga.dev/job\":"
        "\"j%u\"}},\"spec\":{\"nodeName\":\"n\"},\"status\":{\"phase\":\"%s\"}"
        "}",
        i, i % 3, i, there[i].job, phases[there[i].state]);
    put_json(c, json);
}

static void count_seen(void *arg, const struct job_pod *p)
{
    size_t *seen = arg;
    (void)p;
    ++*seen;
}

static void add_state(void *arg, const struct job_pod *p)
{
    unsigned *states = arg;
    *states |= 1u << p->state;
}

struct names {
    struct job_name last;
    char texts[2][16];
    struct {
        char namespace[16], name[16];
        unsigned states;
    } jobs[12];
    size_t n;
};

static void see_name(void *arg, const struct job_name *job, unsigned states)
{
    struct names *x = arg;
    cr_assert(x->n < ARRAY_LEN(x->jobs));
    (void)snprintf(x->jobs[x->n].namespace, 16, "%s", job->namespace);
    (void)snprintf(x->jobs[x->n].name, 16, "%s", job->name);
    x->jobs[x->n].states = states;
    cr_assert(x->n == 0 || job_name_compare(&x->last, job) < 0);
    (void)snprintf(x->texts[0], sizeof x->texts[0], "%s", job->namespace);
    (void)snprintf(x->texts[1], sizeof x->texts[1], "%s", job->name);
    x->last = (struct job_name){x->texts[0], x->texts[1]};
    x->n++;
}

static void expect_counts(struct cluster_ps *c)
{
    size_t of_jobs[3][4] = {0}, unsettled = 0, all = 0, jobs = 0, seen = 0;
    for (unsigned i = 0; i < PODS; i++) {
        if (!there[i].is)
            continue;
        all++;
        jobs += of_jobs[i % 3][there[i].job]++ == 0;
        unsettled += there[i].state == 0; /* it is being created */
    }
    cluster_ps_each(c, &(struct pods_asked){0}, count_seen, &seen);
    cr_assert_eq(seen, all);
    seen = 0;
    cluster_ps_each(c, &(struct pods_asked){.unsettled = true}, count_seen,
                    &seen);
    cr_assert_eq(seen, unsettled);
    for (unsigned k = 0; k < 12; k++) {
        char namespace[8], job[8];
        (void)snprintf(namespace, sizeof namespace, "ns%u", k / 4);
        (void)snprintf(job, sizeof job, "j%u", k % 4);
        seen = 0;
        cluster_ps_each(c, &(struct pods_asked){namespace, job, false},
                        count_seen, &seen);
        cr_assert_eq(seen, of_jobs[k / 4][k % 4]);
    }
    struct names x = {.last = {"", ""}};
    for (size_t before = 1; before != x.n;) { /* two at a time */
        before = x.n;
        struct job_name behind = x.last;
        cluster_ps_each_job(c, &behind, 2, see_name, &x);
    }
    cr_assert_eq(x.n, jobs);
    for (size_t i = 0; i < x.n; i++) {
        const struct pods_asked asked = {x.jobs[i].namespace, x.jobs[i].name,
                                         false};
        unsigned states = 0;
        cluster_ps_each(c, &asked, add_state, &states);
        cr_assert_eq(x.jobs[i].states, states);
    }
}

static void expect_pages(struct cluster_ps *c)
{
    char after[2][16] = {"", ""};
    size_t n = 1, all = 0;
    while (n) {
        const struct cluster_ps_filter f = {.after_namespace = after[0],
                                            .after_name = after[1],
                                            .state = POD_STATES,
                                            .most = 7};
        struct cluster_ps_pod **list = cluster_ps_list(c, &f, &n);
        for (size_t i = 0; i < n; i++) {
            cleanup_with(cluster_ps_pod) struct cluster_ps_pod *found =
                cluster_ps_find(c, list[i]->namespace, list[i]->name);
            cr_assert_eq(found, list[i]);
            int order = strcmp(after[0], list[i]->namespace);
            cr_assert(order < 0 ||
                      (order == 0 && strcmp(after[1], list[i]->name) < 0));
            (void)snprintf(after[0], 16, "%s", list[i]->namespace);
            (void)snprintf(after[1], 16, "%s", list[i]->name);
            cluster_ps_pod_unref(list[i]);
        }
        all += n;
        free(list);
    }
    for (unsigned i = 0; i < PODS; i++)
        all -= there[i].is;
    cr_assert_eq(all, 0);
}

Test(cluster_ps, has_its_pods_in_order)
{
    uint64_t random = 2;
    struct cluster_ps *c = cluster_ps_create();
    const struct pod_listener l = cluster_ps_listener(c);
    for (unsigned i = 0; i < CHANGES; i++) {
        unsigned pod = sim_random(&random) % PODS;
        char uid[8];
        (void)snprintf(uid, sizeof uid, "u%u", pod);
        there[pod] = (struct there){.is = sim_random(&random) % 4 > 0,
                                    .job = sim_random(&random) % 4,
                                    .state = sim_random(&random) % 3};
        if (there[pod].is)
            put_any(c, pod);
        else
            l.gone(l.ctx, uid);
        if (i % 20 == 0) {
            expect_counts(c);
            expect_pages(c);
        }
    }
    cluster_ps_destroy(c);
}
