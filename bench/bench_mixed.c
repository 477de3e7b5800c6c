/* What filter takes while everything else goes on: 16 connections ask about
 * all nodes as fast as they are answered, in windows of an extender that does
 * nothing else and of one that binds, hears heartbeats and takes changed
 * slices, in turn.
 *
 *   bench_mixed SCHEDULER-PORT PUBLISH-PORT NAMES [WINDOWS]
 *
 * of an extender to which the hosts of bench_publish were published; NAMES are
 * asked about.  Prints two lines, idle and mixed: filters, their p50 and p99 in
 * microseconds, binds, heartbeats and changed slices per second. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "lib/base/mem.h"
#include "lib/http/http.h"
#include "lib/io/clock.h"
#include "model/slice/slice.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/benchhost.h"

enum {
    CONNECTIONS = 16,
    WINDOW_MS = 1500,
    PERIOD_MS = 10,     /* of the load */
    HEARTBEATS = 5,     /* in each: 5,000 hosts that beat every 10 s */
    CHANGES_PERIOD = 5, /* in every fifth a slice that has changed */
    BODY_MAX = 16 << 20,
    CALL_MS = 30000,
    TIMES_MAX = 1 << 20,
};

static uint16_t scheduler, publish;
static size_t n_names;
static atomic_bool over, loaded;

struct asker {
    pthread_t thread;
    unsigned number;
    struct str request;
    double *times[2]; /* microseconds, idle and loaded */
    size_t n[2];
};

static struct load {
    struct http_client *scheduler, *publish;
    struct http_answer answer;
    size_t binds, heartbeats, changes, n_pods;
    int64_t ms; /* that it was on */
} load = {.answer.body = {.max = BODY_MAX}};

static void die(const char *what)
{
    fprintf(stderr, "bench_mixed: %s\n", what);
    exit(1);
}

/* --- filters -------------------------------------------------------------- */

static void add_pod(struct str *out, const char *name, size_t number)
{
    str_addf(out,
             "{\"Pod\":{\"metadata\":{\"name\":\"%s-%zu\",\"namespace\":"
             "\"bench\",\"uid\":\"%s-uid-%zu\",\"labels\":{\"biga.dev/role\":"
             "\"service\"}},\"spec\":{\"containers\":[{\"name\":\"c\","
             "\"resources\":{\"requests\":{\"biga.dev/card\":\"1\","
             "\"biga.dev/card-cores\":\"1\","
             "\"biga.dev/card-memory-mib\":\"64\"}}}]}},\"Nodes\":null,"
             "\"NodeNames\":[",
             name, number, name, number);
}

static void compose(struct asker *a)
{
    cleanup_str struct str body = STR_INIT(BODY_MAX);
    add_pod(&body, "asked", a->number);
    for (size_t i = 0; i < n_names; i++)
        str_addf(&body, "%s\"node-%05zu\"", i ? "," : "",
                 (i + a->number * 997) % n_names);
    str_add(&body, "]}");
    str_addf(&a->request,
             "POST /v1/scheduler/filter HTTP/1.1\r\nHost: localhost\r\n"
             "Content-Length: %zu\r\n\r\n",
             body.size);
    str_add_n(&a->request, body.data, body.size);
}

static void *ask(void *arg)
{
    struct asker *a = arg;
    struct raw_reply reply = {.head = STR_INIT(4096),
                              .body = STR_INIT(BODY_MAX)};
    int fd = raw_connect(scheduler);
    while (!atomic_load(&over)) {
        bool with_load = atomic_load(&loaded);
        int64_t start = clock_ns();
        if (!raw_send_n(fd, a->request.data, a->request.size) ||
            raw_read(fd, false, &reply) != 200)
            die("a filter failed");
        double took = (double)(clock_ns() - start) / 1e3;
        if (with_load == atomic_load(&loaded) && a->n[with_load] < TIMES_MAX)
            a->times[with_load][a->n[with_load]++] = took;
    }
    raw_reply_fini(&reply);
    return NULL;
}

/* --- what goes on beside them ---------------------------------------------- */

static void call(struct http_client *http, const char *method, const char *path,
                 const struct str *body)
{
    struct error err = {0};
    if (http_call(http, method, path, body->data, body->size, NULL,
                  &load.answer, &err))
        die(err.text);
    if (load.answer.status < 200 || load.answer.status > 299)
        die(str_text(&load.answer.body));
}

static void put_slice(size_t host, int64_t generation)
{
    struct slice_epoch epoch = {.boot_id = "bench", .generation = generation};
    char node[32], name[SLICE_NAME_MAX + 1], path[SLICE_NAME_MAX + 64];
    cleanup_str struct str body = STR_INIT(SLICE_BODY_MAX);
    (void)snprintf(node, sizeof node, "node-%05zu", host);
    /* of the same shape, or one that has changed */
    cleanup_with(topo) struct topo *topo =
        benchhost_create(node, host + (size_t)generation - 1);
    slice_name(node, 0, name);
    slice_encode(topo, &epoch, 0, &body);
    (void)snprintf(path, sizeof path,
                   "/apis/resource.k8s.io/v1/resourceslices/%s", name);
    call(load.publish, "PUT", path, &body);
}

static void bind_one(void)
{
    cleanup_str struct str body = STR_INIT(BODY_MAX);
    size_t pod = load.n_pods++, node = pod * 7 % n_names;
    add_pod(&body, "bound", pod);
    str_addf(&body, "\"node-%05zu\"]}", node);
    call(load.scheduler, "POST", "/v1/scheduler/filter", &body);
    str_reset(&body);
    str_addf(&body,
             "{\"PodName\":\"bound-%zu\",\"PodNamespace\":\"bench\","
             "\"PodUID\":\"bound-uid-%zu\",\"Node\":\"node-%05zu\"}",
             pod, pod, node);
    call(load.scheduler, "POST", "/v1/scheduler/bind", &body);
    load.binds += strstr(str_text(&load.answer.body), "\"Error\":\"\"") != NULL;
}

/* One period's; the first hosts change, the others beat. */
static void one_period(size_t turn)
{
    size_t changing = n_names / 10, beating = n_names - changing;
    bind_one();
    for (size_t i = 0; i < HEARTBEATS; i++, load.heartbeats++)
        put_slice(changing + load.heartbeats % beating, 1);
    if (turn % CHANGES_PERIOD)
        return;
    put_slice(load.changes % changing, 2 + (int64_t)(load.changes / changing));
    load.changes++;
}

/* A window with the load, or without; the first period of either is not
 * measured, but for what is under way at its end. */
static void run_window(bool with_load)
{
    int64_t begun = clock_ms(), next = begun;
    atomic_store(&loaded, with_load);
    for (size_t turn = 0; next - begun < WINDOW_MS; turn++) {
        if (with_load)
            one_period(turn);
        next += PERIOD_MS;
        int64_t left = next - clock_ms();
        const struct timespec nap = {0, left > 0 ? left * 1000000 : 0};
        (void)nanosleep(&nap, NULL);
    }
    if (with_load)
        load.ms += clock_ms() - begun;
}

/* --- the figures ----------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(struct asker *askers, bool with_load)
{
    size_t n = 0;
    double *all = xcalloc((size_t)CONNECTIONS * TIMES_MAX, sizeof *all);
    for (size_t i = 0; i < CONNECTIONS; i++)
        for (size_t k = 0; k < askers[i].n[with_load]; k++)
            all[n++] = askers[i].times[with_load][k];
    if (!n)
        die("no filter was answered");
    qsort(all, n, sizeof *all, compare);
    double seconds = with_load && load.ms ? (double)load.ms / 1e3 : 1;
    printf("%s\t%zu\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\n",
           with_load ? "mixed" : "idle", n, all[n / 2], all[n - n / 100 - 1],
           with_load ? (double)load.binds / seconds : 0,
           with_load ? (double)load.heartbeats / seconds : 0,
           with_load ? (double)load.changes / seconds : 0);
    free(all);
}

static struct http_client *client(uint16_t port)
{
    struct http_client *http;
    struct error err = {0};
    char url[64];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u", port);
    if (http_client_create(url, CALL_MS, &http, &err))
        die(err.text);
    return http;
}

int main(int argc, char **argv)
{
    static struct asker askers[CONNECTIONS];
    if (argc < 4)
        die("usage: bench_mixed SCHEDULER-PORT PUBLISH-PORT NAMES [WINDOWS]");
    scheduler = (uint16_t)strtoul(argv[1], NULL, 10);
    publish = (uint16_t)strtoul(argv[2], NULL, 10);
    n_names = strtoul(argv[3], NULL, 10);
    size_t windows = argc > 4 ? strtoul(argv[4], NULL, 10) : 4;
    if (n_names < 100 || !windows)
        die("100 names at least, and a window");
    load.scheduler = client(scheduler);
    load.publish = client(publish);
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        struct asker *a = &askers[i];
        a->number = i;
        str_init(&a->request, BODY_MAX);
        for (int k = 0; k < 2; k++)
            a->times[k] = xcalloc(TIMES_MAX, sizeof **a->times);
        compose(a);
        if (pthread_create(&a->thread, NULL, ask, a))
            abort();
    }
    for (size_t i = 0; i < windows; i++) {
        run_window(false);
        run_window(true);
    }
    atomic_store(&over, true);
    for (unsigned i = 0; i < CONNECTIONS; i++)
        (void)pthread_join(askers[i].thread, NULL);
    report(askers, false);
    report(askers, true);
    return 0;
}
