/* The binder against an API server that misbehaves. */
#include "extender/leader/binder_private.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "extender/state/allocation.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/sim/bindserver.h"
#include "tests/lib/sim/simstate.h"

/* Where time has to run out, it is CALL_MS and DEADLINE_MS; elsewhere nobody
 * may be late because the machine is. */
enum {
    CALL_MS = 800,
    DEADLINE_MS = 1300,
    PATIENCE_MS = 60000,
    CALM_MS = 600000,
};

static const char note[] = "{\"cards\":[\"\\\"c0\\\"\"]}";

struct asked {
    struct binding b;
    atomic_int outcome, settled; /* -1: not yet */
    int64_t told_ms, settled_ms; /* when they were */
    char reason[400];
};

struct fixture {
    struct bindserver *server;
    struct binder *binder;
    bool one_is_late;      /* the first call; those after it have time */
    atomic_uint leads_for; /* that many questions */
    atomic_int lease_ms;   /* of its lease are left */
    atomic_uint asked;
};

static bool may_bind(void *ctx, int64_t call_ms)
{
    struct fixture *f = ctx;
    cr_assert(call_ms > 0 && call_ms <= f->binder->config.call_ms);
    if (f->one_is_late)
        f->binder->config.call_ms = CALM_MS;
    unsigned nth = atomic_fetch_add(&f->asked, 1);
    return nth < f->leads_for && call_ms <= f->lease_ms;
}

static void start_with(struct fixture *f, int64_t call_ms, int64_t deadline_ms)
{
    struct error err = {0};
    log_set_level(LOG_ERROR);
    f->leads_for = UINT_MAX;
    f->asked = 0;
    f->lease_ms = INT_MAX;
    f->one_is_late = false;
    f->server = bindserver_start();
    const struct binder_config config = {.kube = bindserver_config(f->server),
                                         .may_bind = may_bind,
                                         .ctx = f,
                                         .call_ms = call_ms,
                                         .deadline_ms = deadline_ms};
    cr_assert_eq(binder_start(&config, &f->binder, &err), 0, "%s", err.text);
}

static void start(struct fixture *f)
{
    start_with(f, CALM_MS, CALM_MS);
}

/* The first call runs out of time; there is enough for others. */
static void start_timing(struct fixture *f)
{
    start_with(f, CALL_MS, CALM_MS);
    f->one_is_late = true;
}

static void start_hasty(struct fixture *f)
{
    start_with(f, CALL_MS, DEADLINE_MS);
}

static void stop(struct fixture *f)
{
    binder_stop(f->binder);
    bindserver_stop(f->server);
}

static void done(struct binding *b, enum binder_outcome outcome,
                 const char *reason)
{
    struct asked *a = b->ctx;
    (void)snprintf(a->reason, sizeof a->reason, "%s", reason);
    a->told_ms = clock_ms();
    a->outcome = (int)outcome;
}

static void settled(struct binding *b, enum binder_outcome outcome)
{
    struct asked *a = b->ctx;
    a->settled_ms = clock_ms();
    a->settled = (int)outcome;
}

static void ask_with(struct fixture *f, struct asked *a, const char *pod,
                     const char *uid, const char *node, const char *allocation)
{
    memset(a, 0, sizeof *a);
    a->outcome = a->settled = -1;
    (void)snprintf(a->b.namespace, sizeof a->b.namespace, "ns");
    (void)snprintf(a->b.name, sizeof a->b.name, "%s", pod);
    (void)snprintf(a->b.uid, sizeof a->b.uid, "%s", uid);
    (void)snprintf(a->b.node, sizeof a->b.node, "%s", node);
    a->b.allocation = allocation;
    a->b.allocation_size = strlen(allocation);
    a->b.done = done;
    a->b.settled = settled;
    a->b.ctx = a;
    cr_assert_eq(binder_post(f->binder, &a->b), 0);
}

static void ask(struct fixture *f, struct asked *a, const char *pod,
                const char *uid, const char *node)
{
    ask_with(f, a, pod, uid, node, note);
}

static int await(atomic_int *value)
{
    for (int i = 0; i < PATIENCE_MS && *value < 0; i++)
        (void)usleep(1000);
    return *value;
}

/* Pod p1 is to be bound to n1, with these faults. */
static int run(struct fixture *f, struct asked *a,
               const enum bindserver_fault *posts, size_t n_posts,
               const enum bindserver_fault *looks, size_t n_gets)
{
    bindserver_faults(f->server, "POST", posts, n_posts);
    bindserver_faults(f->server, "GET", looks, n_gets);
    ask(f, a, "p1", "u1", "n1");
    return await(&a->outcome);
}

#define RUN(f, a, posts, looks) \
    run(f, a, posts, ARRAY_LEN(posts), looks, ARRAY_LEN(looks))

static void expect_calls(struct fixture *f, const char *wanted)
{
    cleanup_free char *calls = bindserver_calls(f->server);
    cr_expect_str_eq(calls, wanted);
}

static void expect_node(struct fixture *f, const char *pod, const char *wanted)
{
    char node[64] = "(gone)";
    (void)bindserver_node(f->server, pod, node, NULL);
    cr_expect_str_eq(node, wanted);
}

#define NONE                  \
    (enum bindserver_fault[]) \
    {                         \
        FAULT_NONE            \
    }
#define FAULTS(...) ((enum bindserver_fault[]){__VA_ARGS__})

Test(binder, binds_in_one_call)
{
    struct fixture f;
    struct asked a;
    char node[64];
    cleanup_free char *allocation = NULL;
    start(&f);
    bindserver_pod(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, NONE, NONE), BINDER_BOUND);
    expect_calls(&f, "POST p1 n1\n");
    cr_expect(bindserver_node(f.server, "p1", node, &allocation));
    cr_expect_str_eq(node, "n1");
    cr_expect_str_eq(allocation, note);
    cleanup_free char *body = bindserver_last_body(f.server);
    cr_expect_str_eq(
        body, "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{"
              "\"name\":\"p1\",\"namespace\":\"ns\",\"uid\":\"u1\","
              "\"annotations\":{\"biga.dev/allocation\":"
              "\"{\\\"cards\\\":[\\\"\\\\\\\"c0\\\\\\\"\\\"]}\"}},"
              "\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\","
              "\"name\":\"n1\"}}");
    cr_expect_eq(binder_n_busy(f.binder), 0);
    cr_expect_not(binder_is_busy(f.binder, "u1"));
    stop(&f);
}

Test(binder, takes_an_earlier_bind_for_its_own)
{
    struct fixture f;
    struct asked a;
    start(&f);
    bindserver_pod(f.server, "p1", "u1");
    bindserver_bind(f.server, "p1", "n1", note);
    cr_expect_eq(RUN(&f, &a, NONE, NONE), BINDER_BOUND);
    expect_calls(&f, "POST p1 n1\nGET p1\n");
    stop(&f);
}

/* As after an update: the leader before has bound it. */
Test(binder, knows_its_deed_in_other_words)
{
    struct fixture f;
    struct asked a;
    struct demand d = sim_pod("p1", ROLE_HOST, "", 0);
    cleanup_with(allocation) struct allocation *x = allocation_create(&d, "n1");
    cleanup_str struct str ours = STR_INIT(65536), theirs = STR_INIT(65536);
    allocation_encode(x, &ours);
    str_addf(&theirs, "{ \"node\": \"n1\", %.*s", (int)ours.size,
             ours.data + 1);
    char *at = strstr(theirs.data + 16, "\"node\":\"n1\",");
    cr_assert(at);
    memset(at, ' ', strlen("\"node\":\"n1\","));
    start(&f);
    bindserver_pod(f.server, "p1", "u1");
    bindserver_bind(f.server, "p1", "n1", str_text(&theirs));
    bindserver_faults(f.server, "POST", NONE, 1);
    bindserver_faults(f.server, "GET", NONE, 1);
    ask_with(&f, &a, "p1", "u1", "n1", str_text(&ours));
    cr_expect_eq(await(&a.outcome), BINDER_BOUND, "%s", a.reason);
    stop(&f);
}

Test(binder, refuses_a_pod_that_is_bound_elsewhere)
{
    struct fixture f;
    struct asked a;
    start(&f);
    bindserver_pod(f.server, "p1", "u1");
    bindserver_bind(f.server, "p1", "n2", note);
    cr_expect_eq(RUN(&f, &a, NONE, NONE), BINDER_REFUSED);
    cr_expect(strstr(a.reason, "n2"), "%s", a.reason);
    expect_calls(&f, "POST p1 n1\nGET p1\n");
    stop(&f);
}

Test(binder, refuses_the_same_node_with_other_cards)
{
    struct fixture f;
    struct asked a;
    start(&f);
    bindserver_pod(f.server, "p1", "u1");
    bindserver_bind(f.server, "p1", "n1", "{}");
    cr_expect_eq(RUN(&f, &a, NONE, NONE), BINDER_REFUSED);
    cr_expect(strstr(a.reason, "somebody else"), "%s", a.reason);
    bindserver_bind(f.server, "p1", "n1", NULL);
    cr_expect_eq(RUN(&f, &a, NONE, NONE), BINDER_REFUSED);
    stop(&f);
}

Test(binder, refuses_what_is_gone_or_another)
{
    struct fixture f;
    struct asked a;
    start(&f);
    cr_expect_eq(RUN(&f, &a, NONE, NONE), BINDER_REFUSED);
    expect_calls(&f, "POST p1 n1\n");
    bindserver_pod(f.server, "p1", "u2");
    cr_expect_eq(RUN(&f, &a, NONE, NONE), BINDER_REFUSED);
    cr_expect(strstr(a.reason, "another pod"), "%s", a.reason);
    expect_calls(&f, "POST p1 n1\nPOST p1 n1\nGET p1\n");
    bindserver_pod(f.server, "p1", "u1");
    bindserver_deleting(f.server, "p1");
    cr_expect_eq(RUN(&f, &a, NONE, NONE), BINDER_REFUSED);
    cr_expect(strstr(a.reason, "deleted"), "%s", a.reason);
    stop(&f);
}

Test(binder, refuses_what_it_may_not)
{
    struct fixture f;
    struct asked a;
    start(&f);
    bindserver_pod(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_FORBIDDEN), NONE), BINDER_REFUSED);
    cr_expect(strstr(a.reason, "forbidden"), "%s", a.reason);
    expect_calls(&f, "POST p1 n1\n");
    expect_node(&f, "p1", "");
    stop(&f);
}

Test(binder, tries_again_after_an_error)
{
    struct fixture f;
    struct asked a;
    start(&f);
    bindserver_pod(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_ERROR, FAULT_BUSY), NONE),
                 BINDER_BOUND);
    expect_calls(&f, "POST p1 n1\nPOST p1 n1\nPOST p1 n1\n");
    stop(&f);
}

/* An error that came after the deed: the second time it is a conflict, with
 * ourselves. */
Test(binder, knows_its_own_deed_after_an_error)
{
    struct fixture f;
    struct asked a;
    start(&f);
    bindserver_pod(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_ERROR_DONE), NONE), BINDER_BOUND);
    expect_calls(&f, "POST p1 n1\nPOST p1 n1\nGET p1\n");
    cr_expect_eq(bindserver_n_bound(f.server), 1);
    stop(&f);
}

Test(binder, looks_up_what_a_timeout_leaves_open)
{
    struct fixture f;
    struct asked a;
    start_timing(&f);
    bindserver_pod(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_SILENT_DONE), NONE), BINDER_BOUND);
    expect_calls(&f, "POST p1 n1\nGET p1\n");
    stop(&f);
}

Test(binder, binds_again_after_a_timeout_without_a_deed)
{
    struct fixture f;
    struct asked a;
    start_timing(&f);
    bindserver_pod(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_SILENT), NONE), BINDER_BOUND);
    expect_calls(&f, "POST p1 n1\nGET p1\nPOST p1 n1\n");
    stop(&f);
}

Test(binder, looks_up_after_a_cut)
{
    struct fixture f;
    struct asked a;
    start(&f);
    bindserver_pod(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_CUT_DONE), FAULTS(FAULT_CUT)),
                 BINDER_BOUND);
    expect_calls(&f, "POST p1 n1\nGET p1\nGET p1\n");
    bindserver_pod(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_CUT), FAULTS(FAULT_GARBAGE)),
                 BINDER_BOUND);
    stop(&f);
}

/* No answer at all: unknown, and later what it turns out to be. */
Test(binder, says_that_it_does_not_know_and_settles_later)
{
    struct fixture f;
    struct asked a;
    start_hasty(&f);
    bindserver_pod(f.server, "p1", "u1");
    bindserver_faults(f.server, "POST", FAULTS(FAULT_SILENT_DONE), 1);
    bindserver_always(f.server, "GET", FAULT_SILENT);
    ask(&f, &a, "p1", "u1", "n1");
    cr_expect_eq(await(&a.outcome), BINDER_UNKNOWN);
    cr_expect(binder_is_busy(f.binder, "u1"));
    bindserver_always(f.server, "GET", FAULT_NONE);
    cr_expect_eq(await(&a.settled), BINDER_BOUND);
    cr_expect_not(binder_is_busy(f.binder, "u1"));
    stop(&f);
}

/* A call that is late arrives after the pod was seen unbound: nothing may be
 * said before it cannot come any more. */
Test(binder, does_not_give_up_a_call_that_is_under_way)
{
    struct fixture f;
    struct asked a;
    start_hasty(&f);
    bindserver_pod(f.server, "p1", "u1");
    f.leads_for = 1; /* so that it does not bind it again */
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_LATE_DONE), NONE), BINDER_UNKNOWN,
                 "%s", a.reason);
    cr_expect_eq(await(&a.settled), BINDER_BOUND);
    cr_expect_eq(bindserver_n_bound(f.server), 1);
    stop(&f);
}

Test(binder, settles_as_refused_when_no_call_can_arrive)
{
    const enum bindserver_fault silent[] = {FAULT_SILENT, FAULT_SILENT};
    struct fixture f;
    struct asked a;
    start_hasty(&f);
    bindserver_pod(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_SILENT), silent), BINDER_UNKNOWN);
    cr_expect_eq(await(&a.settled), BINDER_REFUSED);
    cr_expect_geq(a.settled_ms - a.told_ms, CALL_MS / 4);
    expect_node(&f, "p1", "");
    stop(&f);
}

/* It was stopped with our call unread, for longer than a call may take: when
 * it goes on it answers a look, and then does what it was asked before. */
Test(binder, one_look_after_a_silence_proves_nothing)
{
    const enum bindserver_fault silent[] = {FAULT_SILENT, FAULT_SILENT,
                                            FAULT_SILENT, FAULT_SILENT};
    struct fixture f;
    struct asked a;
    start_hasty(&f);
    bindserver_pod(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_LATE_DONE), silent), BINDER_UNKNOWN);
    cr_expect_eq(await(&a.settled), BINDER_BOUND);
    stop(&f);
}

Test(binder, waits_for_a_server_that_is_away)
{
    struct fixture f;
    struct asked a;
    start(&f);
    bindserver_pod(f.server, "p1", "u1");
    bindserver_close(f.server);
    ask(&f, &a, "p1", "u1", "n1");
    (void)usleep(100000);
    cr_expect_eq(a.outcome, -1);
    bindserver_open(f.server);
    cr_expect_eq(await(&a.outcome), BINDER_BOUND);
    stop(&f);
}

Test(binder, does_not_wait_for_ever_for_a_server)
{
    struct fixture f;
    struct asked a;
    start_hasty(&f);
    bindserver_pod(f.server, "p1", "u1");
    bindserver_close(f.server);
    ask(&f, &a, "p1", "u1", "n1");
    cr_expect_eq(await(&a.outcome), BINDER_REFUSED, "nobody has seen the call");
    stop(&f);
}

Test(binder, does_not_bind_when_it_does_not_lead)
{
    struct fixture f;
    struct asked a;
    start(&f);
    bindserver_pod(f.server, "p1", "u1");
    f.leads_for = 0;
    cr_expect_eq(RUN(&f, &a, NONE, NONE), BINDER_REFUSED);
    cr_expect(strstr(a.reason, "leader"), "%s", a.reason);
    expect_calls(&f, "");
    stop(&f);
}

/* On a busy machine it is renewed late, and no pod need be tried anew. */
Test(binder, waits_for_a_lease_that_is_renewed)
{
    struct fixture f;
    struct asked a;
    start(&f);
    bindserver_pod(f.server, "p1", "u1");
    f.lease_ms = 1;
    ask(&f, &a, "p1", "u1", "n1");
    while (f.asked < 4) /* twice each time */
        (void)usleep(1000);
    expect_calls(&f, "");
    f.lease_ms = INT_MAX;
    cr_expect_eq(await(&a.outcome), BINDER_BOUND);
    stop(&f);
}

Test(binder, does_not_wait_for_ever_for_a_lease)
{
    struct fixture f;
    struct asked a;
    start_hasty(&f);
    bindserver_pod(f.server, "p1", "u1");
    f.lease_ms = 1;
    ask(&f, &a, "p1", "u1", "n1");
    cr_expect_eq(await(&a.outcome), BINDER_REFUSED);
    cr_expect(strstr(a.reason, "lease"), "%s", a.reason);
    expect_calls(&f, "");
    stop(&f);
}

Test(binder, ends_with_what_it_does_not_know)
{
    struct fixture f;
    struct asked a;
    enum bindserver_fault errors[64]; /* more than it looks up to its end */
    for (size_t i = 0; i < ARRAY_LEN(errors); i++)
        errors[i] = FAULT_ERROR;
    start_hasty(&f);
    bindserver_pod(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_SILENT_DONE), errors),
                 BINDER_UNKNOWN);
    binder_stop(f.binder);
    cr_expect_eq(a.settled, BINDER_UNKNOWN);
    bindserver_stop(f.server);
}

/* It ends before the time for an answer does: who has asked hears both, or he
 * would take what may be bound for settled. */
Test(binder, ends_while_an_answer_is_awaited)
{
    struct fixture f;
    struct asked a;
    start_timing(&f);
    bindserver_pod(f.server, "p1", "u1");
    bindserver_faults(f.server, "POST", FAULTS(FAULT_SILENT_DONE), 1);
    bindserver_always(f.server, "GET", FAULT_ERROR);
    ask(&f, &a, "p1", "u1", "n1");
    for (bool looked = false; !looked;) {
        cleanup_free char *calls = bindserver_calls(f.server);
        looked = strstr(calls, "GET p1") != NULL;
        (void)usleep(1000);
    }
    cr_assert_eq(a.outcome, -1, "there is time");
    binder_stop(f.binder);
    cr_expect_eq(a.outcome, BINDER_UNKNOWN);
    cr_expect_eq(a.settled, BINDER_UNKNOWN);
    bindserver_stop(f.server);
}

/* Whatever happens, what is said at the end is so. */
Test(binder, is_right_in_the_end, .timeout = 120)
{
    enum { N = 120 };
    struct fixture f;
    struct asked *asked = xcalloc(N, sizeof *asked);
    unsigned n[3] = {0}, n_unknown = 0;
    start_hasty(&f);
    bindserver_chaos(f.server, 400, 7);
    for (unsigned i = 0; i < N; i++) {
        char name[16], uid[16];
        (void)snprintf(name, sizeof name, "p%u", i);
        (void)snprintf(uid, sizeof uid, "u%u", i);
        if (i % 10)
            bindserver_pod(f.server, name, uid);
        if (i % 10 == 3)
            bindserver_bind(f.server, name, "n9", "{}");
        ask(&f, &asked[i], name, uid, i % 2 ? "n1" : "n2");
        (void)usleep(20000);
    }
    for (unsigned i = 0; i < N; i++) {
        char node[64] = "";
        int outcome = await(&asked[i].outcome);
        n_unknown += outcome == BINDER_UNKNOWN;
        if (outcome == BINDER_UNKNOWN)
            outcome = await(&asked[i].settled);
        cr_assert(outcome == BINDER_BOUND || outcome == BINDER_REFUSED);
        n[outcome]++;
        (void)bindserver_node(f.server, asked[i].b.name, node, NULL);
        cr_expect_eq(outcome == BINDER_BOUND,
                     strcmp(node, asked[i].b.node) == 0, "%s: %d, %s: %s",
                     asked[i].b.name, outcome, node, asked[i].reason);
    }
    (void)fprintf(stderr, "binder: %u bound, %u refused, %u unknown at first\n",
                  n[BINDER_BOUND], n[BINDER_REFUSED], n_unknown);
    cr_expect_eq(bindserver_n_bound(f.server), 1);
    cr_expect_eq(binder_n_busy(f.binder), 0);
    stop(&f);
    free(asked);
}
