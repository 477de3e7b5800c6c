#include "extender/serve/routes_bind.h"

#include <string.h>

#include "extender/cluster/binder.h"
#include "extender/cluster/binds.h"
#include "extender/cluster/cluster.h"
#include "extender/judge/alignment.h"
#include "extender/pods/pending_demands.h"
#include "extender/serve/wire.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"

/* One bind under way: lives until the writer has answered, and in a cluster
 * until it is known what became of it there. */
struct bind {
    struct writer_op op;
    struct wire_binding binding;
    struct demand demand;
    struct candidates *candidates;
    struct httpd_request *rq;
    struct app *app;
    struct binding post; /* in a cluster */
};

static void bind_answer(struct app *app, struct httpd_request *rq,
                        const char *result, const char *error)
{
    metrics_count(app->metrics, APP_BINDS, result);
    wire_write_binding(error, httpd_reply(rq));
}

static void bind_destroy(struct bind *b)
{
    str_fini(&b->op.out);
    candidates_unref(b->candidates);
    free(b);
}

/* Say what has become of it. */
static void bind_reply(struct bind *b, const char *result, const char *error)
{
    log_event(*error ? LOG_WARN : LOG_INFO, "bind", "namespace",
              b->binding.namespace, "pod", b->binding.name, "node",
              b->binding.node, "result", result, "error", error, NULL);
    bind_answer(b->app, b->rq, result, error);
    httpd_resume(b->rq);
    b->rq = NULL;
}

/* --- telling ------------------------------------------------------------ */

/* The Event that says how well a pod has been placed. */
static void tell_placed(const struct bind *b)
{
    static const enum events_reason reasons[] = {
        [ALIGNMENT_GOOD] = EVENTS_ALIGNED,
        [ALIGNMENT_DEGRADED] = EVENTS_ALIGNMENT_DEGRADED,
        [ALIGNMENT_NONE] = EVENTS_UNALIGNED};
    cleanup_str struct str text = STR_INIT(EVENTS_TEXT_MAX);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(b->app->writer);
    const struct allocation *a = alloc_index_find_uid(s->allocations,
                                                      b->binding.uid);
    if (!a || (a->demand.role != ROLE_HOST && a->demand.role != ROLE_XPU))
        return;
    int32_t index = snapshot_find(s, a->node, strlen(a->node));
    const struct node *node = index == NODE_NONE
                                  ? NULL
                                  : snapshot_node(s, (size_t)index);
    alignment_tell(a, &text);
    cluster_tell(b->app->cluster, &b->demand, reasons[alignment_judge(node, a)],
                 str_text(&text));
}

static void tell_refused(const struct bind *b, const char *reason)
{
    if (b->app->cluster && b->demand.role != ROLE_NONE)
        cluster_tell(b->app->cluster, &b->demand, EVENTS_REFUSED, reason);
}

/* --- giving back -------------------------------------------------------- */

/* With all texts that the operation needs. */
struct release {
    struct writer_op op;
    struct wire_binding binding;
    struct binds_place place;
};

static void release_done(struct writer_op *op)
{
    free(op->ctx);
}

static void give_back(void *ctx, const struct binds_place *place)
{
    const struct bind *b = ctx;
    struct release *r = xcalloc(1, sizeof *r);
    r->binding = b->binding;
    r->place = *place;
    r->op = (struct writer_op){.kind = WRITER_FREE,
                               .namespace = r->binding.namespace,
                               .pod = r->binding.name,
                               .uid = r->binding.uid,
                               .node = r->place.node,
                               .number = r->place.number,
                               .done = release_done,
                               .ctx = r};
    writer_post(b->app->writer, &r->op);
}

/* In a cluster: this request for the pod is over. */
static void bind_end(struct bind *b, enum binds_end end)
{
    struct binds_result r = {.end = end,
                             .place.number = b->op.resource_version};
    memcpy(r.place.node, b->binding.node, sizeof r.place.node);
    if (end == BINDS_REFUSED && r.place.number == 0) /* it has no role */
        r.end = BINDS_NOTHING;
    binds_finish(b->app->binds, b->binding.uid, &r, give_back, b);
}

/* --- in the API server -------------------------------------------------- */

static void say(struct bind *b, const char *result, const char *reason)
{
    struct error err = {0};
    (void)error_set(&err, EBUSY, "pod %s/%s: %s", b->binding.namespace,
                    b->binding.name, reason);
    bind_reply(b, result, err.text);
}

static void post_done(struct binding *post, enum binder_outcome outcome,
                      const char *reason)
{
    struct bind *b = post->ctx;
    switch (outcome) {
    case BINDER_BOUND:
        bind_end(b, BINDS_BOUND);
        if (b->op.created)
            tell_placed(b);
        bind_reply(b,
                   b->demand.role == ROLE_NONE ? "foreign"
                   : b->op.created             ? "bound"
                                               : "repeated",
                   "");
        break;
    case BINDER_REFUSED:
        bind_end(b, BINDS_REFUSED);
        tell_refused(b, reason);
        say(b, "refused", reason);
        break;
    case BINDER_UNKNOWN:
        say(b, "unknown", reason);
        return; /* until it is settled */
    }
    bind_destroy(b);
}

static void post_settled(struct binding *post, enum binder_outcome outcome)
{
    struct bind *b = post->ctx;
    static const char *const words[] = {[BINDER_BOUND] = "bound",
                                        [BINDER_REFUSED] = "refused",
                                        [BINDER_UNKNOWN] = "unknown"};
    static const enum binds_end ends[] = {[BINDER_BOUND] = BINDS_BOUND,
                                          [BINDER_REFUSED] = BINDS_REFUSED,
                                          [BINDER_UNKNOWN] = BINDS_NOTHING};
    log_event(LOG_INFO, "bind-settled", "namespace", b->binding.namespace,
              "pod", b->binding.name, "node", b->binding.node, "result",
              words[outcome], NULL);
    if (outcome == BINDER_UNKNOWN) /* the next leader must wait for it */
        cluster_unsure(b->app->cluster);
    bind_end(b, ends[outcome]);
    if (outcome == BINDER_BOUND && b->op.created)
        tell_placed(b);
    bind_destroy(b);
}

/* Make true in the API server what was decided. */
static void bind_post(struct bind *b)
{
    struct binding *p = &b->post;
    const struct wire_binding *w = &b->binding;
    memcpy(p->namespace, w->namespace, sizeof p->namespace);
    memcpy(p->name, w->name, sizeof p->name);
    memcpy(p->uid, w->uid, sizeof p->uid);
    memcpy(p->node, w->node, sizeof p->node);
    p->allocation = str_text(&b->op.out);
    p->allocation_size = b->op.out.size;
    p->repeated = b->demand.role != ROLE_NONE && !b->op.created;
    p->done = post_done;
    p->settled = post_settled;
    p->ctx = b;
    if (binder_post(cluster_binder(b->app->cluster), p) == 0)
        return;
    bind_end(b, BINDS_REFUSED);
    say(b, "error", "too many binds wait for the API server: try again");
    bind_destroy(b);
}

/* --- decided ------------------------------------------------------------ */

static void bind_decided(struct writer_op *op)
{
    struct bind *b = op->ctx;
    if (b->app->cluster && op->result == 0) {
        bind_post(b);
        return;
    }
    if (b->app->cluster)
        bind_end(b, BINDS_NOTHING);
    if (op->result < 0)
        tell_refused(b, op->error.text);
    bind_reply(b,
               op->result == 0 ? (op->created ? "bound" : "repeated")
               : op->result == -EBUSY || op->result == -EEXIST ? "refused"
                                                               : "error",
               op->result ? op->error.text : "");
    bind_destroy(b);
}

static void bind_start(struct httpd_request *rq, struct app *app,
                       const struct wire_binding *binding,
                       const struct demand *demand)
{
    struct bind *b = xcalloc(1, sizeof *b);
    b->binding = *binding;
    b->demand = *demand;
    b->rq = rq;
    b->app = app;
    str_init(&b->op.out, WIRE_BIND_BODY_MAX);
    httpd_suspend(rq);
    if (app->cluster)
        binds_begin(app->binds, b->binding.uid);
    if (demand->role == ROLE_NONE) { /* it holds nothing of ours */
        bind_post(b);
        return;
    }
    b->candidates = pending_demands_candidates(app->demands, binding->uid);
    b->op.kind = WRITER_BIND;
    b->op.node = b->binding.node;
    b->op.demand = &b->demand;
    b->op.candidates = b->candidates;
    b->op.done = bind_decided;
    b->op.ctx = b;
    writer_post(app->writer, &b->op);
}

/* --- asked -------------------------------------------------------------- */

/* A pod that no filter has shown us: known from an earlier bind, or not at
 * all. */
static void bind_unseen(struct httpd_request *rq, struct app *app,
                        const struct wire_binding *b)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app->writer);
    const struct allocation *a = alloc_index_find_uid(s->allocations, b->uid);
    struct error err = {0};
    if (a && app->cluster) { /* is that so there, too? */
        bind_start(rq, app, b, &a->demand);
        return;
    }
    if (a && strcmp(a->node, b->node) == 0) {
        bind_answer(app, rq, "repeated", "");
        return;
    }
    if (a)
        (void)error_set(&err, EEXIST, "pod %s/%s is bound to node %s",
                        b->namespace, b->name, a->node);
    else
        (void)error_set(&err, ENOENT,
                        "pod %s/%s (uid %s) was not filtered since this "
                        "extender started: schedule it again",
                        b->namespace, b->name, b->uid);
    bind_answer(app, rq, "refused", err.text);
}

/* False, and answered, when somebody else is to be asked: over a connection of
 * its own, since a kept one leads here as long as it is used. */
static bool is_ours(struct httpd_request *rq, struct app *app,
                    const struct wire_binding *b)
{
    char leader[254] = "";
    struct error err = {0};
    if (!app->cluster || cluster_leads(app->cluster, leader))
        return true;
    (void)error_set(&err, EAGAIN,
                    "pod %s/%s: not the leader (%s is): try again",
                    b->namespace, b->name, *leader ? leader : "nobody");
    httpd_close_after(rq);
    bind_answer(app, rq, "follower", err.text);
    return false;
}

static bool find_demand(struct app *app, const char *uid,
                        struct demand *ret_demand)
{
    return pending_demands_find_uid(app->demands, uid, ret_demand) ||
           (app->cluster && cluster_find_pod(app->cluster, uid, ret_demand));
}

void handle_bind(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    struct error err = {0};
    struct wire_binding binding;
    struct demand demand;
    size_t size;
    const char *body = httpd_body(rq, &size);
    if (wire_read_binding(body, size, &binding, &err) < 0) {
        httpd_fail(rq, 400, "%s", err.text);
        return;
    }
    if (!is_ours(rq, app, &binding))
        return;
    if (!find_demand(app, binding.uid, &demand)) {
        bind_unseen(rq, app, &binding);
        return;
    }
    if (demand.role == ROLE_NONE && !app->cluster) {
        bind_answer(app, rq, "foreign", "");
        return;
    }
    if (strcmp(demand.name, binding.name) != 0 ||
        strcmp(demand.namespace, binding.namespace) != 0) {
        (void)error_set(&err, EINVAL,
                        "PodUID: \"%s\" is that of pod %s/%s, not of %s/%s",
                        binding.uid, demand.namespace, demand.name,
                        binding.namespace, binding.name);
        bind_answer(app, rq, "error", err.text);
        return;
    }
    bind_start(rq, app, &binding, &demand);
}
