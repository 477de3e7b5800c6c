#include "tests/lib/sim/benchpods.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/cluster/cluster_ps.h"
#include "extender/pods/kube_pod.h"

struct cluster_ps *benchpods_create(void)
{
    return cluster_ps_create();
}

void benchpods_destroy(struct cluster_ps *c)
{
    cluster_ps_destroy(c);
}

void benchpods_put(struct cluster_ps *c, const struct demand *pod,
                   const char *node)
{
    struct demand_config config;
    struct kube_pod told;
    struct error err = {0};
    cleanup_free char *json = xasprintf(
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"%s\","
        "\"labels\":{\"biga.dev/role\":\"host\",\"biga.dev/job\":\"%s\","
        "\"biga.dev/pair\":\"%d\"},\"annotations\":{\"biga.dev/size\":\"%d\"}}"
        ",\"spec\":{\"nodeName\":\"%s\"},\"status\":{\"phase\":\"Running\"}}",
        pod->name, pod->namespace, pod->uid, pod->job, (int)pod->pair,
        (int)pod->size, node);
    demand_config_default(&config);
    if (kube_pod_read(json, strlen(json), &config, &told, &err) < 0 ||
        told.broken) {
        fprintf(stderr, "benchpods: %s\n",
                told.broken ? told.why.text : err.text);
        abort();
    }
    const struct pod_listener l = cluster_ps_listener(c);
    l.put(l.ctx, &told);
}

static void each_pod(void *ctx, const struct snapshot *s,
                     const struct pods_asked *asked, job_pod_f *visit,
                     void *arg)
{
    (void)s;
    cluster_ps_each(ctx, asked, visit, arg);
}

static void each_job(void *ctx, const struct job_name *behind, size_t most,
                     job_name_f *visit, void *arg)
{
    cluster_ps_each_job(ctx, behind, most, visit, arg);
}

static uint64_t pods_version(void *ctx)
{
    return cluster_ps_version(ctx);
}

static struct ended_jobs *ended(void *ctx)
{
    return cluster_ps_ended(ctx);
}

struct pod_source benchpods_source(struct cluster_ps *c)
{
    static const struct pod_source_ops ops = {.each_pod = each_pod,
                                              .each_job = each_job,
                                              .pods_version = pods_version,
                                              .ended = ended};
    return (struct pod_source){&ops, c};
}
