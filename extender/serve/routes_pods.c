#include "extender/serve/routes_pods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "extender/admit/sight.h"
#include "extender/pods/applied_apply.h"
#include "extender/pods/applied_view.h"
#include "extender/pods/job_object.h"
#include "extender/pods/pod_files.h"
#include "extender/run/embedded.h"
#include "extender/serve/app.h"
#include "extender/serve/page.h"
#include "extender/serve/query.h"
#include "extender/serve/routes_private.h"
#include "lib/base/jwrite.h"
#include "lib/base/lower_bound.h"
#include "lib/base/mem.h"

static const char *const no_params[] = {NULL};

static struct applied *applied_of(const struct app *app)
{
    return embedded_of(&app->source)->store.applied;
}

/* --- waiting for the writer ---------------------------------------------- */

struct change {
    struct waiting waiting;   /* first */
    struct applied_body body; /* to be freed; its changes are the op's */
    struct pod_change one;    /* of a delete */
};

static void change_post(struct change *c, const struct waiting_kind *kind,
                        struct httpd_request *rq, struct app *app)
{
    c->waiting.op.kind = WRITER_PODS;
    c->waiting.op.out = STR_INIT(STR_MAX_DEFAULT);
    waiting_post(&c->waiting, kind, rq, app);
}

static void change_destroy(struct waiting *w)
{
    struct change *c = (struct change *)w;
    applied_body_fini(&c->body);
    free(c);
}

/* --- apply --------------------------------------------------------------- */

/* What a pod lacks that may still be applied, or nothing. */
static void add_warning(const struct pod_set *set, const struct pod_change *c,
                        struct str *out)
{
    struct podspec_source source = pod_set_source(set);
    cleanup_with(podspec) struct podspec *spec = NULL;
    struct error err;
    if (c->pod && podspec_parse(c->pod->json, c->pod->size, "", &source, &spec,
                                &err) != 0)
        jwrite_text(out, "warning", err.text);
}

/* What became of one, without the end of the object. */
static void write_result(const struct pod_change *c, const char *namespace,
                         const char *name, struct str *out)
{
    bool pod = c->kind == APPLIED_APPLY || c->kind == APPLIED_DELETE;
    bool secret = c->config ? c->config->secret : c->secret;
    jwrite_object(out, NULL);
    jwrite_text(out, "kind", pod ? "Pod" : secret ? "Secret" : "ConfigMap");
    jwrite_text(out, "namespace", namespace);
    jwrite_text(out, "name", name);
    jwrite_text(out, "result", pod_result_name(c->result));
}

static void write_results(const struct change *c, const struct pod_set *set,
                          struct str *out)
{
    str_add(out, "{\"items\":[");
    for (size_t i = 0; i < c->body.n; i++) {
        const struct pod_change *x = &c->body.changes[i];
        str_add(out, i ? ",\n" : "");
        if (x->pod)
            write_result(x, x->pod->namespace, x->pod->name, out);
        else
            write_result(x, x->config->namespace, x->config->name, out);
        if (x->pod)
            jwrite_text(out, "uid", x->result_uid);
        if (x->pod && job_object_made(x->pod->json))
            jwrite_text(out, "madeBy", x->pod->demand.job);
        add_warning(set, x, out);
        jwrite_end_object(out);
    }
    str_add(out, "]}\n");
}

static void apply_answer(struct httpd_request *rq, struct waiting *w)
{
    struct change *c = (struct change *)w;
    if (c->waiting.op.result < 0) {
        httpd_fail(rq, waiting_failure(&c->waiting), "%s; nothing was applied",
                   c->waiting.op.error.text);
    } else {
        cleanup_with(pod_set) struct pod_set *set =
            applied_get(applied_of(c->waiting.app));
        write_results(c, set, httpd_reply(rq));
    }
}

static const struct waiting_kind applying = {.answer = apply_answer,
                                             .destroy = change_destroy};

/* The namespace of a change that the client may not make; NULL: it may all. */
static const char *foreign(const struct httpd_request *rq,
                           const struct applied_body *body)
{
    for (size_t i = 0; i < body->n; i++) {
        const struct pod_change *x = &body->changes[i];
        const char *namespace = x->pod ? x->pod->namespace
                                       : x->config->namespace;
        if (!scope_sees(sight_scope(rq), namespace))
            return namespace;
    }
    return NULL;
}

static void on_apply(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    struct applied_body body;
    struct error err = {0};
    size_t size;
    if (!httpd_query_only(rq, no_params) || !query_is_json(rq))
        return;
    const char *data = httpd_body(rq, &size);
    if (applied_body_read(data, size, &app->demand, &body, &err) < 0) {
        httpd_fail(rq, httpd_unread(&err), "%s; nothing was applied", err.text);
        return;
    }
    const char *namespace = foreign(rq, &body);
    if (namespace) {
        httpd_refusal(rq, "forbidden");
        httpd_fail(rq, 403,
                   "this token is not of namespace \"%.63s\"; nothing was "
                   "applied",
                   namespace);
        applied_body_fini(&body);
        return;
    }
    cleanup_with(pod_set) struct pod_set *set = applied_get(applied_of(app));
    if (pod_files_check_size(set, body.changes, body.n, &err) < 0) {
        applied_body_fini(&body);
        httpd_fail(rq, 400, "%s; nothing was applied", err.text);
        return;
    }
    struct change *c = xcalloc(1, sizeof *c);
    c->body = body;
    c->waiting.op.changes = c->body.changes;
    c->waiting.op.n_changes = c->body.n;
    change_post(c, &applying, rq, app);
}

/* --- delete -------------------------------------------------------------- */

static void delete_answer(struct httpd_request *rq, struct waiting *w)
{
    struct change *c = (struct change *)w;
    if (c->waiting.op.result < 0) {
        httpd_fail(rq, waiting_failure(&c->waiting), "%s",
                   c->waiting.op.error.text);
    } else {
        write_result(&c->one, httpd_arg(rq, 0), httpd_arg(rq, 1),
                     httpd_reply(rq));
        str_add(httpd_reply(rq), "}\n");
    }
}

static const struct waiting_kind deleting = {.answer = delete_answer,
                                             .destroy = change_destroy};

/* From 0; -1 when it is not given. */
static bool read_grace(struct httpd_request *rq, int64_t *ret_grace)
{
    const char *text = httpd_query(rq, "grace");
    char *end = NULL;
    *ret_grace = -1;
    if (!text)
        return true;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno ||
        n > PODSPEC_GRACE_S_MAX) {
        httpd_fail(rq, 400,
                   "grace: is \"%.32s\", must be a number of seconds from 0 to "
                   "%d",
                   text, PODSPEC_GRACE_S_MAX);
        return false;
    }
    *ret_grace = n;
    return true;
}

static void post_delete(struct httpd_request *rq, struct app *app,
                        struct pod_change one)
{
    struct change *c = xcalloc(1, sizeof *c);
    c->one = one;
    c->one.namespace = httpd_arg(rq, 0);
    c->one.name = httpd_arg(rq, 1);
    c->waiting.op.changes = &c->one;
    c->waiting.op.n_changes = 1;
    change_post(c, &deleting, rq, app);
}

static void on_delete(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"grace", NULL};
    struct pod_change one = {.kind = APPLIED_DELETE};
    if (httpd_query_only(rq, params) && read_grace(rq, &one.grace_s))
        post_delete(rq, ctx, one);
}

static void on_delete_configmap(struct httpd_request *rq, void *ctx)
{
    struct pod_change one = {.kind = CONFIG_DELETE};
    if (httpd_query_only(rq, no_params))
        post_delete(rq, ctx, one);
}

static void on_delete_secret(struct httpd_request *rq, void *ctx)
{
    struct pod_change one = {.kind = CONFIG_DELETE, .secret = true};
    if (httpd_query_only(rq, no_params))
        post_delete(rq, ctx, one);
}

/* --- delete of a whole job ----------------------------------------------- */

struct job_delete {
    struct waiting waiting; /* first */
    struct pod_set *set;    /* has the names */
    struct pod_change *changes;
    size_t n, n_made;
};

static void job_delete_destroy(struct waiting *w)
{
    struct job_delete *d = (struct job_delete *)w;
    pod_set_unref(d->set);
    free(d->changes);
    free(d);
}

/* As many of the next ones as one operation makes. */
static void take_next(struct job_delete *d)
{
    struct writer_op *op = &d->waiting.op;
    size_t left = d->n - d->n_made;
    op->changes = d->changes + d->n_made;
    op->n_changes = left < APPLIED_CHANGES_MAX ? left : APPLIED_CHANGES_MAX;
}

/* The pod that this operation failed at has gone meanwhile. */
static void leave_out(struct job_delete *d)
{
    size_t at = d->n_made + d->waiting.op.n_out;
    d->n--;
    memmove(&d->changes[at], &d->changes[at + 1],
            (d->n - at) * sizeof *d->changes);
}

static bool job_delete_follow(struct waiting *w)
{
    struct job_delete *d = (struct job_delete *)w;
    struct writer_op *op = &w->op;
    if (op->result == -ENOENT)
        leave_out(d);
    else if (op->result < 0)
        return false;
    else
        d->n_made += op->n_changes;
    if (d->n_made == d->n) {
        op->result = 0;
        return false;
    }
    take_next(d);
    waiting_again(w);
    return true;
}

static void job_delete_answer(struct httpd_request *rq, struct waiting *w)
{
    const struct job_delete *d = (const struct job_delete *)w;
    struct str *out = httpd_reply(rq);
    if (w->op.result < 0) {
        httpd_fail(rq, waiting_failure(w), "%s; %zu of %zu pods are to end",
                   w->op.error.text, d->n_made, d->n);
        return;
    }
    jwrite_object(out, NULL);
    jwrite_text(out, "kind", "Job");
    jwrite_text(out, "namespace", httpd_arg(rq, 0));
    jwrite_text(out, "name", httpd_arg(rq, 1));
    jwrite_array(out, "items");
    for (size_t i = 0; i < d->n; i++) {
        const struct pod_change *c = &d->changes[i];
        write_result(c, c->namespace, c->name, out);
        jwrite_text(out, "uid", c->result_uid);
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
    jwrite_end_object(out);
    str_add_c(out, '\n');
}

static const struct waiting_kind deleting_job = {.follow = job_delete_follow,
                                                 .answer = job_delete_answer,
                                                 .destroy = job_delete_destroy};

static void add_change(struct job_delete *d, const struct applied_pod *p,
                       int64_t grace_s, size_t *cap)
{
    d->changes = xgrow(d->changes, d->n, cap, sizeof *d->changes);
    d->changes[d->n++] = (struct pod_change){.kind = APPLIED_DELETE,
                                             .namespace = p->namespace,
                                             .name = p->name,
                                             .uid = p->uid,
                                             .grace_s = grace_s};
}

/* Host pods last: they take those with them that are there still. */
static void list_members(struct job_delete *d, const char *namespace,
                         const char *job, int64_t grace_s)
{
    size_t cap = 0, first = pod_set_from(d->set, namespace, "", false);
    for (unsigned hosts = 0; hosts < 2; hosts++) {
        for (size_t i = first; i < d->set->n_pods; i++) {
            const struct applied_pod *p = d->set->pods[i];
            if (strcmp(p->namespace, namespace) != 0)
                break;
            if (strcmp(p->demand.job, job) == 0 &&
                (p->demand.role == ROLE_HOST) == (hosts == 1))
                add_change(d, p, grace_s, &cap);
        }
    }
}

static void on_delete_job(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"grace", NULL};
    struct app *app = ctx;
    const char *namespace = httpd_arg(rq, 0), *job = httpd_arg(rq, 1);
    int64_t grace_s;
    if (!httpd_query_only(rq, params) || !read_grace(rq, &grace_s))
        return;
    struct job_delete *d = xcalloc(1, sizeof *d);
    d->set = applied_get(applied_of(app));
    list_members(d, namespace, job, grace_s);
    if (d->n == 0) {
        httpd_fail(rq, 404, "job %.63s/%.253s: has no pods that were applied",
                   namespace, job);
        job_delete_destroy(&d->waiting);
        return;
    }
    d->waiting.op.kind = WRITER_PODS;
    d->waiting.op.out = STR_INIT(STR_MAX_DEFAULT);
    take_next(d);
    waiting_post(&d->waiting, &deleting_job, rq, app);
}

/* --- looking ------------------------------------------------------------- */

/* What one answer is made of. */
struct look {
    struct snapshot *snapshot;
    struct pod_set *set;
};

static void look_fini(struct look *look)
{
    snapshot_unref(look->snapshot);
    pod_set_unref(look->set);
}

/* False when the client has it already; look_fini() has to follow either
 * way. */
static bool look_begin(struct look *look, struct httpd_request *rq,
                       struct app *app)
{
    look->snapshot = visible_snapshot(app, rq);
    look->set = applied_get(applied_of(app));
    return !query_has_version(rq, app, look->snapshot->number,
                              look->set->version);
}

/* The filters of a list of pods; NULL: any. */
struct filters {
    const struct scope *scope;
    const char *after, *namespace, *node, *job;
    unsigned state; /* POD_STATES: any */
};

/* Pods in their order, with all that can be on the page among them. */
struct pods {
    struct applied_pod *const *list;
    const uint8_t *states; /* as a set has them; NULL: they are not at hand */
    size_t n;
    struct applied_pod **own; /* to be freed, or NULL */
};

/* Those with a place on the node. */
static struct pods pods_on(const struct look *look, const char *node)
{
    size_t n;
    cleanup_free const struct allocation **places =
        alloc_index_on_node(look->snapshot->allocations, node, &n);
    struct pods x = {.own = xcalloc(n + 1, sizeof *x.own)};
    for (size_t i = 0; i < n; i++) {
        const struct demand *d = &places[i]->demand;
        struct applied_pod *p = pod_set_find(look->set, d->namespace, d->name);
        if (p && pod_place(p, look->snapshot) == places[i])
            x.own[x.n++] = p;
    }
    x.list = x.own;
    return x;
}

static size_t pods_from(const struct pods *x, const struct filters *f)
{
    struct applied_pod *const *list = x->list;
    size_t behind = 0, from = 0;
    if (f->after)
        behind = lower_bound(
            x->n, i,
            !query_is_after(list[i]->namespace, list[i]->name, f->after));
    if (f->namespace)
        from = lower_bound(x->n, i,
                           strcmp(list[i]->namespace, f->namespace) < 0);
    return behind > from ? behind : from;
}

/* `state` is what a set has: a place makes of one that is pending another. */
static bool may_be(const struct filters *f, enum pod_state state)
{
    return f->state == POD_STATES || f->state == state ||
           (f->state == POD_STATE_WANTED && state == POD_STATE_PENDING);
}

static bool passes(const struct filters *f, const struct applied_pod *p,
                   const struct snapshot *s)
{
    if (f->job && strcmp(p->demand.job, f->job) != 0)
        return false;
    return f->state == POD_STATES ||
           pod_state_shown(p, pod_place(p, s)) == f->state;
}

static void list_pods(struct page *page, const struct look *look,
                      const struct filters *f)
{
    const struct pod_set *set = look->set;
    const struct pods x = f->node ? pods_on(look, f->node)
                                  : (struct pods){set->pods, set->states,
                                                  set->n_pods, NULL};
    for (size_t i = pods_from(&x, f); i < x.n; i++) {
        const struct applied_pod *p = x.list[i];
        if (x.states && !may_be(f, (enum pod_state)x.states[i]))
            continue;
        if (f->namespace && strcmp(p->namespace, f->namespace) != 0)
            break;
        if (!scope_sees(f->scope, p->namespace)) { /* nor the others of it */
            i = lower_bound_near(i, x.n, k,
                                 strcmp(x.list[k]->namespace, p->namespace) ==
                                     0) -
                1;
            continue;
        }
        if (!passes(f, p, look->snapshot))
            continue;
        if (!page_next(page, p->namespace, p->name))
            break;
        if (page->text)
            pod_view_row(p, look->snapshot, &page->table);
        else
            pod_view(p, look->snapshot, false, page->out);
    }
    free(x.own);
}

static const char *state_word(unsigned index)
{
    return pod_state_name((enum pod_state)index);
}

static void on_list(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {
        "continue", "job", "limit", "namespace", "node", "state", NULL};
    size_t limit = QUERY_LIMIT;
    struct look look;
    struct page page;
    unsigned state;
    if (!httpd_query_only(rq, params) ||
        !query_limit(rq, QUERY_LIMIT_MAX, &limit) ||
        !query_choice(rq, "state", state_word, POD_STATES, &state))
        return;
    const struct filters f = {
        .scope = sight_scope(rq),
        .after = httpd_query(rq, "continue"),
        .namespace = httpd_query(rq, "namespace"),
        .node = httpd_query(rq, "node"),
        .job = httpd_query(rq, "job"),
        .state = state,
    };
    if (look_begin(&look, rq, ctx)) {
        page_begin(&page, rq, limit, pod_view_heads, "version",
                   look.set->version);
        list_pods(&page, &look, &f);
        page_end(&page);
    }
    look_fini(&look);
}

static void on_pod(struct httpd_request *rq, void *ctx)
{
    const char *namespace = httpd_arg(rq, 0), *name = httpd_arg(rq, 1);
    struct look look;
    if (!httpd_query_only(rq, no_params))
        return;
    if (look_begin(&look, rq, ctx)) {
        const struct applied_pod *p = pod_set_find(look.set, namespace, name);
        if (!p) {
            httpd_fail(rq, 404, "pod %.63s/%.253s: was not applied", namespace,
                       name);
        } else if (httpd_wants_text(rq)) {
            pod_view_text(p, look.snapshot, httpd_reply(rq));
            httpd_content_type(rq, HTTPD_TEXT);
        } else {
            pod_view(p, look.snapshot, true, httpd_reply(rq));
            str_add_c(httpd_reply(rq), '\n');
        }
    }
    look_fini(&look);
}

/* --- ConfigMaps and Secrets ---------------------------------------------- */

/* A key has the kind before the name, for that is their order. */
static void list_configs(struct page *page, const struct pod_set *set,
                         const char *namespace)
{
    const struct scope *scope = sight_scope(page->rq);
    for (size_t i = 0; i < set->n_configs; i++) {
        const struct applied_config *c = set->configs[i];
        cleanup_free char *key = xasprintf("%c%s", c->secret ? 's' : 'c',
                                           c->name);
        if ((page->after && !query_is_after(c->namespace, key, page->after)) ||
            (namespace && strcmp(c->namespace, namespace) != 0) ||
            !scope_sees(scope, c->namespace))
            continue;
        if (!page_next(page, c->namespace, key))
            return;
        if (page->text)
            config_view_row(c, &page->table);
        else
            config_view(c, false, page->out);
    }
}

static void on_configs(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"continue", "limit", "namespace",
                                         NULL};
    size_t limit = QUERY_LIMIT;
    struct look look;
    struct page page;
    if (!httpd_query_only(rq, params) ||
        !query_limit(rq, QUERY_LIMIT_MAX, &limit))
        return;
    if (look_begin(&look, rq, ctx)) {
        page_begin(&page, rq, limit, config_view_heads, "version",
                   look.set->version);
        page.as_added = true;
        list_configs(&page, look.set, httpd_query(rq, "namespace"));
        page_end(&page);
    }
    look_fini(&look);
}

static void show_config(struct httpd_request *rq, struct app *app, bool secret)
{
    const char *namespace = httpd_arg(rq, 0), *name = httpd_arg(rq, 1);
    struct look look;
    if (!httpd_query_only(rq, no_params))
        return;
    if (look_begin(&look, rq, app)) {
        const struct applied_config *c = pod_set_config(look.set, secret,
                                                        namespace, name);
        if (c) {
            config_view(c, true, httpd_reply(rq));
            str_add_c(httpd_reply(rq), '\n');
        } else {
            httpd_fail(rq, 404, "%s %.63s/%.253s: was not applied",
                       secret ? "secret" : "configmap", namespace, name);
        }
    }
    look_fini(&look);
}

static void on_configmap(struct httpd_request *rq, void *ctx)
{
    show_config(rq, ctx, false);
}

static void on_secret(struct httpd_request *rq, void *ctx)
{
    show_config(rq, ctx, true);
}

const struct httpd_route pods_routes[] = {
    {HTTPD_POST, "/v1/pods", on_apply, APPLIED_BODY_MAX, "apply"},
    {HTTPD_GET, "/v1/pods", on_list, 0, "pods"},
    {HTTPD_GET, "/v1/pods/:/:", on_pod, 0, "pod"},
    {HTTPD_DELETE, "/v1/pods/:/:", on_delete, 0, "delete"},
    {HTTPD_DELETE, "/v1/jobs/:/:", on_delete_job, 0, "job-delete"},
    {HTTPD_GET, "/v1/configs", on_configs, 0, "configs"},
    {HTTPD_GET, "/v1/configmaps/:/:", on_configmap, 0, "configmap"},
    {HTTPD_DELETE, "/v1/configmaps/:/:", on_delete_configmap, 0,
     "configmap-delete"},
    {HTTPD_GET, "/v1/secrets/:/:", on_secret, 0, "secret"},
    {HTTPD_DELETE, "/v1/secrets/:/:", on_delete_secret, 0, "secret-delete"},
};
const size_t n_pods_routes = ARRAY_LEN(pods_routes);

/* --- in a cluster -------------------------------------------------------- */

/* Pods are the API server's there. */
static void on_elsewhere(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    httpd_fail(rq, 404,
               "this extender is part of a cluster (--store kubernetes): the "
               "API server keeps its pods, use kubectl");
}

const struct httpd_route pods_elsewhere_routes[] = {
    {HTTPD_POST, "/v1/pods", on_elsewhere, APPLIED_BODY_MAX, "apply"},
    {HTTPD_DELETE, "/v1/pods/:/:", on_elsewhere, 0, "delete"},
    {HTTPD_DELETE, "/v1/jobs/:/:", on_elsewhere, 0, "job-delete"},
    {HTTPD_GET, "/v1/configs", on_elsewhere, 0, "configs"},
    {HTTPD_GET, "/v1/configmaps/:/:", on_elsewhere, 0, "configmap"},
    {HTTPD_DELETE, "/v1/configmaps/:/:", on_elsewhere, 0, "configmap-delete"},
    {HTTPD_GET, "/v1/secrets/:/:", on_elsewhere, 0, "secret"},
    {HTTPD_DELETE, "/v1/secrets/:/:", on_elsewhere, 0, "secret-delete"},
};
const size_t n_pods_elsewhere_routes = ARRAY_LEN(pods_elsewhere_routes);
