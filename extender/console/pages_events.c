#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "extender/console/console_list.h"
#include "extender/console/console_then.h"
#include "extender/console/html.h"
#include "extender/console/pages.h"
#include "extender/console/past.h"
#include "extender/serve/query.h"
#include "lib/base/mem.h"

enum { ROWS = 100 };

/* A form sends "" for what was left open. */
static const char *given(const struct httpd_request *rq, const char *name)
{
    const char *text = httpd_query(rq, name);
    return text && *text ? text : NULL;
}

static void write_field(struct httpd_request *rq, const char *name,
                        const char *label, const char *hint, struct str *out)
{
    const char *value = given(rq, name);
    html_addf(out,
              "<label>%s <input name=\"%s\" maxlength=\"253\" "
              "placeholder=\"%s\" value=\"%s\"></label>",
              label, name, hint, value ? value : "");
}

static void write_form(struct httpd_request *rq, struct str *out)
{
    const char *kind = given(rq, "kind");
    str_add(out, "<form class=\"filter\" action=\"/ui/events\"><label>Of "
                 "<select name=\"kind\"><option value=\"\">anything");
    for (int i = 0; i < HISTORY_KINDS; i++) {
        const char *word = history_kind_name((enum history_kind)i);
        html_addf(out, "<option%s>%s",
                  kind && strcmp(kind, word) == 0 ? " selected" : "", word);
    }
    str_add(out, "</select></label>");
    write_field(rq, "node", "Node", "", out);
    write_field(rq, "job", "Job", "NAMESPACE/NAME", out);
    write_field(rq, "since", "Since", "2026-11-01T14:05:00Z", out);
    write_field(rq, "until", "Until", "2026-11-01T15:00:00Z", out);
    str_add(out, "<button>Show</button></form>\n");
}

struct rows {
    struct str *out;
    size_t n;
};

static void add_row(void *ctx, const struct history_event *e)
{
    struct rows *rows = ctx;
    events_table_row(rows->out, e);
    rows->n++;
}

/* The same question, behind the event of that number. */
static void write_more(struct httpd_request *rq, size_t limit, uint64_t next,
                       struct str *out)
{
    static const char *const names[] = {"kind",  "node",  "job",
                                        "since", "until", "at"};
    str_add(out, "<p class=\"more\"><a rel=\"next\" href=\"/ui/events?");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *value = given(rq, names[i]);
        if (!value)
            continue;
        html_addf(out, "%s=", names[i]);
        html_add_segment(out, value);
        str_add(out, "&amp;");
    }
    html_addf(out,
              "limit=%zu&amp;continue=%" PRIu64 "\">Earlier events</a></p>\n",
              limit, next);
}

static int write_events(struct console_then *t, struct history_reader *r,
                        struct error *err)
{
    struct history_filter f = history_query_filter(&t->query);
    struct rows rows = {.out = &t->reply.out};
    uint64_t next = 0;
    f.newest_first = true;
    f.limit = t->limit;
    if (console_list_is_all(&t->reply))
        str_reset(rows.out);
    else if (t->ms)
        past_write_banner(t);
    events_table_begin(rows.out, t->limit);
    int e = history_read_events(r, &f, add_row, &rows, &next, err);
    events_table_end(rows.out);
    if (rows.n == 0 && !next)
        str_add(rows.out, "<p>No event is so.</p>\n");
    if (next)
        write_more(t->reply.rq, t->limit, next, rows.out);
    return e;
}

void page_events(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"at",    "continue", "job",
                                         "kind",  "limit",    "node",
                                         "since", "until",    NULL};
    const char *until = given(rq, "until");
    const struct history_query_texts texts = {.kind = given(rq, "kind"),
                                              .node = given(rq, "node"),
                                              .job = given(rq, "job"),
                                              .since = given(rq, "since"),
                                              .until = until ? until
                                                             : given(rq, "at"),
                                              .after = given(rq, "continue")};
    struct history_query query;
    struct console_reply r;
    struct error err = {0};
    size_t limit = ROWS;
    if (!query_limit(rq, HISTORY_PAGE_MAX, &limit) ||
        !console_begin(&r, rq, ctx, CONSOLE_EVENTS, params))
        return;
    r.page.title = "Events";
    str_add(&r.out, "<h1>Events</h1>\n");
    write_form(rq, &r.out);
    if (!r.app->history) {
        str_add(&r.out, "<p>This extender keeps no history: it needs "
                        "<code>--history DIR</code>, or <code>--state</code>."
                        "</p>\n");
        console_end(&r);
    } else if (history_query_parse(&texts, &query, &err) < 0) {
        httpd_status(rq, 400);
        html_addf(&r.out, "<p role=\"alert\" class=\"alert\">%s</p>\n",
                  err.text);
        console_end(&r);
    } else {
        struct console_then *t = xcalloc(1, sizeof *t);
        t->write = write_events;
        t->query = query;
        t->limit = limit;
        if (console_then_is_asked(&r))
            console_then_past(t, &r);
        else
            console_then_end(t, &r);
    }
}
