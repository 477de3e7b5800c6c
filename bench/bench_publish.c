/* Publishes the topologies of N made-up hosts with 8 cards each to an
 * extender, as their advertisers would, over several connections.
 *
 *   bench_publish URL N [CONNECTIONS]     URL of the publish listener
 *
 * Prints the hosts' names, "node-00000" …, one a line. */
#include <pthread.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/http/http.h"
#include "model/slice/slice.h"
#include "tests/lib/sim/benchhost.h"

enum {
    CONNECTIONS = 16,
    CONNECTIONS_MAX = 64,
    CALL_MS = 30000,
    NODE_MAX = 32,
};

struct shared {
    const char *url;
    size_t n, n_workers;
};

struct worker {
    const struct shared *shared;
    size_t first;
    pthread_t thread;
};

static void die(const struct error *err)
{
    fprintf(stderr, "bench_publish: %s\n", err->text);
    exit(1);
}

static void publish(struct http_client *http, size_t i,
                    struct http_answer *answer)
{
    struct slice_epoch epoch = {.boot_id = "bench", .generation = 1};
    char node[NODE_MAX], name[SLICE_NAME_MAX + 1], path[SLICE_NAME_MAX + 64];
    cleanup_str struct str body = STR_INIT(SLICE_BODY_MAX);
    struct error err = {0};
    (void)snprintf(node, sizeof node, "node-%05zu", i);
    cleanup_with(topo) struct topo *topo = benchhost_create(node, i);
    slice_name(node, 0, name);
    slice_encode(topo, &epoch, 0, &body);
    (void)snprintf(path, sizeof path,
                   "/apis/resource.k8s.io/v1/resourceslices/%s", name);
    if (http_call(http, "PUT", path, body.data, body.size, NULL, answer, &err))
        die(&err);
    if (answer->status < 200 || answer->status > 299) {
        fprintf(stderr, "bench_publish: %s: %ld: %s\n", name, answer->status,
                str_text(&answer->body));
        exit(1);
    }
}

static void *work(void *ctx)
{
    const struct worker *w = ctx;
    struct http_client *http = NULL;
    struct http_answer answer = {.body = STR_INIT(SLICE_BODY_MAX)};
    struct error err = {0};
    if (http_client_create(w->shared->url, CALL_MS, &http, &err))
        die(&err);
    for (size_t i = w->first; i < w->shared->n; i += w->shared->n_workers) {
        publish(http, i, &answer);
        if (i % 1000 == 0)
            fprintf(stderr, "\r  %zu of %zu hosts published", i, w->shared->n);
    }
    str_fini(&answer.body);
    http_client_destroy(http);
    return NULL;
}

int main(int argc, char **argv)
{
    struct shared shared = {.n_workers = CONNECTIONS};
    struct worker workers[CONNECTIONS_MAX];
    if (argc > 3)
        shared.n_workers = strtoul(argv[3], NULL, 10);
    if (argc < 3 || !shared.n_workers || shared.n_workers > CONNECTIONS_MAX) {
        fputs("usage: bench_publish URL N [CONNECTIONS]\n", stderr);
        return 2;
    }
    shared.url = argv[1];
    shared.n = strtoul(argv[2], NULL, 10);
    for (size_t i = 0; i < shared.n_workers; i++) {
        workers[i] = (struct worker){.shared = &shared, .first = i};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            abort();
    }
    for (size_t i = 0; i < shared.n_workers; i++)
        pthread_join(workers[i].thread, NULL);
    fprintf(stderr, "\r  %zu of %zu hosts published\n", shared.n, shared.n);
    for (size_t i = 0; i < shared.n; i++)
        printf("node-%05zu\n", i);
    return 0;
}
