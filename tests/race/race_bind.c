/* Bind requests from many callers, an API server that misbehaves, a watch
 * that tells what the pods have, and a leader that comes and goes, for some
 * seconds, for ThreadSanitizer to watch.  At the end, with everything heard,
 * what is promised is what the pods have.
 *
 *   race_bind [SECONDS]
 *
 * The cluster is played here. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "extender/leader/binds.h"
#include "extender/pods/pending_demands.h"
#include "extender/serve/routes_private.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/bindserver.h"
#include "tests/lib/sim/extender.h"
#include "tests/lib/sim/simstate.h"

/* Whoever waits is a caller of its own.  What a call has begun must have been
 * done CALL_MS after its end, also on a slow machine. */
enum { N_CALLERS = 24, N_PODS = 64, CALL_MS = 2000, DEADLINE_MS = 3200 };

struct cluster {
    struct test_extender x;
    struct bindserver *server;
    struct binder *binder;
    struct binds *binds;
    atomic_bool follows, stopping;
    atomic_ulong n_asked, n_bound, n_heard, n_told;
    atomic_uint unsure; /* binds gave up */
};

static bool leads(void *ctx, char ret_leader[POD_SOURCE_LEADER_MAX])
{
    struct cluster *c = ctx;
    (void)snprintf(ret_leader, POD_SOURCE_LEADER_MAX, "another");
    return !c->follows;
}

static void unsure(void *ctx)
{
    struct cluster *c = ctx;
    atomic_fetch_add(&c->unsure, 1);
}

static void tell(void *ctx, const struct demand *pod, enum events_reason reason,
                 const char *text)
{
    struct cluster *c = ctx;
    (void)pod;
    (void)reason;
    c->n_told += text[0] != '\0';
}

static bool may_bind(void *ctx, int64_t call_ms)
{
    struct cluster *c = ctx;
    (void)call_ms;
    return !c->follows;
}

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "race_bind: %s: %s\n", what, why);
    abort();
}

static void pod_name(unsigned i, char name[16])
{
    (void)snprintf(name, 16, "p%u", i);
}

/* Asks for one pod after another. */
struct caller {
    struct cluster *c;
    pthread_t thread;
    uint64_t random;
};

static void ask(struct cluster *c, const char *pod, const char *node)
{
    struct raw_reply r = {.head = STR_INIT(4096), .body = STR_INIT(4096)};
    cleanup_free char *body = xasprintf(
        "{\"PodName\":\"%s\",\"PodNamespace\":\"ns\",\"PodUID\":\"uid-%s\","
        "\"Node\":\"%s\"}",
        pod, pod, node);
    if (raw_call(c->x.port, "POST", "/bind", "", body, &r) != 200)
        die("bind", str_text(&r.body));
    c->n_asked++;
    c->n_bound += strcmp(str_text(&r.body), "{\"Error\":\"\"}") == 0;
    raw_reply_fini(&r);
}

static void *call_often(void *ctx)
{
    struct caller *a = ctx;
    while (!a->c->stopping) {
        char pod[16];
        pod_name(sim_random(&a->random) % N_PODS, pod);
        ask(a->c, pod, sim_random(&a->random) % 3 ? "n1" : "n2");
    }
    return NULL;
}

/* What the watch would tell of a pod. */
static void hear(struct cluster *c, const char *pod)
{
    char node[64] = "";
    cleanup_free char *note = NULL;
    cleanup_with(allocation) struct allocation *a = NULL;
    struct error err = {0};
    (void)bindserver_node(c->server, pod, node, &note);
    if (!node[0])
        return;
    if (allocation_decode(note, strlen(note), &a, &err) < 0)
        die(pod, err.text);
    struct writer_op op = {.kind = WRITER_ADOPT, .allocation = a};
    if (writer_run(c->x.app.writer, &op) < 0)
        die(pod, op.error.text);
    c->n_heard++;
}

static void *watch(void *ctx)
{
    struct cluster *c = ctx;
    uint64_t random = 5;
    while (!c->stopping) {
        char pod[16], uid[24];
        pod_name(sim_random(&random) % N_PODS, pod);
        (void)snprintf(uid, sizeof uid, "uid-%s", pod);
        hear(c, pod);
        c->follows = sim_random(&random) % 8 == 0;
        (void)binder_is_busy(c->binder, uid);
        (void)binder_n_busy(c->binder);
        (void)usleep(3000);
    }
    c->follows = false;
    return NULL;
}

/* Everything is over, and has been heard. */
static void check(struct cluster *c)
{
    unsigned n = 0;
    for (int i = 0; i < 60000 && binds_count(c->binds); i++)
        (void)usleep(1000);
    for (unsigned i = 0; i < N_PODS; i++) {
        char pod[16];
        pod_name(i, pod);
        hear(c, pod);
    }
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(c->x.app.writer);
    cleanup_str struct str why = STR_INIT(4096);
    if (!sim_check(s, &why))
        die("promised twice", str_text(&why));
    for (unsigned i = 0; i < N_PODS; i++) {
        char pod[16], node[64] = "";
        pod_name(i, pod);
        (void)bindserver_node(c->server, pod, node, NULL);
        const struct allocation *a = alloc_index_find(s->allocations, "ns",
                                                      pod);
        if (strcmp(a ? a->node : "", node) != 0)
            die(pod, node[0] ? "lost" : "promised, and not bound");
        n += a != NULL;
    }
    if (bindserver_n_bound(c->server) > 1)
        die("bound twice", "");
    (void)printf("race_bind: %lu asked, %lu answered as bound, %lu heard, %u "
                 "pods bound\n",
                 c->n_asked, c->n_bound, c->n_heard, n);
}

static void bind_begin(void *ctx, const char *uid)
{
    struct cluster *c = ctx;
    binds_begin(c->binds, uid);
}

static void bind_post(void *ctx, struct pod_bind *b)
{
    struct cluster *c = ctx;
    binds_post(c->binds, b);
}

static void bind_refused(void *ctx, const struct pod_bind *b,
                         const char *reason)
{
    struct cluster *c = ctx;
    binds_refuse(c->binds, b, reason);
}

static const struct pod_source_ops ops = {.leads = leads,
                                          .bind_begin = bind_begin,
                                          .bind = bind_post,
                                          .bind_refused = bind_refused};

static void start_binds(struct cluster *c)
{
    c->binds = binds_create(&(struct binds_config){.writer = c->x.app.writer,
                                                   .binder = c->binder,
                                                   .tell = tell,
                                                   .unsure = unsure,
                                                   .ctx = c});
    c->x.app.source = (struct pod_source){&ops, c};
}

static void start(struct cluster *c)
{
    static const struct httpd_route routes[] = {
        {HTTPD_POST, "/bind", handle_bind, 65536, "bind"}};
    struct error err = {0};
    c->server = bindserver_start();
    const struct binder_config config = {.kube = bindserver_config(c->server),
                                         .may_bind = may_bind,
                                         .ctx = c,
                                         .call_ms = CALL_MS,
                                         .deadline_ms = DEADLINE_MS};
    test_extender_start(&c->x, routes, ARRAY_LEN(routes), NULL);
    if (binder_start(&config, &c->binder, &err) < 0)
        die("binder", err.text);
    start_binds(c);
    (void)sim_publish(c->x.app.writer, "n1", 16, "boot", 1);
    (void)sim_publish(c->x.app.writer, "n2", 16, "boot", 1);
    for (unsigned i = 0; i < N_PODS; i++) {
        char name[16];
        pod_name(i, name);
        struct demand d = sim_pod(name, ROLE_HOST, "", 0);
        bindserver_pod(c->server, d.name, d.uid);
        pending_demands_put(c->x.app.demands, &d);
    }
    bindserver_chaos(c->server, 300, 3);
}

static void stop(struct cluster *c)
{
    httpd_stop(c->x.httpd);
    c->x.httpd = NULL;
    binder_stop(c->binder);
    binds_destroy(c->binds);
    test_extender_stop(&c->x);
    bindserver_stop(c->server);
}

/* Some seconds with pods that are all new. */
static void run(int64_t ms)
{
    struct cluster c = {.stopping = false};
    struct caller callers[N_CALLERS];
    pthread_t watcher;
    start(&c);
    if (pthread_create(&watcher, NULL, watch, &c))
        die("pthread_create", "watch");
    for (unsigned i = 0; i < N_CALLERS; i++) {
        callers[i] = (struct caller){.c = &c, .random = i + 1};
        if (pthread_create(&callers[i].thread, NULL, call_often, &callers[i]))
            die("pthread_create", "caller");
    }
    (void)usleep((useconds_t)ms * 1000);
    c.stopping = true;
    for (unsigned i = 0; i < N_CALLERS; i++)
        (void)pthread_join(callers[i].thread, NULL);
    (void)pthread_join(watcher, NULL);
    check(&c);
    stop(&c);
}

int main(int argc, char **argv)
{
    int64_t seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 6;
    log_set_level(LOG_ERROR);
    int64_t until_ms = clock_ms() + seconds * 1000;
    while (clock_ms() < until_ms)
        run(2000);
    return 0;
}
