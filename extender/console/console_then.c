#include "extender/console/console_then.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extender/admit/sight.h"
#include "extender/console/html.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/rfc3339.h"

enum { EVENTS_SHOWN = 20 };

/* --- asking --------------------------------------------------------------- */

static void then_free(struct console_then *t)
{
    console_list_fini(&t->list);
    free(t->object);
    free(t);
}

/* On the listener's thread again. */
static void finish(struct httpd_request *rq, void *arg)
{
    struct console_then *t = arg;
    (void)rq;
    if (t->result == -ENOENT)
        console_miss(&t->reply, "%s", t->question.error.text);
    else if (t->result < 0)
        html_addf(&t->reply.out,
                  "<p class=\"alert\">The history cannot be read: %s</p>\n",
                  t->question.error.text);
    console_end(&t->reply);
    then_free(t);
}

/* The same, when nobody is there any more. */
static void lost(void *arg)
{
    struct console_then *t = arg;
    console_drop(&t->reply);
    then_free(t);
}

static void answer(struct history_question *q, struct history_reader *r)
{
    struct console_then *t = (struct console_then *)q;
    t->result = r ? t->write(t, r, &q->error) : -q->error.code;
    httpd_resume(t->reply.rq);
}

void console_then_end(struct console_then *t, struct console_reply *r)
{
    struct httpd_request *rq = r->rq;
    t->reply = *r;
    if (!r->app->history) {
        finish(rq, t);
        return;
    }
    t->question.answer = answer;
    t->question.scope = sight_scope(rq);
    httpd_then(rq, finish, t);
    httpd_or_else(rq, lost);
    httpd_suspend(rq);
    if (history_ask(r->app->history, &t->question) == 0)
        return;
    t->result = error_set(&t->question.error, EAGAIN,
                          "too many questions about the past wait already");
    httpd_resume(rq);
}

bool console_then_is_asked(const struct console_reply *r)
{
    const char *at = httpd_query(r->rq, "at");
    return at && *at;
}

/* The moment; false, and said, when it is none. */
static bool take_moment(struct console_reply *r, int64_t *ret_ms)
{
    struct error err = {0};
    const char *fault = NULL;
    if (!r->app->history)
        fault = "This extender keeps no history: it needs --history DIR, or "
                "--state.";
    else if (history_query_time("at", httpd_query(r->rq, "at"),
                                clock_wall_ns() / 1000000, ret_ms, &err) < 0)
        fault = err.text;
    if (!fault)
        return true;
    httpd_status(r->rq, 400);
    html_addf(&r->out, "<p role=\"alert\" class=\"alert\">%s</p>\n", fault);
    console_end(r);
    return false;
}

void console_then_past(struct console_then *t, struct console_reply *r)
{
    if (take_moment(r, &t->ms))
        console_then_end(t, r);
    else
        then_free(t);
}

/* --- events --------------------------------------------------------------- */

void events_table_begin(struct str *out, size_t limit)
{
    str_add(out, "<div class=\"wide\"><table class=\"rows\"");
    if (limit)
        html_addf(out, " data-limit=\"%zu\" aria-rowcount=\"-1\"", limit);
    str_add(out, "><thead><tr><th scope=\"col\">Time</th>"
                 "<th scope=\"col\">Event</th><th scope=\"col\">Of</th><th "
                 "scope=\"col\">Node</th>"
                 "<th scope=\"col\">Job</th><th scope=\"col\">What happened"
                 "</th></tr></thead><tbody>\n");
}

static const char *reason_class(enum history_reason reason)
{
    switch (reason) {
    case HISTORY_LOST:
    case HISTORY_FAILED:
    case HISTORY_NODE_LOST:
    case HISTORY_NODE_GONE:
    case HISTORY_CARD_GONE:
        return "bad";
    case HISTORY_REFUSED:
    case HISTORY_DRAINED:
    case HISTORY_EVICTED:
    case HISTORY_DEGRADED:
    case HISTORY_NODE_STALE:
    case HISTORY_NODE_INCOMPLETE:
    case HISTORY_NODE_DOUBTFUL:
        return "fair";
    case HISTORY_BOUND:
    case HISTORY_STARTED:
    case HISTORY_RECOVERED:
    case HISTORY_UNDRAINED:
    case HISTORY_NODE_READY:
        return "good";
    default:
        return "dim";
    }
}

/* A link to "A/B", or to "A" alone. */
static void add_object(struct str *out, const char *kind, const char *object)
{
    const char *slash = strchr(object, '/');
    cleanup_free char *a = slash ? xstrndup(object, (size_t)(slash - object))
                                 : NULL;
    html_add_link(out, kind, a ? a : object, slash ? slash + 1 : NULL, object);
}

void events_table_row(struct str *out, const struct history_event *e)
{
    static const char *const pages[HISTORY_KINDS] = {"pods", "jobs", "nodes",
                                                     "cards"};
    char time[RFC3339_SIZE];
    rfc3339_format(e->time_ms, time);
    html_addf(out,
              "<tr><td class=\"time\"><time datetime=\"%s\">%s</time></td>"
              "<td>",
              time, time);
    html_add_badge(out, reason_class(e->reason),
                   history_reason_name(e->reason));
    if (e->count > 1)
        html_addf(out, " <small>× %u</small>", e->count);
    html_addf(out, "</td><td><span class=\"kind\">%s</span> ",
              history_kind_name(e->kind));
    add_object(out, pages[e->kind], e->object ? e->object : "");
    str_add(out, "</td><td>");
    if (e->node && *e->node && e->kind != HISTORY_NODE)
        add_object(out, "nodes", e->node);
    str_add(out, "</td><td>");
    if (e->job && *e->job && e->kind != HISTORY_JOB)
        add_object(out, "jobs", e->job);
    html_addf(out, "</td><td>%s</td></tr>\n", e->message ? e->message : "");
}

void events_table_end(struct str *out)
{
    str_add(out, "</tbody></table></div>\n");
}

struct rows {
    struct str *out;
    size_t n;
};

static void add_row(void *ctx, const struct history_event *e)
{
    struct rows *rows = ctx;
    if (rows->n++ == 0)
        events_table_begin(rows->out, 0);
    events_table_row(rows->out, e);
}

static struct history_filter filter_of(const struct console_then *t)
{
    struct history_filter f = {.kind = HISTORY_KINDS,
                               .reason = HISTORY_REASONS,
                               .newest_first = true,
                               .limit = EVENTS_SHOWN};
    if (t->kind == HISTORY_NODE) {
        f.node = t->object;
    } else if (t->kind == HISTORY_JOB) {
        f.job = t->object;
    } else {
        f.kind = t->kind;
        f.object = t->object;
    }
    return f;
}

static int write_events(struct console_then *t, struct history_reader *r,
                        struct error *err)
{
    const struct history_filter f = filter_of(t);
    struct str *out = &t->reply.out;
    struct rows rows = {.out = out};
    uint64_t next = 0;
    str_add(out, "<h2>History</h2>\n");
    int e = history_read_events(r, &f, add_row, &rows, &next, err);
    if (rows.n)
        events_table_end(out);
    else
        str_add(out, "<p>Nothing is remembered of it.</p>\n");
    if (next)
        str_add(out, "<p class=\"more\"><a href=\"/ui/events\">All events</a>"
                     "</p>\n");
    return e;
}

void console_then_events(struct console_reply *r, enum history_kind kind,
                         char *object)
{
    if (!sight_has_events(r->rq)) {
        str_add(&r->out, "<h2>History</h2>\n<p>What happened is shown to who "
                         "may read <code>/v1/events</code>.</p>\n");
        console_end(r);
        free(object);
        return;
    }
    struct console_then *t = xcalloc(1, sizeof *t);
    t->kind = kind;
    t->object = object;
    t->write = write_events;
    console_then_end(t, r);
}
