#include "extender/serve/routes_private.h"

#include <stddef.h>
#include <string.h>

#include "extender/pods/pending_demands.h"
#include "extender/wire/wire.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"

/* One bind under way: lives until its request is answered. */
struct bind {
    struct writer_op op;
    struct wire_binding binding;
    struct demand demand;
    struct candidates *candidates;
    struct httpd_request *rq;
    struct app *app;
    struct pod_bind decided;
};

static void bind_answer(struct app *app, struct httpd_request *rq,
                        const char *result, const char *error)
{
    metrics_count(app->listener.metrics, APP_BINDS, result);
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

/* Who makes binds true elsewhere counts there, also those that are answered
 * before that is known. */
static void bind_count_wait(const struct bind *b)
{
    const struct app *app = b->app;
    if (b->decided.created && !pod_source_has(&app->source, bind))
        app_metrics_waited(
            app->listener.metrics, pod_role_name(b->demand.role),
            pending_demands_waited_ms(app->demands, b->demand.uid));
}

static void bind_done(struct pod_bind *decided, const char *result,
                      const char *error)
{
    struct bind *b =
        (struct bind *)((char *)decided - offsetof(struct bind, decided));
    bind_count_wait(b);
    bind_reply(b, result, error);
    bind_destroy(b);
}

/* --- decided ------------------------------------------------------------ */

/* Have it made true where pods come from. */
static void bind_make(struct bind *b)
{
    b->decided.allocation = str_text(&b->op.out);
    b->decided.allocation_size = b->op.out.size;
    b->decided.number = b->op.resource_version;
    b->decided.created = b->op.created;
    pod_source_bind(&b->app->source, &b->decided);
}

static void bind_decided(struct writer_op *op)
{
    struct bind *b = op->ctx;
    if (op->result == 0) {
        bind_make(b);
        return;
    }
    pod_source_tell(&b->app->source, bind_refused, &b->decided, op->error.text);
    bind_done(&b->decided,
              op->result == -EBUSY || op->result == -EEXIST ? "refused"
                                                            : "error",
              op->error.text);
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
    b->decided = (struct pod_bind){.namespace = b->binding.namespace,
                                   .name = b->binding.name,
                                   .uid = b->binding.uid,
                                   .node = b->binding.node,
                                   .demand = &b->demand,
                                   .done = bind_done};
    pod_source_tell(&app->source, bind_begin, b->binding.uid);
    if (demand->role == ROLE_NONE) { /* it holds nothing of ours */
        bind_make(b);
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
    if (a && pod_source_has(&app->source, bind)) { /* perhaps not true there */
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

/* False, and answered, when another replica leads.  The connection is closed:
 * kept alive it would bring the next call here again. */
static bool is_ours(struct httpd_request *rq, struct app *app,
                    const struct wire_binding *b)
{
    char leader[POD_SOURCE_LEADER_MAX];
    struct error err = {0};
    if (pod_source_leads(&app->source, leader))
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
           pod_source_ask(&app->source, find_demand, uid, ret_demand);
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
    if (demand.role == ROLE_NONE && !pod_source_has(&app->source, bind)) {
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
