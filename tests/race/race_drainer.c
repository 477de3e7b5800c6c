/* Cards that are drained and drained no longer, from several threads, by the
 * drainer and the writer, pods that come and are evicted, an API server that
 * refuses now and then, and a leader that comes and goes, for some seconds, for
 * ThreadSanitizer to watch.  Every request is answered once.
 *
 *   race_drainer [SECONDS]
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "extender/leader/drainer.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/http/httpd.h"
#include "lib/io/log.h"
#include "tests/lib/sim/simstate.h"

enum { N_NODES = 4, N_PODS = 20 };

static struct writer *writer;
static struct drainer *drainer;
static atomic_bool stopping;
static atomic_ulong n_posted, n_answered, n_patches, n_evictions, n_binds;

struct worker {
    pthread_t thread;
    void (*step)(struct worker *w);
    uint64_t random;
};

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "race_drainer: %s: %s\n", what, why);
    abort();
}

/* --- the API server ------------------------------------------------------- */

static void on_patch(struct httpd_request *rq, void *ctx)
{
    static const unsigned statuses[] = {200, 200, 200, 409, 422, 500, 404};
    unsigned long n = atomic_fetch_add(&n_patches, 1);
    (void)ctx;
    httpd_status(rq, statuses[n % ARRAY_LEN(statuses)]);
    str_add(httpd_reply(rq), "{\"kind\":\"ConfigMap\",\"metadata\":{}}");
}

static void on_eviction(struct httpd_request *rq, void *ctx)
{
    static const unsigned statuses[] = {201, 429, 404, 500};
    unsigned long n = atomic_fetch_add(&n_evictions, 1);
    (void)ctx;
    httpd_status(rq, statuses[n % ARRAY_LEN(statuses)]);
    str_add(httpd_reply(rq), "{\"kind\":\"Status\",\"metadata\":{}}");
}

static const struct httpd_route routes[] = {
    {HTTPD_PATCH, "/api/v1/namespaces/:/configmaps/:", on_patch, 65536,
     "patch"},
    {HTTPD_POST, "/api/v1/namespaces/:/pods/:/eviction", on_eviction, 65536,
     "evict"},
};

static struct kube_config *config_of(uint16_t port)
{
    struct kube_config *kube = NULL;
    struct error err = {0};
    cleanup_free char *text = xasprintf(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
        "clusters: [{name: k, cluster: {server: \"http://127.0.0.1:%u\"}}]\n"
        "users: [{name: u, user: {}}]\n",
        port);
    if (kube_config_parse(text, strlen(text), "/", &kube, &err) < 0)
        die("kubeconfig", err.text);
    return kube;
}

/* --- everybody else ------------------------------------------------------- */

static bool may_write(void *ctx, int64_t call_ms)
{
    static atomic_uint asked;
    (void)ctx;
    (void)call_ms;
    return atomic_fetch_add(&asked, 1) % 5 != 0;
}

static void pick_node(struct worker *w, char node[16])
{
    (void)snprintf(node, 16, "n%u", sim_random(&w->random) % N_NODES);
}

static struct card_bars *bars_of(bool evict)
{
    struct card_bars *b = card_bars_create(1);
    b->items[0] = (struct card_bar){.drains = true, .evict = evict};
    (void)snprintf(b->items[0].reason, sizeof b->items[0].reason, "a fan");
    (void)snprintf(b->items[0].since, sizeof b->items[0].since,
                   "2026-01-02T03:04:05Z");
    card_drain_explain(&b->items[0]);
    return b;
}

/* As a replica hears of it, from whoever wrote it down. */
static void step_hear(struct worker *w)
{
    char node[16];
    cleanup_with(card_bars) struct card_bars *b = bars_of(true);
    pick_node(w, node);
    struct writer_op op = {.kind = WRITER_DRAIN,
                           .node = node,
                           .bars = b,
                           .gone = sim_random(&w->random) % 2};
    (void)writer_run(writer, &op); /* or there was none to be gone */
}

static void answered(struct pod_drain *drain)
{
    n_answered++;
    (void)sem_post(drain->ctx);
}

static void step_post(struct worker *w)
{
    char node[16];
    sem_t done;
    cleanup_with(card_bars) struct card_bars *b =
        bars_of(sim_random(&w->random) % 2);
    pick_node(w, node);
    struct pod_drain drain = {.node = node,
                              .bar = &b->items[0],
                              .gone = sim_random(&w->random) % 2,
                              .done = answered,
                              .ctx = &done};
    (void)sem_init(&done, 0, 0); /* cannot fail with this value */
    n_posted++;
    drainer_post(drainer, &drain);
    while (sem_wait(&done) != 0)
        ;
    if (drain.result < 0 && !*drain.error.text)
        die("post", "refused without a reason");
    (void)sem_destroy(&done);
}

static void step_bind(struct worker *w)
{
    char pod[16], node[16];
    (void)snprintf(pod, sizeof pod, "p%u", sim_random(&w->random) % N_PODS);
    pick_node(w, node);
    struct demand d = sim_pod(pod, ROLE_XPU, "", 0);
    if (sim_random(&w->random) % 3)
        (void)sim_bind(writer, &d, node, NULL, NULL); /* or it is drained */
    else
        (void)sim_release(writer, pod); /* or no such pod */
    n_binds++;
    (void)usleep(200);
}

static void *work(void *ctx)
{
    struct worker *w = ctx;
    while (!atomic_load(&stopping))
        w->step(w);
    return NULL;
}

static void start(const struct kube_config *kube)
{
    struct error err = {0};
    const struct drainer_config config = {.kube = kube,
                                          .namespace = "biga-system",
                                          .writer = writer,
                                          .may_write = may_write};
    for (int i = 0; i < N_NODES; i++) {
        char node[16];
        (void)snprintf(node, sizeof node, "n%d", i);
        if (sim_publish(writer, node, 4, "boot", 1) != 0)
            die(node, "cannot be published");
    }
    if (drainer_start(&config, &drainer, &err) < 0)
        die("start", err.text);
}

int main(int argc, char **argv)
{
    int64_t seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 3;
    struct worker workers[] = {{.step = step_hear},
                               {.step = step_post},
                               {.step = step_post},
                               {.step = step_post},
                               {.step = step_bind}};
    const struct httpd_config http = {.name = "api",
                                      .listen = "127.0.0.1:0",
                                      .threads = 1,
                                      .routes = routes,
                                      .n_routes = ARRAY_LEN(routes)};
    struct httpd *api;
    struct error err = {0};
    log_set_level(LOG_ERROR + 1);
    if (httpd_start(&http, &api, &err) < 0)
        die("httpd", err.text);
    cleanup_with(kube_config) struct kube_config *kube =
        config_of(httpd_port(api));
    writer = sim_writer(NULL);
    start(kube);
    for (size_t i = 0; i < ARRAY_LEN(workers); i++) {
        workers[i].random = i + 1;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            die("thread", "cannot be started");
    }
    (void)sleep((unsigned)seconds);
    while (!n_answered || !n_binds || !n_evictions)
        (void)usleep(10000);
    drainer_quiesce(drainer); /* who posts from now on is refused */
    atomic_store(&stopping, true);
    for (size_t i = 0; i < ARRAY_LEN(workers); i++)
        (void)pthread_join(workers[i].thread, NULL); /* it was started */
    drainer_stop(drainer);
    writer_stop(writer);
    httpd_stop(api);
    (void)printf("race_drainer: %lu drains, %lu patches, %lu evictions, %lu "
                 "binds\n",
                 atomic_load(&n_answered), atomic_load(&n_patches),
                 atomic_load(&n_evictions), atomic_load(&n_binds));
    return n_posted == n_answered ? 0 : 1;
}
