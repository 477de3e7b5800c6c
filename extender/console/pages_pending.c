#include "extender/console/pages.h"

#include <inttypes.h>
#include <string.h>

#include "extender/console/console_list.h"
#include "extender/console/html.h"
#include "extender/console/past.h"
#include "extender/serve/pending.h"
#include "extender/view/pending_pods.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

enum { REASONS_SHOWN = 3 };

static const char heads[] =
    "<th scope=\"col\">Pod</th><th scope=\"col\">Namespace</th>"
    "<th scope=\"col\">Job</th><th scope=\"col\">Since</th>"
    "<th scope=\"col\">What it waits for</th><th scope=\"col\">"
    "Refused by nodes</th>";

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
        str_add(out, i ? "<br>" : "");
        html_addf(out, "%zu %s", count[most], reason_word(most));
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
    str_add(out, "<th scope=\"row\">");
    html_add_link(out, "pods", p->namespace, p->name, p->name);
    html_addf(out, "</th><td>%s</td><td>", p->namespace);
    if (*p->job) {
        html_add_link(out, "jobs", p->namespace, p->job, p->job);
        html_addf(out, " <small>pair %" PRId32 "</small>", p->pair);
    }
    html_addf(out, "</td><td class=\"time\">%s</td><td>%s</td>", since,
              p->reason);
    refused_cell(v, out);
    str_add(out, "</tr>\n");
}

static void write_rows(struct console_reply *r, const struct pending_pods *g,
                       struct console_list *list)
{
    const struct pending_pod *judged = NULL;
    struct pending_verdict v = {.text = STR_INIT(1)};
    unsigned asked = 0;
    for (size_t i = 0; i < g->n; i++) {
        struct pending_pod *p = &g->list[i];
        if (!console_list_next(list))
            continue;
        if (!pending_pod_is_like(p, judged)) {
            str_fini(&v.text);
            v = (struct pending_verdict){.text = STR_INIT(1)};
            if (asked++ < PENDING_ASKS_MAX)
                pending_judge(r->app, g->snapshot, p->namespace, p->name, &v);
            judged = p;
        }
        if (!p->told && v.text.size)
            job_reason("", str_text(&v.text), p->reason);
        write_row(p, &v, &list->rows);
    }
    str_fini(&v.text);
}

void page_pending(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"at", CONSOLE_LIST_PARAMS, NULL};
    struct console_list list;
    struct console_reply r;
    struct pending_pods g;
    if (!console_list_read(&list, rq) ||
        !console_begin(&r, rq, ctx, CONSOLE_PENDING, params))
        return;
    r.page.title = "Pending";
    if (console_then_is_asked(&r)) {
        str_add(&r.out, "<h1>Pending</h1>\n");
        past_show_pending(&r, &list);
        return;
    }
    pending_pods_read(&g, &r.app->source, r.snapshot, NULL);
    html_addf(&r.out, "<h1>Pending <small>%zu</small></h1>\n", g.n);
    write_rows(&r, &g, &list);
    console_list_end(&list, &r, heads, "pods that wait");
    console_list_fini(&list);
    pending_pods_fini(&g);
    console_end(&r);
}
