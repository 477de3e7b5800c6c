/* The whole extender over HTTP, everything at once, for some seconds, for
 * ThreadSanitizer to watch: publishers, schedulers, readers, pods that end,
 * and clients that hang up in the middle.
 *
 *   race_http [SECONDS]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "extender/server.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/io/log.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/simstate.h"

enum {
    N_NODES = 20,
    N_PODS = 40,
    N_ALONE = 20, /* the others are members of whole jobs */
    JOB_SIZE = 4,
};

static struct server *server;
static atomic_bool stopping;
static atomic_ulong n_requests;

struct client {
    pthread_t thread;
    enum server_listener listener;
    void (*step)(struct client *c);
    unsigned number, round;
    int fd; /* a kept connection, or -1 */
    uint64_t random;
    struct raw_reply reply;
};

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "race_http: %s: %s\n", what, why);
    abort();
}

/* One request on the kept connection; the status must be one of two. */
static void call(struct client *c, const char *method, const char *target,
                 const char *body, int other)
{
    cleanup_str struct str text = STR_INIT(STR_MAX_DEFAULT);
    if (c->fd < 0)
        c->fd = raw_connect(server_port(server, c->listener));
    str_addf(&text, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
             method, target, strlen(body));
    str_add(&text, body);
    if (!raw_send_n(c->fd, text.data, text.size))
        die(target, "cannot send");
    int status = raw_read(c->fd, false, &c->reply);
    if (status != 200 && status != 201 && status != other)
        die(target, status ? str_text(&c->reply.body) : "no answer");
    atomic_fetch_add(&n_requests, 1);
}

static void publish(struct client *c)
{
    char node[16], target[128];
    unsigned i = sim_random(&c->random) % N_NODES;
    (void)snprintf(node, sizeof node, "n%u", i);
    (void)snprintf(target, sizeof target,
                   "/apis/resource.k8s.io/v1/"
                   "resourceslices/%s-xpu.biga.dev-0",
                   node);
    cleanup_free char *body = sim_slice(node, 4, "boot", c->round / 50 + 1, 0);
    call(c, "PUT", target, body, 409);
    if (c->round % 10 == 0)
        call(c, "GET", "/apis/resource.k8s.io/v1/resourceslices?limit=5", "",
             200);
}

static void schedule(struct client *c)
{
    cleanup_str struct str body = STR_INIT(65536);
    unsigned pod = sim_random(&c->random) % N_PODS;
    str_addf(&body,
             "{\"Pod\":{\"metadata\":{\"name\":\"p%u\",\"namespace\":\"ns\","
             "\"uid\":\"u%u\",\"labels\":{\"biga.dev/role\":\"xpu\"",
             pod, pod);
    if (pod >= N_ALONE)
        str_addf(&body,
                 ",\"biga.dev/job\":\"j%u\",\"biga.dev/pair\":\"%u\"},"
                 "\"annotations\":{\"biga.dev/size\":\"%d\"",
                 pod / JOB_SIZE, pod % JOB_SIZE, JOB_SIZE);
    str_add(&body,
            "}},\"spec\":"
            "{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{"
            "\"biga.dev/card\":\"1\",\"biga.dev/card-cores\":\"2\"}}}]}},"
            "\"NodeNames\":[");
    for (unsigned i = 0; i < N_NODES; i++)
        str_addf(&body, "%s\"n%u\"", i ? "," : "", i);
    str_add(&body, "]}");
    call(c, "POST", "/v1/scheduler/filter", body.data, 200);
    unsigned node = sim_random(&c->random) % N_NODES;
    const char *first = strstr(str_text(&c->reply.body), "\"NodeNames\":[\"n");
    if (first && pod >= N_ALONE)
        node = (unsigned)strtoul(first + strlen("\"NodeNames\":[\"n"), NULL,
                                 10);
    call(c, "POST", "/v1/scheduler/prioritize", body.data, 200);
    str_reset(&body);
    str_addf(&body,
             "{\"PodName\":\"p%u\",\"PodNamespace\":\"ns\",\"PodUID\":\"u%u\","
             "\"Node\":\"n%u\"}",
             pod, pod, node);
    call(c, "POST", "/v1/scheduler/bind", body.data, 200);
}

static void look(struct client *c)
{
    static const char *const targets[] = {
        "/v1/nodes", "/v1/cards",   "/v1/topology?limit=3", "/v1/allocations",
        "/metrics",  "/",           "/v1/why?pod=ns/p1",    "/v1/nodes/n1",
        "/v1/jobs",  "/v1/pending", "/v1/why?job=ns/j5",    "/v1/jobs/ns/j5"};
    call(c, "GET", targets[c->round % ARRAY_LEN(targets)], "", 404);
}

static void end_pod(struct client *c)
{
    char target[64];
    (void)snprintf(target, sizeof target, "/v1/allocations/ns/p%u",
                   sim_random(&c->random) % N_PODS);
    call(c, "DELETE", target, "", 404);
    (void)usleep(1000);
}

/* Hangs up at a place of its own in each round. */
static void hang_up(struct client *c)
{
    static const char request[] =
        "DELETE /v1/allocations/ns/p1 HTTP/1.1\r\nHost: x\r\n"
        "Content-Length: 0\r\n\r\n";
    int fd = raw_connect(server_port(server, c->listener));
    (void)raw_send_n(fd, request, c->round % sizeof request);
    (void)close(fd);
    (void)usleep(2000);
}

static void *client_run(void *arg)
{
    struct client *c = arg;
    for (; !atomic_load(&stopping); c->round++)
        c->step(c);
    if (c->fd >= 0)
        (void)close(c->fd);
    raw_reply_fini(&c->reply);
    return NULL;
}

int main(int argc, char **argv)
{
    struct client clients[] = {
        {.listener = SERVER_PUBLISH, .step = publish},
        {.listener = SERVER_PUBLISH, .step = publish},
        {.listener = SERVER_SCHEDULER, .step = schedule},
        {.listener = SERVER_SCHEDULER, .step = schedule},
        {.listener = SERVER_SCHEDULER, .step = schedule},
        {.listener = SERVER_SCHEDULER, .step = schedule},
        {.listener = SERVER_READ, .step = look},
        {.listener = SERVER_READ, .step = end_pod},
        {.listener = SERVER_READ, .step = hang_up},
    };
    unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 3;
    struct server_config config = {
        .listen = {"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"},
        .max_candidates = 16,
        .fresh_ms = 15000,
        .sweep_ms = 100,
        .connections = 1024,
        .request_ms = 600000, /* slow is no error */
    };
    struct error err;
    log_set_level(LOG_ERROR);
    demand_config_default(&config.demand);
    if (server_start(&config, &server, &err))
        die("start", err.text);
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        clients[i].number = (unsigned)i;
        clients[i].fd = -1;
        clients[i].random = i + 1;
        if (pthread_create(&clients[i].thread, NULL, client_run, &clients[i]))
            die("pthread_create", "failed");
    }
    (void)sleep(seconds);
    while (atomic_load(&n_requests) <= 100)
        (void)usleep(10000);
    atomic_store(&stopping, true);
    for (size_t i = 0; i < ARRAY_LEN(clients); i++)
        (void)pthread_join(clients[i].thread, NULL);
    server_stop(server);
    printf("race_http: %lu requests\n", atomic_load(&n_requests));
    return 0;
}
