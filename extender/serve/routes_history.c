/* What was. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extender/admit/sight.h"
#include "extender/history/history_view.h"
#include "extender/serve/query.h"
#include "extender/serve/routes_private.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

enum { EVENTS_DEFAULT = 100, NODES_DEFAULT = 100 };

static bool history_is_kept(struct httpd_request *rq, const struct app *app)
{
    if (app->history)
        return true;
    httpd_fail(rq, 501,
               "this extender keeps no history: it needs --history DIR, or "
               "--state");
    return false;
}

/* --- questions ------------------------------------------------------------ */

/* One request that waits for the history's answer. */
struct asked {
    struct history_question question; /* first */
    struct httpd_request *rq;
    int (*view)(struct asked *a, struct history_reader *r, struct error *err);
    struct str out;
    int result;
    /* what is asked, as far as the view needs it */
    enum history_kind kind;
    char *object; /* of a kind; of a topology: what to begin behind, or NULL */
    int64_t ms;
    size_t limit;
    struct history_query query;
};

static void asked_free(struct asked *a)
{
    str_fini(&a->out);
    free(a->object);
    free(a);
}

/* The client has gone meanwhile. */
static void asked_lost(void *arg)
{
    asked_free(arg);
}

static unsigned failure_status(int result)
{
    return result == -ENOENT ? 404 : result == -ECANCELED ? 503 : 500;
}

static void asked_finish(struct httpd_request *rq, void *arg)
{
    struct asked *a = arg;
    if (a->result < 0)
        httpd_fail(rq, failure_status(a->result), "%s", a->question.error.text);
    else
        str_move(httpd_reply(rq), &a->out);
    asked_free(a);
}

/* On the history's thread. */
static void asked_answer(struct history_question *q, struct history_reader *r)
{
    struct asked *a = (struct asked *)q;
    a->result = r ? a->view(a, r, &q->error) : -q->error.code;
    httpd_resume(a->rq);
}

static void asked_post(struct asked *a, struct httpd_request *rq,
                       struct app *app)
{
    a->rq = rq;
    a->question.answer = asked_answer;
    a->question.scope = sight_scope(rq);
    a->out = STR_INIT(STR_MAX_DEFAULT);
    httpd_then(rq, asked_finish, a);
    httpd_or_else(rq, asked_lost);
    httpd_suspend(rq);
    if (history_ask(app->history, &a->question) == 0)
        return;
    a->result = -ECANCELED;
    (void)error_set(&a->question.error, ECANCELED,
                    "too many questions about the past wait already");
    httpd_resume(rq);
}

/* The client may have it already: nothing was written since.  (What the reply
 * says of "now" was so then.) */
static bool is_current(struct httpd_request *rq, const struct app *app)
{
    return query_has_version(rq, app, history_state(app->history).commits, 0);
}

static bool take_at(struct httpd_request *rq, int64_t *ret_ms)
{
    struct error err = {0};
    if (history_query_time("at", httpd_query(rq, "at"),
                           clock_wall_ns() / 1000000, ret_ms, &err) == 0)
        return true;
    httpd_fail(rq, 400, "%s", err.text);
    return false;
}

/* --- events --------------------------------------------------------------- */

static char *copy(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

static bool take_query(struct httpd_request *rq,
                       struct history_query *ret_query)
{
    const struct history_query_texts t = {
        .kind = httpd_query(rq, "kind"),
        .namespace = httpd_query(rq, "namespace"),
        .name = httpd_query(rq, "name"),
        .node = httpd_query(rq, "node"),
        .job = httpd_query(rq, "job"),
        .reason = httpd_query(rq, "reason"),
        .since = httpd_query(rq, "since"),
        .until = httpd_query(rq, "until"),
        .after = httpd_query(rq, "continue"),
        .order = httpd_query(rq, "order"),
    };
    struct error err = {0};
    if (history_query_parse(&t, ret_query, &err) == 0)
        return true;
    httpd_fail(rq, 400, "%s", err.text);
    return false;
}

static void write_event(void *ctx, const struct history_event *e)
{
    struct str *out = ctx;
    if (out->data[out->size - 1] != '[')
        str_add(out, ",\n");
    history_event_write(e, out);
}

static int view_events(struct asked *a, struct history_reader *r,
                       struct error *err)
{
    struct history_filter f = history_query_filter(&a->query);
    uint64_t next = 0;
    char text[24];
    f.limit = a->limit;
    str_add(&a->out, "{\"items\":[");
    int e = history_read_events(r, &f, write_event, &a->out, &next, err);
    str_add(&a->out, "]");
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)next);
    if (next)
        jwrite_text(&a->out, "continue", text);
    str_add(&a->out, "}\n");
    return e;
}

static bool is_true(const char *text)
{
    return text && strcmp(text, "true") == 0;
}

void on_events(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {
        "continue", "follow", "job",    "kind",  "limit", "name", "namespace",
        "node",     "order",  "reason", "since", "until", NULL};
    struct app *app = ctx;
    size_t limit = EVENTS_DEFAULT;
    struct history_query query;
    const char *follow = httpd_query(rq, "follow");
    if (!httpd_query_only(rq, params) || !history_is_kept(rq, app) ||
        !query_limit(rq, HISTORY_PAGE_MAX, &limit))
        return;
    if (follow && !is_true(follow) && strcmp(follow, "false") != 0) {
        httpd_fail(rq, 400, "follow: is \"%.32s\", must be true or false",
                   follow);
        return;
    }
    if (!take_query(rq, &query))
        return;
    if (is_true(follow)) {
        follow_events(rq, app, &query);
        return;
    }
    if (is_current(rq, app))
        return;
    struct asked *a = xcalloc(1, sizeof *a);
    a->view = view_events;
    a->limit = limit;
    a->query = query;
    asked_post(a, rq, app);
}

/* --- what was ------------------------------------------------------------- */

static int view_object(struct asked *a, struct history_reader *r,
                       struct error *err)
{
    return history_view_object(r, a->kind, a->object, a->ms, &a->out, err);
}

/* "/v1/history/KIND/…": two segments, or three. */
void on_history(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"at", NULL};
    struct app *app = ctx;
    const char *kind = httpd_arg(rq, 0), *rest = httpd_arg(rq, 2);
    cleanup_free char *name = *rest ? xasprintf("%s/%s", httpd_arg(rq, 1), rest)
                                    : xstrdup(httpd_arg(rq, 1));
    enum history_kind which;
    struct error err = {0};
    int64_t ms;
    if (!httpd_query_only(rq, params) || !history_is_kept(rq, app) ||
        !take_at(rq, &ms))
        return;
    int r = history_query_object(kind, name, &which, &err);
    if (r < 0) {
        httpd_fail(rq, r == -ENOENT ? 404 : 400, "%s", err.text);
        return;
    }
    if (is_current(rq, app))
        return;
    struct asked *a = xcalloc(1, sizeof *a);
    a->view = view_object;
    a->kind = which;
    a->object = steal(&name);
    a->ms = ms;
    asked_post(a, rq, app);
}

static int view_topology(struct asked *a, struct history_reader *r,
                         struct error *err)
{
    return history_view_topology(r, a->ms, a->object, a->limit, &a->out, err);
}

void on_topology_then(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"at", "continue", "limit", NULL};
    struct app *app = ctx;
    size_t limit = NODES_DEFAULT;
    int64_t ms;
    if (!httpd_query_only(rq, params) || !history_is_kept(rq, app) ||
        !query_limit(rq, HISTORY_VIEW_NODES, &limit) || !take_at(rq, &ms) ||
        is_current(rq, app))
        return;
    struct asked *a = xcalloc(1, sizeof *a);
    a->view = view_topology;
    a->object = copy(httpd_query(rq, "continue"));
    a->limit = limit;
    a->ms = ms;
    asked_post(a, rq, app);
}
