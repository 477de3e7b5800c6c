/* Pods that are applied and deleted, nodes that wait for them and say what
 * became of them, and people who look, all at once, for some seconds, for
 * ThreadSanitizer to watch.  At the end everything is deleted, and nothing is
 * left.
 *
 *   race_runner [SECONDS] */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "extender/run/embedded.h"
#include "extender/serve/app.h"
#include "extender/server.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/simstate.h"

enum { N_NODES = 2, N_PAIRS = 6, N_CARDS = 4 };

static const char json_type[] = "Content-Type: application/json\r\n";

struct race {
    struct server *server;
    atomic_bool stopping, looking_ends;
    atomic_ulong n_applied, n_told, n_looks;
};

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "race_runner: %s: %s\n", what, why);
    abort();
}

static uint16_t port(const struct race *r, enum server_listener which)
{
    return server_port(r->server, which);
}

/* --- people ------------------------------------------------------------- */

static void apply_pair(struct race *r, unsigned i)
{
    struct raw_reply reply = {0};
    cleanup_str struct str body = STR_INIT(65536);
    static const char *const roles[] = {"host", "xpu"};
    for (unsigned k = 0; k < 2; k++)
        str_addf(
            &body,
            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{"
            "\"name\":\"p%u-%s\",\"namespace\":\"ns\",\"labels\":{"
            "\"biga.dev/role\":\"%s\",\"biga.dev/job\":\"p%u\"}},"
            "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}",
            i, roles[k], roles[k], i);
    int status = raw_call(port(r, SERVER_READ), "POST", "/v1/pods", json_type,
                          str_text(&body), &reply);
    if (status != 200 && status != 409) /* the former one is not gone yet */
        die("apply", str_text(&reply.body));
    r->n_applied += status == 200;
    raw_reply_fini(&reply);
}

static void delete_pair(struct race *r, unsigned i)
{
    struct raw_reply reply = {0};
    char path[64];
    (void)snprintf(path, sizeof path, "/v1/pods/ns/p%u-host", i);
    int status = raw_call(port(r, SERVER_READ), "DELETE", path, "", NULL,
                          &reply);
    if (status != 200 && status != 404)
        die("delete", str_text(&reply.body));
    raw_reply_fini(&reply);
}

static void *apply_often(void *ctx)
{
    struct race *r = ctx;
    uint64_t random = 1;
    while (!r->stopping) {
        unsigned i = sim_random(&random) % N_PAIRS;
        if (sim_random(&random) % 2)
            apply_pair(r, i);
        else
            delete_pair(r, i);
    }
    return NULL;
}

static void *look_often(void *ctx)
{
    static const char *const paths[] = {"/v1/allocations", "/v1/pods",
                                        "/v1/cards", "/v1/why?job=ns/p1",
                                        "/metrics"};
    struct race *r = ctx;
    struct raw_reply reply = {0};
    while (!r->looking_ends) {
        size_t i = r->n_looks++ % ARRAY_LEN(paths);
        int status = raw_call(port(r, SERVER_READ), "GET", paths[i], "", NULL,
                              &reply);
        if (status != 200 && status != 404)
            die(paths[i], str_text(&reply.body));
    }
    raw_reply_fini(&reply);
    return NULL;
}

/* --- nodes -------------------------------------------------------------- */

static cJSON *ask(struct race *r, const char *node, uint64_t version)
{
    struct raw_reply reply = {0};
    struct error err = {0};
    cJSON *json = NULL;
    cleanup_free char *path = xasprintf(
        "/v1/nodes/%s/pods?version=%" PRIu64 "&wait=1", node, version);
    if (raw_call(port(r, SERVER_PUBLISH), "GET", path, "", NULL, &reply) != 200)
        die(path, str_text(&reply.body));
    if (json_parse(reply.body.data, reply.body.size, &json, &err) < 0)
        die(path, err.text);
    raw_reply_fini(&reply);
    return json;
}

/* All run at once, and end at once. */
static void tell(struct race *r, const char *node, const cJSON *answer)
{
    struct raw_reply reply = {0};
    cleanup_str struct str body = STR_INIT(1 << 20);
    cleanup_free char *path = xasprintf("/v1/nodes/%s/status", node);
    const cJSON *item;
    const char *comma = "";
    str_add(&body, "{\"boot\":\"b\",\"pods\":[");
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(answer, "items"))
    {
        bool stop =
            cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "stop"));
        str_addf(
            &body, "%s{\"uid\":\"%s\",\"state\":\"%s\",\"ready\":%s}", comma,
            cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "uid")),
            stop ? "gone" : "running", stop ? "false" : "true");
        comma = ",";
    }
    str_add(&body, "],\"places\":[{\"name\":\"host\",\"health\":\"ready\"}]}");
    if (raw_call(port(r, SERVER_PUBLISH), "POST", path, json_type,
                 str_text(&body), &reply) != 204)
        die(path, str_text(&reply.body));
    r->n_told++;
    raw_reply_fini(&reply);
}

struct player {
    struct race *race;
    pthread_t thread;
    char name[8];
};

static void *run_player(void *ctx)
{
    struct player *n = ctx;
    uint64_t version = 0;
    while (!n->race->looking_ends) {
        cleanup_with(json) cJSON *answer = ask(n->race, n->name, version);
        version = (uint64_t)cJSON_GetNumberValue(
            cJSON_GetObjectItemCaseSensitive(answer, "version"));
        tell(n->race, n->name, answer);
    }
    return NULL;
}

static void publish(struct race *r, const char *node)
{
    struct raw_reply reply = {0};
    cleanup_free char *slice = sim_slice(node, N_CARDS, "b", 1, 0);
    cleanup_free char *path = xasprintf(
        "/apis/resource.k8s.io/v1/resourceslices/%s-xpu.biga.dev-0", node);
    if (raw_call(port(r, SERVER_PUBLISH), "PUT", path, "", slice, &reply) !=
        201)
        die(path, str_text(&reply.body));
    raw_reply_fini(&reply);
}

/* --- all of it ---------------------------------------------------------- */

static size_t n_left(struct race *r)
{
    struct app *app = server_app(r->server);
    cleanup_with(pod_set) struct pod_set *set =
        applied_get(server_embedded(r->server)->store.applied);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app->writer);
    return set->n_pods + alloc_index_size(s->allocations);
}

static void start(struct race *r)
{
    struct error err = {0};
    struct server_config config = {
        .listen = {"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"},
        .fresh_ms = 3600000,
        .sweep_ms = 100,
        .connections = 64,
        .request_ms = 600000, /* slow is no error */
    };
    log_set_level(LOG_ERROR);
    demand_config_default(&config.demand);
    if (server_start(&config, &r->server, &err) < 0)
        die("start", err.text);
}

int main(int argc, char **argv)
{
    unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 3;
    struct race r = {0};
    struct player nodes[N_NODES];
    pthread_t applier, looker;
    start(&r);
    for (unsigned i = 0; i < N_NODES; i++) {
        nodes[i].race = &r;
        (void)snprintf(nodes[i].name, sizeof nodes[i].name, "n%u", i);
        publish(&r, nodes[i].name);
        if (pthread_create(&nodes[i].thread, NULL, run_player, &nodes[i]))
            die("thread", "cannot be had");
    }
    if (pthread_create(&applier, NULL, apply_often, &r) ||
        pthread_create(&looker, NULL, look_often, &r))
        die("thread", "cannot be had");
    (void)sleep(seconds);
    r.stopping = true;
    (void)pthread_join(applier, NULL);
    for (unsigned i = 0; i < N_PAIRS; i++)
        delete_pair(&r, i);
    for (unsigned tries = 0; n_left(&r) && tries < 1200; tries++)
        (void)usleep(50000);
    if (n_left(&r))
        die("the end", "something is left");
    r.looking_ends = true;
    (void)pthread_join(looker, NULL);
    for (unsigned i = 0; i < N_NODES; i++)
        (void)pthread_join(nodes[i].thread, NULL);
    (void)printf("%lu pairs applied, %lu reports, %lu looks\n", r.n_applied,
                 r.n_told, r.n_looks);
    server_stop(r.server);
    return 0;
}
