#include "extender/serve/routes_private.h"

#include "extender/gauge/fleet_gauges.h"
#include "extender/gauge/pending_gauges.h"
#include "extender/relay/relay.h"
#include "extender/serve/app.h"
#include "extender/serve/query.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/process_metrics.h"

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
    cleanup_with(alloc_order) struct alloc_order *order = visible_order(app, s);
    struct metrics *m = app->listener.metrics;
    struct str *out = httpd_reply(rq);
    struct fleet_counts counts;
    fleet_tally_get(app->tally, s, app->achieved, &counts);
    fleet_gauges_set(m, s, &counts);
    if (app->plans)
        fleet_gauges_plans(m, app->plans);
    metrics_set(m, APP_ALLOCATION_CONFLICTS, NULL,
                (int64_t)writer_conflicts(app->writer));
    gauge_policy(app, s);
    gauge_tls(app);
    if (app->relay)
        relay_gauge(app->relay);
    gauge_history(app);
    pod_source_tell(&app->source, gauge, s);
    metrics_write(m, out);
    fleet_gauges_write(s, &counts, out);
    fleet_counts_fini(&counts);
    pending_gauges_write(&app->source, s, order, clock_wall_s(), out);
    process_metrics_build("biga_extender_build_info", out);
    process_metrics_write(out);
    httpd_content_type(rq, METRICS_CONTENT_TYPE);
}
