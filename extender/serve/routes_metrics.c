#include "extender/serve/routes_private.h"

#include "extender/achieved/achieved.h"
#include "extender/relay/relay.h"
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

struct achieved_counts {
    size_t states[ACHIEVED_STATES];
    size_t relations[RELATION_COUNT][RELATION_COUNT + 1];
};

static void count_achieved(struct app *app, const struct snapshot *s,
                           const struct node *node,
                           struct achieved_counts *counts)
{
    cleanup_with(achieved_report) struct achieved_report *report =
        achieved_book_get(app->achieved, node->name);
    for (size_t i = 0; i < node->n_allocations; i++) {
        const struct allocation *a = node->allocations[i];
        struct achieved x;
        if (a->held)
            continue;
        achieved_judge(s, a, report, &x, NULL);
        counts->states[x.state]++;
        if (achieved_counts(a))
            counts->relations[a->relation][x.relation]++;
    }
}

static void gauge_achieved(struct app *app, const struct snapshot *s)
{
    struct metrics *m = app->listener.metrics;
    struct achieved_counts counts = {0};
    for (size_t i = 0; i < s->n_nodes; i++)
        count_achieved(app, s, snapshot_node(s, i), &counts);
    for (unsigned i = 0; i < ACHIEVED_STATES; i++) {
        const char *state = achieved_state_name((enum achieved_state)i);
        metrics_set(m, APP_ACHIEVED, &state, (int64_t)counts.states[i]);
    }
    for (unsigned p = 0; p < RELATION_COUNT; p++)
        for (unsigned r = 0; r <= RELATION_COUNT; r++) {
            const struct achieved x = {.relation = (enum relation)r};
            const char *labels[] = {relation_name((enum relation)p),
                                    achieved_word(&x)};
            metrics_set(m, APP_ALIGNMENT, labels,
                        (int64_t)counts.relations[p][r]);
        }
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

static void gauge_history(struct app *app)
{
    struct metrics *m = app->listener.metrics;
    if (!app->history)
        return;
    struct history_state state = history_state(app->history);
    metrics_set(m, APP_HISTORY_BYTES, NULL, state.bytes);
    metrics_set(m, APP_HISTORY_OLDEST, NULL, state.oldest_ms / 1000);
    metrics_set(m, APP_HISTORY_LOST, NULL, (int64_t)state.lost);
    metrics_set(m, APP_HISTORY_FULL, NULL, state.full);
    metrics_set(m, APP_HISTORY_WRITABLE, NULL, state.writes);
}

void on_metrics(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app->writer);
    gauge_snapshot(app, s);
    gauge_policy(app, s);
    gauge_achieved(app, s);
    gauge_tls(app);
    if (app->relay)
        relay_gauge(app->relay);
    gauge_history(app);
    pod_source_tell(&app->source, gauge, s);
    metrics_write(app->listener.metrics, httpd_reply(rq));
    httpd_content_type(rq, METRICS_CONTENT_TYPE);
}
