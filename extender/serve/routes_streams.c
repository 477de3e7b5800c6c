#include "extender/serve/routes_streams.h"

#include <string.h>

#include "extender/admit/access.h"
#include "extender/pods/applied_view.h"
#include "extender/relay/relay.h"
#include "extender/run/embedded.h"
#include "extender/serve/app.h"
#include "extender/serve/query.h"
#include "extender/serve/routes_private.h"
#include "lib/base/mem.h"

/* --- what clients ask ------------------------------------------------------- */

/* When the node was heard last, if nothing is heard from it any more; else -1. */
static int64_t silent_since(const struct snapshot *s, const char *name)
{
    int32_t i = snapshot_find(s, name, strlen(name));
    const struct node *node = i == NODE_NONE ? NULL
                                             : snapshot_node(s, (size_t)i);
    if (!node || !node_status_is_silent(node->status))
        return -1;
    return atomic_load(&node->liveness->heard_ms);
}

/* The pod has no place: it is over, or waits. */
static void refuse_unplaced(struct httpd_request *rq,
                            const struct applied_pod *p)
{
    if (p->end)
        httpd_fail(rq, 409, "pod %.63s/%.253s is over, and gone from its node",
                   p->namespace, p->name);
    else
        httpd_fail(rq, 409,
                   "pod %.63s/%.253s has no node yet: biga why %.63s/%.253s",
                   p->namespace, p->name, p->namespace, p->name);
}

static void ask(struct httpd_request *rq, struct app *app, enum relay_kind kind)
{
    const char *namespace = httpd_arg(rq, 0), *name = httpd_arg(rq, 1);
    cleanup_with(relay_stream) struct relay_stream *stream =
        relay_open(app->relay, rq, kind);
    if (!stream)
        return;
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app->writer);
    cleanup_with(pod_set) struct pod_set *set =
        applied_get(embedded_of(&app->source)->store.applied);
    const struct applied_pod *p = pod_set_find(set, namespace, name);
    if (!p) {
        httpd_fail(rq, 404, "pod %.63s/%.253s: was not applied", namespace,
                   name);
        return;
    }
    const struct allocation *place = pod_place(p, s);
    if (!place) {
        refuse_unplaced(rq, p);
        return;
    }
    const struct relay_pod pod = {
        .namespace = p->namespace,
        .name = p->name,
        .uid = p->uid,
        .node = place->node,
        .silent_since_ms = silent_since(s, place->node)};
    relay_ask(steal(&stream), rq, &pod,
              access_client(rq, app->listener.secure));
}

static void on_log(struct httpd_request *rq, void *ctx)
{
    ask(rq, ctx, RELAY_LOG);
}

static void on_exec(struct httpd_request *rq, void *ctx)
{
    ask(rq, ctx, RELAY_EXEC);
}

static void on_attach(struct httpd_request *rq, void *ctx)
{
    ask(rq, ctx, RELAY_ATTACH);
}

static void on_portforward(struct httpd_request *rq, void *ctx)
{
    ask(rq, ctx, RELAY_PORTFORWARD);
}

const struct httpd_route streams_routes[] = {
    {HTTPD_GET, "/v1/pods/:/:/log", on_log, 0, "pod-log"},
    {HTTPD_GET, "/v1/pods/:/:/exec", on_exec, 0, "pod-exec"},
    {HTTPD_GET, "/v1/pods/:/:/attach", on_attach, 0, "pod-attach"},
    {HTTPD_GET, "/v1/pods/:/:/portforward", on_portforward, 0,
     "pod-portforward"},
};
const size_t n_streams_routes = ARRAY_LEN(streams_routes);

/* --- what nodes ask --------------------------------------------------------- */

static void on_feed(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"wait", NULL};
    struct app *app = ctx;
    uint64_t wait_s;
    if (node_take(rq) && httpd_query_only(rq, params) &&
        query_number(rq, "wait", RELAY_FEED_MAX_S, &wait_s))
        relay_feed(app->relay, rq, (int64_t)wait_s * 1000);
}

static void on_take(struct httpd_request *rq, void *ctx)
{
    static const char *const no_params[] = {NULL};
    struct app *app = ctx;
    if (node_take(rq) && httpd_query_only(rq, no_params))
        relay_take(app->relay, rq);
}

const struct httpd_route node_streams_routes[] = {
    {HTTPD_GET, "/v1/nodes/:/streams", on_feed, 0, "node-streams"},
    {HTTPD_GET, "/v1/nodes/:/streams/:", on_take, 0, "node-stream"},
};
const size_t n_node_streams_routes = ARRAY_LEN(node_streams_routes);

/* --- in a cluster ----------------------------------------------------------- */

static void on_elsewhere(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    httpd_fail(rq, 501,
               "this extender is part of a cluster (--store kubernetes), where "
               "kubelets have the pods: use kubectl logs, exec, attach and "
               "port-forward");
}

const struct httpd_route streams_elsewhere_routes[] = {
    {HTTPD_GET, "/v1/pods/:/:/log", on_elsewhere, 0, "pod-log"},
    {HTTPD_GET, "/v1/pods/:/:/exec", on_elsewhere, 0, "pod-exec"},
    {HTTPD_GET, "/v1/pods/:/:/attach", on_elsewhere, 0, "pod-attach"},
    {HTTPD_GET, "/v1/pods/:/:/portforward", on_elsewhere, 0, "pod-portforward"},
};
const size_t n_streams_elsewhere_routes = ARRAY_LEN(streams_elsewhere_routes);
