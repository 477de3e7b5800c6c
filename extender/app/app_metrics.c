#include "extender/app/app_metrics.h"

#define FAMILY METRIC_FAMILY

static const struct metric_family families[APP_METRICS_COUNT] = {
    [APP_HTTP_REQUESTS] =
        FAMILY(COUNTER, "biga_http_requests_total",
               "Requests answered, by listener, route and status.", "listener",
               "route", "code"),
    [APP_HTTP_DURATION] =
        FAMILY(DURATION, "biga_http_request_duration_seconds",
               "Time from a request being here whole to its reply being ready.",
               "listener", "route"),
    [APP_FILTER_REFUSALS] = FAMILY(
        COUNTER, "biga_filter_refusals_total",
        "Nodes refused by filter when none fitted, by reason.", "reason"),
    [APP_PRIORITIZE_ERRORS] = FAMILY(COUNTER, "biga_prioritize_errors_total",
                                     "Prioritize requests that could not be "
                                     "answered; kube-scheduler ignores these."),
    [APP_BINDS] = FAMILY(COUNTER, "biga_binds_total",
                         "Bind requests by result.", "result"),
    [APP_RELEASES] = FAMILY(COUNTER, "biga_releases_total",
                            "Requests to end an allocation by result.",
                            "result"),
    [APP_SLICES_ACCEPTED] =
        FAMILY(COUNTER, "biga_slices_accepted_total",
               "Published slices that were accepted, by kind.", "kind"),
    [APP_SLICES_REJECTED] =
        FAMILY(COUNTER, "biga_slices_rejected_total",
               "Published slices that were refused, by reason.", "reason"),
    [APP_NODES] = FAMILY(GAUGE, "biga_nodes", "Nodes by status.", "status"),
    [APP_CARDS] = FAMILY(GAUGE, "biga_cards", "Cards by state.", "state"),
    [APP_ALLOCATIONS] = FAMILY(GAUGE, "biga_allocations",
                               "Pods with an allocation."),
    [APP_ALLOCATION_CONFLICTS] =
        FAMILY(COUNTER, "biga_allocation_conflicts_total",
               "Pods found to have more than their node has."),
    [APP_FOREIGN_CLAIMS] =
        FAMILY(GAUGE, "biga_foreign_claims",
               "Claims with devices that no allocation of their pods has."),
    [APP_SNAPSHOT] = FAMILY(GAUGE, "biga_snapshot",
                            "Number of the current snapshot since the start."),
    [APP_POLICY_READS] =
        FAMILY(COUNTER, "biga_policy_reads_total",
               "Times that the policy file was read, by result.", "result"),
    [APP_FABRIC_READS] =
        FAMILY(COUNTER, "biga_fabric_reads_total",
               "Times that the fabric's files were read, by result.", "result"),
    [APP_SHARES] = FAMILY(GAUGE, "biga_service_shares",
                          "Services' declared shares of cards, by whether the "
                          "card can hold them.",
                          "state"),
    [APP_REFUSALS] = FAMILY(
        COUNTER, "biga_refusals_total",
        "Clients that were refused for who they are, by listener and reason.",
        "listener", "reason"),
    [APP_TLS_NOT_AFTER] =
        FAMILY(GAUGE, "biga_tls_certificate_end_seconds",
               "When the listeners' certificate ends, as Unix time."),
    [APP_TLS_READS] = FAMILY(COUNTER, "biga_tls_reads_total",
                             "Times that the certificate, its key and the "
                             "clients' authorities were read, by result.",
                             "result"),
    [APP_TOKEN_READS] =
        FAMILY(COUNTER, "biga_token_reads_total",
               "Times that the file of tokens was read, by result.", "result"),
    [APP_REVIEWS] = FAMILY(
        COUNTER, "biga_token_reviews_total",
        "Requests whose token the API server was asked about, by verdict.",
        "verdict"),
    [APP_ADOPTIONS] = FAMILY(COUNTER, "biga_adoptions_total",
                             "Bound pods that the cluster told of, by whether "
                             "their allocation was news.",
                             "result"),
    [APP_ORPHANS] = FAMILY(COUNTER, "biga_orphans_total",
                           "Allocations that were given back because the "
                           "cluster has no such pod."),
    [APP_UNACCOUNTED] =
        FAMILY(GAUGE, "biga_unaccounted_pods",
               "Pods with a role that are bound without an allocation."),
    [APP_LEADER] = FAMILY(GAUGE, "biga_leader",
                          "1 when this replica binds, else 0."),
    [APP_BINDS_IN_FLIGHT] = FAMILY(
        GAUGE, "biga_binds_in_flight",
        "Binds on their way to the API server, or not known to have arrived."),
    [APP_KUBE_LISTS] = FAMILY(COUNTER, "biga_kube_lists_total",
                              "Lists begun, by collection.", "collection"),
    [APP_KUBE_WATCHES] = FAMILY(COUNTER, "biga_kube_watches_total",
                                "Watches begun, by collection.", "collection"),
    [APP_KUBE_EVENTS] = FAMILY(COUNTER, "biga_kube_events_total",
                               "Objects and events received, by collection.",
                               "collection"),
    [APP_KUBE_FAILURES] =
        FAMILY(COUNTER, "biga_kube_failures_total",
               "Lists and watches that failed, by collection.", "collection"),
    [APP_KUBE_AGE] = FAMILY(
        GAUGE, "biga_kube_heard_age_seconds",
        "Time since the API server was heard last, by collection; -1 before.",
        "collection"),
    [APP_PODS] = FAMILY(GAUGE, "biga_pods",
                        "Pods that were applied, by how they fare.", "state"),
    [APP_PLACES] = FAMILY(GAUGE, "biga_places",
                          "Cards, and hosts, where pods are run, by health.",
                          "health"),
    [APP_LOST_PODS] =
        FAMILY(GAUGE, "biga_card_lost_pods",
               "Pods in a cluster that are told that their card is lost."),
    [APP_EVICTED] =
        FAMILY(COUNTER, "biga_card_lost_evictions_total",
               "Pods that were evicted because their card stayed lost."),
    [APP_WRITABLE] =
        FAMILY(GAUGE, "biga_store_writable",
               "1 when the last change of the state could be written, else 0."),
    [APP_ALIGNMENT] =
        FAMILY(GAUGE, "biga_alignment",
               "Pods of pairs by the relation that was promised and the one "
               "that their containers have.",
               "promised", "achieved"),
    [APP_ACHIEVED] =
        FAMILY(GAUGE, "biga_achieved",
               "Pods with an allocation by whether they have what was "
               "promised: kept, lost or unknown.",
               "state"),
    [APP_STREAMS] = FAMILY(
        GAUGE, "biga_streams",
        "Logs, exec, attach and port-forward that are relayed now.", "kind"),
    [APP_STREAMS_TOTAL] =
        FAMILY(COUNTER, "biga_streams_total",
               "Such streams that were asked for and are over, by whether they "
               "were joined with a node.",
               "kind", "result"),
    [APP_STREAM_BYTES] = FAMILY(COUNTER, "biga_stream_bytes_total",
                                "Bytes of such streams, by where they went.",
                                "way"),
    [APP_BIND_WAIT] =
        FAMILY(WAIT, "biga_bind_wait_seconds",
               "Time from a pod being seen first to its being bound.", "role"),
    [APP_PLANS] = FAMILY(COUNTER, "biga_plans_total",
                         "Times that a job, or a pair, was planned as a "
                         "whole."),
    [APP_PLANS_REFUSED] =
        FAMILY(COUNTER, "biga_plans_refused_total",
               "Those of them that found no place for all, by what was "
               "lacking.",
               "reason"),
    [APP_HISTORY_BYTES] = FAMILY(GAUGE, "biga_history_bytes",
                                 "What the history takes, with damaged files "
                                 "that were set aside."),
    [APP_HISTORY_OLDEST] =
        FAMILY(GAUGE, "biga_history_oldest_seconds",
               "When the oldest event that is remembered was, as Unix time."),
    [APP_HISTORY_LOST] =
        FAMILY(COUNTER, "biga_history_lost_total",
               "Events and changes that were too many to be written, or could "
               "not be."),
    [APP_HISTORY_FULL] =
        FAMILY(GAUGE, "biga_history_full",
               "1 when the oldest goes before its days are over, else 0."),
    [APP_HISTORY_WRITABLE] =
        FAMILY(GAUGE, "biga_history_writable",
               "1 when the last commit of the history succeeded, else 0."),
};

struct metrics *app_metrics_create(void)
{
    return metrics_create(families, APP_METRICS_COUNT);
}

void app_metrics_waited(struct metrics *m, const char *role, int64_t ms)
{
    if (ms >= 0)
        metrics_observe(m, APP_BIND_WAIT, &role, (uint64_t)ms * 1000000);
}
