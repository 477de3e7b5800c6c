#include "extender/serve/routes_cluster.h"

#include <inttypes.h>
#include <string.h>

#include "extender/admit/sight.h"
#include "extender/cluster/cluster.h"
#include "extender/cluster/cluster_ps.h"
#include "extender/pods/applied_view.h"
#include "extender/serve/app.h"
#include "extender/serve/page.h"
#include "extender/serve/query.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "lib/base/text.h"
#include "model/pod/demand_ident.h"

static const char *const no_params[] = {NULL};

static void on_cluster(struct httpd_request *rq, void *ctx)
{
    const struct app *app = ctx;
    struct cluster *cluster = cluster_of(&app->source);
    if (!httpd_query_only(rq, no_params))
        return;
    if (httpd_wants_text(rq)) {
        cluster_write_text(cluster, httpd_reply(rq));
        httpd_content_type(rq, HTTPD_TEXT);
    } else {
        cluster_write(cluster, httpd_reply(rq));
    }
}

/* --- its pods ------------------------------------------------------------- */

static void show_pod(const struct cluster_ps_pod *p, const struct snapshot *s,
                     struct str *out)
{
    const struct allocation *a = alloc_index_find_uid(s->allocations, p->uid);
    const struct demand_ident ident = {.namespace = p->namespace,
                                       .name = p->name,
                                       .uid = p->uid,
                                       .job = p->job,
                                       .role = p->role,
                                       .pair = p->pair};
    jwrite_object(out, NULL);
    demand_ident_write(&ident, out);
    jwrite_text_or_null(out, "node", p->node[0] ? p->node : NULL);
    allocation_encode_devices(a, out);
    jwrite_text(out, "state", pod_state_name(p->state));
    jwrite_bool(out, "ready", p->ready);
    jwrite_uint(out, "restarts", p->restarts);
    jwrite_text(out, "reason", p->reason);
    jwrite_text(out, "message", p->message);
    jwrite_text(out, "address", p->address);
    jwrite_bool(out, "deleting", p->deleting);
    jwrite_bool(out, "ended",
                p->state == POD_STATE_GONE || p->state == POD_STATE_FAILED);
    if (p->labels[0]) {
        jwrite_key(out, "labels");
        str_add(out, p->labels);
    }
    jwrite_end_object(out);
}

static void add_row(const struct cluster_ps_pod *p, const struct snapshot *s,
                    struct table *t)
{
    const struct allocation *a = alloc_index_find_uid(s->allocations, p->uid);
    cleanup_str struct str cards = STR_INIT(4096);
    for (size_t i = 0; a && i < a->n_cards; i++)
        str_addf(&cards, "%s%s", i ? "," : "", a->cards[i]);
    table_addf(t, "%s/%s", p->namespace, p->name);
    table_add(t, pod_role_name(p->role));
    table_add(t, p->node[0] ? p->node : "-");
    table_add(t, cards.size ? str_text(&cards) : "-");
    table_add(t, pod_state_name(p->state));
    table_add(t, p->ready ? "yes" : "no");
    table_addf(t, "%" PRIu32, p->restarts);
    table_add(t, p->reason[0] ? p->reason : "-");
}

static const char *state_word(unsigned index)
{
    return pod_state_name((enum pod_state)index);
}

static void on_pods(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {
        "continue", "job", "limit", "namespace", "node", "state", NULL};
    const struct app *app = ctx;
    size_t limit = QUERY_LIMIT, n;
    unsigned state;
    struct page page;
    if (!httpd_query_only(rq, params) ||
        !query_limit(rq, QUERY_LIMIT_MAX, &limit) ||
        !query_choice(rq, "state", state_word, POD_STATES, &state))
        return;
    cleanup_with(snapshot) struct snapshot *s = visible_snapshot(app, rq);
    const char *after = httpd_query(rq, "continue"), *name = NULL;
    cleanup_free char *namespace = after ? query_key(after, &name) : NULL;
    const struct cluster_ps_filter filter = {
        .scope = sight_scope(rq),
        .after_namespace = namespace,
        .after_name = name,
        .namespace = httpd_query(rq, "namespace"),
        .node = httpd_query(rq, "node"),
        .job = httpd_query(rq, "job"),
        .state = (enum pod_state)state,
        .most = limit + 1, /* is there more? */
    };
    struct cluster_ps_pod **list =
        cluster_ps_list(cluster_ps_of(cluster_of(&app->source)), &filter, &n);
    page_begin(&page, rq, limit, pod_view_heads, "version", s->number);
    bool more = true;
    for (size_t i = 0; i < n; i++) {
        const struct cluster_ps_pod *p = list[i];
        more = more && page_next(&page, p->namespace, p->name);
        if (more && page.text)
            add_row(p, s, &page.table);
        else if (more)
            show_pod(p, s, page.out);
        cluster_ps_pod_unref(list[i]);
    }
    page_end(&page);
    free(list);
}

static void show_text(const struct cluster_ps_pod *p, const struct snapshot *s,
                      struct str *out)
{
    struct table t;
    table_init(&t, pod_view_heads);
    add_row(p, s, &t);
    table_write_text(&t, out);
    table_fini(&t);
    if (!p->message[0])
        return;
    str_add_c(out, '\n');
    text_clean(p->message, out);
    str_add_c(out, '\n');
}

static void on_pod(struct httpd_request *rq, void *ctx)
{
    const struct app *app = ctx;
    const char *namespace = httpd_arg(rq, 0), *name = httpd_arg(rq, 1);
    if (!httpd_query_only(rq, no_params))
        return;
    cleanup_with(snapshot) struct snapshot *s = visible_snapshot(app, rq);
    cleanup_with(cluster_ps_pod) struct cluster_ps_pod *p = cluster_ps_find(
        cluster_ps_of(cluster_of(&app->source)), namespace, name);
    if (!p) {
        httpd_fail(rq, 404,
                   "pod %.63s/%.253s: the API server has none of that name "
                   "with label biga.dev/role",
                   namespace, name);
        return;
    }
    if (httpd_wants_text(rq)) {
        show_text(p, s, httpd_reply(rq));
        httpd_content_type(rq, HTTPD_TEXT);
        return;
    }
    show_pod(p, s, httpd_reply(rq));
    str_add_c(httpd_reply(rq), '\n');
}

const struct httpd_route cluster_routes[] = {
    {HTTPD_GET, "/v1/pods", on_pods, 0, "pods"},
    {HTTPD_GET, "/v1/pods/:/:", on_pod, 0, "pod"},
    {HTTPD_GET, "/v1/cluster", on_cluster, 0, "cluster"},
};
const size_t n_cluster_routes = ARRAY_LEN(cluster_routes);

static void on_elsewhere(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    if (httpd_query_only(rq, no_params))
        httpd_fail(rq, 404,
                   "this extender keeps its state itself (--store sqlite), so "
                   "it is in no cluster");
}

const struct httpd_route cluster_elsewhere_routes[] = {
    {HTTPD_GET, "/v1/cluster", on_elsewhere, 0, "cluster"},
};
const size_t n_cluster_elsewhere_routes = ARRAY_LEN(cluster_elsewhere_routes);
