/* What it costs to look: the lists, pages and metrics of a fleet of 100,000
 * hosts with 65,535 allocations, through the code that serves HTTP, without a
 * connection.  Before each request the state changes: some pods leave and come,
 * and one tells how it fares.  Beside each answer, as its floor: the same bytes
 * written from a list of lines that are ready.
 *
 *   bench_views [HOSTS [PAIRS [ROUNDS [WHAT]]]]
 *       lines of WHAT, HOSTS, median and largest CPU time of a request, median
 *       of the floor, all in microseconds, and the bytes of the answer
 *
 * WHAT: only rows whose name begins so; "-": for each target of a line of the
 * standard input, the state changes, and the answer is printed, as who sees all
 * and as who sees two namespaces gets it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "extender/admit/sight.h"
#include "extender/app/scoped.h"
#include "extender/console/routes_console.h"
#include "extender/gauge/fleet_tally.h"
#include "extender/judge/schedule.h"
#include "extender/keep/writer_private.h"
#include "extender/pods/applied_private.h"
#include "extender/pods/pending_demands.h"
#include "extender/run/embedded.h"
#include "extender/serve/app.h"
#include "extender/serve/routes_ask.h"
#include "extender/serve/routes_pods.h"
#include "extender/serve/routes_read.h"
#include "lib/base/mem.h"
#include "lib/http/httpd_private.h"
#include "lib/io/clock.h"
#include "model/topo/topo_hardware.h"
#include "tests/lib/sim/benchhost.h"
#include "tests/lib/sim/benchpods.h"
#include "tests/lib/sim/simfleet.h"
#include "tests/lib/sim/simstate.h"

enum {
    HOSTS = 100000,
    PAIRS = 65535,
    JOB_PAIRS = 64,
    NAMESPACES = 16,
    LEAF_HOSTS = 32,
    SPINE_LEAVES = 16,
    STALE_EVERY = 1000,
    ROUNDS = 15,
    ROUNDS_MAX = 1000,
    CHANGES = 16, /* pods that leave and come before each request */
    REPLY_MAX = 64 << 20,
};

struct bench {
    size_t n_hosts, n_pairs, rounds, turn;
    struct app app;
    struct embedded *embedded;
    struct cluster_ps *cluster;
    struct scope *scope;
};

static void die(const char *what, const char *text)
{
    fprintf(stderr, "bench_views: %s: %s\n", what, text);
    exit(1);
}

/* --- the state ---------------------------------------------------------- */

/* The pod of pair `i`, which has one card. */
static struct demand pod_of(size_t i)
{
    size_t job = i / JOB_PAIRS;
    struct demand d = {.role = ROLE_HOST,
                       .pair = (int32_t)(i % JOB_PAIRS),
                       .size = JOB_PAIRS,
                       .align = RELATION_SYS,
                       .prefer_align = RELATION_PIX,
                       .within = DEMAND_ANYWHERE,
                       .prefer_within = DEMAND_ANYWHERE,
                       .has_card_need = true,
                       .card_cores = 4,
                       .cards = 1,
                       .pair_cards = 1,
                       .gpus = 1,
                       .pair_gpus = 1};
    (void)snprintf(d.namespace, sizeof d.namespace, "team-%02zu",
                   job % NAMESPACES);
    (void)snprintf(d.job, sizeof d.job, "job-%05zu", job);
    (void)snprintf(d.name, sizeof d.name, "job-%05zu-%zu", job, i % JOB_PAIRS);
    (void)snprintf(d.uid, sizeof d.uid, "00000000-0000-4000-8000-%012zu", i);
    return d;
}

/* Where it is: jobs are together, and spread over the fleet. */
static size_t host_of(const struct bench *b, size_t i)
{
    return i * (b->n_hosts / (b->n_pairs + 1) + 1) % b->n_hosts;
}

static void place(struct draft *d, const struct bench *b, size_t i)
{
    char name[32];
    struct demand pod = pod_of(i);
    struct choice choice;
    (void)snprintf(name, sizeof name, "host%06zu", host_of(b, i));
    const struct node *node = draft_node(d, name);
    if (decide(&node->state, &pod, 0, 0xffff, &choice) != REASON_NONE)
        die(name, "is full");
    struct allocation *a = schedule_place(&pod, node, &choice);
    a->number = i + 1;
    draft_allocate(d, a);
}

/* Nodes of the same hardware share it, as those that publish theirs do. */
static void put_host(struct draft *d, struct hardware_table *hardware, size_t i)
{
    char name[32];
    (void)snprintf(name, sizeof name, "host%06zu", i);
    cleanup_with(topo) struct topo *topo = benchhost_create(name, i);
    hardware_table_share(hardware, topo);
    simfleet_put(d, topo);
    if (i % STALE_EVERY == STALE_EVERY - 1)
        draft_set_status(d, name, NODE_STALE);
}

static struct snapshot *make_fleet(const struct bench *b)
{
    cleanup_with(snapshot) struct snapshot *empty = snapshot_create_empty();
    struct draft *d = draft_create(empty);
    struct fabric *fabric = benchhost_fabric(b->n_hosts, 6, LEAF_HOSTS,
                                             SPINE_LEAVES);
    struct hardware_table *hardware = hardware_table_create();
    for (size_t i = 0; i < b->n_hosts; i++)
        put_host(d, hardware, i);
    draft_set_fabric(d, fabric);
    fabric_unref(fabric);
    hardware_table_destroy(hardware);
    cleanup_with(snapshot) struct snapshot *idle = draft_commit(d);
    d = draft_create(idle);
    for (size_t i = 0; i < b->n_pairs; i++)
        place(d, b, i);
    return draft_commit(d);
}

static void tell_pod(const struct bench *b, size_t i)
{
    char node[32];
    const struct demand pod = pod_of(i);
    (void)snprintf(node, sizeof node, "host%06zu", host_of(b, i));
    benchpods_put(b->cluster, &pod, node);
}

static void put_pod(struct pod_set *set, size_t i)
{
    struct applied_pod *p = xcalloc(1, sizeof *p);
    atomic_init(&p->refs, 1);
    p->demand = pod_of(i);
    (void)snprintf(p->uid, sizeof p->uid, "%.36s", p->demand.uid);
    p->namespace = xstrdup(p->demand.namespace);
    p->name = xstrdup(p->demand.name);
    p->json = xstrdup("{}");
    p->size = 2;
    p->number = i + 1;
    p->status = pod_status_create(0);
    p->status->state = POD_STATE_RUNNING;
    p->status->ready = true;
    pod_set_put(set, p);
    applied_pod_unref(p);
}

/* Pods that wait: alone and small, alone and too large, and of jobs. */
static void put_waiting(struct bench *b)
{
    static const struct {
        const char *name, *job;
        int32_t size;
        uint8_t cards;
    } pods[] = {{"small", "", 1, 1},
                {"large", "", 1, 16},
                {"wide-0", "wide", 64, 1},
                {"vast-0", "vast", 512, 8}};
    for (size_t i = 0; i < ARRAY_LEN(pods); i++) {
        struct demand d = pod_of(0);
        (void)snprintf(d.name, sizeof d.name, "%s", pods[i].name);
        (void)snprintf(d.uid, sizeof d.uid, "uid-%s", pods[i].name);
        (void)snprintf(d.job, sizeof d.job, "%s", pods[i].job);
        d.size = pods[i].size;
        d.cards = d.pair_cards = pods[i].cards;
        pending_demands_put(b->app.demands, &d);
    }
}

static void begin(struct bench *b)
{
    static struct demand_config config;
    struct app *app = &b->app;
    demand_config_default(&config);
    b->embedded = embedded_create(&config);
    app->writer = sim_writer_with(NULL, b->embedded->store.applied);
    snapshot_unref(app->writer->current);
    app->writer->current = make_fleet(b);
    app->listener.metrics = app_metrics_create();
    app->demand = config;
    app->demands = pending_demands_create();
    app->plans = plans_create();
    app->achieved = achieved_book_create();
    app->scoped = scoped_create();
    app->tally = fleet_tally_create();
    atomic_store(&app->ready, true);
    b->embedded->store.writer = app->writer;
    b->embedded->store.metrics = app->listener.metrics;
    b->embedded->store.demands = app->demands;
    b->embedded->store.plans = app->plans;
    app->source = embedded_source(b->embedded);
    struct pod_set *set = applied_writable(b->embedded->store.applied);
    b->cluster = benchpods_create();
    for (size_t i = 0; i < b->n_pairs; i++) {
        put_pod(set, i);
        tell_pod(b, i);
    }
    put_waiting(b);
    b->scope = scope_create((const char *const[]){"team-03", "team-07"}, 2);
}

static void end(struct bench *b)
{
    struct app *app = &b->app;
    scope_unref(b->scope);
    scoped_destroy(app->scoped);
    fleet_tally_destroy(app->tally);
    writer_stop(app->writer);
    benchpods_destroy(b->cluster);
    embedded_destroy(b->embedded);
    achieved_book_destroy(app->achieved);
    plans_destroy(app->plans);
    pending_demands_destroy(app->demands);
    metrics_destroy(app->listener.metrics);
}

/* Pods leave and come back, and one of them fares anew. */
static void change(struct bench *b)
{
    struct writer *w = b->app.writer;
    struct draft *d = draft_create(w->current);
    struct demand pod;
    for (size_t i = 0; i < CHANGES; i++) {
        size_t at = (b->turn * CHANGES + i) * 101 % b->n_pairs;
        pod = pod_of(at);
        (void)draft_release(d, pod.namespace, pod.name);
        place(d, b, at);
    }
    struct snapshot *old = w->current;
    w->current = draft_commit(d);
    snapshot_unref(old);
    cleanup_with(pod_status) struct pod_status *status = pod_status_create(0);
    status->state = POD_STATE_RUNNING;
    status->ready = true;
    status->attempt = (uint32_t)++b->turn;
    tell_pod(b, b->turn % b->n_pairs);
    (void)applied_set_status(b->embedded->store.applied, pod.uid, status);
}

/* --- a request ------------------------------------------------------------ */

static const char *no_header(const struct httpd_request *rq, const char *name)
{
    (void)rq;
    (void)name;
    return NULL;
}

static const struct httpd_route *route_of(struct httpd_request *rq)
{
    const struct {
        const struct httpd_route *routes;
        size_t n;
    } tables[] = {{read_routes, n_read_routes},
                  {ask_routes, n_ask_routes},
                  {pods_routes, n_pods_routes},
                  {console_routes, n_console_routes}};
    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        for (size_t i = 0; i < tables[t].n; i++)
            if ((tables[t].routes[i].methods & HTTPD_GET) &&
                uri_match(&rq->uri, tables[t].routes[i].path, rq->args))
                return &tables[t].routes[i];
    return NULL;
}

static void request_end(struct httpd_request *rq)
{
    for (unsigned i = 0; i < rq->n_headers; i++)
        free(rq->headers[i].value);
    if (rq->kept)
        rq->drop_kept(rq->kept);
    str_fini(&rq->reply);
    free(rq);
}

/* `ret_ns`: what it took of this thread's time. */
static struct httpd_request *ask(struct bench *b, const char *target,
                                 bool scoped, int64_t *ret_ns)
{
    static const struct transport transport = {.header = no_header};
    static struct httpd httpd; /* without a connection */
    struct httpd_request *rq = xcalloc(1, sizeof *rq);
    struct timespec from, to;
    rq->h = &httpd;
    rq->transport = &transport;
    rq->method = HTTPD_GET;
    rq->status = 200;
    rq->reply = STR_INIT(REPLY_MAX);
    if (uri_parse(target, &rq->uri, &rq->err) < 0)
        die(target, rq->err.text);
    if (scoped)
        sight_set_scope(rq, b->scope);
    rq->route = route_of(rq);
    if (!rq->route)
        die(target, "there is no route");
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    rq->route->handle(rq, &b->app);
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    *ret_ns = (int64_t)(to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec -
              from.tv_nsec;
    return rq;
}

/* The same bytes, line by line. */
static int64_t write_ready(const struct str *reply)
{
    size_t n = 0, cap = 0;
    cleanup_free struct jtext *lines = NULL;
    cleanup_str struct str out = STR_INIT(REPLY_MAX);
    struct timespec from, to;
    for (const char *p = str_text(reply), *end = p + reply->size; p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop + 1 : end;
        lines = xgrow(lines, n, &cap, sizeof *lines);
        lines[n++] = (struct jtext){p, (size_t)(stop - p), false};
        p = stop;
    }
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    for (size_t i = 0; i < n; i++)
        str_add_n(&out, lines[i].data, lines[i].size);
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    return (int64_t)(to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec -
           from.tv_nsec;
}

/* --- rows ----------------------------------------------------------------- */

static int compare_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Targets: %zu is a job, or a host, in the middle or near the end. */
static const struct row {
    const char *what, *target;
    enum part { PLAIN, JOB, LAST_JOB, HOST, LAST_HOST } part;
    /* who asks; or where pods are as an API server tells of them */
    enum whom { ALL, SCOPED, CLUSTER } whom;
} rows[] = {
    {"why-placed", "/v1/why?pod=team-00/job-00000-5", PLAIN, ALL},
    {"why-fits", "/v1/why?pod=team-00/small", PLAIN, ALL},
    {"why-not", "/v1/why?pod=team-00/large", PLAIN, ALL},
    {"why-job", "/v1/why?job=team-00/wide", PLAIN, ALL},
    {"why-job-not", "/v1/why?job=team-00/vast", PLAIN, ALL},
    {"jobs-first", "/v1/jobs?limit=100", PLAIN, ALL},
    {"jobs-middle", "/v1/jobs?limit=100&continue=team-07/job-%05zu", JOB, ALL},
    {"jobs-last", "/v1/jobs?limit=100&continue=team-14/job-%05zu", LAST_JOB,
     ALL},
    {"jobs-namespace", "/v1/jobs?limit=100&namespace=team-09", PLAIN, ALL},
    {"jobs-running", "/v1/jobs?limit=100&state=Running", PLAIN, ALL},
    {"jobs-failed", "/v1/jobs?limit=100&state=Failed", PLAIN, ALL},
    {"job", "/v1/jobs/team-00/job-00000", PLAIN, ALL},
    {"cluster-jobs-first", "/v1/jobs?limit=100", PLAIN, CLUSTER},
    {"cluster-jobs-middle", "/v1/jobs?limit=100&continue=team-07/job-%05zu",
     JOB, CLUSTER},
    {"cluster-jobs-running", "/v1/jobs?limit=100&state=Running", PLAIN,
     CLUSTER},
    {"cluster-jobs-pending", "/v1/jobs?limit=100&state=Pending", PLAIN,
     CLUSTER},
    {"cluster-jobs-failed", "/v1/jobs?limit=100&state=Failed", PLAIN, CLUSTER},
    {"nodes-first", "/v1/nodes?limit=100", PLAIN, ALL},
    {"nodes-middle", "/v1/nodes?limit=100&continue=host%06zu", HOST, ALL},
    {"nodes-last", "/v1/nodes?limit=100&continue=host%06zu", LAST_HOST, ALL},
    {"nodes-stale", "/v1/nodes?limit=100&status=stale", PLAIN, ALL},
    {"nodes-lost", "/v1/nodes?limit=100&status=lost", PLAIN, ALL},
    {"cards-last", "/v1/cards?limit=100&continue=host%06zu/", LAST_HOST, ALL},
    {"cards-node", "/v1/cards?limit=100&node=host%06zu", LAST_HOST, ALL},
    {"allocations-first", "/v1/allocations?limit=100", PLAIN, ALL},
    {"allocations-middle",
     "/v1/allocations?limit=100&continue=team-07/job-%05zu-0", JOB, ALL},
    {"allocations-last",
     "/v1/allocations?limit=100&continue=team-15/job-%05zu-0", LAST_JOB, ALL},
    {"allocations-namespace", "/v1/allocations?limit=100&namespace=team-09",
     PLAIN, ALL},
    {"allocations-node", "/v1/allocations?limit=100&node=host%06zu", HOST, ALL},
    {"pods-first", "/v1/pods?limit=100", PLAIN, ALL},
    {"pods-middle", "/v1/pods?limit=100&continue=team-07/job-%05zu-0", JOB,
     ALL},
    {"pods-last", "/v1/pods?limit=100&continue=team-15/job-%05zu-0", LAST_JOB,
     ALL},
    {"pods-namespace", "/v1/pods?limit=100&namespace=team-09", PLAIN, ALL},
    {"pods-job", "/v1/pods?limit=100&namespace=team-00&job=job-00000", PLAIN,
     ALL},
    {"pods-node", "/v1/pods?limit=100&node=host%06zu", HOST, ALL},
    {"pods-failed", "/v1/pods?limit=100&state=failed", PLAIN, ALL},
    {"pending", "/v1/pending?limit=100", PLAIN, ALL},
    {"metrics", "/metrics", PLAIN, ALL},
    {"readyz", "/readyz", PLAIN, ALL},
    {"ui-jobs-first", "/ui/jobs", PLAIN, ALL},
    {"ui-jobs-last", "/ui/jobs?page=10", PLAIN, ALL},
    {"ui-job", "/ui/jobs/team-00/job-00000", PLAIN, ALL},
    {"ui-nodes-first", "/ui/nodes", PLAIN, ALL},
    {"ui-nodes-last", "/ui/nodes?page=1000", PLAIN, ALL},
    {"ui-nodes-name", "/ui/nodes?name=%06zu", LAST_HOST, ALL},
    {"ui-nodes-stale", "/ui/nodes?status=stale", PLAIN, ALL},
    {"ui-leaf", "/ui/leaves/leaf0001", PLAIN, ALL},
    {"ui-pending", "/ui/pending", PLAIN, ALL},
    {"ui-search", "/ui/search?q=job-00900", PLAIN, ALL},
    {"ui-search-nodes", "/ui/search?q=host09", PLAIN, ALL},
    {"ui-search-none", "/ui/search?q=no-such-thing", PLAIN, ALL},
    {"ui-search-serial", "/ui/search?q=%06zu", LAST_HOST, ALL},
    {"ui-fleet", "/", PLAIN, ALL},
    {"scoped-jobs", "/v1/jobs?limit=100", PLAIN, SCOPED},
    {"scoped-allocations", "/v1/allocations?limit=100", PLAIN, SCOPED},
    {"scoped-pods", "/v1/pods?limit=100", PLAIN, SCOPED},
    {"scoped-nodes", "/v1/nodes?limit=100&continue=host%06zu", HOST, SCOPED},
    {"scoped-ui-jobs", "/ui/jobs", PLAIN, SCOPED},
    {"scoped-ui-fleet", "/", PLAIN, SCOPED},
};

static void print_row(const struct bench *b, const char *what, int64_t *took,
                      int64_t *floors, size_t size)
{
    qsort(took, b->rounds, sizeof *took, compare_ns);
    qsort(floors, b->rounds, sizeof *floors, compare_ns);
    printf("%s\t%zu\t%.1f\t%.1f\t%.1f\t%zu\n", what, b->n_hosts,
           (double)took[b->rounds / 2] / 1000,
           (double)took[b->rounds - 1] / 1000,
           (double)floors[b->rounds / 2] / 1000, size);
    (void)fflush(stdout);
}

static void measure(struct bench *b, const struct row *row, const char *target)
{
    static int64_t took[ROUNDS_MAX], floors[ROUNDS_MAX];
    const struct pod_source own = b->app.source;
    size_t size = 0;
    if (row->whom == CLUSTER)
        b->app.source = benchpods_source(b->cluster);
    for (size_t i = 0; i < b->rounds; i++) {
        change(b);
        struct httpd_request *rq = ask(b, target, row->whom == SCOPED,
                                       &took[i]);
        if (rq->status != 200)
            die(target, str_text(&rq->reply));
        floors[i] = write_ready(&rq->reply);
        size = rq->reply.size;
        request_end(rq);
    }
    b->app.source = own;
    print_row(b, row->what, took, floors, size);
}

/* What the thread does that keeps ready what looks begin with: all of it at the
 * start, which is the largest, and what has changed since. */
static void measure_keep(struct bench *b)
{
    static int64_t took[ROUNDS_MAX], floors[ROUNDS_MAX];
    struct timespec from, to;
    for (size_t i = 0; i < b->rounds; i++) {
        change(b);
        clock_set_fake((int64_t)(i + 1) * 60000);
        (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
        scoped_keep(b->app.scoped, b->app.writer->current);
        fleet_tally_keep(b->app.tally, b->app.writer->current, b->app.achieved);
        (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
        took[i] = (int64_t)(to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec -
                  from.tv_nsec;
    }
    clock_set_fake(-1);
    print_row(b, "keep", took, floors, 0);
}

static void measure_row(struct bench *b, const struct row *row)
{
    const size_t jobs = (b->n_pairs + JOB_PAIRS - 1) / JOB_PAIRS;
    const size_t numbers[] = {0, jobs / 2, jobs - jobs / 32, b->n_hosts / 2,
                              b->n_hosts - 120};
    char target[256];
    const char *form = row->target, *at = strchr(form, '%');
    (void)snprintf(target, sizeof target, "%s", form);
    if (at && strncmp(at, "%05zu", 5) == 0)
        (void)snprintf(target, sizeof target, "%.*s%05zu%s", (int)(at - form),
                       form, numbers[row->part], at + 5);
    else if (at)
        (void)snprintf(target, sizeof target, "%.*s%06zu%s", (int)(at - form),
                       form, numbers[row->part], at + 5);
    measure(b, row, target);
}

static size_t number(const char *text, size_t usual, size_t max)
{
    size_t n = text ? strtoull(text, NULL, 10) : usual;
    return n < 1 ? 1 : n > max ? max : n;
}

/* To compare what two programs answer. */
static void answer_input(struct bench *b)
{
    char target[4096];
    int64_t ignored;
    while (fgets(target, sizeof target, stdin)) {
        target[strcspn(target, "\n")] = '\0';
        change(b);
        for (int scoped = 0; scoped < 2; scoped++) {
            struct httpd_request *rq = ask(b, target, scoped, &ignored);
            printf("%s\t%u\t%d\n", target, rq->status, scoped);
            (void)fwrite(str_text(&rq->reply), 1, rq->reply.size, stdout);
            request_end(rq);
        }
    }
}

int main(int argc, char **argv)
{
    const char *args[4] = {NULL};
    static struct bench b;
    for (int i = 1; i < argc && i <= 4; i++)
        args[i - 1] = argv[i];
    b.n_hosts = number(args[0], HOSTS, 999999);
    b.n_pairs = number(args[1], PAIRS, APPLIED_MAX);
    b.rounds = number(args[2], ROUNDS, ROUNDS_MAX);
    begin(&b);
    if (args[3] && strcmp(args[3], "-") == 0)
        answer_input(&b);
    if (!args[3] || strcmp(args[3], "keep") == 0)
        measure_keep(&b);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (!args[3] || strncmp(rows[i].what, args[3], strlen(args[3])) == 0)
            measure_row(&b, &rows[i]);
    end(&b);
    return 0;
}
