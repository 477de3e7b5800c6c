#include "extender/serve/routes_private.h"

#include <inttypes.h>
#include <string.h>

#include "extender/serve/app.h"
#include "extender/serve/page.h"
#include "extender/serve/query.h"
#include "extender/view/job_view.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"

/* --- the list ----------------------------------------------------------- */

static void list_jobs(struct page *page, const struct snapshot *s,
                      const char *namespace)
{
    size_t n, end;
    cleanup_free const struct allocation **members = job_members(s->allocations,
                                                                 namespace, &n);
    for (size_t i = 0; i < n; i = end) {
        const struct demand *d = &members[i]->demand;
        struct job_view v;
        end = job_members_end(members, n, i);
        if (page->after && !query_is_after(d->namespace, d->job, page->after))
            continue;
        if (!page_next(page, d->namespace, d->job))
            return;
        job_view_init(&v, s, NULL, members + i, end - i);
        if (page->text)
            job_view_row(&v, &page->table);
        else
            job_view_write(&v, page->out);
        job_view_fini(&v);
    }
}

void on_jobs(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"continue", "limit", "namespace",
                                         NULL};
    struct app *app = ctx;
    size_t limit = QUERY_LIMIT;
    struct page page;
    if (!httpd_query_only(rq, params) ||
        !query_limit(rq, QUERY_LIMIT_MAX, &limit))
        return;
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app->writer);
    if (query_is_current(rq, app, s))
        return;
    page_begin(&page, rq, limit, job_view_heads, "snapshot", s->number);
    list_jobs(&page, s, httpd_query(rq, "namespace"));
    page_end(&page);
}

/* --- one job ------------------------------------------------------------ */

/* A job and what it borrows from. */
struct found {
    struct snapshot *snapshot;
    const struct allocation **members;
    struct job_view view;
};

static void found_fini(struct found *f)
{
    job_view_fini(&f->view);
    free(f->members);
    snapshot_unref(f->snapshot);
}

/* The job of the path; false when the request has been failed. */
static bool find_job(struct httpd_request *rq, struct app *app,
                     struct found *ret_found)
{
    const char *namespace = httpd_arg(rq, 0), *job = httpd_arg(rq, 1);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app->writer);
    size_t n;
    cleanup_free const struct allocation **members =
        alloc_index_find_job(s->allocations, namespace, job, &n);
    if (n == 0) {
        httpd_fail(rq, 404,
                   "no pod of job %.63s/%.253s is bound, and no place is held "
                   "for one: see /v1/jobs (biga jobs) for the jobs, and "
                   "/v1/why (biga why) for one that is pending",
                   namespace, job);
        return false;
    }
    job_view_init(&ret_found->view, s, app->achieved, members, n);
    ret_found->snapshot = steal(&s);
    ret_found->members = steal(&members);
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
    if (httpd_wants_text(rq)) {
        httpd_content_type(rq, HTTPD_TEXT);
        write_tables(&f.view, httpd_reply(rq));
    } else {
        job_view_write_whole(&f.view, httpd_reply(rq));
        str_add_c(httpd_reply(rq), '\n');
    }
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
