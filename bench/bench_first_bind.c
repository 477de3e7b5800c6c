/* The first bind of a job, which holds a place for each of its pairs, through
 * the writer and its store; how long another bind waits meanwhile; and how the
 * whole job is released.
 *
 *   bench_first_bind DIR [PAIRS…]     lines of WHAT, PAIRS, MS
 *
 * `first-bind` is the CPU time of the process from the bind until its answer,
 * after a filter that has planned the job; `first-bind-stale` the same when the
 * cluster has changed since the filter; `bind-waits` the longest that another
 * bind kept waiting for the writer's CPU time while binds of single pods come
 * one after the other; `release` the CPU time of releasing every pod of a job.
 * Time on the disk is in none of them. */
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "extender/judge/job.h"
#include "extender/keep/writer.h"
#include "lib/base/mem.h"
#include "model/slice/slice.h"
#include "tests/lib/sim/benchhost.h"
#include "tests/lib/sim/simstate.h"

enum { ROUNDS = 3, POSTED = 256, SPARE = 64, RELEASE_MAX = 4096 };

struct bench {
    struct writer *w;
    struct plans *plans;
    sem_t done;
    size_t n_pairs, n_hosts;
    unsigned round;
};

static void die(const char *what, const struct error *err)
{
    (void)fprintf(stderr, "bench_first_bind: %s: %s\n", what, err->text);
    exit(1);
}

static double cpu_ms(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t); /* these clocks are there */
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void on_done(struct writer_op *op)
{
    struct bench *b = op->ctx;
    (void)sem_post(&b->done); /* never overflows */
}

static void post(struct bench *b, struct writer_op *op)
{
    op->done = on_done;
    op->ctx = b;
    writer_post(b->w, op);
}

static void wait_for(struct bench *b, size_t n)
{
    while (n > 0)
        if (sem_wait(&b->done) == 0)
            n--;
}

/* --- hosts ---------------------------------------------------------------- */

static void host_name(size_t i, char ret_name[16])
{
    (void)snprintf(ret_name, 16, "host%05zu", i);
}

static void publish(struct bench *b)
{
    static char names[POSTED][SLICE_NAME_MAX + 1];
    static struct writer_op ops[POSTED];
    static struct str bodies[POSTED];
    const struct slice_epoch epoch = {.boot_id = "boot", .generation = 1};
    for (size_t i = 0; i < b->n_hosts; i += POSTED) {
        size_t n = b->n_hosts - i < POSTED ? b->n_hosts - i : POSTED;
        for (size_t k = 0; k < n; k++) {
            char node[16];
            host_name(i + k, node);
            cleanup_with(topo) struct topo *t = benchhost_create(node, i + k);
            bodies[k] = STR_INIT(SLICE_BODY_MAX);
            slice_encode(t, &epoch, 0, &bodies[k]);
            slice_name(node, 0, names[k]);
            ops[k] = (struct writer_op){.kind = WRITER_PUT_SLICE,
                                        .name = names[k],
                                        .body = bodies[k].data,
                                        .body_size = bodies[k].size};
            post(b, &ops[k]);
        }
        wait_for(b, n);
        for (size_t k = 0; k < n; k++) {
            if (ops[k].result < 0)
                die("publishing", &ops[k].error);
            str_fini(&bodies[k]);
        }
    }
}

static void start(struct bench *b, const char *dir)
{
    struct error err = {0};
    cleanup_free char *state = xasprintf("%s/%zu", dir, b->n_pairs);
    b->plans = plans_create();
    const struct writer_config config = {
        .state_dir = state, .fresh_ms = 1 << 30, .plans = b->plans};
    (void)sem_init(&b->done, 0, 0); /* cannot fail with this value */
    if (writer_start(&config, &b->w, &err) < 0)
        die(state, &err);
    publish(b);
}

/* --- binds ---------------------------------------------------------------- */

static void job_name(const struct bench *b, char ret_job[32])
{
    (void)snprintf(ret_job, 32, "job%u", b->round);
}

static struct demand member(const struct bench *b, size_t pair)
{
    char name[32], job[32];
    (void)snprintf(name, sizeof name, "r%u-%zu", b->round, pair);
    job_name(b, job);
    return sim_member(name, ROLE_HOST, job, (int)pair, (int)b->n_pairs);
}

/* A host that the plan does not use. */
static void find_other(const struct snapshot *s, const struct plan *plan,
                       char ret_other[16])
{
    cleanup_free bool *used = xcalloc(s->n_nodes + 1, sizeof *used);
    size_t at = 0;
    for (uint32_t i = 0; i < plan->size; i++)
        used[plan->places[i].node] = true;
    while (used[at])
        at++; /* there are spare ones */
    (void)snprintf(ret_other, 16, "%s", snapshot_node(s, at)->name);
}

/* Where filter has the pod, which leaves the plan in the memory, and where
 * another pod goes. */
static void filter(struct bench *b, const struct demand *pod, char node[16],
                   char other[16])
{
    struct plan_refusal refusal;
    cleanup_with(plan) struct plan *plan = NULL;
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(b->w);
    if (job_plan(b->plans, s, pod, NULL, 0, NODE_NONE, &plan, &refusal) < 0)
        die("planning", &(struct error){.text = "no room"});
    size_t at = (size_t)plan->places[job_rank(pod)].node;
    (void)snprintf(node, 16, "%s", snapshot_node(s, at)->name);
    find_other(s, plan, other);
}

static struct writer_op bind_op(const struct demand *pod, const char *node)
{
    return (struct writer_op){.kind = WRITER_BIND,
                              .node = node,
                              .demand = pod,
                              .out = STR_INIT(1 << 20)};
}

static void check(struct writer_op *op, const char *what)
{
    if (op->result < 0)
        die(what, &op->error);
    if (op->kind == WRITER_BIND)
        str_fini(&op->out);
}

static void bind_other(struct bench *b, const char *name, const char *node)
{
    struct demand pod = sim_pod(name, ROLE_HOST, "", 0);
    struct writer_op op = bind_op(&pod, node);
    post(b, &op);
    wait_for(b, 1);
    check(&op, "binding another");
}

static void release(struct bench *b, const char *name)
{
    struct writer_op op = {
        .kind = WRITER_RELEASE, .namespace = "ns", .pod = name};
    post(b, &op);
    wait_for(b, 1);
    check(&op, "releasing");
}

/* All pods of the job, and what is held for it. */
static void release_job(struct bench *b)
{
    char name[32];
    const struct job_name job = {"ns", name};
    struct writer_op op = {
        .kind = WRITER_RELEASE_JOB, .job = &job, .number = UINT64_MAX};
    job_name(b, name);
    post(b, &op);
    wait_for(b, 1);
    check(&op, "releasing a job");
}

/* The CPU time of the first bind of a job, which is released then. */
static double time_bind(struct bench *b, bool stale)
{
    char node[16], other[16];
    b->round++;
    struct demand pod = member(b, 0);
    filter(b, &pod, node, other);
    if (stale)
        bind_other(b, "stale", other);
    struct writer_op op = bind_op(&pod, node);
    double began = cpu_ms(CLOCK_PROCESS_CPUTIME_ID);
    post(b, &op);
    wait_for(b, 1);
    double took = cpu_ms(CLOCK_PROCESS_CPUTIME_ID) - began;
    check(&op, "the first bind");
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(b->w);
    if (alloc_index_size(s->allocations) < b->n_pairs)
        die("the first bind", &(struct error){.text = "holds no places"});
    release_job(b);
    if (stale)
        release(b, "stale");
    return took;
}

/* --- others -------------------------------------------------------------- */

/* Binds one after the other, posted by the writer's own thread. */
struct others {
    struct bench *b;
    struct writer_op op;
    struct demand pod;
    char node[16];
    unsigned n;
    bool ends;
    double since_ms, longest_ms;
    sem_t begun, over;
};

static void next_other(struct writer_op *op)
{
    struct others *o = op->ctx;
    double now_ms = cpu_ms(CLOCK_THREAD_CPUTIME_ID); /* the writer's */
    if (o->n++ == 0)
        (void)sem_post(&o->begun); /* never overflows */
    else if (now_ms - o->since_ms > o->longest_ms)
        o->longest_ms = now_ms - o->since_ms;
    o->since_ms = now_ms;
    if (op->result < 0)
        die("binding another", &op->error);
    str_fini(&op->out);
    if (__atomic_load_n(&o->ends, __ATOMIC_ACQUIRE)) {
        (void)sem_post(&o->over); /* never overflows */
        return;
    }
    /* the pod before it has ended, and this one has its name */
    (void)snprintf(o->pod.uid, sizeof o->pod.uid, "uid-%u", o->n);
    o->op = bind_op(&o->pod, o->node);
    o->op.done = next_other;
    o->op.ctx = o;
    writer_post(o->b->w, &o->op);
}

static double time_wait(struct bench *b)
{
    char node[16];
    b->round++;
    struct demand pod = member(b, 0);
    struct others o = {.b = b, .pod = sim_pod("other", ROLE_HOST, "", 0)};
    (void)sem_init(&o.begun, 0, 0); /* cannot fail with this value */
    (void)sem_init(&o.over, 0, 0);  /* the same */
    filter(b, &pod, node, o.node);
    o.op = bind_op(&o.pod, o.node);
    o.op.done = next_other;
    o.op.ctx = &o;
    writer_post(b->w, &o.op);
    while (sem_wait(&o.begun) != 0)
        ;
    struct writer_op op = bind_op(&pod, node);
    post(b, &op);
    wait_for(b, 1);
    check(&op, "the first bind");
    __atomic_store_n(&o.ends, true, __ATOMIC_RELEASE);
    while (sem_wait(&o.over) != 0)
        ;
    release_job(b);
    release(b, "other");
    return o.longest_ms;
}

/* --- release ------------------------------------------------------------- */

static double time_release(struct bench *b)
{
    char node[16], other[16];
    size_t n = b->n_pairs;
    b->round++;
    for (size_t i = 0; i < n; i++) {
        struct demand pod = member(b, i);
        filter(b, &pod, node, other);
        struct writer_op op = bind_op(&pod, node);
        post(b, &op);
        wait_for(b, 1);
        check(&op, "binding a member");
    }
    double began = cpu_ms(CLOCK_PROCESS_CPUTIME_ID);
    release_job(b);
    double took = cpu_ms(CLOCK_PROCESS_CPUTIME_ID) - began;
    return took;
}

/* ------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *what, size_t pairs, double *ms, size_t n)
{
    qsort(ms, n, sizeof *ms, compare);
    printf("%s\t%zu\t%.2f\n", what, pairs, ms[n / 2]);
    (void)fflush(stdout); /* whoever reads it sees progress */
}

static void measure(const char *dir, size_t pairs)
{
    struct bench b = {.n_pairs = pairs,
                      .n_hosts = pairs / BENCHHOST_CARDS + SPARE};
    double fresh[ROUNDS], stale[ROUNDS], waits[ROUNDS];
    if (b.n_hosts < 1000)
        b.n_hosts = 1000;
    start(&b, dir);
    (void)time_bind(&b, false); /* what is done once only */
    for (size_t i = 0; i < ROUNDS; i++) {
        fresh[i] = time_bind(&b, false);
        stale[i] = time_bind(&b, true);
        waits[i] = time_wait(&b);
    }
    report("first-bind", pairs, fresh, ROUNDS);
    report("first-bind-stale", pairs, stale, ROUNDS);
    report("bind-waits", pairs, waits, ROUNDS);
    if (pairs <= RELEASE_MAX) {
        double ms = time_release(&b);
        report("release", pairs, &ms, 1);
    }
    writer_stop(b.w);
    plans_destroy(b.plans);
    (void)sem_destroy(&b.done); /* nobody waits */
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs("usage: bench_first_bind DIR [PAIRS…]\n", stderr);
        return 2;
    }
    if (argc == 2) {
        measure(argv[1], 512);
        measure(argv[1], 4096);
        measure(argv[1], 65535);
    }
    for (int i = 2; i < argc; i++)
        measure(argv[1], strtoul(argv[i], NULL, 10));
    return 0;
}
