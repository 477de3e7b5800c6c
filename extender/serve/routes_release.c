#include "extender/serve/routes_release.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/app/app.h"
#include "extender/cluster/cluster.h"
#include "extender/keep/writer.h"
#include "extender/pods/pending_demands.h"
#include "extender/state/snapshot.h"
#include "lib/base/mem.h"

/* A release that waits for the writer. */
struct release {
    struct writer_op op;
    struct app *app;
    struct httpd_request *rq;
};

/* On the writer's thread. */
static void release_done(struct writer_op *op)
{
    struct release *release = op->ctx;
    httpd_resume(release->rq);
}

static void release_finish(struct httpd_request *rq, void *arg)
{
    struct release *release = arg;
    struct app *app = release->app;
    int r = release->op.result;
    metrics_count(app->metrics, APP_RELEASES,
                  r == 0         ? "released"
                  : r == -ENOENT ? "unknown"
                                 : "error");
    if (r < 0) {
        httpd_fail(rq,
                   r == -ENOENT   ? 404
                   : r == -EBUSY  ? 409
                   : r == -ENOSPC ? 507
                                  : 500,
                   "%s", release->op.error.text);
    } else {
        if (app->demands)
            pending_demands_forget(app->demands, httpd_arg(rq, 0),
                                   httpd_arg(rq, 1));
        str_add(httpd_reply(rq), "{\"released\":{\"namespace\":");
        str_add_json(httpd_reply(rq), httpd_arg(rq, 0));
        str_add(httpd_reply(rq), ",\"name\":");
        str_add_json(httpd_reply(rq), httpd_arg(rq, 1));
        str_add(httpd_reply(rq), "}}\n");
    }
    str_fini(&release->op.out);
    free(release);
}

/* In a cluster an allocation is what its pod says. */
static bool is_of_pod(struct app *app, const struct httpd_request *rq)
{
    if (!app->cluster)
        return false;
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app->writer);
    const struct allocation *a =
        alloc_index_find(s->allocations, httpd_arg(rq, 0), httpd_arg(rq, 1));
    return a && !a->held && cluster_has_pod(app->cluster, a->demand.uid);
}

/* It was applied, and its node was never told of it: nothing has begun. */
static bool is_unfed(struct app *app, const struct httpd_request *rq)
{
    if (!app->applied)
        return false;
    cleanup_with(pod_set) struct pod_set *set = applied_get(app->applied);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app->writer);
    const struct allocation *a =
        alloc_index_find(s->allocations, httpd_arg(rq, 0), httpd_arg(rq, 1));
    return a && !a->held && pod_set_find_uid(set, a->demand.uid) &&
           a->number > writer_fed(app->writer, a->node);
}

/* What was applied gives its place back once its node says that nothing of it
 * is left: else two pods might have one card. */
static bool is_applied(struct app *app, const struct httpd_request *rq)
{
    if (!app->applied)
        return false;
    cleanup_with(pod_set) struct pod_set *set = applied_get(app->applied);
    const struct applied_pod *p = pod_set_find(set, httpd_arg(rq, 0),
                                               httpd_arg(rq, 1));
    return p && !p->deleting && p->ended == APPLIED_PENDING;
}

/* A node that answers, and is still to say that a pod has ended. */
struct ending {
    char node[DEMAND_NAME_MAX + 1];
    bool passive; /* its advertiser runs no pods: it will never say so */
};

/* It is to end; a node that lacks some of its slices answers, too. */
static bool is_ending(struct app *app, const struct httpd_request *rq,
                      struct ending *ret_ending)
{
    if (!app->applied)
        return false;
    cleanup_with(pod_set) struct pod_set *set = applied_get(app->applied);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app->writer);
    const struct allocation *a =
        alloc_index_find(s->allocations, httpd_arg(rq, 0), httpd_arg(rq, 1));
    if (!a || a->held || !pod_set_find_uid(set, a->demand.uid))
        return false;
    int32_t index = snapshot_find(s, a->node, strlen(a->node));
    if (index == NODE_NONE)
        return false;
    const struct node *n = snapshot_node(s, (size_t)index);
    if (node_status_is_silent(n->status))
        return false;
    (void)snprintf(ret_ending->node, sizeof ret_ending->node, "%s", n->name);
    ret_ending->passive = n->topo && topo_runs(n->topo) == TOPO_RUNS_NONE;
    return true;
}

static void fail_ending(struct httpd_request *rq, const struct ending *e)
{
    httpd_fail(rq, 409, "pod %.63s/%.253s may still run on node %.253s, %s",
               httpd_arg(rq, 0), httpd_arg(rq, 1), e->node,
               e->passive
                   ? "which runs no pods, and never says that nothing of it is "
                     "left: start its biga-advertiser with --actuate, or stop "
                     "that until the node is stale, see that nothing of the "
                     "pod runs there, and release it then"
                   : "which answers: its place is given back once that node "
                     "says that nothing of it is left; release it only when "
                     "that node is gone for good");
}

void handle_release(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    static const char *const no_params[] = {NULL};
    struct ending ending;
    if (!httpd_query_only(rq, no_params))
        return;
    if (is_of_pod(app, rq)) {
        httpd_fail(rq, 409,
                   "pod %.63s/%.253s is there, and what it has is written on "
                   "it: delete the pod",
                   httpd_arg(rq, 0), httpd_arg(rq, 1));
        return;
    }
    bool unfed = is_unfed(app, rq);
    if (!unfed && is_applied(app, rq)) {
        httpd_fail(rq, 409,
                   "pod %.63s/%.253s was applied, and its node may run it: "
                   "delete it (biga delete), and release it only when that "
                   "node is gone for good",
                   httpd_arg(rq, 0), httpd_arg(rq, 1));
        return;
    }
    if (!unfed && is_ending(app, rq, &ending)) {
        fail_ending(rq, &ending);
        return;
    }
    struct release *release = xcalloc(1, sizeof *release);
    release->app = app;
    release->rq = rq;
    release->op = (struct writer_op){
        .kind = WRITER_RELEASE,
        .namespace = httpd_arg(rq, 0),
        .pod = httpd_arg(rq, 1),
        .unfed = unfed,
        .out = STR_INIT(STR_MAX_DEFAULT),
        .done = release_done,
        .ctx = release,
    };
    httpd_then(rq, release_finish, release);
    httpd_suspend(rq);
    writer_post(app->writer, &release->op);
}
