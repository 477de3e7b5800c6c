#include "extender/serve/routes_metrics.h"

#include "extender/app/app.h"
#include "extender/cluster/cluster.h"
#include "extender/pods/applied_view.h"
#include "extender/pods/node_reports.h"
#include "extender/serve/routes_policy.h"
#include "extender/view/views.h"
#include "lib/base/mem.h"

static void gauge_snapshot(struct app *app, const struct snapshot *s)
{
    size_t nodes[NODE_STATUSES] = {0}, cards[CARD_STATES] = {0}, first;
    for (size_t i = 0; i < s->n_nodes; i++) {
        const struct node *node = snapshot_node(s, i);
        size_t n = view_count(node, DEVICE_CARD, &first);
        nodes[node->status]++;
        for (size_t k = 0; k < n; k++)
            cards[card_state(node, k)]++;
    }
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
        const char *status = node_status_name((enum node_status)i);
        metrics_set(app->metrics, APP_NODES, &status, (int64_t)nodes[i]);
    }
    for (size_t i = 0; i < CARD_STATES; i++) {
        const char *state = card_state_name((enum card_state)i);
        metrics_set(app->metrics, APP_CARDS, &state, (int64_t)cards[i]);
    }
    metrics_set(app->metrics, APP_ALLOCATIONS, NULL,
                (int64_t)alloc_index_size(s->allocations));
    metrics_set(app->metrics, APP_ALLOCATION_CONFLICTS, NULL,
                (int64_t)writer_conflicts(app->writer));
    metrics_set(app->metrics, APP_SNAPSHOT, NULL, (int64_t)s->number);
}

static void gauge_tls(struct app *app)
{
    const char *accepted = "accepted", *refused = "refused";
    int64_t not_after;
    uint64_t n_accepted, n_refused;
    if (!app->tls)
        return;
    tls_state(app->tls, &not_after, &n_accepted, &n_refused);
    metrics_set(app->metrics, APP_TLS_NOT_AFTER, NULL, not_after);
    metrics_set(app->metrics, APP_TLS_READS, &accepted, (int64_t)n_accepted);
    metrics_set(app->metrics, APP_TLS_READS, &refused, (int64_t)n_refused);
}

/* In a cluster the API server keeps the state. */
static void gauge_store(struct app *app)
{
    struct error ignored;
    if (!app->cluster)
        metrics_set(app->metrics, APP_WRITABLE, NULL,
                    writer_can_write(app->writer, &ignored));
}

static void gauge_pods(struct app *app, const struct snapshot *s)
{
    size_t pods[APPLIED_STATES] = {0}, places[PLACE_HEALTHS] = {0};
    if (!app->applied)
        return;
    cleanup_with(pod_set) struct pod_set *set = applied_get(app->applied);
    for (size_t i = 0; i < set->n_pods; i++)
        pods[pod_state_shown(set->pods[i], pod_place(set->pods[i], s))]++;
    for (unsigned i = 0; i < APPLIED_STATES; i++) {
        const char *state = pod_state_name((enum pod_state)i);
        metrics_set(app->metrics, APP_PODS, &state, (int64_t)pods[i]);
    }
    node_reports_count_places(app->reports, places);
    for (unsigned i = 0; i < PLACE_HEALTHS; i++) {
        const char *health = place_health_name((enum place_health)i);
        metrics_set(app->metrics, APP_PLACES, &health, (int64_t)places[i]);
    }
}

void on_metrics(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app->writer);
    gauge_snapshot(app, s);
    gauge_policy(app, s);
    gauge_tls(app);
    gauge_pods(app, s);
    gauge_store(app);
    if (app->cluster)
        cluster_gauge(app->cluster);
    metrics_write(app->metrics, httpd_reply(rq));
    httpd_content_type(rq, METRICS_CONTENT_TYPE);
}
