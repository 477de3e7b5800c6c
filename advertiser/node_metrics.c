#include "advertiser/node_metrics.h"

#include <pthread.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/http/httpd.h"
#include "lib/http/tls.h"
#include "lib/io/metrics.h"
#include "lib/io/process_metrics.h"

/* As found by whoever asks the cards, and of those that nobody asks. */
enum { HEALTHS = ACT_DRAINED + 2, HEALTH_UNKNOWN = HEALTHS - 1 };

struct node_metrics {
    struct actuator *actuator;
    struct tls *tls;
    struct httpd *httpd;
    pthread_mutex_t lock;
    size_t cards[HEALTHS]; /* as published; under the lock */
};

/* --- what is told --------------------------------------------------------- */

#define FAMILY METRIC_FAMILY

static const struct metric_family cards = FAMILY(
    GAUGE, "biga_advertiser_cards",
    "Cards of this node by health; unknown: nobody asks them.", "health");
static const struct metric_family pods = FAMILY(
    GAUGE, "biga_advertiser_pods",
    "Pods that are to run on this node's cards, and on it, by state.", "state");
static const struct metric_family calls =
    FAMILY(COUNTER, "biga_advertiser_card_calls_total",
           "Calls to the container runtimes of cards, and of the host, that "
           "have ended, by how.",
           "card", "outcome");
static const struct metric_family certificate =
    FAMILY(GAUGE, "biga_advertiser_tls_certificate_end_seconds",
           "When the certificate of these metrics ends, as Unix time.");

static const char *health_name(unsigned health)
{
    return health == HEALTH_UNKNOWN ? "unknown"
                                    : act_health_name((enum act_health)health);
}

static unsigned find_health(const char *name)
{
    unsigned i = 0;
    while (i < HEALTH_UNKNOWN && strcmp(name, health_name(i)) != 0)
        i++;
    return i;
}

/* Those that are asked, as they are now. */
static void count_places(struct actuator *a, size_t counts[HEALTHS])
{
    cleanup_free struct act_place_status *places = xcalloc(ACT_PLACES_MAX,
                                                           sizeof *places);
    size_t n = actuator_places(a, places), all = 0, known = 0;
    for (unsigned i = 0; i < HEALTHS; i++)
        all += counts[i];
    memset(counts, 0, HEALTHS * sizeof *counts);
    for (size_t i = 0; i < n; i++) {
        bool is_card = strcmp(places[i].name, ACT_HOST) != 0;
        counts[places[i].health] += is_card;
        known += is_card;
    }
    counts[HEALTH_UNKNOWN] = all > known ? all - known : 0;
}

static void write_cards(struct node_metrics *m, struct str *out)
{
    size_t counts[HEALTHS];
    pthread_mutex_lock(&m->lock);
    memcpy(counts, m->cards, sizeof counts);
    pthread_mutex_unlock(&m->lock);
    if (m->actuator)
        count_places(m->actuator, counts);
    metrics_write_head(&cards, out);
    for (unsigned i = 0; i < HEALTHS; i++) {
        const char *name = health_name(i);
        metrics_write_sample(&cards, &name, (int64_t)counts[i], out);
    }
}

static void write_pods(struct actuator *a, struct str *out)
{
    size_t counts[ACT_STATES];
    actuator_count_pods(a, counts);
    metrics_write_head(&pods, out);
    for (unsigned i = 0; i < ACT_STATES; i++) {
        const char *name = act_state_name((enum act_state)i);
        metrics_write_sample(&pods, &name, (int64_t)counts[i], out);
    }
}

static void write_calls(struct actuator *a, struct str *out)
{
    cleanup_free struct act_place_calls *places = NULL;
    size_t n = actuator_calls(a, &places);
    metrics_write_head(&calls, out);
    for (size_t i = 0; i < n; i++)
        for (unsigned k = 0; k < GRPC_OUTCOMES; k++) {
            const char *labels[] = {places[i].name,
                                    grpc_outcome_name((enum grpc_outcome)k)};
            metrics_write_sample(&calls, labels, (int64_t)places[i].ended[k],
                                 out);
        }
}

static void write_certificate(struct tls *tls, struct str *out)
{
    int64_t not_after;
    uint64_t accepted, refused;
    tls_state(tls, &not_after, &accepted, &refused);
    metrics_write_head(&certificate, out);
    metrics_write_sample(&certificate, NULL, not_after, out);
}

static void on_metrics(struct httpd_request *rq, void *ctx)
{
    struct node_metrics *m = ctx;
    struct str *out = httpd_reply(rq);
    write_cards(m, out);
    if (m->actuator) {
        write_pods(m->actuator, out);
        write_calls(m->actuator, out);
    }
    if (m->tls)
        write_certificate(m->tls, out);
    process_metrics_build("biga_advertiser_build_info", out);
    process_metrics_write(out);
    httpd_content_type(rq, METRICS_CONTENT_TYPE);
}

/* --- what is published ---------------------------------------------------- */

void node_metrics_look(struct node_metrics *m, const struct topo *topo)
{
    size_t first, n = topo_count(topo, DEVICE_CARD, &first);
    hold_lock(&m->lock);
    memset(m->cards, 0, sizeof m->cards);
    for (size_t i = 0; i < n; i++)
        m->cards[find_health(topo_device(topo, first + i)->health)]++;
}

void node_metrics_step(struct node_metrics *m)
{
    if (m->tls)
        tls_poll(m->tls);
}

/* --- from start to end ---------------------------------------------------- */

static int serve(struct node_metrics *m, const char *listen, struct error *err)
{
    static const struct httpd_route routes[] = {
        {HTTPD_GET, "/metrics", on_metrics, 0, "metrics"}};
    const struct httpd_config config = {.name = "metrics",
                                        .listen = listen,
                                        .routes = routes,
                                        .n_routes = ARRAY_LEN(routes),
                                        .ctx = m,
                                        .threads = 1,
                                        .connections_max = NODE_METRICS_READERS,
                                        .tls = m->tls,
                                        .loopback = !m->tls};
    return httpd_start(&config, &m->httpd, err);
}

int node_metrics_start(const struct node_metrics_config *config,
                       struct node_metrics **ret_metrics, struct error *err)
{
    const struct tls_config files = {config->cert, config->key,
                                     config->client_ca};
    struct node_metrics *m = xcalloc(1, sizeof *m);
    m->actuator = config->actuator;
    (void)pthread_mutex_init(&m->lock, NULL); /* cannot fail on Linux */
    int r = config->cert ? tls_create(&files, &m->tls, err) : 0;
    if (r == 0)
        r = serve(m, config->listen, err);
    if (r < 0) {
        node_metrics_stop(m);
        return error_wrap(err, "--metrics-listen");
    }
    *ret_metrics = m;
    return 0;
}

uint16_t node_metrics_port(const struct node_metrics *m)
{
    return httpd_port(m->httpd);
}

void node_metrics_stop(struct node_metrics *m)
{
    if (!m)
        return;
    httpd_stop(m->httpd);
    tls_destroy(m->tls);
    (void)pthread_mutex_destroy(&m->lock);
    free(m);
}
