/* The bind verb in a cluster: what is decided here becomes true in an API
 * server that misbehaves.  The cluster itself is played here. */
#include "extender/serve/routes_private.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "extender/keep/writer_private.h"
#include "extender/leader/binder_private.h"
#include "extender/leader/binds.h"
#include "extender/pods/pending_demands.h"
#include "extender/serve/routes_scheduler.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/bindserver.h"
#include "tests/lib/sim/extender.h"
#include "tests/lib/sim/simstate.h"

/* Where time has to run out, it is CALL_MS and DEADLINE_MS; elsewhere nobody
 * may be late because the machine is. */
enum { CALL_MS = 800, DEADLINE_MS = 1300, PATIENCE = 60000, CALM_MS = 600000 };

struct cluster {
    struct test_extender x;
    struct bindserver *server;
    struct binder *binder;
    struct binds *binds;
    bool closed; /* the last reply ended its connection */
    bool follows;
    struct demand found; /* by the watch; no name: nothing */
    atomic_uint told[EVENTS_REASONS];
    atomic_uint unsure; /* binds gave up */
    atomic_uint bound;
};

static bool leads(void *ctx, char ret_leader[POD_SOURCE_LEADER_MAX])
{
    struct cluster *c = ctx;
    (void)snprintf(ret_leader, POD_SOURCE_LEADER_MAX, "biga-extender-1_77");
    return !c->follows;
}

static bool find_demand(void *ctx, const char *uid, struct demand *ret_demand)
{
    struct cluster *c = ctx;
    if (strcmp(c->found.uid, uid) != 0)
        return false;
    *ret_demand = c->found;
    return true;
}

static void unsure(void *ctx)
{
    struct cluster *c = ctx;
    atomic_fetch_add(&c->unsure, 1);
}

static void bound(void *ctx, const struct demand *pod)
{
    struct cluster *c = ctx;
    cr_expect(pod->uid[0]);
    atomic_fetch_add(&c->bound, 1);
}

static void tell(void *ctx, const struct demand *pod, enum events_reason reason,
                 const char *text)
{
    struct cluster *c = ctx;
    cr_expect(pod->name[0] && text[0]);
    c->told[reason]++;
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
                                          .find_demand = find_demand,
                                          .bind_begin = bind_begin,
                                          .bind = bind_post,
                                          .bind_refused = bind_refused};

static void start_binds(struct cluster *c)
{
    c->binds = binds_create(&(struct binds_config){.writer = c->x.app.writer,
                                                   .binder = c->binder,
                                                   .tell = tell,
                                                   .bound = bound,
                                                   .unsure = unsure,
                                                   .ctx = c});
    c->x.app.source = (struct pod_source){&ops, c};
}

static void start_with(struct cluster *c, int64_t call_ms, int64_t deadline_ms)
{
    struct error err = {0};
    log_set_level(LOG_ERROR);
    *c = (struct cluster){.server = bindserver_start()};
    const struct binder_config config = {.kube = bindserver_config(c->server),
                                         .call_ms = call_ms,
                                         .deadline_ms = deadline_ms};
    test_extender_start(&c->x, scheduler_routes, n_scheduler_routes, NULL);
    cr_assert_eq(binder_start(&config, &c->binder, &err), 0, "%s", err.text);
    start_binds(c);
    cr_assert_eq(sim_publish(c->x.app.writer, "n1", 4, "boot", 1), 0);
    cr_assert_eq(sim_publish(c->x.app.writer, "n2", 4, "boot", 1), 0);
}

static void start(struct cluster *c)
{
    start_with(c, CALM_MS, CALM_MS);
}

static void start_hasty(struct cluster *c)
{
    start_with(c, CALL_MS, DEADLINE_MS);
}

/* What is asked from now on has time. */
static void calm_down(struct cluster *c)
{
    c->binder->config.deadline_ms = CALM_MS;
}

static void stop_binder(struct cluster *c)
{
    binder_stop(c->binder);
    c->binder = NULL;
}

static void stop(struct cluster *c)
{
    httpd_stop(c->x.httpd);
    c->x.httpd = NULL;
    stop_binder(c);
    cr_expect_eq(binds_count(c->binds), 0);
    binds_destroy(c->binds);
    test_extender_stop(&c->x);
    bindserver_stop(c->server);
}

/* A pod of the API server that was filtered here. */
static struct demand make_pod(struct cluster *c, const char *name)
{
    struct demand d = sim_pod(name, ROLE_HOST, "", 0);
    bindserver_pod(c->server, d.name, d.uid);
    pending_demands_put(c->x.app.demands, &d);
    return d;
}

/* What is answered: the Error's text, in the caller's buffer. */
static const char *ask(struct cluster *c, const char *pod, const char *node,
                       char text[512])
{
    struct raw_reply r = {.head = STR_INIT(4096), .body = STR_INIT(4096)};
    cleanup_free char *body = xasprintf(
        "{\"PodName\":\"%s\",\"PodNamespace\":\"ns\",\"PodUID\":\"uid-%s\","
        "\"Node\":\"%s\"}",
        pod, pod, node);
    (void)snprintf(text, 512, "?");
    cr_expect_eq(raw_call(c->x.port, "POST", "/bind", "", body, &r), 200);
    (void)sscanf(str_text(&r.body), "{\"Error\":\"%511[^\"]", text);
    if (strcmp(str_text(&r.body), "{\"Error\":\"\"}") == 0)
        text[0] = '\0';
    char ends[32];
    c->closed = strcmp(raw_header(&r, "Connection", ends, sizeof ends),
                       "close") == 0;
    raw_reply_fini(&r);
    return text;
}

static bool has(struct cluster *c, const char *pod, const char *node)
{
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(c->x.app.writer);
    const struct allocation *a = alloc_index_find(s->allocations, "ns", pod);
    return a && strcmp(a->node, node) == 0;
}

static void await_no_bind(struct cluster *c)
{
    for (int i = 0; i < PATIENCE && binds_count(c->binds); i++)
        (void)usleep(1000);
    /* what they have posted is done, too */
    struct writer_op op = {.kind = WRITER_HEARD, .node = "n1"};
    cr_assert_eq(writer_run(c->x.app.writer, &op), 0);
}

static void expect_calls(struct cluster *c, const char *wanted)
{
    cleanup_free char *calls = bindserver_calls(c->server);
    cr_expect_str_eq(calls, wanted);
}

#define FAULTS(...) ((enum bindserver_fault[]){__VA_ARGS__})

Test(routes_bind, binds_in_the_api_server)
{
    struct cluster c;
    char text[512], node[64];
    cleanup_free char *note = NULL;
    cleanup_str struct str json = STR_INIT(1 << 20);
    start(&c);
    (void)make_pod(&c, "p1");
    cr_expect_str_eq(ask(&c, "p1", "n1", text), "");
    cr_expect_not(c.closed);
    cr_assert(bindserver_node(c.server, "p1", node, &note));
    cr_expect_str_eq(node, "n1");
    cr_expect(has(&c, "p1", "n1"));
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(c.x.app.writer);
    allocation_encode(alloc_index_find(s->allocations, "ns", "p1"), &json);
    cr_expect_str_eq(note, str_text(&json));
    expect_calls(&c, "POST p1 n1\n");
    cr_expect_eq(c.told[EVENTS_ALIGNED], 1);
    cr_expect_str_eq(ask(&c, "p1", "n1", text), "", "again");
    cr_expect_eq(c.bound, 1);
    stop(&c);
}

Test(routes_bind, sends_to_the_leader)
{
    struct cluster c;
    char text[512];
    start(&c);
    (void)make_pod(&c, "p1");
    c.follows = true;
    cr_expect_str_eq(ask(&c, "p1", "n1", text),
                     "pod ns/p1: not the leader (biga-extender-1_77 is): try "
                     "again");
    /* a kept connection would lead here for ever */
    cr_expect(c.closed);
    cr_expect_not(has(&c, "p1", "n1"));
    expect_calls(&c, "");
    stop(&c);
}

Test(routes_bind, gives_back_what_was_refused)
{
    struct cluster c;
    char text[512];
    start(&c);
    (void)make_pod(&c, "p1");
    bindserver_faults(c.server, "POST", FAULTS(FAULT_FORBIDDEN), 1);
    (void)ask(&c, "p1", "n1", text);
    cr_expect(strstr(text, "forbidden"), "%s", text);
    cr_expect_eq(c.told[EVENTS_REFUSED], 1);
    cr_expect_eq(c.bound, 0);
    await_no_bind(&c);
    cr_expect_not(has(&c, "p1", "n1"));
    cr_expect_str_eq(ask(&c, "p1", "n2", text), "", "%s", text);
    cr_expect(has(&c, "p1", "n2"));
    stop(&c);
}

Test(routes_bind, keeps_what_may_be_bound)
{
    struct cluster c;
    char text[512];
    start_hasty(&c);
    (void)make_pod(&c, "p1");
    bindserver_faults(c.server, "POST", FAULTS(FAULT_SILENT_DONE), 1);
    bindserver_faults(c.server, "GET", FAULTS(FAULT_SILENT), 1);
    (void)ask(&c, "p1", "n1", text);
    cr_expect(strstr(text, "try again"), "%s", text);
    cr_expect(has(&c, "p1", "n1"));
    calm_down(&c);
    (void)ask(&c, "p1", "n2", text);
    cr_expect(strstr(text, "n1 already"), "%s", text);
    cr_expect_str_eq(ask(&c, "p1", "n1", text), "", "%s", text);
    await_no_bind(&c);
    cr_expect(has(&c, "p1", "n1"));
    stop_binder(&c); /* it tells of a bind when that is over already */
    cr_expect_eq(c.told[EVENTS_ALIGNED], 1, "once, whoever has asked");
    cr_expect_eq(c.bound, 1);
    cr_expect_eq(bindserver_n_bound(c.server), 1);
    stop(&c);
}

Test(routes_bind, gives_back_what_is_not_bound_in_the_end)
{
    struct cluster c;
    char text[512];
    start_hasty(&c);
    (void)make_pod(&c, "p1");
    bindserver_faults(c.server, "POST", FAULTS(FAULT_SILENT), 1);
    bindserver_always(c.server, "GET", FAULT_SILENT);
    (void)ask(&c, "p1", "n1", text);
    cr_expect(strstr(text, "try again"), "%s", text);
    cr_expect(has(&c, "p1", "n1"), "not yet");
    bindserver_always(c.server, "GET", FAULT_NONE);
    await_no_bind(&c);
    cr_expect_not(has(&c, "p1", "n1"));
    stop(&c);
}

/* It ends before that is known: the next leader has to wait. */
Test(routes_bind, says_that_it_ends_unsure)
{
    struct cluster c;
    char text[512];
    start_hasty(&c);
    (void)make_pod(&c, "p1");
    bindserver_faults(c.server, "POST", FAULTS(FAULT_SILENT), 1);
    bindserver_always(c.server, "GET", FAULT_SILENT);
    (void)ask(&c, "p1", "n1", text);
    cr_expect(strstr(text, "try again"), "%s", text);
    cr_expect_eq(c.unsure, 0);
    stop_binder(&c);
    cr_expect_eq(c.unsure, 1);
    stop(&c);
}

/* An earlier request ends, refused, while a later one binds the pod. */
Test(routes_bind, the_last_of_several_requests_gives_back)
{
    struct cluster c;
    char text[512];
    start_hasty(&c);
    (void)make_pod(&c, "p1");
    bindserver_faults(c.server, "POST", FAULTS(FAULT_SILENT), 1);
    bindserver_faults(c.server, "GET", FAULTS(FAULT_SILENT, FAULT_SILENT), 2);
    (void)ask(&c, "p1", "n1", text);
    cr_expect(strstr(text, "try again"), "%s", text);
    calm_down(&c);
    cr_expect_str_eq(ask(&c, "p1", "n1", text), "", "%s", text);
    await_no_bind(&c);
    cr_expect(has(&c, "p1", "n1"));
    stop(&c);
}

/* That a repeat is refused says nothing of the pod that is bound. */
Test(routes_bind, a_refused_repeat_gives_nothing_back)
{
    struct cluster c;
    char text[512];
    start(&c);
    (void)make_pod(&c, "p1");
    cr_expect_str_eq(ask(&c, "p1", "n1", text), "");
    bindserver_faults(c.server, "POST", FAULTS(FAULT_FORBIDDEN), 1);
    cr_expect_str_eq(ask(&c, "p1", "n1", text), "");
    expect_calls(&c, "POST p1 n1\nGET p1\n");
    await_no_bind(&c);
    cr_expect(has(&c, "p1", "n1"));
    stop(&c);
}

Test(routes_bind, binds_what_only_the_watch_has_shown)
{
    struct cluster c;
    char text[512];
    start(&c);
    c.found = sim_pod("p1", ROLE_HOST, "", 0);
    bindserver_pod(c.server, "p1", "uid-p1");
    cr_expect_str_eq(ask(&c, "p1", "n1", text), "");
    cr_expect(has(&c, "p1", "n1"));
    /* it is forgotten, and asked for once more */
    memset(&c.found, 0, sizeof c.found);
    cr_expect_str_eq(ask(&c, "p1", "n1", text), "");
    expect_calls(&c, "POST p1 n1\nGET p1\n");
    (void)ask(&c, "p2", "n1", text);
    cr_expect(strstr(text, "schedule it again"), "%s", text);
    stop(&c);
}

/* --- room that is being made ------------------------------------------------
 *
 * kube-scheduler nominates the host pod after the answer, and then asks for its
 * xPU pod: what no watch has told (there is none here) is known all the same. */

enum { CARDS = 4 };

static void fill(struct cluster *c, const char *node)
{
    char name[32];
    for (int i = 0; i < CARDS; i++) {
        (void)snprintf(name, sizeof name, "%s-low%d", node, i);
        struct demand low = sim_pod(name, ROLE_HOST, "", 0);
        low.exclusive = true;
        cr_assert_eq(sim_bind(c->x.app.writer, &low, node, NULL, NULL), 0);
    }
}

/* Whom to evict for the host pod of pair vip on these nodes: is a node among
 * the answer? */
static void preempt(struct cluster *c, const char *n1, const char *n2,
                    struct raw_reply *r)
{
    cleanup_free char *body = xasprintf(
        "{\"Pod\":{\"metadata\":{\"name\":\"vip\",\"namespace\":\"ns\","
        "\"uid\":\"uid-vip\",\"labels\":{\"biga.dev/role\":\"host\","
        "\"biga.dev/job\":\"vip\"},\"annotations\":{"
        "\"biga.dev/exclusive\":\"true\"}},"
        "\"spec\":{\"priority\":5,\"containers\":[{}]}},"
        "\"NodeNameToMetaVictims\":{%s%s%s}}",
        n1, *n1 && *n2 ? "," : "", n2);
    cr_assert_eq(raw_call(c->x.port, "POST", "/preempt", "", body, r), 200);
}

#define VICTIM(node) "\"" node "\":{\"Pods\":[{\"UID\":\"uid-" node "-low0\"}]}"

static void make_xpu(struct cluster *c)
{
    struct demand d = sim_pod("vip-xpu", ROLE_XPU, "vip", 0);
    bindserver_pod(c->server, d.name, d.uid);
    pending_demands_put(c->x.app.demands, &d);
}

static void start_full(struct cluster *c, struct raw_reply *r)
{
    *r = (struct raw_reply){.head = STR_INIT(4096), .body = STR_INIT(65536)};
    start(c);
    fill(c, "n1");
    fill(c, "n2");
    make_xpu(c);
}

static void stop_full(struct cluster *c, struct raw_reply *r)
{
    raw_reply_fini(r);
    stop(c);
}

Test(routes_bind, a_pair_goes_where_room_is_made)
{
    struct cluster c;
    struct raw_reply r;
    char text[512];
    start_full(&c, &r);
    preempt(&c, VICTIM("n1"), "", &r);
    cr_expect(strstr(str_text(&r.body), "\"n1\""), "%s", str_text(&r.body));
    cr_assert_eq(sim_release(c.x.app.writer, "n1-low0"), 0);
    cr_assert_eq(sim_release(c.x.app.writer, "n2-low0"), 0);
    (void)ask(&c, "vip-xpu", "n2", text);
    cr_expect(strstr(text, "makes room for another pod of its pair on node n1"),
              "%s", text);
    await_no_bind(&c);
    expect_calls(&c, "");
    cr_expect_str_eq(ask(&c, "vip-xpu", "n1", text), "");
    stop_full(&c, &r);
}

Test(routes_bind, a_pair_waits_until_it_is_known_where)
{
    struct cluster c;
    struct raw_reply r;
    char text[512];
    start_full(&c, &r);
    preempt(&c, VICTIM("n1"), VICTIM("n2"), &r);
    cr_expect(strstr(str_text(&r.body), "\"n1\""), "%s", str_text(&r.body));
    cr_expect(strstr(str_text(&r.body), "\"n2\""), "%s", str_text(&r.body));
    cr_assert_eq(sim_release(c.x.app.writer, "n2-low0"), 0);
    (void)ask(&c, "vip-xpu", "n2", text);
    cr_expect(strstr(text, "has not said yet on which node"), "%s", text);
    await_no_bind(&c);
    expect_calls(&c, "");
    stop_full(&c, &r);
}

struct busy_writer {
    struct writer *writer;
    sem_t begun;
};

/* The writer is busy until the answer waits for it. */
static void wait_for_offer(void *ctx)
{
    struct busy_writer *b = ctx;
    struct writer *w = b->writer;
    (void)sem_post(&b->begun);
    for (bool found = false; !found;) {
        (void)usleep(1000);
        hold_lock(&w->lock);
        for (struct writer_op *op = w->first; op && !found; op = op->next)
            found = op->kind == WRITER_OFFER;
    }
}

static void ignore(struct writer_op *op)
{
    (void)op;
}

/* The xPU pod is bound while it is searched whom to evict: nobody is, elsewhere
 * it would be in vain. */
Test(routes_bind, a_bind_that_was_faster_counts)
{
    struct cluster c;
    struct raw_reply r;
    start_full(&c, &r);
    struct demand xpu = sim_pod("vip-xpu", ROLE_XPU, "vip", 0);
    cr_assert_eq(sim_release(c.x.app.writer, "n2-low0"), 0);
    struct busy_writer busy = {.writer = c.x.app.writer};
    struct writer_op wait = {.kind = WRITER_CALL,
                             .call = wait_for_offer,
                             .ctx = &busy,
                             .done = ignore};
    struct writer_op bind = {.kind = WRITER_BIND,
                             .demand = &xpu,
                             .node = "n2",
                             .out = STR_INIT(65536),
                             .done = ignore};
    cr_assert_eq(sem_init(&busy.begun, 0, 0), 0);
    writer_post(c.x.app.writer, &wait);
    (void)sem_wait(&busy.begun); /* what comes now is for after it */
    writer_post(c.x.app.writer, &bind);
    preempt(&c, VICTIM("n1"), "", &r);
    cr_expect_str_eq(str_text(&r.body), "{\"NodeNameToMetaVictims\":{}}");
    cr_expect(has(&c, "vip-xpu", "n2"));
    str_fini(&bind.out);
    stop_full(&c, &r);
}

Test(routes_bind, binds_pods_without_a_role)
{
    struct cluster c;
    char text[512], node[64];
    cleanup_free char *note = NULL;
    start(&c);
    struct demand d = sim_pod("p1", ROLE_NONE, "", 0);
    bindserver_pod(c.server, d.name, d.uid);
    pending_demands_put(c.x.app.demands, &d);
    cr_expect_str_eq(ask(&c, "p1", "n7", text), "");
    cr_assert(bindserver_node(c.server, "p1", node, &note));
    cr_expect_str_eq(node, "n7");
    cr_expect_str_eq(note, "");
    cleanup_free char *body = bindserver_last_body(c.server);
    cr_expect_null(strstr(body, "annotations"));
    cr_expect_str_eq(ask(&c, "p1", "n7", text), "", "a repeat");
    (void)ask(&c, "p1", "n8", text);
    cr_expect(strstr(text, "n7 already"), "%s", text);
    stop(&c);
}

/* Many at once, with all that can go wrong: in the end what we promise is
 * what the API server has. */
struct asker {
    struct cluster *c;
    pthread_t thread;
    unsigned number;
};

static void *ask_often(void *ctx)
{
    struct asker *a = ctx;
    char text[512], pod[16];
    for (unsigned i = 0; i < 12; i++) {
        (void)snprintf(pod, sizeof pod, "p%u", (a->number * 5 + i) % 16);
        (void)ask(a->c, pod, (a->number + i) % 3 ? "n1" : "n2", text);
    }
    return NULL;
}

Test(routes_bind, promises_what_is_so_in_the_end, .timeout = 120)
{
    enum { N = 4 };
    struct cluster c;
    struct asker askers[N];
    unsigned n_bound = 0;
    start_hasty(&c);
    cr_assert_eq(sim_publish(c.x.app.writer, "n1", 16, "boot", 2), 0);
    cr_assert_eq(sim_publish(c.x.app.writer, "n2", 16, "boot", 2), 0);
    for (unsigned i = 0; i < 16; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "p%u", i);
        (void)make_pod(&c, name);
    }
    bindserver_chaos(c.server, 500, 11);
    for (unsigned i = 0; i < N; i++) {
        askers[i] = (struct asker){.c = &c, .number = i};
        cr_assert_eq(
            pthread_create(&askers[i].thread, NULL, ask_often, &askers[i]), 0);
    }
    for (unsigned i = 0; i < N; i++)
        (void)pthread_join(askers[i].thread, NULL);
    await_no_bind(&c);
    for (unsigned i = 0; i < 16; i++) {
        char name[16], node[64];
        cleanup_free char *note = NULL;
        (void)snprintf(name, sizeof name, "p%u", i);
        cr_assert(bindserver_node(c.server, name, node, &note));
        n_bound += node[0] != '\0';
        cr_expect_eq(has(&c, name, node), node[0] != '\0', "%s on \"%s\"", name,
                     node);
        cr_expect(node[0] || (!has(&c, name, "n1") && !has(&c, name, "n2")),
                  "%s", name);
    }
    cr_expect_gt(n_bound, 0);
    cr_expect_eq(bindserver_n_bound(c.server), 1);
    stop(&c);
}
