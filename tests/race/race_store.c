/* Publishing, filtering, binding and expiry at once, for some seconds, for
 * ThreadSanitizer to watch; and a look at every snapshot on the way: nothing
 * is ever promised twice.
 *
 *   race_store [SECONDS]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "extender/judge/schedule.h"
#include "extender/keep/writer.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/tmpdir.h"

enum { N_NODES = 300, N_CARDS = 8, N_BINDERS = 2, N_FILTERS = 2, BEST = 16 };

static struct writer *writer;
static atomic_bool stopping;
static atomic_ulong n_filters, n_binds, n_refused, n_published, n_checked;

struct worker {
    pthread_t thread;
    void (*step)(struct worker *w);
    uint64_t random;
    unsigned number;
    unsigned n_pods;
};

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "race_store: %s: %s\n", what, why);
    abort();
}

static void node_name(unsigned i, char name[16])
{
    (void)snprintf(name, 16, "node%04u", i);
}

static struct demand random_pod(struct worker *w, const char *name)
{
    static const enum pod_role roles[] = {ROLE_HOST, ROLE_HOST, ROLE_XPU,
                                          ROLE_SERVICE};
    uint64_t *r = &w->random;
    char job[16] = "";
    if (sim_random(r) % 2)
        (void)snprintf(job, sizeof job, "job%u", sim_random(r) % 50);
    enum pod_role role = roles[sim_random(r) % 4];
    struct demand d = sim_pod(name, role, job, (int)(sim_random(r) % 4));
    if (sim_random(r) % 4)
        d = sim_need(d, 1 + sim_random(r) % 12, 1024 * (sim_random(r) % 16));
    d.exclusive = sim_random(r) % 8 == 0;
    d.cards = d.pair_cards = (uint8_t)(role == ROLE_HOST ? 1 + sim_random(r) % 2
                                                         : 1);
    if (role == ROLE_HOST)
        d.gpus = (uint8_t)(sim_random(r) % 2);
    return d;
}

/* As a scheduler: the best node of all. */
static int32_t filter(const struct snapshot *s, const struct demand *d)
{
    cleanup_free int32_t *candidates = xcalloc(s->n_nodes + 1,
                                               sizeof *candidates);
    uint32_t best[BEST];
    size_t fitting = 0;
    struct schedule schedule;
    for (size_t i = 0; i < s->n_nodes; i++)
        candidates[i] = (int32_t)i;
    schedule_init(&schedule, s, d);
    size_t n = schedule_best(&schedule, candidates, s->n_nodes, BEST, best,
                             &fitting);
    atomic_fetch_add(&n_filters, 1);
    return n ? candidates[best[0]] : NODE_NONE;
}

static void step_filter(struct worker *w)
{
    struct demand d = random_pod(w, "filtered");
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(writer);
    (void)filter(s, &d); /* only its effects on shared memory matter */
}

/* As POST /v1/simulate: bind on a draft that nobody else sees. */
static void step_simulate(struct worker *w)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(writer);
    cleanup_with(draft) struct draft *draft = draft_create(s);
    for (int i = 0; i < 4; i++) {
        struct demand d = random_pod(w, "simulated");
        struct schedule schedule;
        struct choice choice;
        cleanup_with(snapshot) struct snapshot *now = draft_peek(draft);
        int32_t index = filter(now, &d);
        schedule_init(&schedule, now, &d);
        if (schedule_choose(&schedule, index, &choice) == REASON_NONE)
            draft_allocate(draft,
                           schedule_allocation(&schedule, index, &choice));
    }
}

static void step_bind(struct worker *w)
{
    char name[32], node[DEMAND_NAME_MAX + 1] = "node0000";
    (void)snprintf(name, sizeof name, "pod-%u-%u", w->number,
                   sim_random(&w->random) % 3000);
    if (sim_random(&w->random) % 3 == 0) {
        (void)sim_release(writer, name); /* often there is none */
        return;
    }
    struct demand d = random_pod(w, name);
    (void)snprintf(d.uid, sizeof d.uid, "uid-%u-%u", w->number, w->n_pods++);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(writer);
    int32_t index = filter(s, &d);
    if (index != NODE_NONE)
        (void)snprintf(node, sizeof node, "%s",
                       snapshot_node(s, (size_t)index)->name);
    if (sim_bind(writer, &d, node, NULL, NULL) == 0)
        atomic_fetch_add(&n_binds, 1);
    else
        atomic_fetch_add(&n_refused, 1);
}

static void step_publish(struct worker *w)
{
    char node[16], slice[SLICE_NAME_MAX + 1];
    uint64_t version;
    unsigned i = sim_random(&w->random) % N_NODES;
    node_name(i, node);
    slice_name(node, 0, slice);
    if (sim_random(&w->random) % 50 == 0) {
        struct writer_op op = {.kind = WRITER_DELETE_SLICE, .name = slice};
        (void)writer_run(writer, &op); /* it may be gone already */
    }
    unsigned n_cards = sim_random(&w->random) % 16 ? N_CARDS : N_CARDS / 2;
    cleanup_free char *json = sim_slice(node, n_cards, "boot", 1, 0);
    if (writer_heartbeat(
            writer, &(struct slice_cache_body){slice, NULL, json, strlen(json)},
            &version))
        return;
    (void)sim_publish(writer, node, n_cards, "boot", 1 + (int64_t)w->n_pods++);
    atomic_fetch_add(&n_published, 1);
}

static void step_expire(struct worker *w)
{
    static int64_t now_ms = 1000000; /* this thread's alone */
    (void)w;
    now_ms += 2000;
    clock_set_fake(now_ms);
    writer_sweep(writer);
    usleep(5000);
}

static void step_policy(struct worker *w)
{
    static const char *const texts[] = {
        "{\"services\":[{\"namespace\":\"ns\",\"name\":\"job1\",\"cores\":2}]}",
        "{\"services\":[{\"namespace\":\"ns\",\"name\":\"job2\","
        "\"nodes\":\"node0[01]*\",\"memoryMiB\":4096}]}",
        "{\"quotas\":[{\"namespace\":\"ns\",\"cards\":2000,"
        "\"cardMemoryMiB\":9000000}]}",
        "{}"};
    struct error err = {0};
    cleanup_with(policy) struct policy *p = NULL;
    const char *text = texts[sim_random(&w->random) % ARRAY_LEN(texts)];
    if (policy_read(text, strlen(text), &p, &err) < 0)
        die("a policy", err.text);
    struct writer_op op = {.kind = WRITER_SET_POLICY, .policy = p};
    (void)writer_run(writer, &op); /* it has no result */
    usleep(50000);
}

static void step_check(struct worker *w)
{
    cleanup_str struct str why = STR_INIT(4096);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(writer);
    (void)w;
    if (!sim_check(s, &why))
        die("a snapshot", str_text(&why));
    atomic_fetch_add(&n_checked, 1);
    usleep(20000);
}

static void *work(void *ctx)
{
    struct worker *w = ctx;
    while (!atomic_load(&stopping))
        w->step(w);
    return NULL;
}

static void publish_all(void)
{
    for (unsigned i = 0; i < N_NODES; i++) {
        char node[16];
        node_name(i, node);
        if (sim_publish(writer, node, N_CARDS, "boot", 1) != 0)
            die(node, "cannot be published");
    }
}

int main(int argc, char **argv)
{
    static struct worker workers[N_BINDERS + N_FILTERS + 5];
    long seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 4;
    size_t n = 0;
    log_set_level(LOG_WARN);
    clock_set_fake(1000000);
    char *dir = tmpdir_create();
    writer = sim_writer(dir);
    publish_all();

    for (int i = 0; i < N_BINDERS; i++)
        workers[n++].step = step_bind;
    for (int i = 0; i < N_FILTERS; i++)
        workers[n++].step = step_filter;
    workers[n++].step = step_simulate;
    workers[n++].step = step_publish;
    workers[n++].step = step_expire;
    workers[n++].step = step_policy;
    workers[n++].step = step_check;
    for (size_t i = 0; i < n; i++) {
        workers[i].number = (unsigned)i;
        workers[i].random = i;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            die("pthread_create", "failed");
    }
    (void)sleep((unsigned)seconds); /* nothing interrupts it */
    atomic_store(&stopping, true);
    for (size_t i = 0; i < n; i++)
        (void)pthread_join(workers[i].thread, NULL); /* each was started */

    writer_stop(writer);
    tmpdir_remove(dir);
    (void)printf("race_store: %lu filters, %lu binds, %lu refused, "
                 "%lu published, %lu snapshots checked\n",
                 atomic_load(&n_filters), atomic_load(&n_binds),
                 atomic_load(&n_refused), atomic_load(&n_published),
                 atomic_load(&n_checked));
    return 0;
}
