#include "extender/serve/routes_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "extender/serve/app.h"
#include "extender/serve/page.h"
#include "extender/serve/pending.h"
#include "extender/serve/query.h"
#include "extender/serve/routes_drawing.h"
#include "extender/view/known_jobs.h"
#include "extender/view/pending_pods.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

/* --- the list ------------------------------------------------------------ */

static bool is_pods_current(struct httpd_request *rq, const struct app *app,
                            const struct snapshot *s)
{
    return query_has_version(rq, app, s->number,
                             pod_source_ask(&app->source, pods_version) +
                                 achieved_book_version(app->achieved));
}

static const char *state_word(unsigned index)
{
    return job_state_name((enum job_state)index);
}

/* The job at hand; false when the page is full. */
static bool list_job(struct page *page, struct known_jobs *k,
                     const struct app *app, unsigned state)
{
    struct job_view v;
    bool any = state == JOB_STATES;
    if ((!any && !known_jobs_may_be(k, (enum job_state)state)) ||
        !known_jobs_read(k) || (!any && state != known_jobs_state(k)))
        return true;
    if (!page_next(page, k->name.namespace, k->name.name))
        return false;
    job_view_init(&v, k->snapshot, NULL, &k->parts);
    if (v.state == JOB_PENDING)
        pending_tell_job(app, k->snapshot, k->completed, &k->asked);
    if (page->text)
        job_view_row(&v, &page->table);
    else
        job_view_write(&v, page->out);
    job_view_fini(&v);
    return true;
}

void on_jobs(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"continue", "limit", "namespace",
                                         "state", NULL};
    struct app *app = ctx;
    size_t limit = QUERY_LIMIT;
    unsigned state;
    struct known_jobs k;
    struct page page;
    if (!httpd_query_only(rq, params) ||
        !query_limit(rq, QUERY_LIMIT_MAX, &limit) ||
        !query_choice(rq, "state", state_word, JOB_STATES, &state))
        return;
    cleanup_with(snapshot) struct snapshot *s = visible_snapshot(app, rq);
    if (is_pods_current(rq, app, s))
        return;
    page_begin(&page, rq, limit, job_view_heads, "snapshot", s->number);
    struct job_name behind = {"", ""};
    cleanup_free char *namespace = page.after
                                       ? query_key(page.after, &behind.name)
                                       : NULL;
    behind.namespace = namespace ? namespace : "";
    struct alloc_order *order = visible_order(app, s);
    known_jobs_init(&k, &app->source, steal(&s), order,
                    httpd_query(rq, "namespace"), &behind);
    while (known_jobs_next(&k) && list_job(&page, &k, app, state))
        ;
    page_end(&page);
    known_jobs_fini(&k);
}

/* --- one job ------------------------------------------------------------ */

/* A job and what it borrows from. */
struct found {
    struct known_job known;
    struct job_view view;
};

static void found_fini(struct found *f)
{
    job_view_fini(&f->view);
    known_job_fini(&f->known);
}

/* The job of the path; false when the request has been failed. */
static bool find_job(struct httpd_request *rq, struct app *app,
                     struct found *ret_found)
{
    const struct job_name name = {httpd_arg(rq, 0), httpd_arg(rq, 1)};
    struct known_job *k = &ret_found->known;
    unsigned asked = 0;
    if (!known_job_init(k, &app->source, visible_snapshot(app, rq), &name)) {
        httpd_fail(rq, 404,
                   "job %.63s/%.253s: no pod of it is known, pending, placed "
                   "or ended, and no place is held for one: see /v1/jobs (biga "
                   "jobs) for the jobs",
                   name.namespace, name.name);
        return false;
    }
    job_view_init(&ret_found->view, k->snapshot, app->achieved, &k->parts);
    if (ret_found->view.state == JOB_PENDING && k->parts.told)
        pending_tell_job(app, k->snapshot, &k->told, &asked);
    return true;
}

static void write_tables(const struct job_view *v, struct str *out)
{
    struct table t;
    table_init(&t, job_view_heads);
    job_view_row(v, &t);
    table_write_text(&t, out);
    table_fini(&t);
    table_init(&t, job_pair_heads);
    job_pair_rows(v, &t);
    str_add_c(out, '\n');
    table_write_text(&t, out);
    table_fini(&t);
}

void on_job(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {NULL};
    struct found f;
    if (!httpd_query_only(rq, params) || !find_job(rq, ctx, &f))
        return;
    if (httpd_wants(rq, DRAWING_TYPE)) {
        reply_job_drawing(rq, ctx, &f.view);
        found_fini(&f);
        return;
    }
    httpd_set_header(rq, "Vary", "Accept");
    if (httpd_wants_text(rq)) {
        httpd_content_type(rq, HTTPD_TEXT);
        write_tables(&f.view, httpd_reply(rq));
    } else {
        job_view_write_whole(&f.view, httpd_reply(rq));
        str_add_c(httpd_reply(rq), '\n');
    }
    found_fini(&f);
}

/* --- pending pods --------------------------------------------------------- */

enum {
    PENDING_LIMIT = 100, /* of a page, unless it is asked for less or more */
    PENDING_LIMIT_MAX = 1000,
};

static void write_pending(const struct pending_pod *p,
                          const struct pending_verdict *v, struct str *out)
{
    char since[CLOCK_UTC_MAX];
    jwrite_object(out, NULL);
    jwrite_text(out, "namespace", p->namespace);
    jwrite_text(out, "name", p->name);
    jwrite_text(out, "job", p->job);
    jwrite_int(out, "pair", p->pair);
    clock_format_utc(p->since_s, since);
    jwrite_text_or_null(out, "since", p->since_s ? since : NULL);
    jwrite_text(out, "reason", p->reason);
    if (v->judged) {
        jwrite_array(out, "refused");
        for (enum reason r = REASON_NONE + 1; r < REASON_COUNT; r++) {
            if (!v->count[r])
                continue;
            jwrite_object(out, NULL);
            jwrite_text(out, "reason", reason_word(r));
            jwrite_uint(out, "nodes", v->count[r]);
            jwrite_end_object(out);
        }
        jwrite_end_array(out);
    } else {
        jwrite_null(out, "refused");
    }
    jwrite_end_object(out);
}

static void list_pending(struct page *page, const struct app *app,
                         struct pending_pods *g)
{
    const struct pending_pod *last = NULL; /* that was judged */
    struct pending_verdict v = {.text = STR_INIT(1)};
    unsigned asked = 0;
    for (size_t i = 0; i < g->n; i++) {
        struct pending_pod *p = &g->list[i];
        if (page->after && !query_is_after(p->namespace, p->name, page->after))
            continue;
        if (!page_next(page, p->namespace, p->name))
            break;
        if (!pending_pod_is_like(p, last)) {
            str_fini(&v.text);
            v = (struct pending_verdict){.text = STR_INIT(1)};
            if (asked++ < PENDING_ASKS_MAX)
                pending_judge(app, g->snapshot, p->namespace, p->name, &v);
            last = p;
        }
        if (!p->told && v.text.size)
            job_reason("", str_text(&v.text), p->reason);
        write_pending(p, &v, page->out);
    }
    str_fini(&v.text);
}

void on_pending(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"continue", "limit", "namespace",
                                         NULL};
    const struct app *app = ctx;
    size_t limit = PENDING_LIMIT;
    struct page page;
    if (!httpd_query_only(rq, params) ||
        !query_limit(rq, PENDING_LIMIT_MAX, &limit))
        return;
    cleanup_with(snapshot) struct snapshot *s = visible_snapshot(app, rq);
    struct pending_pods g;
    if (is_pods_current(rq, app, s))
        return;
    pending_pods_read(&g, &app->source, s, httpd_query(rq, "namespace"));
    page_begin(&page, rq, limit, NULL, "snapshot", s->number);
    list_pending(&page, app, &g);
    page_end(&page);
    pending_pods_fini(&g);
}

void on_job_drawing(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {NULL};
    struct found f;
    if (!httpd_query_only(rq, params) || !find_job(rq, ctx, &f))
        return;
    reply_job_drawing(rq, ctx, &f.view);
    found_fini(&f);
}

/* --- maps --------------------------------------------------------------- */

static void fail_incomplete(struct httpd_request *rq, const struct job_view *v)
{
    cleanup_str struct str missing = STR_INIT(4096), held = STR_INIT(4096);
    job_view_add_missing(v, &missing);
    job_view_add_held(v, &held);
    httpd_fail(rq, 409,
               "job %.63s/%.253s: %" PRIu32 " of %" PRIu32
               " pairs are bound%s%s%s%s",
               v->namespace, v->job, v->bound, v->size,
               held.size ? "; only held: " : "", str_text(&held),
               missing.size ? "; missing: " : "", str_text(&missing));
}

/* All files in one object; one that cannot be written is null, with the
 * reason in "errors". */
static void write_maps(const struct job_view *v, struct str *out)
{
    cleanup_str struct str errors = STR_INIT(STR_MAX_DEFAULT);
    jwrite_object(out, NULL);
    jwrite_text(out, "namespace", v->namespace);
    jwrite_text(out, "name", v->job);
    jwrite_uint(out, "size", v->size);
    jwrite_object(out, "maps");
    for (int i = 0; i < MAP_FORMATS; i++) {
        cleanup_str struct str map = STR_INIT(STR_MAX_DEFAULT);
        const char *name = map_format_name((enum map_format)i);
        struct error err = {0};
        int rc = job_view_map(v, (enum map_format)i, &map, &err);
        jwrite_text_or_null(out, name, rc == 0 ? str_text(&map) : NULL);
        if (rc < 0)
            jwrite_text(&errors, name, err.text);
    }
    str_addf(out, "},\"errors\":{%s}}\n", str_text(&errors));
}

void on_job_maps(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"format", NULL};
    const char *format = httpd_query(rq, "format");
    enum map_format form = MAP_FORMATS;
    struct error err = {0};
    struct found f;
    if (!httpd_query_only(rq, params))
        return;
    if (format && map_format_parse(format, &form, &err) < 0) {
        httpd_fail(rq, 400, "format: %s", err.text);
        return;
    }
    if (!find_job(rq, ctx, &f))
        return;
    if (!job_view_is_whole(&f.view)) {
        fail_incomplete(rq, &f.view);
    } else if (!format) {
        write_maps(&f.view, httpd_reply(rq));
    } else if (job_view_map(&f.view, form, httpd_reply(rq), &err) < 0) {
        httpd_fail(rq, 409, "%s", err.text);
    } else {
        httpd_content_type(rq, HTTPD_TEXT);
    }
    found_fini(&f);
}
