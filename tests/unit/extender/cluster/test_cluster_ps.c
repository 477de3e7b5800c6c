#include "extender/cluster/cluster_ps.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"

/* A pod of that name and status, as the API server has it, put. */
static void put(struct cluster_ps *c, const char *name, const char *node,
                const char *status)
{
    struct kube_pod pod;
    struct demand_config config;
    struct error err = {0};
    cleanup_free char *json = xasprintf(
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"u-%s\","
        "\"labels\":{\"biga.dev/role\":\"service\"}},"
        "\"spec\":{\"nodeName\":\"%s\"},\"status\":{%s}}",
        name, name, node, status);
    demand_config_default(&config);
    cr_assert_eq(kube_pod_read(json, strlen(json), &config, &pod, &err), 0,
                 "%s", err.text);
    const struct pod_listener l = cluster_ps_listener(c);
    l.put(l.ctx, &pod);
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
    struct kube_pod pod;
    struct demand_config config;
    struct error err = {0};
    cleanup_free char *json = xasprintf(
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u\","
        "\"creationTimestamp\":\"2026-01-02T03:04:05Z\","
        "\"labels\":{\"biga.dev/role\":\"host\",\"biga.dev/job\":\"j\"},"
        "\"annotations\":{\"biga.dev/size\":\"3\"}},"
        "\"spec\":{},\"status\":{\"startTime\":\"2026-01-02T03:04:06Z\",%s}}",
        status);
    demand_config_default(&config);
    cr_assert_eq(kube_pod_read(json, strlen(json), &config, &pod, &err), 0,
                 "%s", err.text);
    const struct pod_listener l = cluster_ps_listener(c);
    l.put(l.ctx, &pod);
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
    cluster_ps_each(c, "other", see, &p);
    cr_expect_null(p.name);
    cluster_ps_each(c, "ns", see, &p);
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
    cluster_ps_each(c, NULL, see, &p);
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
