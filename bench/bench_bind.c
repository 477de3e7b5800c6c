/* Binds pods as kube-scheduler does, several at a time, and says how many
 * binds per second were durable.  Each pod is filtered first (a bind says
 * only its name), on a few nodes that a seeded generator picks; only the
 * binds are timed.  It is also how the bench loads a fleet.
 *
 *   bench_bind URL NAMES-FILE PODS [CONNECTIONS [SEED]]
 *
 * URL of the scheduler listener.  Prints: bound, refused, binds per second,
 * p50 and p99 of a bind in microseconds. */
#include <pthread.h>
#include <stdbool.h>

#include "lib/base/jscan.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/http/http.h"
#include "lib/io/clock.h"

enum {
    CONNECTIONS = 16,
    CONNECTIONS_MAX = 64,
    BLOCK = 2048, /* pods between two phases */
    OFFERED = 12, /* nodes per filter */
    NAME_SIZE = 256,
    CALL_MS = 30000,
    BODY_MAX = 1 << 20,
};

struct pod {
    char node[NAME_SIZE]; /* "" when nothing fits */
    double microseconds;
    bool bound;
};

struct shared {
    const char *url;
    char **names;
    size_t n_names, n_pods, n_workers, seed;
    size_t from, to; /* the block */
    bool binding;    /* the phase */
    struct pod *pods;
};

struct worker {
    struct shared *shared;
    size_t first;
    pthread_t thread;
    struct http_client *http;
    struct http_answer answer;
};

static void die(const char *text)
{
    fprintf(stderr, "bench_bind: %s\n", text);
    exit(1);
}

/* The same stream for the same seed and pod, whatever the threads do. */
static uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void call(struct worker *w, const char *path, const struct str *body)
{
    struct error err = {0};
    if (http_call(w->http, "POST", path, body->data, body->size, NULL,
                  &w->answer, &err))
        die(err.text);
    if (w->answer.status != 200)
        die(str_text(&w->answer.body));
}

static void add_pod(struct str *out, size_t seed, size_t i, uint64_t *random)
{
    static const char *const roles[] = {"service", "host"};
    uint64_t r = random_next(random);
    bool host = r % 3 != 0;
    unsigned cards = (r >> 8) % 4 == 0 ? 2 : 1;
    str_addf(out,
             "{\"Pod\":{\"metadata\":{\"name\":\"load-%zu-%zu\",\"namespace\":"
             "\"bench\",\"uid\":\"uid-%zu-%zu\",\"labels\":{\"biga.dev/role\":"
             "\"%s\"},\"annotations\":{\"biga.dev/cards\":\"%u\"}},\"spec\":{"
             "\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{"
             "\"biga.dev/card\":\"%u\"",
             seed, i, seed, i, roles[host], cards, cards);
    if (host)
        str_addf(out, ",\"nvidia.com/gpu\":\"%u\"", cards);
    else
        str_addf(out,
                 ",\"biga.dev/card-cores\":\"%u\","
                 "\"biga.dev/card-memory-mib\":\"%u\"",
                 (unsigned)(r >> 16) % 6 + 1,
                 ((unsigned)(r >> 24) % 4 + 1) * 1024);
    str_add(out, "}}}]}},\"Nodes\":null,\"NodeNames\":[");
}

static void filter(struct worker *w, size_t i)
{
    struct shared *s = w->shared;
    cleanup_str struct str body = STR_INIT(BODY_MAX);
    uint64_t random = s->seed * 1000003 + i;
    struct jscan scan;
    struct jtext key, name;
    add_pod(&body, s->seed, i, &random);
    for (int k = 0; k < OFFERED; k++) {
        /* fewer and fewer of the later nodes, so that the load is uneven */
        size_t at = random_next(&random) % s->n_names;
        at = at * (random_next(&random) % 4 + 1) / 4;
        if (k)
            str_add_c(&body, ',');
        str_add_json(&body, s->names[(at + (size_t)k) % s->n_names]);
    }
    str_add(&body, "]}");
    call(w, "/v1/scheduler/filter", &body);
    jscan_init(&scan, str_text(&w->answer.body), w->answer.body.size);
    for (jscan_object(&scan); jscan_member(&scan, &key);) {
        if (!jtext_is(&key, "NodeNames") || !jscan_array(&scan)) {
            jscan_skip(&scan);
            continue;
        }
        while (jscan_element(&scan) && jscan_string(&scan, &name))
            if (!s->pods[i].node[0] && name.size < NAME_SIZE)
                jtext_decode(&name, s->pods[i].node);
    }
}

static void bind_pod(struct worker *w, size_t i)
{
    struct pod *pod = &w->shared->pods[i];
    cleanup_str struct str body = STR_INIT(4096);
    if (!pod->node[0])
        return;
    str_addf(&body,
             "{\"PodName\":\"load-%zu-%zu\",\"PodNamespace\":\"bench\","
             "\"PodUID\":\"uid-%zu-%zu\",\"Node\":\"%s\"}",
             w->shared->seed, i, w->shared->seed, i, pod->node);
    int64_t start = clock_ns();
    call(w, "/v1/scheduler/bind", &body);
    pod->microseconds = (double)(clock_ns() - start) / 1e3;
    pod->bound = strstr(str_text(&w->answer.body), "\"Error\":\"\"");
}

static void *work(void *ctx)
{
    struct worker *w = ctx;
    const struct shared *s = w->shared;
    for (size_t i = s->from + w->first; i < s->to; i += s->n_workers) {
        if (s->binding)
            bind_pod(w, i);
        else
            filter(w, i);
    }
    return NULL;
}

static double run_phase(struct shared *s, struct worker *workers, bool binding)
{
    int64_t start = clock_ns();
    s->binding = binding;
    for (size_t i = 0; i < s->n_workers; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            abort();
    for (size_t i = 0; i < s->n_workers; i++)
        pthread_join(workers[i].thread, NULL);
    return (double)(clock_ns() - start) / 1e9;
}

static void read_names(struct shared *s, const char *path)
{
    char name[NAME_SIZE];
    size_t cap = 0;
    cleanup_file FILE *f = fopen(path, "re");
    if (!f)
        die(path);
    while (fscanf(f, "%255s", name) == 1) {
        s->names = xgrow(s->names, s->n_names, &cap, sizeof *s->names);
        s->names[s->n_names++] = xstrdup(name);
    }
    if (!s->n_names)
        die("no names");
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const struct shared *s, double seconds)
{
    double *times = xcalloc(s->n_pods + 1, sizeof *times);
    size_t bound = 0;
    for (size_t i = 0; i < s->n_pods; i++)
        if (s->pods[i].bound)
            times[bound++] = s->pods[i].microseconds;
    qsort(times, bound, sizeof *times, compare);
    printf("%zu\t%zu\t%.1f\t%.1f\t%.1f\n", bound, s->n_pods - bound,
           (double)bound / seconds, times[bound / 2],
           times[bound - bound / 100 - (bound > 0)]);
    free(times);
}

int main(int argc, char **argv)
{
    struct shared s = {.n_workers = CONNECTIONS, .seed = 1};
    struct worker workers[CONNECTIONS_MAX] = {0};
    double seconds = 0;
    if (argc > 4)
        s.n_workers = strtoul(argv[4], NULL, 10);
    if (argc > 5)
        s.seed = strtoul(argv[5], NULL, 10);
    if (argc < 4 || !s.n_workers || s.n_workers > CONNECTIONS_MAX) {
        fputs("usage: bench_bind URL NAMES-FILE PODS [CONNECTIONS [SEED]]\n",
              stderr);
        return 2;
    }
    s.url = argv[1];
    read_names(&s, argv[2]);
    s.n_pods = strtoul(argv[3], NULL, 10);
    s.pods = xcalloc(s.n_pods + 1, sizeof *s.pods);
    for (size_t i = 0; i < s.n_workers; i++) {
        struct error err = {0};
        workers[i] = (struct worker){
            .shared = &s, .first = i, .answer.body = STR_INIT(BODY_MAX)};
        if (http_client_create(s.url, CALL_MS, &workers[i].http, &err))
            die(err.text);
    }
    for (; s.from < s.n_pods; s.from = s.to) {
        s.to = s.from + BLOCK < s.n_pods ? s.from + BLOCK : s.n_pods;
        (void)run_phase(&s, workers, false);
        seconds += run_phase(&s, workers, true);
    }
    for (size_t i = 0; i < s.n_workers; i++) {
        http_client_destroy(workers[i].http);
        str_fini(&workers[i].answer.body);
    }
    report(&s, seconds);
    return 0;
}
