#include "extender/cluster/cluster_fit.h"

#include "lib/io/log.h"

/* --- Nodes -------------------------------------------------------------- */

static void list_nodes(void *ctx)
{
    fit_nodes_list(ctx);
}

static void put_node(void *ctx, const char *json, size_t size)
{
    struct error err;
    if (fit_nodes_put(ctx, json, size, &err) < 0)
        log_event(LOG_WARN, "node-not-judged", "error", err.text, NULL);
}

static void gone_node(void *ctx, const char *json, size_t size)
{
    struct cluster_object object;
    if (cluster_object_read(json, size, &object, NULL) == 0)
        fit_nodes_gone(ctx, object.name);
}

static void listed_nodes(void *ctx)
{
    fit_nodes_listed(ctx);
}

/* --- pods --------------------------------------------------------------- */

static void put_pod(struct fit_nodes *fit, enum fit_source source,
                    const struct kube_pod *pod)
{
    struct error err;
    const struct fit_pod is = {.uid = pod->demand.uid,
                               .node = pod->node,
                               .finished = kube_pod_is_finished(pod),
                               .json = pod->json.data,
                               .size = pod->json.size};
    if (fit_nodes_put_pod(fit, source, &is, &err) < 0)
        log_event(LOG_WARN, "pod-not-charged", "error", err.text, NULL);
}

static void put_ours(void *ctx, const struct kube_pod *pod)
{
    put_pod(ctx, FIT_ROLES, pod);
}

static void gone_ours(void *ctx, const char *uid)
{
    fit_nodes_gone_pod(ctx, FIT_ROLES, uid);
}

static void list_others(void *ctx)
{
    fit_nodes_list_pods(ctx, FIT_OTHERS);
}

static void put_other(void *ctx, const struct kube_pod *pod)
{
    put_pod(ctx, FIT_OTHERS, pod);
}

static void gone_other(void *ctx, const char *uid)
{
    fit_nodes_gone_pod(ctx, FIT_OTHERS, uid);
}

static void listed_others(void *ctx)
{
    fit_nodes_listed_pods(ctx, FIT_OTHERS);
}

void cluster_fit_follow(struct fit_nodes *fit, struct cluster_nodes *nodes,
                        struct cluster_pods *pods, struct host_capacity *others)
{
    static const struct reflector_handler handler = {list_nodes, put_node,
                                                     gone_node, listed_nodes};
    cluster_nodes_next(nodes, &handler, fit);
    cluster_pods_listen(
        pods,
        &(struct pod_listener){.put = put_ours, .gone = gone_ours, .ctx = fit});
    host_capacity_listen(
        others, &(struct host_capacity_listener){.list = list_others,
                                                 .put = put_other,
                                                 .gone = gone_other,
                                                 .listed = listed_others,
                                                 .ctx = fit});
}
