#include "extender/serve/routes_publish.h"

#include <string.h>

#include "extender/admit/access.h"
#include "extender/keep/served_slice.h"
#include "extender/serve/app.h"
#include "extender/serve/waiting.h"
#include "extender/view/kube.h"
#include "lib/base/mem.h"

#define SLICES "/apis/resource.k8s.io/v1/resourceslices"

enum {
    LIST_MAX = 500,         /* slices on one page */
    OPTIONS_MAX = 64 << 10, /* bytes of a DeleteOptions */
    OUT_MAX = LIST_MAX * SLICE_BODY_MAX / 2,
};

/* A request that waits for the writer. */
struct job {
    struct waiting waiting; /* first */
    char name[SLICE_NAME_MAX + 1];
    char owner[TLS_NAME_MAX + 1]; /* the client's node */
    bool table, whole;            /* how a list is answered */
    bool one; /* a list of at most one, which may be missing */
};

static struct job *job_of(struct waiting *w)
{
    return (struct job *)w;
}

/* One that was not posted. */
static void job_drop(struct job *job)
{
    str_fini(&job->waiting.op.out);
    free(job);
}

static struct job *job_create(struct httpd_request *rq, enum writer_kind kind)
{
    struct job *job = xcalloc(1, sizeof *job);
    struct writer_op *op = &job->waiting.op;
    op->kind = kind;
    op->name = job->name;
    if (access_node(rq, job->owner))
        op->owner = job->owner;
    str_init(&op->out, OUT_MAX);
    return job;
}

/* --- failures ------------------------------------------------------------- */

static unsigned status_of(int result)
{
    switch (result) {
    case -EINVAL:
    case -EBADMSG:
    case -ENAMETOOLONG:
        return 400;
    case -EACCES:
        return 403;
    case -ENOENT:
        return 404;
    case -ESTALE:
    case -EEXIST:
        return 409;
    case -ENOMEM:
        return 503;
    case -ENOSPC:
        return 507;
    default:
        return 500;
    }
}

static void job_fail(struct httpd_request *rq, const struct job *job)
{
    const struct writer_op *op = &job->waiting.op;
    if (op->result == -ENOENT) {
        httpd_fail(rq, 404, "resourceslices.resource.k8s.io \"%s\" not found",
                   job->name);
        return;
    }
    if (op->result == -EACCES)
        httpd_refusal(rq, "node");
    httpd_fail(rq, status_of(op->result), "%s",
               op->error.text[0] ? op->error.text : strerror(-op->result));
}

static void count_rejected(struct app *app, int result)
{
    metrics_count(app->listener.metrics, APP_SLICES_REJECTED,
                  result == -ESTALE         ? "stale"
                  : result == -EEXIST       ? "foreign"
                  : result == -EACCES       ? "foreign"
                  : status_of(result) < 500 ? "invalid"
                                            : "error");
}

/* What a slice's name may be, so that it is never too long for a buffer. */
static bool name_take(struct httpd_request *rq, char ret_name[])
{
    const char *name = httpd_arg(rq, 0);
    size_t size = strlen(name);
    if (size > SLICE_NAME_MAX) {
        httpd_fail(rq, 400,
                   "metadata.name: has %zu characters, at most %d "
                   "are allowed",
                   size, SLICE_NAME_MAX);
        return false;
    }
    memcpy(ret_name, name, size + 1);
    return true;
}

/* --- put, post ------------------------------------------------------------ */

static const char *const write_params[] = {"fieldManager", "fieldValidation",
                                           "pretty", "timeout", NULL};

static void reply_object(struct httpd_request *rq, const char *name,
                         uint64_t version)
{
    struct served_slice object = {.name = name, .resource_version = version};
    object.json = httpd_body(rq, &object.size);
    served_slice_write(httpd_reply(rq), &object);
}

static bool put_follow(struct waiting *w)
{
    if (w->op.result < 0)
        count_rejected(w->app, w->op.result);
    else
        metrics_count(w->app->listener.metrics, APP_SLICES_ACCEPTED,
                      w->op.created ? "created" : "changed");
    return false;
}

static void put_answer(struct httpd_request *rq, struct waiting *w)
{
    struct job *job = job_of(w);
    if (w->op.result < 0) {
        job_fail(rq, job);
        return;
    }
    httpd_status(rq, w->op.created ? 201 : 200);
    reply_object(rq, job->name, w->op.resource_version);
}

static const struct waiting_kind putting = {.follow = put_follow,
                                            .answer = put_answer};

static void on_put(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    char name[SLICE_NAME_MAX + 1];
    char owner[TLS_NAME_MAX + 1];
    uint64_t version;
    size_t size;
    const char *body = httpd_body(rq, &size);
    if (!httpd_query_only(rq, write_params) || !name_take(rq, name))
        return;
    const struct slice_cache_body heard = {
        name, access_node(rq, owner) ? owner : NULL, body, size};
    if (writer_heartbeat(app->writer, &heard, &version)) {
        metrics_count(app->listener.metrics, APP_SLICES_ACCEPTED, "heartbeat");
        reply_object(rq, name, version);
        return;
    }
    struct job *job = job_create(rq, WRITER_PUT_SLICE);
    memcpy(job->name, name, sizeof name);
    job->waiting.op.body = body;
    job->waiting.op.body_size = size;
    waiting_post(&job->waiting, &putting, rq, app);
}

/* Where nothing of the name was there, it is created now. */
static bool post_follow(struct waiting *w)
{
    struct writer_op *op = &w->op;
    if (op->kind == WRITER_PUT_SLICE)
        return put_follow(w);
    if (op->result != -ENOENT)
        return false;
    op->kind = WRITER_PUT_SLICE;
    str_reset(&op->out);
    waiting_again(w);
    return true;
}

static void post_answer(struct httpd_request *rq, struct waiting *w)
{
    if (w->op.kind == WRITER_GET_SLICE && w->op.result == 0)
        httpd_fail(rq, 409,
                   "resourceslices.resource.k8s.io \"%s\" already "
                   "exists",
                   job_of(w)->name);
    else
        put_answer(rq, w);
}

static const struct waiting_kind posting = {.follow = post_follow,
                                            .answer = post_answer};

static void on_post(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    size_t size;
    const char *body = httpd_body(rq, &size);
    char name[SLICE_NAME_MAX + 1] = "";
    if (!httpd_query_only(rq, write_params))
        return;
    /* a body without a readable name gets its error from the decoder */
    struct job *job = job_create(rq, WRITER_PUT_SLICE);
    job->waiting.op.body = body;
    job->waiting.op.body_size = size;
    if (kube_object_name(body, size, name, sizeof name)) {
        memcpy(job->name, name, sizeof name);
        job->waiting.op.kind = WRITER_GET_SLICE;
    }
    waiting_post(&job->waiting, &posting, rq, app);
}

/* --- delete --------------------------------------------------------------- */

static void delete_answer(struct httpd_request *rq, struct waiting *w)
{
    if (w->op.result < 0)
        job_fail(rq, job_of(w));
    else
        kube_write_success(httpd_reply(rq), job_of(w)->name);
}

static const struct waiting_kind deleting = {.answer = delete_answer};

static void on_delete(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"gracePeriodSeconds",
                                         "orphanDependents", "pretty",
                                         "propagationPolicy", NULL};
    char name[SLICE_NAME_MAX + 1];
    if (!httpd_query_only(rq, params) || !name_take(rq, name))
        return;
    struct job *job = job_create(rq, WRITER_DELETE_SLICE);
    memcpy(job->name, name, sizeof name);
    waiting_post(&job->waiting, &deleting, rq, ctx);
}

/* --- get, list ------------------------------------------------------------ */

static void reply_list(struct httpd_request *rq, const struct job *job)
{
    const struct writer_op *op = &job->waiting.op;
    struct kube_list list = {
        .items = str_text(&op->out),
        .size = op->out.size,
        .resource_version = op->resource_version,
        .next = op->more ? op->last : NULL,
    };
    if (job->table)
        kube_write_table(httpd_reply(rq), &list, job->whole);
    else
        kube_write_list(httpd_reply(rq), &list);
}

/* A single slice is read as one object; a list of it gets brackets. */
static void bracket(struct writer_op *op)
{
    struct str list = STR_INIT(OUT_MAX);
    str_add_c(&list, '[');
    if (op->result == 0)
        str_add_n(&list, str_text(&op->out), op->out.size);
    str_add_c(&list, ']');
    str_fini(&op->out);
    op->out = list;
    op->more = false;
    op->result = 0;
}

static void get_answer(struct httpd_request *rq, struct waiting *w)
{
    struct job *job = job_of(w);
    struct writer_op *op = &w->op;
    if (job->one ? op->result == 0 || op->result == -ENOENT
                 : op->result == 0 && job->table && op->name[0])
        bracket(op);
    if (op->result < 0)
        job_fail(rq, job);
    else if (op->out.overflow)
        httpd_fail(rq, 500, "too large; ask for fewer with limit=");
    else if (job->one || job->table || op->kind == WRITER_LIST_SLICES)
        reply_list(rq, job);
    else
        str_add_n(httpd_reply(rq), str_text(&op->out), op->out.size);
}

static const struct waiting_kind getting = {.answer = get_answer};

static void wants(const struct httpd_request *rq, struct job *job)
{
    const char *include = httpd_query(rq, "includeObject");
    job->table = kube_wants_table(httpd_header(rq, "Accept"));
    job->whole = include && strcmp(include, "Object") == 0;
}

static void on_get(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"includeObject", "pretty",
                                         "resourceVersion", NULL};
    char name[SLICE_NAME_MAX + 1];
    if (!httpd_query_only(rq, params) || !name_take(rq, name))
        return;
    struct job *job = job_create(rq, WRITER_GET_SLICE);
    memcpy(job->name, name, sizeof name);
    wants(rq, job);
    waiting_post(&job->waiting, &getting, rq, ctx);
}

/* One requirement, "KEY=VALUE" or "KEY==VALUE". */
static bool select_field(struct job *job, char *text, bool *ret_none)
{
    char *value = strchr(text, '=');
    if (!value || value == text || value[-1] == '!')
        return false;
    *value++ = '\0';
    value += *value == '=';
    if (strcmp(text, "spec.nodeName") == 0) {
        job->waiting.op.node = value;
    } else if (strcmp(text, "spec.driver") == 0) {
        *ret_none |= strcmp(value, SLICE_DRIVER) != 0;
    } else if (strcmp(text, "metadata.name") == 0) {
        *ret_none |= strlen(value) > SLICE_NAME_MAX;
        (void)snprintf(job->name, sizeof job->name, "%s", value);
        job->one = true;
    } else {
        return false;
    }
    return true;
}

/* False when the selector is not understood; `*ret_none`: nothing can match.
 * `text` is cut up, and lives as long as the job. */
static bool select_fields(struct job *job, char *text, bool *ret_none)
{
    char *rest = text, *item;
    while ((item = strsep(&rest, ",")))
        if (*item && !select_field(job, item, ret_none))
            return false;
    /* the writer finds slices by name or by node */
    return !(job->one && job->waiting.op.node);
}

static bool list_limit(struct httpd_request *rq, size_t *ret_limit)
{
    const char *text = httpd_query(rq, "limit");
    char *end = NULL;
    errno = 0;
    unsigned long long n = text && *text ? strtoull(text, &end, 10) : 0;
    if (text && *text && (*end || errno || *text < '0' || *text > '9')) {
        httpd_fail(rq, 400, "limit: is \"%.32s\", must be a number", text);
        return false;
    }
    *ret_limit = n == 0 || n > LIST_MAX ? LIST_MAX : (size_t)n;
    return true;
}

static bool list_refused(struct httpd_request *rq)
{
    static const char *const params[] = {"allowWatchBookmarks",
                                         "continue",
                                         "fieldSelector",
                                         "includeObject",
                                         "labelSelector",
                                         "limit",
                                         "pretty",
                                         "resourceVersion",
                                         "resourceVersionMatch",
                                         "sendInitialEvents",
                                         "timeoutSeconds",
                                         "watch",
                                         NULL};
    const char *watch = httpd_query(rq, "watch");
    const char *labels = httpd_query(rq, "labelSelector");
    if (!httpd_query_only(rq, params))
        return true;
    if (watch && strcmp(watch, "false") != 0 && strcmp(watch, "0") != 0)
        httpd_fail(rq, 405,
                   "watching resourceslices is not supported here: "
                   "list them again instead");
    else if (labels && *labels)
        httpd_fail(rq, 400, "labelSelector is not supported here");
    else
        return false;
    return true;
}

static void on_list(struct httpd_request *rq, void *ctx)
{
    bool none = false;
    size_t limit;
    const char *fields = httpd_query(rq, "fieldSelector");
    const char *after = httpd_query(rq, "continue");
    if (list_refused(rq) || !list_limit(rq, &limit))
        return;
    struct job *job = job_create(rq, WRITER_LIST_SLICES);
    struct writer_op *op = &job->waiting.op;
    op->limit = limit;
    op->after = after && *after ? after : NULL;
    wants(rq, job);
    /* the query is the request's own, and nobody reads it again */
    if (fields && !select_fields(job, (char *)fields, &none)) {
        httpd_fail(rq, 400,
                   "fieldSelector: must be spec.nodeName=, "
                   "spec.driver= or metadata.name= with a value");
        job_drop(job);
        return;
    }
    if (none) {
        job->one = false;
        job->name[0] = '\0';
        str_add(&op->out, "[]");
        get_answer(rq, &job->waiting);
        job_drop(job);
        return;
    }
    if (job->one)
        op->kind = WRITER_GET_SLICE;
    waiting_post(&job->waiting, &getting, rq, ctx);
}

/* --- discovery ------------------------------------------------------------ */

static void on_discovery(struct httpd_request *rq, void *ctx)
{
    const char *document = kube_discovery(httpd_path(rq));
    (void)ctx;
    if (document)
        str_add(httpd_reply(rq), document);
    else
        httpd_fail(rq, 404, "there is nothing at \"%.256s\"", httpd_path(rq));
}

const struct httpd_route publish_routes[] = {
    {HTTPD_PUT, SLICES "/:", on_put, SLICE_BODY_MAX, "slice-put"},
    {HTTPD_GET, SLICES "/:", on_get, 0, "slice-get"},
    {HTTPD_DELETE, SLICES "/:", on_delete, OPTIONS_MAX, "slice-delete"},
    {HTTPD_POST, SLICES, on_post, SLICE_BODY_MAX, "slice-post"},
    {HTTPD_GET, SLICES, on_list, 0, "slice-list"},
    {HTTPD_GET, "/api", on_discovery, 0, "discovery"},
    {HTTPD_GET, "/apis", on_discovery, 0, "discovery"},
    {HTTPD_GET, "/apis/resource.k8s.io", on_discovery, 0, "discovery"},
    {HTTPD_GET, "/apis/resource.k8s.io/v1", on_discovery, 0, "discovery"},
    {HTTPD_GET, "/version", on_discovery, 0, "discovery"},
};
const size_t n_publish_routes = ARRAY_LEN(publish_routes);
