#include "extender/serve/routes_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extender/keep/writer.h"
#include "extender/pods/pending_demands.h"
#include "extender/serve/app.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"

/* --- of a pod ------------------------------------------------------------ */

static const char *result_word(int result)
{
    return result == 0 ? "released" : result == -ENOENT ? "unknown" : "error";
}

static bool release_follow(struct waiting *release)
{
    const struct app *app = release->app;
    const struct writer_op *op = &release->op;
    metrics_count(app->listener.metrics, APP_RELEASES, result_word(op->result));
    if (op->result == 0 && app->demands)
        pending_demands_forget(app->demands, op->namespace, op->pod);
    return false;
}

/* False: the request has been failed. */
static bool answer_begin(struct httpd_request *rq,
                         const struct waiting *release)
{
    int r = release->op.result;
    if (r < 0) {
        httpd_fail(rq, r == -EBUSY ? 409 : waiting_failure(release), "%s",
                   release->op.error.text);
        return false;
    }
    struct str *out = httpd_reply(rq);
    str_add(out, "{\"released\":{");
    jwrite_text(out, "namespace", httpd_arg(rq, 0));
    jwrite_text(out, "name", httpd_arg(rq, 1));
    return true;
}

static void release_answer(struct httpd_request *rq, struct waiting *release)
{
    if (answer_begin(rq, release))
        str_add(httpd_reply(rq), "}}\n");
}

static const struct waiting_kind releasing = {.follow = release_follow,
                                              .answer = release_answer};

void handle_release(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    static const char *const no_params[] = {NULL};
    const char *namespace = httpd_arg(rq, 0), *pod = httpd_arg(rq, 1);
    cleanup_str struct str why = STR_INIT(4096);
    bool unfed;
    if (!httpd_query_only(rq, no_params))
        return;
    if (!pod_source_may_release(&app->source, namespace, pod, &unfed, &why)) {
        httpd_fail(rq, 409, "%s", str_text(&why));
        return;
    }
    struct waiting *release = xcalloc(1, sizeof *release);
    release->op = (struct writer_op){
        .kind = WRITER_RELEASE,
        .namespace = namespace,
        .pod = pod,
        .unfed = unfed,
        .out = STR_INIT(STR_MAX_DEFAULT),
    };
    waiting_post(release, &releasing, rq, app);
}

/* --- of a job ------------------------------------------------------------ */

struct job_release {
    struct waiting waiting; /* first */
    struct job_name job;
    struct snapshot *snapshot;
    const struct allocation **members; /* of the job, in the snapshot */
    size_t n;
    const char **unfed; /* uids of members: see writer_op.h */
};

static void job_release_free(struct job_release *x)
{
    snapshot_unref(x->snapshot);
    free(x->members);
    free(x->unfed);
    free(x);
}

/* Those that have no allocation any more. */
static void forget_released(const struct job_release *x)
{
    const struct app *app = x->waiting.app;
    const char *released = result_word(0);
    size_t n = 0;
    cleanup_with(snapshot) struct snapshot *now = writer_snapshot(app->writer);
    for (size_t i = 0; i < x->n; i++) {
        const struct demand *pod = &x->members[i]->demand;
        if (x->members[i]->held ||
            alloc_index_find_uid(now->allocations, pod->uid))
            continue;
        n++;
        if (app->demands)
            pending_demands_forget(app->demands, pod->namespace, pod->name);
    }
    metrics_add(app->listener.metrics, APP_RELEASES, &released, n);
}

/* On the listener's thread, whatever became of the client. */
static void job_release_destroy(struct waiting *w)
{
    struct job_release *x = (struct job_release *)w;
    int result = w->op.result;
    forget_released(x);
    if (result < 0)
        metrics_count(w->app->listener.metrics, APP_RELEASES,
                      result_word(result));
    job_release_free(x);
}

static void job_release_answer(struct httpd_request *rq, struct waiting *w)
{
    if (!answer_begin(rq, w))
        return;
    jwrite_uint(httpd_reply(rq), "allocations", w->op.n_out);
    str_add(httpd_reply(rq), "}}\n");
}

static const struct waiting_kind releasing_job = {
    .answer = job_release_answer, .destroy = job_release_destroy};

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* May all of them end?  Else why not. */
static bool ask_source(struct job_release *x, const struct app *app,
                       struct str *why)
{
    struct writer_op *op = &x->waiting.op;
    bool may = true, unfed;
    x->unfed = xcalloc(x->n + 1, sizeof *x->unfed);
    for (size_t i = 0; i < x->n && may; i++) {
        const struct allocation *a = x->members[i];
        if (a->held)
            continue;
        may = pod_source_may_release(&app->source, a->demand.namespace,
                                     a->demand.name, &unfed, why);
        if (unfed)
            x->unfed[op->n_unfed++] = a->demand.uid;
        if (a->number > op->number)
            op->number = a->number;
    }
    qsort(x->unfed, op->n_unfed, sizeof *x->unfed, compare_text);
    op->unfed_uids = x->unfed;
    return may;
}

void handle_release_job(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    static const char *const no_params[] = {NULL};
    cleanup_str struct str why = STR_INIT(4096);
    if (!httpd_query_only(rq, no_params))
        return;
    struct job_release *x = xcalloc(1, sizeof *x);
    x->job = (struct job_name){httpd_arg(rq, 0), httpd_arg(rq, 1)};
    x->waiting.op.kind = WRITER_RELEASE_JOB;
    x->waiting.op.job = &x->job;
    x->waiting.op.out = STR_INIT(STR_MAX_DEFAULT);
    x->snapshot = writer_snapshot(app->writer);
    x->members = alloc_index_find_job(x->snapshot->allocations,
                                      x->job.namespace, x->job.name, &x->n);
    if (ask_source(x, app, &why)) {
        waiting_post(&x->waiting, &releasing_job, rq, app);
        return;
    }
    httpd_fail(rq, 409, "%s; nothing of the job was released", str_text(&why));
    job_release_free(x);
}
