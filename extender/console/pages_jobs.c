#include "extender/console/pages.h"

#include <inttypes.h>
#include <string.h>

#include "extender/console/console_list.h"
#include "extender/console/console_map.h"
#include "extender/console/console_then.h"
#include "extender/console/html.h"
#include "extender/console/past.h"
#include "extender/serve/pending.h"
#include "extender/serve/query.h"
#include "extender/view/known_jobs.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

/* --- the list ------------------------------------------------------------- */

/* Ages change all the time; moments do not. */
static void moment_cell(int64_t s, struct str *out)
{
    char text[CLOCK_UTC_MAX];
    clock_format_utc(s, text);
    html_addf(out, "<td class=\"time\">%s</td>", s ? text : "");
}

static const char job_heads[] =
    "<th scope=\"col\">Job</th><th scope=\"col\">Namespace</th>"
    "<th scope=\"col\">State</th><th scope=\"col\">Pairs placed</th>"
    "<th scope=\"col\" class=\"n\">Running</th>"
    "<th scope=\"col\" class=\"n\">Leaves</th><th scope=\"col\">Relation</th>"
    "<th scope=\"col\">Submitted</th>"
    "<th scope=\"col\">What it waits for, or ended with</th>";

static void job_state_write(const struct job_view *v, struct str *out)
{
    static const char *const classes[JOB_STATES] = {[JOB_PENDING] = "fair",
                                                    [JOB_PLANNED] = "use",
                                                    [JOB_RUNNING] = "good",
                                                    [JOB_SUCCEEDED] = "dim",
                                                    [JOB_FAILED] = "bad"};
    html_add_badge(out, classes[v->state], job_state_name(v->state));
}

static const char *worst_word(const struct job_view *v)
{
    return v->relation < 0 ? "–" : relation_name((enum relation)v->relation);
}

static void job_row(const struct job_view *v, struct str *out)
{
    str_add(out, "<th scope=\"row\">");
    html_add_link(out, "jobs", v->namespace, v->job, v->job);
    html_addf(out, "</th><td>%s</td><td>", v->namespace);
    job_state_write(v, out);
    html_addf(out,
              "</td><td>%" PRIu32 "<small>/%" PRIu32
              "</small></td><td class=\"n\">%" PRIu32
              "</td><td class=\"n\">%" PRIu32 "</td><td>",
              v->bound, v->size, v->told ? v->told->running : 0, v->leaves);
    html_add_badge(out, relation_class(worst_word(v)), worst_word(v));
    str_add(out, "</td>");
    moment_cell(v->told ? v->told->submitted_s : 0, out);
    html_addf(out, "<td>%s</td></tr>\n", job_view_reason(v));
}

static void write_jobs(struct console_reply *r, struct console_list *list)
{
    struct known_jobs k;
    known_jobs_init(&k, &r->app->source, snapshot_ref(r->snapshot),
                    visible_order(r->app, r->snapshot), NULL, NULL);
    while (known_jobs_next(&k)) {
        struct job_view v;
        if (!console_list_next(list))
            continue;
        if (!known_jobs_read(&k)) { /* it has just gone */
            str_add(&list->rows, "</tr>\n");
            continue;
        }
        job_view_init(&v, k.snapshot, NULL, &k.parts);
        if (v.state == JOB_PENDING)
            pending_tell_job(r->app, k.snapshot, k.completed, &k.asked);
        job_row(&v, &list->rows);
        job_view_fini(&v);
    }
    known_jobs_fini(&k);
}

void page_jobs(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"at", CONSOLE_LIST_PARAMS, NULL};
    struct console_list list;
    struct console_reply r;
    if (!console_list_read(&list, rq) ||
        !console_begin(&r, rq, ctx, CONSOLE_JOBS, params))
        return;
    r.page.title = "Jobs";
    if (console_then_is_asked(&r)) {
        str_add(&r.out, "<h1>Jobs</h1>\n");
        past_show_jobs(&r, &list);
        return;
    }
    write_jobs(&r, &list);
    html_addf(&r.out, "<h1>Jobs <small>%zu</small></h1>\n", list.n);
    console_list_end(&list, &r, job_heads, "jobs");
    console_list_fini(&list);
    console_end(&r);
}

/* --- a job ---------------------------------------------------------------- */

static void pair_pods(const struct job_pair *p, struct str *out)
{
    size_t shown = 0;
    for (size_t i = 0; i < p->n_all; i++) {
        const struct demand *d = &p->all[i]->demand;
        if (p->all[i]->held)
            continue;
        str_add(out, shown++ ? ", " : "");
        html_add_link(out, "pods", d->namespace, d->name, d->name);
    }
}

static void pair_row(const struct console_reply *r, const struct job_view *v,
                     const struct job_pair *p, struct str *out)
{
    const char *leaf = p->leaf == FABRIC_NONE
                           ? NULL
                           : fabric_domain(v->snapshot->fabric, p->leaf)->name;
    html_addf(out, "<th scope=\"row\" class=\"n\">%" PRId32 "</th><td>",
              p->rank);
    html_add_badge(out, p->bound ? "good" : "use",
                   p->bound ? "placed" : "held");
    str_add(out, "</td><td>");
    html_add_link(out, "nodes", p->place->node, NULL, p->place->node);
    str_add(out, "</td><td>");
    if (leaf)
        html_add_link(out, "leaves", leaf, NULL, leaf);
    str_add(out, "</td>");
    place_cells_write(r, p->place, out);
    str_add(out, "<td>");
    pair_pods(p, out);
    str_add(out, "</td></tr>\n");
}

static const char pair_heads[] =
    "<th scope=\"col\" class=\"n\">Pair</th><th scope=\"col\">State</th>"
    "<th scope=\"col\">Node</th><th scope=\"col\">Leaf</th>" PLACE_HEADS
    "<th scope=\"col\">Pods</th>";

static void write_pairs(struct console_reply *r, const struct job_view *v,
                        struct console_list *list)
{
    str_add(&r->out, "<h2>Pairs</h2>\n");
    for (size_t i = 0; i < v->n_pairs; i++)
        if (console_list_next(list))
            pair_row(r, v, &v->pairs[i], &list->rows);
    console_list_end(list, r, pair_heads, "pairs");
}

static const char *tier_word(const struct job_view *v)
{
    return v->tier == FABRIC_APART ? "–" : fabric_tier_name(v->tier);
}

static void write_job_facts(const struct job_view *v, struct str *out)
{
    html_addf(out,
              "<dl class=\"totals\"><div><dt>Pairs placed</dt><dd>%" PRIu32
              "<small>/%" PRIu32 "</small></dd></div><div><dt>Pairs running"
              "</dt><dd>%" PRIu32 "</dd></div><div><dt>Nodes</dt><dd>%zu"
              "</dd></div><div><dt>Leaves</dt><dd>%" PRIu32 "</dd></div><div>"
              "<dt>Within one</dt><dd>%s</dd></div><div><dt>Worst relation</dt>"
              "<dd>%s</dd></div><div%s><dt>Not aligned</dt><dd>%" PRIu32
              "</dd></div></dl>\n",
              v->bound, v->size, v->told ? v->told->running : 0, v->n_nodes,
              v->leaves, tier_word(v), worst_word(v),
              v->unaligned ? " class=\"fair\"" : "", v->unaligned);
}

/* What it waits for, and which pairs have no place of their own. */
static void write_lacks(const struct job_view *v, struct str *out)
{
    cleanup_str struct str missing = STR_INIT(4096), held = STR_INIT(4096);
    job_view_add_missing(v, &missing);
    job_view_add_held(v, &held);
    if (*job_view_reason(v))
        html_addf(out, "<p class=\"lead\">%s</p>\n", job_view_reason(v));
    if (held.size)
        html_addf(out, "<p>Places are held for pairs %s.</p>\n",
                  str_text(&held));
    if (missing.size && !job_view_is_over(v))
        html_addf(out, "<p>Without a place: pairs %s.</p>\n",
                  str_text(&missing));
    if (v->state == JOB_PENDING && v->told && *v->told->pod) {
        str_add(out, "<p>Why, and what would help: ");
        html_add_link(out, "pods", v->namespace, v->told->pod, v->told->pod);
        str_add(out, ".</p>\n");
    }
}

/* The files that launchers take. */
static void write_maps(const struct job_view *v, struct str *out)
{
    if (!job_view_is_whole(v))
        return;
    str_add(out, "<h2>Maps</h2>\n<p class=\"maps\">");
    for (int i = 0; i < MAP_FORMATS; i++) {
        const char *name = map_format_name((enum map_format)i);
        str_add(out, "<a download href=\"/v1/jobs/");
        html_add_segment(out, v->namespace);
        str_add_c(out, '/');
        html_add_segment(out, v->job);
        html_addf(out, "/maps?format=%s\">%s</a> ", name, name);
    }
    str_add(out, "</p>\n");
}

static void write_job(struct console_reply *r, const struct job_view *v,
                      struct console_list *list)
{
    struct str *out = &r->out;
    const struct console_map map = {
        .snapshot = r->snapshot, .achieved = r->app->achieved, .job = v};
    html_addf(out,
              "<p class=\"path\"><a href=\"/ui/jobs\">Jobs</a> / %s</p>\n"
              "<h1>Job %s ",
              v->namespace, v->job);
    job_state_write(v, out);
    str_add(out, "</h1>\n");
    write_job_facts(v, out);
    write_lacks(v, out);
    if (v->n_pairs == 0)
        return;
    if (!console_list_is_all(r))
        console_map_write(&map, out);
    write_pairs(r, v, list);
    if (!console_list_is_all(r))
        write_maps(v, out);
}

void page_job(struct httpd_request *rq, void *ctx)
{
    const char *namespace = httpd_arg(rq, 0), *job = httpd_arg(rq, 1);
    static const char *const params[] = {"at", CONSOLE_LIST_PARAMS, NULL};
    struct console_list list;
    struct console_reply r;
    const struct job_name asked_for = {namespace, job};
    struct known_job k;
    struct job_view v;
    unsigned asked = 0;
    if (!console_list_read(&list, rq) ||
        !console_begin(&r, rq, ctx, CONSOLE_JOBS, params))
        return;
    r.page.title = job;
    if (console_then_is_asked(&r)) {
        console_then_show(&r, HISTORY_JOB, xasprintf("%s/%s", namespace, job));
        return;
    }
    if (!known_job_init(&k, &r.app->source, snapshot_ref(r.snapshot),
                        &asked_for)) {
        console_miss(&r,
                     "Job %.63s/%.253s: no pod of it is known, pending, "
                     "placed or ended, and no place is held for one.",
                     namespace, job);
    } else {
        job_view_init(&v, k.snapshot, r.app->achieved, &k.parts);
        if (v.state == JOB_PENDING && k.parts.told)
            pending_tell_job(r.app, k.snapshot, &k.told, &asked);
        write_job(&r, &v, &list);
        job_view_fini(&v);
        known_job_fini(&k);
    }
    console_list_fini(&list);
    if (console_list_is_all(&r))
        console_end(&r);
    else
        console_then_events(&r, HISTORY_JOB,
                            xasprintf("%s/%s", namespace, job));
}
