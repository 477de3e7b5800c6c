#include "extender/serve/routes_private.h"

#include "extender/serve/app.h"
#include "extender/view/views.h"
#include "lib/base/mem.h"

static void gauge_snapshot(struct app *app, const struct snapshot *s)
{
    struct metrics *m = app->listener.metrics;
    size_t nodes[NODE_STATUSES] = {0}, cards[CARD_STATES] = {0}, first;
    size_t claims = 0;
    for (size_t i = 0; i < s->n_nodes; i++) {
        const struct node *node = snapshot_node(s, i);
        size_t n = view_count(node, DEVICE_CARD, &first);
        nodes[node->status]++;
        claims += node->n_rests;
        for (size_t k = 0; k < n; k++)
            cards[card_state(node, k)]++;
    }
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
        const char *status = node_status_name((enum node_status)i);
        metrics_set(m, APP_NODES, &status, (int64_t)nodes[i]);
    }
    for (size_t i = 0; i < CARD_STATES; i++) {
        const char *state = card_state_name((enum card_state)i);
        metrics_set(m, APP_CARDS, &state, (int64_t)cards[i]);
    }
    metrics_set(m, APP_ALLOCATIONS, NULL,
                (int64_t)alloc_index_size(s->allocations));
    metrics_set(m, APP_ALLOCATION_CONFLICTS, NULL,
                (int64_t)writer_conflicts(app->writer));
    metrics_set(m, APP_FOREIGN_CLAIMS, NULL, (int64_t)claims);
    metrics_set(m, APP_SNAPSHOT, NULL, (int64_t)s->number);
}

static void gauge_tls(struct app *app)
{
    const char *accepted = "accepted", *refused = "refused";
    struct metrics *m = app->listener.metrics;
    int64_t not_after;
    uint64_t n_accepted, n_refused;
    if (!app->tls)
        return;
    tls_state(app->tls, &not_after, &n_accepted, &n_refused);
    metrics_set(m, APP_TLS_NOT_AFTER, NULL, not_after);
    metrics_set(m, APP_TLS_READS, &accepted, (int64_t)n_accepted);
    metrics_set(m, APP_TLS_READS, &refused, (int64_t)n_refused);
}

void on_metrics(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app->writer);
    gauge_snapshot(app, s);
    gauge_policy(app, s);
    gauge_tls(app);
    pod_source_tell(&app->source, gauge, s);
    metrics_write(app->listener.metrics, httpd_reply(rq));
    httpd_content_type(rq, METRICS_CONTENT_TYPE);
}
