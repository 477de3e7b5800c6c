/* The gates' thread: pods come, go, are opened and refused, nodes publish, an
 * API server misbehaves, a leader comes and goes, somebody asks, and all of it
 * is stopped at some time, over and over, for ThreadSanitizer to watch.  After
 * each stop every pod whose gate is open has the place that it was opened for.
 *
 *   race_gate [SECONDS]
 *
 * The cluster is played here. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "extender/gate/gate_controller.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/sim/bindserver_private.h"
#include "tests/lib/sim/simstate.h"

/* What a call has begun must have been done CALL_MS after its end, also on a
 * slow machine. */
enum { N_PODS = 32, N_NODES = 4, CALL_MS = 2000, DEADLINE_MS = 3200 };

struct cluster {
    struct bindserver *server;
    struct writer *writer;
    struct fit_nodes *fit;
    struct pending_demands *demands;
    struct binder *binder;
    struct binds *binds;
    struct gate_controller *gate;
    struct demand_config demand;
    unsigned generation[N_PODS]; /* of each pod: there is none at 0 */
    atomic_bool follows, stopping;
    atomic_ulong n_told, n_shown, n_open;
    uint64_t random;
};

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "race_gate: %s: %s\n", what, why);
    abort();
}

static bool may_write(void *ctx, int64_t call_ms)
{
    struct cluster *c = ctx;
    (void)call_ms;
    return !c->follows;
}

static void tell(void *ctx, const struct demand *pod, enum events_reason reason,
                 const char *text)
{
    struct cluster *c = ctx;
    (void)pod;
    (void)reason;
    c->n_told += text[0] != '\0';
}

static void unsure(void *ctx)
{
    struct cluster *c = ctx;
    c->n_told++;
}

/* --- pods --------------------------------------------------------------- */

struct name {
    char pod[16], uid[32];
};

static struct name name_of(const struct cluster *c, unsigned i)
{
    struct name n;
    (void)snprintf(n.pod, sizeof n.pod, "p%u", i);
    (void)snprintf(n.uid, sizeof n.uid, "uid-%u-%u", i, c->generation[i]);
    return n;
}

/* As the watch shows it: a pair, or a job of two of them. */
static void show(struct cluster *c, unsigned i, bool open, bool refused)
{
    struct pod_listener l = gate_controller_listener(c->gate);
    struct name n = name_of(c, i);
    struct kube_pod pod;
    struct error err = {0};
    cleanup_free char *json = xasprintf(
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"%s\","
        "\"labels\":{\"biga.dev/role\":\"%s\",\"biga.dev/job\":\"j%u\","
        "\"biga.dev/pair\":\"%u\"},\"annotations\":{\"biga.dev/size\":\"2\","
        "\"biga.dev/exclusive\":\"true\"%s},\"ownerReferences\":[{\"kind\":"
        "\"Job\",\"uid\":\"u\",\"controller\":true}]},\"spec\":{\"priority\":"
        "%u,\"containers\":[]%s},\"status\":{%s}}",
        n.pod, n.uid, i % 2 ? "xpu" : "host", i / 4, i / 2 % 2,
        open ? ",\"biga.dev/allocation\":\"{}\"" : "", i / 4,
        open ? "" : ",\"schedulingGates\":[{\"name\":\"biga.dev/place\"}]",
        refused ? "\"conditions\":[{\"type\":\"PodScheduled\",\"status\":"
                  "\"False\",\"reason\":\"Unschedulable\"}]"
                : "");
    if (kube_pod_read(json, strlen(json), &c->demand, &pod, &err) < 0 ||
        pod.broken)
        die("pod", pod.why.text);
    l.put(l.ctx, &pod);
    c->n_shown++;
    c->n_open += open;
}

static void end_pod(struct cluster *c, unsigned i)
{
    struct pod_listener l = gate_controller_listener(c->gate);
    struct name n = name_of(c, i);
    if (bindserver_is_there(c->server, n.pod))
        bindserver_delete(c->server, n.pod);
    l.gone(l.ctx, n.uid);
    struct writer_op op = {
        .kind = WRITER_FREE, .namespace = "ns", .pod = n.pod, .uid = n.uid};
    (void)writer_run(c->writer, &op); /* it may have had none */
}

static void make_pod(struct cluster *c, unsigned i)
{
    c->generation[i]++;
    struct name n = name_of(c, i);
    bindserver_gated(c->server, n.pod, n.uid);
    show(c, i, false, false);
}

/* Whatever has become of a pod, or becomes of it now. */
static void follow_pod(struct cluster *c, unsigned i)
{
    char pin[64];
    unsigned dice = sim_random(&c->random) % 16;
    if (c->generation[i] == 0)
        make_pod(c, i);
    struct name n = name_of(c, i);
    if (dice == 0 || !bindserver_is_there(c->server, n.pod)) {
        end_pod(c, i);
        make_pod(c, i);
    } else {
        bool open = bindserver_pin(c->server, n.pod, pin);
        show(c, i, open, open && dice < 3);
    }
}

/* --- threads ------------------------------------------------------------ */

static void *watch(void *ctx)
{
    struct cluster *c = ctx;
    while (!c->stopping) {
        struct pod_listener l = gate_controller_listener(c->gate);
        follow_pod(c, sim_random(&c->random) % N_PODS);
        c->follows = sim_random(&c->random) % 16 == 0;
        if (sim_random(&c->random) % 8 == 0)
            l.listed(l.ctx);
        if (!c->follows)
            gate_controller_wake(c->gate);
        (void)usleep(1000);
    }
    c->follows = false;
    return NULL;
}

static void *publish(void *ctx)
{
    struct cluster *c = ctx;
    uint64_t random = 7;
    for (int64_t at = 2; !c->stopping; at++) {
        char name[8];
        unsigned i = sim_random(&random) % N_NODES;
        (void)snprintf(name, sizeof name, "n%u", i);
        (void)sim_publish(c->writer, name, 5 + (at & 1), "boot", at);
        cleanup_free char *json = xasprintf(
            "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"unschedulable\":%s},"
            "\"status\":{\"allocatable\":{\"cpu\":\"8\",\"pods\":\"9\"}}}",
            name, sim_random(&random) % 8 ? "false" : "true");
        (void)fit_nodes_put(c->fit, json, strlen(json), NULL);
        (void)usleep(20000);
    }
    return NULL;
}

static void *ask(void *ctx)
{
    struct cluster *c = ctx;
    uint64_t random = 9;
    cleanup_str struct str out = STR_INIT(1 << 20);
    while (!c->stopping) {
        struct demand d;
        char name[16];
        (void)snprintf(name, sizeof name, "p%u", sim_random(&random) % N_PODS);
        str_reset(&out);
        (void)gate_controller_explain(c->gate, "ns", name, &d, &out);
        gate_controller_write(c->gate, &out);
        (void)usleep(2000);
    }
    return NULL;
}

/* --- one life ----------------------------------------------------------- */

static void start(struct cluster *c)
{
    struct error err = {0};
    const struct binder_config b = {.kube = bindserver_config(c->server),
                                    .may_bind = may_write,
                                    .ctx = c,
                                    .call_ms = CALL_MS,
                                    .deadline_ms = DEADLINE_MS};
    if (binder_start(&b, &c->binder, &err) < 0)
        die("binder", err.text);
    c->binds = binds_create(&(struct binds_config){.writer = c->writer,
                                                   .binder = c->binder,
                                                   .tell = tell,
                                                   .unsure = unsure,
                                                   .ctx = c});
    const struct gate_config g = {.kube = bindserver_config(c->server),
                                  .writer = c->writer,
                                  .fit = c->fit,
                                  .demands = c->demands,
                                  .binds = c->binds,
                                  .tell = tell,
                                  .may_write = may_write,
                                  .ctx = c};
    if (gate_controller_start(&g, &c->gate, &err) < 0)
        die("gates", err.text);
    for (unsigned i = 0; i < N_PODS; i++)
        follow_pod(c, i);
}

static void stop(struct cluster *c)
{
    gate_controller_quiesce(c->gate);
    binder_stop(c->binder);
    /* the next binder knows nothing of these calls and opens for another node */
    for (unsigned i = 0; i < N_PODS; i++)
        bindserver_carry_out_late(c->server, name_of(c, i).pod);
    gate_controller_destroy(c->gate);
    binds_destroy(c->binds);
}

static void check(struct cluster *c)
{
    struct writer_op op = {.kind = WRITER_LIST_SLICES,
                           .limit = 1,
                           .out = STR_INIT(STR_MAX_DEFAULT)};
    (void)writer_run(c->writer, &op); /* what was posted is done */
    str_fini(&op.out);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(c->writer);
    cleanup_str struct str why = STR_INIT(4096);
    if (!sim_check(s, &why))
        die("promised twice", str_text(&why));
    for (unsigned i = 0; i < N_PODS; i++) {
        char pin[64];
        struct name n = name_of(c, i);
        if (!bindserver_is_there(c->server, n.pod) ||
            !bindserver_pin(c->server, n.pod, pin))
            continue;
        const struct allocation *a = alloc_index_find_uid(s->allocations,
                                                          n.uid);
        if (strcmp(a ? a->node : "", pin) != 0)
            die(n.pod, a ? "opened for another node" : "lost");
    }
}

/* Most are short; some are longer than it takes until nobody knows what has
 * become of a call. */
static void run(struct cluster *c, unsigned nth)
{
    void *(*const mains[])(void *) = {watch, publish, ask};
    pthread_t threads[ARRAY_LEN(mains)];
    unsigned ms = nth % 4 == 3 ? 5000 : 100 + sim_random(&c->random) % 900;
    start(c);
    c->stopping = false;
    for (size_t i = 0; i < ARRAY_LEN(mains); i++)
        if (pthread_create(&threads[i], NULL, mains[i], c))
            die("pthread_create", "");
    (void)usleep(ms * 1000);
    c->stopping = true;
    for (size_t i = 0; i < ARRAY_LEN(mains); i++)
        (void)pthread_join(threads[i], NULL);
    stop(c);
    check(c);
}

int main(int argc, char **argv)
{
    int64_t seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 6;
    struct cluster c = {.random = 3};
    struct writer_config w = {.store = STORE_KUBERNETES, .fresh_ms = 60000};
    struct error err = {0};
    unsigned n = 0;
    log_set_level((enum log_level)(LOG_ERROR + 1));
    demand_config_default(&c.demand);
    c.server = bindserver_start();
    bindserver_chaos(c.server, 200, 3);
    if (writer_start(&w, &c.writer, &err) < 0)
        die("writer", err.text);
    c.fit = fit_nodes_create();
    c.demands = pending_demands_create();
    for (int64_t until_ms = clock_ms() + seconds * 1000; clock_ms() < until_ms;
         n++)
        run(&c, n);
    (void)printf("race_gate: %u lives, %lu shown, %lu of them open, %lu told\n",
                 n, c.n_shown, c.n_open, c.n_told);
    fit_nodes_destroy(c.fit);
    pending_demands_destroy(c.demands);
    writer_stop(c.writer);
    bindserver_stop(c.server);
    return 0;
}
