#include "extender/console/pages.h"

#include <inttypes.h>
#include <string.h>

#include "extender/console/html.h"
#include "extender/serve/pending.h"
#include "extender/serve/query.h"
#include "extender/view/pending_pods.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

enum { ROWS = 100, ROWS_MAX = 1000, REASONS_SHOWN = 3 };

static void table_head(struct str *out)
{
    str_add(out, "<div class=\"wide\"><table class=\"rows\"><thead><tr>"
                 "<th scope=\"col\">Pod</th><th scope=\"col\">Namespace</th>"
                 "<th scope=\"col\">Job</th><th scope=\"col\">Since</th>"
                 "<th scope=\"col\">What it waits for</th><th scope=\"col\">"
                 "Refused by nodes</th></tr></thead><tbody>\n");
}

/* The most frequent first. */
static void refused_cell(const struct pending_verdict *v, struct str *out)
{
    size_t count[REASON_COUNT];
    memcpy(count, v->count, sizeof count);
    str_add(out, "<td>");
    for (int i = 0; v->judged && i < REASONS_SHOWN; i++) {
        enum reason most = REASON_NONE;
        for (enum reason x = REASON_NONE + 1; x < REASON_COUNT; x++)
            if (count[x] > (most ? count[most] : 0))
                most = x;
        if (most == REASON_NONE)
            break;
        html_addf(out, "%s%zu %s", i ? "<br>" : "", count[most],
                  reason_word(most));
        count[most] = 0;
    }
    str_add(out, "</td>");
}

static void write_row(const struct pending_pod *p,
                      const struct pending_verdict *v, struct str *out)
{
    char since[CLOCK_UTC_MAX] = "";
    if (p->since_s)
        clock_format_utc(p->since_s, since);
    str_add(out, "<tr><th scope=\"row\">");
    html_add_link(out, "pods", p->namespace, p->name, p->name);
    html_addf(out, "</th><td>%s</td><td>", p->namespace);
    if (*p->job) {
        html_add_link(out, "jobs", p->namespace, p->job, p->job);
        html_addf(out, " <small>pair %" PRId32 "</small>", p->pair);
    }
    html_addf(out, "</td><td>%s</td><td>%s</td>", since, p->reason);
    refused_cell(v, out);
    str_add(out, "</tr>\n");
}

/* Up to `limit` behind `after`; NULL, or the last when there are more. */
static const struct pending_pod *write_rows(struct console_reply *r,
                                            struct pending_pods *g,
                                            const char *after, size_t limit)
{
    const struct pending_pod *judged = NULL, *last = NULL;
    struct pending_verdict v = {.text = STR_INIT(1)};
    unsigned asked = 0;
    size_t n = 0, i = 0;
    while (i < g->n && after && *after &&
           !query_is_after(g->list[i].namespace, g->list[i].name, after))
        i++;
    for (; i < g->n && n < limit; i++, n++) {
        struct pending_pod *p = &g->list[i];
        if (!pending_pod_is_like(p, judged)) {
            str_fini(&v.text);
            v = (struct pending_verdict){.text = STR_INIT(1)};
            if (asked++ < PENDING_ASKS_MAX)
                pending_judge(r->app, g->snapshot, p->namespace, p->name, &v);
            judged = p;
        }
        if (!p->told && v.text.size)
            job_reason("", str_text(&v.text), p->reason);
        write_row(p, &v, &r->out);
        last = p;
    }
    str_fini(&v.text);
    return i < g->n ? last : NULL;
}

void page_pending(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"continue", "limit", NULL};
    struct console_reply r;
    struct pending_pods g;
    size_t limit = ROWS;
    if (!query_limit(rq, ROWS_MAX, &limit) ||
        !console_begin(&r, rq, ctx, CONSOLE_PENDING, params))
        return;
    r.page.title = "Pending";
    pending_pods_read(&g, &r.app->source, r.snapshot, NULL);
    html_addf(&r.out, "<h1>Pending <small>%zu</small></h1>\n", g.n);
    if (g.n == 0) {
        str_add(&r.out, "<p>No pod waits.</p>\n");
    } else {
        table_head(&r.out);
        const struct pending_pod *more =
            write_rows(&r, &g, httpd_query(rq, "continue"), limit);
        str_add(&r.out, "</tbody></table></div>\n");
        if (more) {
            str_add(&r.out, "<p class=\"more\"><a rel=\"next\" "
                            "href=\"/ui/pending?continue=");
            html_add_segment(&r.out, more->namespace);
            str_add(&r.out, "%2F");
            html_add_segment(&r.out, more->name);
            str_add(&r.out, "\">More pods</a></p>\n");
        }
    }
    pending_pods_fini(&g);
    console_end(&r);
}
