#include "extender/app/app.h"

#include "lib/base/mem.h"

static const struct metric_family families[APP_METRICS_COUNT] = {
    [APP_HTTP_REQUESTS] = {"biga_http_requests_total",
                           "Requests answered, by listener, route and status.",
                           METRIC_COUNTER,
                           {"listener", "route", "code"}},
    [APP_HTTP_DURATION] = {"biga_http_request_duration_seconds",
                           "Time from a request being here whole to its reply "
                           "being ready.",
                           METRIC_DURATION,
                           {"listener", "route"}},
    [APP_FILTER_REFUSALS] = {"biga_filter_refusals_total",
                             "Nodes refused by filter when none fitted, by "
                             "reason.",
                             METRIC_COUNTER,
                             {"reason"}},
    [APP_PRIORITIZE_ERRORS] = {"biga_prioritize_errors_total",
                               "Prioritize requests that could not be "
                               "answered; kube-scheduler ignores these.",
                               METRIC_COUNTER,
                               {NULL}},
    [APP_BINDS] = {"biga_binds_total",
                   "Bind requests by result.",
                   METRIC_COUNTER,
                   {"result"}},
    [APP_RELEASES] = {"biga_releases_total",
                      "Requests to end an allocation by result.",
                      METRIC_COUNTER,
                      {"result"}},
    [APP_SLICES_ACCEPTED] = {"biga_slices_accepted_total",
                             "Published slices that were accepted, by kind.",
                             METRIC_COUNTER,
                             {"kind"}},
    [APP_SLICES_REJECTED] = {"biga_slices_rejected_total",
                             "Published slices that were refused, by reason.",
                             METRIC_COUNTER,
                             {"reason"}},
    [APP_NODES] = {"biga_nodes", "Nodes by status.", METRIC_GAUGE, {"status"}},
    [APP_CARDS] = {"biga_cards", "Cards by state.", METRIC_GAUGE, {"state"}},
    [APP_ALLOCATIONS] = {"biga_allocations",
                         "Pods with an allocation.",
                         METRIC_GAUGE,
                         {NULL}},
    [APP_ALLOCATION_CONFLICTS] = {"biga_allocation_conflicts_total",
                                  "Pods found to have more than their node "
                                  "has.",
                                  METRIC_COUNTER,
                                  {NULL}},
    [APP_SNAPSHOT] = {"biga_snapshot",
                      "Number of the current snapshot since the start.",
                      METRIC_GAUGE,
                      {NULL}},
    [APP_POLICY_READS] = {"biga_policy_reads_total",
                          "Times that the policy file was read, by result.",
                          METRIC_COUNTER,
                          {"result"}},
    [APP_FABRIC_READS] = {"biga_fabric_reads_total",
                          "Times that the fabric's files were read, by result.",
                          METRIC_COUNTER,
                          {"result"}},
    [APP_SHARES] = {"biga_service_shares",
                    "Services' declared shares of cards, by whether the card "
                    "can hold them.",
                    METRIC_GAUGE,
                    {"state"}},
    [APP_REFUSALS] = {"biga_refusals_total",
                      "Clients that were refused for who they are, by listener "
                      "and reason.",
                      METRIC_COUNTER,
                      {"listener", "reason"}},
    [APP_TLS_NOT_AFTER] = {"biga_tls_certificate_end_seconds",
                           "When the listeners' certificate ends, as Unix "
                           "time.",
                           METRIC_GAUGE,
                           {NULL}},
    [APP_TLS_READS] = {"biga_tls_reads_total",
                       "Times that the certificate, its key and the clients' "
                       "authorities were read, by result.",
                       METRIC_COUNTER,
                       {"result"}},
    [APP_TOKEN_READS] = {"biga_token_reads_total",
                         "Times that the file of tokens was read, by result.",
                         METRIC_COUNTER,
                         {"result"}},
    [APP_REVIEWS] = {"biga_token_reviews_total",
                     "Requests whose token the API server was asked about, by "
                     "verdict.",
                     METRIC_COUNTER,
                     {"verdict"}},
    [APP_ADOPTIONS] = {"biga_adoptions_total",
                       "Bound pods that the cluster told of, by whether their "
                       "allocation was news.",
                       METRIC_COUNTER,
                       {"result"}},
    [APP_ORPHANS] = {"biga_orphans_total",
                     "Allocations that were given back because the cluster "
                     "has no such pod.",
                     METRIC_COUNTER,
                     {NULL}},
    [APP_UNACCOUNTED] = {"biga_unaccounted_pods",
                         "Pods with a role that are bound without an "
                         "allocation.",
                         METRIC_GAUGE,
                         {NULL}},
    [APP_LEADER] = {"biga_leader",
                    "1 when this replica binds, else 0.",
                    METRIC_GAUGE,
                    {NULL}},
    [APP_BINDS_IN_FLIGHT] = {"biga_binds_in_flight",
                             "Binds on their way to the API server, or not "
                             "known to have arrived.",
                             METRIC_GAUGE,
                             {NULL}},
    [APP_KUBE_LISTS] = {"biga_kube_lists_total",
                        "Lists begun, by collection.",
                        METRIC_COUNTER,
                        {"collection"}},
    [APP_KUBE_WATCHES] = {"biga_kube_watches_total",
                          "Watches begun, by collection.",
                          METRIC_COUNTER,
                          {"collection"}},
    [APP_KUBE_EVENTS] = {"biga_kube_events_total",
                         "Objects and events received, by collection.",
                         METRIC_COUNTER,
                         {"collection"}},
    [APP_KUBE_FAILURES] = {"biga_kube_failures_total",
                           "Lists and watches that failed, by collection.",
                           METRIC_COUNTER,
                           {"collection"}},
    [APP_KUBE_AGE] = {"biga_kube_heard_age_seconds",
                      "Time since the API server was heard last, by "
                      "collection; -1 before.",
                      METRIC_GAUGE,
                      {"collection"}},
    [APP_PODS] = {"biga_pods",
                  "Pods that were applied, by how they fare.",
                  METRIC_GAUGE,
                  {"state"}},
    [APP_PLACES] = {"biga_places",
                    "Cards, and hosts, where pods are run, by health.",
                    METRIC_GAUGE,
                    {"health"}},
    [APP_WRITABLE] = {"biga_store_writable",
                      "1 when the last change of the state could be written, "
                      "else 0.",
                      METRIC_GAUGE,
                      {NULL}},
};

struct metrics *app_metrics_create(void)
{
    return metrics_create(families, APP_METRICS_COUNT);
}

void app_observe(void *ctx, const struct httpd_observation *o)
{
    struct app *app = ctx;
    if (o->refusal) {
        const char *refusal[METRICS_LABELS_MAX] = {o->listener, o->refusal};
        metrics_add(app->metrics, APP_REFUSALS, refusal, 1);
    }
    if (o->status == 0)
        return;
    const char code[] = {(char)('0' + o->status / 100 % 10),
                         (char)('0' + o->status / 10 % 10),
                         (char)('0' + o->status % 10), '\0'};
    const char *labels[METRICS_LABELS_MAX] = {
        o->listener, o->route ? o->route->name : "none", code};
    metrics_add(app->metrics, APP_HTTP_REQUESTS, labels, 1);
    metrics_observe(app->metrics, APP_HTTP_DURATION, labels, o->nanoseconds);
}
