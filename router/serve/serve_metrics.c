#include "router/serve/serve_metrics.h"

#include <string.h>

#include "router/serve/serve_private.h"

#define FAMILY METRIC_FAMILY

static const struct metric_family families[SERVE_METRICS_COUNT] = {
    [SERVE_CALLS] =
        FAMILY(COUNTER, "biga_cri_calls_total",
               "Calls of CRI that have ended, by method, by whether the home "
               "runtime or a remote had them, and by gRPC code.",
               "method", "target", "code"),
    [SERVE_CALL_DURATION] =
        FAMILY(DURATION, "biga_cri_call_duration_seconds",
               "Time from the call being here to its client having the answer.",
               "method", "target"),
    [SERVE_CALLS_NOW] = FAMILY(GAUGE, "biga_cri_calls_in_flight",
                               "Calls of CRI that have not ended."),
    [SERVE_REMOTES] = FAMILY(GAUGE, "biga_cri_remote_health",
                             "1 for the present health of each remote.",
                             "remote", "health"),
    [SERVE_RECORDS] =
        FAMILY(GAUGE, "biga_cri_records",
               "Sandboxes and containers that are written down: made, or "
               "announced to a remote that has not said what became of them.",
               "remote", "state"),
    [SERVE_RECONCILED] =
        FAMILY(COUNTER, "biga_cri_reconciled_total",
               "Records that were made to agree with what a remote listed.",
               "remote", "verdict"),
    [SERVE_ORPHANS] = FAMILY(COUNTER, "biga_cri_orphans_ended_total",
                             "Sandboxes and containers of nobody that were "
                             "removed.",
                             "remote"),
    [SERVE_LOG_BYTES] = FAMILY(COUNTER, "biga_cri_log_bytes_total",
                               "Bytes of logs that were copied."),
    [SERVE_LOG_FAULTS] = FAMILY(COUNTER, "biga_cri_log_faults_total",
                                "Calls for logs that failed."),
    [SERVE_LOG_LOST] = FAMILY(COUNTER, "biga_cri_log_lost_bytes_total",
                              "Bytes of logs that were gone on the remote."),
    [SERVE_VOLUMES] = FAMILY(COUNTER, "biga_cri_volumes_total",
                             "Volumes, or changes of them, that were "
                             "delivered to remotes, or were not.",
                             "result"),
    [SERVE_IMAGES] = FAMILY(COUNTER, "biga_cri_images_collected_total",
                            "Images that were removed from remotes.", "remote",
                            "why"),
    [SERVE_STREAMS] = FAMILY(COUNTER, "biga_cri_streams_total",
                             "Streams of exec, attach and port-forward.",
                             "result"),
    [SERVE_STREAMS_NOW] = FAMILY(GAUGE, "biga_cri_streams",
                                 "Streams that are open."),
};

struct metrics *serve_metrics_create(void)
{
    return metrics_create(families, SERVE_METRICS_COUNT);
}

/* --- calls ------------------------------------------------------------------ */

/* Of methods that are newer than Biga there is one. */
void serve_metrics_ended(void *ctx, const struct grpcd_end *end)
{
    struct serve *s = ctx;
    const struct method *m = method_find(end->method);
    const char *labels[] = {m ? method_name(m) : "other",
                            end->relayed ? "home" : "remote",
                            end->code < 0 ? "none" : grpc_code_name(end->code)};
    metrics_add(s->metrics, SERVE_CALLS, labels, 1);
    metrics_observe(s->metrics, SERVE_CALL_DURATION, labels,
                    (uint64_t)end->took_ms * 1000000);
}

/* --- what is asked for when somebody reads ---------------------------------- */

static void set_total(struct serve *s, enum serve_metric which,
                      const char *label, uint64_t value)
{
    metrics_set(s->metrics, which, label ? &label : NULL, (int64_t)value);
}

static void tell_health(struct serve *s, const struct far *far)
{
    enum act_health health = remote_health(far->remote, NULL);
    for (enum act_health h = ACT_READY; h <= ACT_LOST; h++) {
        const char *labels[] = {remote_name(far->remote), act_health_name(h)};
        metrics_set(s->metrics, SERVE_REMOTES, labels,
                    h == health && !far->gone);
    }
}

static void tell_remote(struct serve *s, struct far *far)
{
    const char *name = remote_name(far->remote);
    const char *made[] = {name, "made"}, *announced[] = {name, "announced"};
    metrics_set(s->metrics, SERVE_RECORDS, made,
                (int64_t)keep_count(s->keep, name, KEPT_MADE));
    metrics_set(s->metrics, SERVE_RECORDS, announced,
                (int64_t)keep_count(s->keep, name, KEPT_ANNOUNCED));
    struct remote_counts counts;
    remote_count(far->remote, &counts);
    const struct {
        const char *verdict;
        uint64_t n;
    } found[] = {{"adopted", counts.n_adopted},
                 {"rebuilt", counts.n_rebuilt},
                 {"gone", counts.n_gone}};
    for (size_t i = 0; i < ARRAY_LEN(found); i++) {
        const char *labels[] = {name, found[i].verdict};
        metrics_set(s->metrics, SERVE_RECONCILED, labels, (int64_t)found[i].n);
    }
    set_total(s, SERVE_ORPHANS, name, counts.n_orphans);
}

static void tell_rooms(struct serve *s)
{
    struct log_copier_counts logs = {0};
    struct stream_relay_state streams;
    struct volume_sync_counts volumes;
    if (s->logs)
        log_copier_count(s->logs, &logs);
    set_total(s, SERVE_LOG_BYTES, NULL, logs.bytes);
    set_total(s, SERVE_LOG_FAULTS, NULL, logs.faults);
    set_total(s, SERVE_LOG_LOST, NULL, logs.lost);
    volume_sync_count(s->volumes, &volumes);
    set_total(s, SERVE_VOLUMES, "delivered", volumes.n_delivered);
    set_total(s, SERVE_VOLUMES, "failed", volumes.n_failed);
    stream_relay_state(s->streams, &streams);
    set_total(s, SERVE_STREAMS, "opened", streams.opened);
    set_total(s, SERVE_STREAMS, "refused", streams.refused);
    set_total(s, SERVE_STREAMS, "cut", streams.cut);
    set_total(s, SERVE_STREAMS_NOW, NULL, streams.streams);
}

void serve_write_metrics(struct serve *s, struct str *out)
{
    struct grpcd_stats calls;
    grpcd_stats(s->server, &calls);
    metrics_set(s->metrics, SERVE_CALLS_NOW, NULL, (int64_t)calls.n_calls);
    struct far *far;
    for (size_t i = 0; i < s->n_fars; i++)
        tell_health(s, &s->fars[i]); /* of one name the last counts */
    for (size_t i = 0; (far = serve_next(s, &i));)
        tell_remote(s, far);
    tell_rooms(s);
    metrics_write(s->metrics, out);
}
