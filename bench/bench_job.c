/* filter for every pod of a job of 512 pairs on an idle fleet, through the
 * code that serves HTTP: a request that names all hosts in, an answer out.
 * `job-first` is the first pod, whose filter plans the job; `job-pod` the
 * others, before anybody is bound; `job-bound` all of them once the first is,
 * and places are held for the rest.
 *
 *   bench_job    lines of WHAT, HOSTS, P50 and P99 in microseconds of processor
 *                time
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/judge/job.h"
#include "extender/serve/routes_scheduler.h"
#include "extender/state/draft.h"
#include "extender/wire/scratch.h"
#include "lib/base/mem.h"
#include "tests/lib/cpu_clock.h"
#include "tests/lib/sim/benchhost.h"
#include "tests/lib/sim/simfleet.h"

enum { PAIRS = 512, ROUNDS = 20, BODY_MAX = 4 << 20 };

struct bench {
    struct app app;
    size_t n_hosts;
    struct snapshot *idle;
    struct str body, out;
};

static void put_host(struct draft *d, size_t i)
{
    char name[16];
    (void)snprintf(name, sizeof name, "host%05zu", i);
    cleanup_with(topo) struct topo *topo = benchhost_create(name, i);
    simfleet_put(d, topo);
}

static void write_request(struct bench *b, int pair)
{
    struct str *out = &b->body;
    str_reset(out);
    str_addf(out,
             "{\"Pod\":{\"metadata\":{\"name\":\"solver-%d\",\"namespace\":"
             "\"bench\",\"uid\":\"uid-%d\",\"labels\":{\"biga.dev/role\":"
             "\"host\",\"biga.dev/job\":\"solver\",\"biga.dev/pair\":\"%d\"},"
             "\"annotations\":{\"biga.dev/size\":\"%d\"}},\"spec\":{"
             "\"containers\":[]}},\"Nodes\":null,\"NodeNames\":[",
             pair, pair, pair, PAIRS);
    for (size_t i = 0; i < b->n_hosts; i++)
        str_addf(out, "%s\"host%05zu\"", i ? "," : "", i);
    str_add(out, "]}");
}

/* Nanoseconds of the processor that the filter of one pod takes. */
static int64_t time_filter(struct bench *b, const struct snapshot *s, int pair)
{
    struct error err = {0};
    write_request(b, pair);
    str_reset(&b->out);
    int64_t begin = thread_cpu_ns();
    int r = scheduler_filter(&b->app, s, b->body.data, b->body.size, &b->out,
                             &err);
    int64_t took = thread_cpu_ns() - begin;
    if (r < 0 || !strstr(str_text(&b->out), "\"NodeNames\":[\"host")) {
        fprintf(stderr, "bench_job: pair %d: %s%s\n", pair, err.text,
                str_text(&b->out));
        exit(1);
    }
    return took;
}

static int compare_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void report(const char *what, size_t hosts, int64_t *took, size_t n)
{
    qsort(took, n, sizeof *took, compare_time);
    printf("%s\t%zu\t%.1f\t%.1f\n", what, hosts, (double)took[n / 2] / 1000,
           (double)took[n - 1 - n / 100] / 1000);
}

/* The snapshot in which the first pod is bound and all others have a held
 * place. */
static struct snapshot *bind_first(struct bench *b)
{
    struct demand pod;
    struct jscan scan;
    struct error err = {0};
    struct plan *plan;
    struct plan_refusal refusal;
    size_t n;
    write_request(b, 0);
    char *text = strstr(b->body.data, "{\"metadata\"");
    jscan_init(&scan, text, b->body.size - (size_t)(text - b->body.data));
    if (demand_read(&scan, &b->app.demand, &pod, &err) < 0 ||
        job_plan(NULL, b->idle, &pod, NULL, 0, NODE_NONE, &plan, &refusal) < 0)
        exit(1);
    struct draft *d = draft_create(b->idle);
    struct allocation **holds = job_holds(b->idle, &pod, plan, &n);
    for (size_t i = 0; i < n; i++)
        draft_allocate(d, holds[i]);
    free(holds);
    plan_unref(plan);
    return draft_commit(d);
}

static void measure(size_t hosts)
{
    static int64_t first[ROUNDS], pods[PAIRS - 1], bound[PAIRS];
    struct bench b = {.n_hosts = hosts};
    struct snapshot *empty = snapshot_create_empty();
    struct draft *d = draft_create(empty);
    for (size_t i = 0; i < hosts; i++)
        put_host(d, i);
    b.idle = draft_commit(d);
    snapshot_unref(empty);
    str_init(&b.body, BODY_MAX);
    str_init(&b.out, BODY_MAX);
    demand_config_default(&b.app.demand);
    b.app.max_candidates = 16;
    b.app.scratch = scratch_pool_create();
    for (size_t i = 0; i < ROUNDS; i++) {
        plans_destroy(b.app.plans);
        b.app.plans = plans_create();
        first[i] = time_filter(&b, b.idle, 0);
    }
    for (int i = 1; i < PAIRS; i++)
        pods[i - 1] = time_filter(&b, b.idle, i);
    struct snapshot *held = bind_first(&b);
    for (int i = 0; i < PAIRS; i++)
        bound[i] = time_filter(&b, held, i);
    report("job-first", hosts, first, ROUNDS);
    report("job-pod", hosts, pods, PAIRS - 1);
    report("job-bound", hosts, bound, PAIRS);
    snapshot_unref(held);
    snapshot_unref(b.idle);
    plans_destroy(b.app.plans);
    scratch_pool_destroy(b.app.scratch);
    str_fini(&b.body);
    str_fini(&b.out);
}

int main(void)
{
    measure(1000);
    measure(5000);
    return 0;
}
