/* Publishes the topologies of N made-up hosts with 8 cards each to an
 * extender, as their advertisers would, over several connections.
 *
 *   bench_publish URL N [CONNECTIONS [PID [GENERATION]]]
 *
 * URL is that of the publish listener.  In generations after the first each
 * host has another card that its node withdraws.
 *
 * Prints the hosts' names, "node-00000" …, one a line; with the extender's PID
 * (not "") what each tenth of them cost it instead, as JSON: its CPU time per
 * slice.  The order in which they come has nothing to do with that of their
 * names. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/http/http.h"
#include "model/slice/slice.h"
#include "model/topo/topo_builder.h"
#include "tests/lib/sim/benchhost.h"

enum {
    CONNECTIONS = 16,
    CONNECTIONS_MAX = 512,
    CALL_MS = 30000,
    NODE_MAX = 32,
    PARTS = 10,
    STRIDE = 7919, /* a prime: hosts come in steps of it, and all do */
};

struct shared {
    const char *url;
    size_t n, n_workers;
    int64_t generation;
    const char *pid; /* NULL: nothing is measured */
    atomic_size_t n_published;
    double cpu_us[PARTS + 1]; /* by then, of each tenth */
};

struct worker {
    struct shared *shared;
    size_t first;
    pthread_t thread;
};

static void die(const struct error *err)
{
    fprintf(stderr, "bench_publish: %s\n", err->text);
    exit(1);
}

static void withdraw_card(void *ctx, struct device *d, struct identity *own)
{
    int64_t *left = ctx;
    (void)own;
    d->unhealthy = d->kind == DEVICE_CARD && --*left == 0;
}

static struct topo *host(const char *node, size_t i, int64_t generation)
{
    struct topo *topo = benchhost_create(node, i), *changed = NULL;
    struct error err = {0};
    int64_t card = 1 + (generation - 1) % BENCHHOST_CARDS;
    if (generation == 1)
        return topo;
    if (topo_change(topo, withdraw_card, &card, topo_runs(topo), &changed,
                    &err))
        die(&err);
    topo_unref(topo);
    return changed;
}

/* CPU time of all threads of a process, also of those that have ended. */
static double cpu_us(const char *pid)
{
    unsigned long user = 0, kernel = 0;
    cleanup_free char *path = xasprintf("/proc/%s/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f || fscanf(f,
                     "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u "
                     "%*u %lu %lu",
                     &user, &kernel) != 2) {
        fprintf(stderr, "bench_publish: %s: cannot be read\n", path);
        exit(1);
    }
    (void)fclose(f); /* it was only read */
    return (double)(user + kernel) * 1e6 / (double)sysconf(_SC_CLK_TCK);
}

/* One more is published: is a tenth of them done with it? */
static void note(struct shared *s)
{
    size_t n = atomic_fetch_add(&s->n_published, 1) + 1;
    for (size_t part = 1; s->pid && part <= PARTS; part++)
        if (n == s->n * part / PARTS)
            s->cpu_us[part] = cpu_us(s->pid);
    if (n % 1000 == 0)
        fprintf(stderr, "\r  %zu of %zu hosts published", n, s->n);
}

static void print_costs(const struct shared *s)
{
    printf("{\"hosts\": %zu, \"cpu_us_per_slice\": [", s->n);
    for (size_t part = 1; part <= PARTS; part++) {
        size_t n = s->n * part / PARTS - s->n * (part - 1) / PARTS;
        printf("%s%.0f", part > 1 ? ", " : "",
               (s->cpu_us[part] - s->cpu_us[part - 1]) / (double)(n ? n : 1));
    }
    printf("]}\n");
}

static void publish(struct http_client *http, size_t i, int64_t generation,
                    struct http_answer *answer)
{
    struct slice_epoch epoch = {.boot_id = "bench", .generation = generation};
    char node[NODE_MAX], name[SLICE_NAME_MAX + 1], path[SLICE_NAME_MAX + 64];
    cleanup_str struct str body = STR_INIT(SLICE_BODY_MAX);
    struct error err = {0};
    (void)snprintf(node, sizeof node, "node-%05zu", i);
    cleanup_with(topo) struct topo *topo = host(node, i, generation);
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
    size_t n = w->shared->n, stride = n % STRIDE ? STRIDE : 1;
    for (size_t i = w->first; i < n; i += w->shared->n_workers) {
        publish(http, i * stride % n, w->shared->generation, &answer);
        note(w->shared);
    }
    str_fini(&answer.body);
    http_client_destroy(http);
    return NULL;
}

int main(int argc, char **argv)
{
    struct shared shared = {.n_workers = CONNECTIONS, .generation = 1};
    struct worker workers[CONNECTIONS_MAX];
    if (argc > 3)
        shared.n_workers = strtoul(argv[3], NULL, 10);
    if (argc > 5)
        shared.generation = strtoll(argv[5], NULL, 10);
    if (argc < 3 || shared.generation < 1 || !shared.n_workers ||
        shared.n_workers > CONNECTIONS_MAX) {
        fputs("usage: bench_publish URL N [CONNECTIONS [PID [GENERATION]]]\n",
              stderr);
        return 2;
    }
    shared.url = argv[1];
    shared.n = strtoul(argv[2], NULL, 10);
    shared.pid = argc > 4 && *argv[4] ? argv[4] : NULL;
    if (shared.pid)
        shared.cpu_us[0] = cpu_us(shared.pid);
    for (size_t i = 0; i < shared.n_workers; i++) {
        workers[i] = (struct worker){.shared = &shared, .first = i};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            abort();
    }
    for (size_t i = 0; i < shared.n_workers; i++)
        pthread_join(workers[i].thread, NULL);
    fprintf(stderr, "\r  %zu of %zu hosts published\n", shared.n, shared.n);
    if (shared.pid)
        print_costs(&shared);
    for (size_t i = 0; i < shared.n && !shared.pid; i++)
        printf("node-%05zu\n", i);
    return 0;
}
