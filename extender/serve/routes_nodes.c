#include "extender/serve/routes_nodes.h"

#include <string.h>

#include "extender/admit/access.h"
#include "extender/pods/node_report.h"
#include "extender/run/embedded.h"
#include "extender/serve/app.h"
#include "extender/serve/query.h"
#include "extender/serve/routes_private.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

static struct embedded *embedded(const struct app *app)
{
    return embedded_of(&app->source);
}

/* --- who asks ----------------------------------------------------------- */

static bool is_node_name(const char *name)
{
    size_t size = strlen(name);
    return size > 0 && size <= DEMAND_NAME_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == size;
}

const char *node_take(struct httpd_request *rq)
{
    char own[TLS_NAME_MAX + 1] = "";
    const char *node = httpd_arg(rq, 0);
    if (!is_node_name(node)) {
        httpd_fail(rq, 400, "node: \"%.64s\" is not the name of a node", node);
        return NULL;
    }
    if (httpd_peer(rq) && (!access_node(rq, own) || strcmp(own, node) != 0)) {
        httpd_refusal(rq, "node");
        httpd_fail(rq, 403,
                   "these are the pods of node \"%s\", and the client's "
                   "certificate speaks for %s%.253s",
                   node, *own ? "node " : "no node", own);
        return NULL;
    }
    return node;
}

/* --- what it is told, written down first -------------------------------- */

static void reply_pods(struct httpd_request *rq, void *arg);

/* What is so now; a pod may have come meanwhile, which is written down in its
 * turn, or is gone. */
static void telling_answer(struct httpd_request *rq, struct waiting *t)
{
    if (t->op.result < 0)
        httpd_fail(rq, waiting_failure(t), "%s", t->op.error.text);
    else
        reply_pods(rq, t->app);
}

static const struct waiting_kind telling = {.answer = telling_answer};

static void telling_post(struct httpd_request *rq, struct app *app,
                         uint64_t number)
{
    struct waiting *t = xcalloc(1, sizeof *t);
    t->op = (struct writer_op){
        .kind = WRITER_FED, .node = httpd_arg(rq, 0), .number = number};
    waiting_post(t, &telling, rq, app);
}

/* --- pods --------------------------------------------------------------- */

static void reply_pods(struct httpd_request *rq, void *arg)
{
    struct app *app = arg;
    const struct node_ask ask = {.node = httpd_arg(rq, 0),
                                 .version = httpd_query(rq, "version"),
                                 .from = httpd_query(rq, "from"),
                                 .kept = httpd_query(rq, "kept")};
    uint64_t newest;
    if (!embedded_answer(embedded(app), &ask, httpd_reply(rq), &newest))
        telling_post(rq, app, newest);
}

static void on_pods(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"from", "kept", "version", "wait",
                                         NULL};
    struct app *app = ctx;
    uint64_t version, wait_s;
    const char *node = node_take(rq);
    if (!node || !httpd_query_only(rq, params) ||
        !query_number(rq, "version", INT64_MAX, &version) ||
        !query_number(rq, "wait", NODE_POLL_MAX_S, &wait_s))
        return;
    embedded_asked(embedded(app), node);
    httpd_then(rq, reply_pods, app);
    if (wait_s && httpd_query(rq, "version") &&
        node_poll_suspend(embedded(app)->node_poll, rq, node, version,
                          (int64_t)wait_s * 1000))
        return;
    reply_pods(rq, app);
}

/* --- status ------------------------------------------------------------- */

/* Of a node that is not in the fleet nothing is kept: it tells again. */
static void note_used(const struct app *app, const char *node,
                      const struct node_report *report)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app->writer);
    if (app->used && snapshot_find(s, node, strlen(node)) != NODE_NONE)
        used_book_put(app->used, node, report, clock_ms());
}

static void on_status(struct httpd_request *rq, void *ctx)
{
    static const char *const no_params[] = {NULL};
    struct app *app = ctx;
    struct error err = {0};
    size_t size;
    const char *body = httpd_body(rq, &size);
    const char *node = node_take(rq);
    cleanup_with(node_report) struct node_report *report = NULL;
    if (!node || !httpd_query_only(rq, no_params))
        return;
    if (node_report_parse(body, size, &report, &err) < 0) {
        httpd_fail(rq, httpd_unread(&err), "%s", err.text);
        return;
    }
    note_used(app, node, report);
    embedded_heard(embedded(app), node, report);
    httpd_status(rq, 204);
}

/* --- what its pods have --------------------------------------------------- */

static void on_achieved(struct httpd_request *rq, void *ctx)
{
    static const char *const no_params[] = {NULL};
    struct app *app = ctx;
    struct error err = {0};
    size_t size;
    const char *body = httpd_body(rq, &size);
    const char *node = node_take(rq);
    cleanup_with(achieved_report) struct achieved_report *report = NULL;
    if (!node || !httpd_query_only(rq, no_params))
        return;
    if (achieved_report_parse(body, size, &report, &err) < 0)
        httpd_fail(rq, httpd_unread(&err), "%s", err.text);
    else if (strcmp(report->node, node) != 0)
        httpd_fail(rq, 400, "node: is \"%s\", must be \"%s\", as in the path",
                   report->node, node);
    else if (achieved_book_put(app->achieved, report, &err) < 0)
        httpd_fail(rq, 507, "%s", err.text);
    else
        httpd_status(rq, 204);
}

const struct httpd_route node_routes[] = {
    {HTTPD_GET, "/v1/nodes/:/pods", on_pods, 0, "node-pods"},
    {HTTPD_POST, "/v1/nodes/:/status", on_status, NODE_REPORT_BODY_MAX,
     "node-status"},
    {HTTPD_PUT, "/v1/nodes/:/achieved", on_achieved, ACHIEVED_BODY_MAX,
     "node-achieved"},
};
const size_t n_node_routes = ARRAY_LEN(node_routes);
