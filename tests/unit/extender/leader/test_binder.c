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
#include "tests/lib/sim/simbinder.h"
#include "tests/lib/sim/simstate.h"

static const char note[] = SIMBINDER_NOTE;

static void ask_with(struct simbinder *f, struct asked *a, const char *pod,
                     const char *uid, const char *node, const char *allocation)
{
    asked_init(a, pod, uid, node, allocation);
    cr_assert_eq(binder_post(f->binder, &a->b), 0);
}

static void ask(struct simbinder *f, struct asked *a, const char *pod,
                const char *uid, const char *node)
{
    ask_with(f, a, pod, uid, node, note);
}

/* Pod p1 is to be bound to n1, with these faults. */
static int run(struct simbinder *f, struct asked *a,
               const enum bindserver_fault *posts, size_t n_posts,
               const enum bindserver_fault *looks, size_t n_gets)
{
    bindserver_faults(f->server, "POST", posts, n_posts);
    bindserver_faults(f->server, "GET", looks, n_gets);
    ask(f, a, "p1", "u1", "n1");
    return asked_await(&a->outcome);
}

#define RUN(f, a, posts, looks) \
    run(f, a, posts, ARRAY_LEN(posts), looks, ARRAY_LEN(looks))

static void expect_calls(struct simbinder *f, const char *wanted)
{
    cleanup_free char *calls = bindserver_calls(f->server);
    cr_expect_str_eq(calls, wanted);
}

static void expect_node(struct simbinder *f, const char *pod,
                        const char *wanted)
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
    struct simbinder f;
    struct asked a;
    char node[64];
    cleanup_free char *allocation = NULL;
    simbinder_start(&f);
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
    simbinder_stop(&f);
}

Test(binder, takes_an_earlier_bind_for_its_own)
{
    struct simbinder f;
    struct asked a;
    simbinder_start(&f);
    bindserver_pod(f.server, "p1", "u1");
    bindserver_bind(f.server, "p1", "n1", note);
    cr_expect_eq(RUN(&f, &a, NONE, NONE), BINDER_BOUND);
    expect_calls(&f, "POST p1 n1\nGET p1\n");
    simbinder_stop(&f);
}

/* As after an update: the leader before has bound it. */
Test(binder, knows_its_deed_in_other_words)
{
    struct simbinder f;
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
    simbinder_start(&f);
    bindserver_pod(f.server, "p1", "u1");
    bindserver_bind(f.server, "p1", "n1", str_text(&theirs));
    bindserver_faults(f.server, "POST", NONE, 1);
    bindserver_faults(f.server, "GET", NONE, 1);
    ask_with(&f, &a, "p1", "u1", "n1", str_text(&ours));
    cr_expect_eq(asked_await(&a.outcome), BINDER_BOUND, "%s", a.reason);
    simbinder_stop(&f);
}

Test(binder, refuses_a_pod_that_is_bound_elsewhere)
{
    struct simbinder f;
    struct asked a;
    simbinder_start(&f);
    bindserver_pod(f.server, "p1", "u1");
    bindserver_bind(f.server, "p1", "n2", note);
    cr_expect_eq(RUN(&f, &a, NONE, NONE), BINDER_REFUSED);
    cr_expect(strstr(a.reason, "n2"), "%s", a.reason);
    expect_calls(&f, "POST p1 n1\nGET p1\n");
    simbinder_stop(&f);
}

Test(binder, refuses_the_same_node_with_other_cards)
{
    struct simbinder f;
    struct asked a;
    simbinder_start(&f);
    bindserver_pod(f.server, "p1", "u1");
    bindserver_bind(f.server, "p1", "n1", "{}");
    cr_expect_eq(RUN(&f, &a, NONE, NONE), BINDER_REFUSED);
    cr_expect(strstr(a.reason, "somebody else"), "%s", a.reason);
    bindserver_bind(f.server, "p1", "n1", NULL);
    cr_expect_eq(RUN(&f, &a, NONE, NONE), BINDER_REFUSED);
    simbinder_stop(&f);
}

Test(binder, refuses_what_is_gone_or_another)
{
    struct simbinder f;
    struct asked a;
    simbinder_start(&f);
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
    simbinder_stop(&f);
}

Test(binder, refuses_what_it_may_not)
{
    struct simbinder f;
    struct asked a;
    simbinder_start(&f);
    bindserver_pod(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_FORBIDDEN), NONE), BINDER_REFUSED);
    cr_expect(strstr(a.reason, "forbidden"), "%s", a.reason);
    expect_calls(&f, "POST p1 n1\n");
    expect_node(&f, "p1", "");
    simbinder_stop(&f);
}

Test(binder, tries_again_after_an_error)
{
    struct simbinder f;
    struct asked a;
    simbinder_start(&f);
    bindserver_pod(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_ERROR, FAULT_BUSY), NONE),
                 BINDER_BOUND);
    expect_calls(&f, "POST p1 n1\nPOST p1 n1\nPOST p1 n1\n");
    simbinder_stop(&f);
}

/* An error that came after the deed: the second time it is a conflict, with
 * ourselves. */
Test(binder, knows_its_own_deed_after_an_error)
{
    struct simbinder f;
    struct asked a;
    simbinder_start(&f);
    bindserver_pod(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_ERROR_DONE), NONE), BINDER_BOUND);
    expect_calls(&f, "POST p1 n1\nPOST p1 n1\nGET p1\n");
    cr_expect_eq(bindserver_n_bound(f.server), 1);
    simbinder_stop(&f);
}

Test(binder, looks_up_what_a_timeout_leaves_open)
{
    struct simbinder f;
    struct asked a;
    simbinder_start_timing(&f);
    bindserver_pod(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_SILENT_DONE), NONE), BINDER_BOUND);
    expect_calls(&f, "POST p1 n1\nGET p1\n");
    simbinder_stop(&f);
}

Test(binder, binds_again_after_a_timeout_without_a_deed)
{
    struct simbinder f;
    struct asked a;
    simbinder_start_timing(&f);
    bindserver_pod(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_SILENT), NONE), BINDER_BOUND);
    expect_calls(&f, "POST p1 n1\nGET p1\nPOST p1 n1\n");
    simbinder_stop(&f);
}

Test(binder, looks_up_after_a_cut)
{
    struct simbinder f;
    struct asked a;
    simbinder_start(&f);
    bindserver_pod(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_CUT_DONE), FAULTS(FAULT_CUT)),
                 BINDER_BOUND);
    expect_calls(&f, "POST p1 n1\nGET p1\nGET p1\n");
    bindserver_pod(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_CUT), FAULTS(FAULT_GARBAGE)),
                 BINDER_BOUND);
    simbinder_stop(&f);
}

/* No answer at all: unknown, and later what it turns out to be. */
Test(binder, says_that_it_does_not_know_and_settles_later)
{
    struct simbinder f;
    struct asked a;
    simbinder_start_hasty(&f);
    bindserver_pod(f.server, "p1", "u1");
    bindserver_faults(f.server, "POST", FAULTS(FAULT_SILENT_DONE), 1);
    bindserver_always(f.server, "GET", FAULT_SILENT);
    ask(&f, &a, "p1", "u1", "n1");
    cr_expect_eq(asked_await(&a.outcome), BINDER_UNKNOWN);
    cr_expect(binder_is_busy(f.binder, "u1"));
    bindserver_always(f.server, "GET", FAULT_NONE);
    cr_expect_eq(asked_await(&a.settled), BINDER_BOUND);
    cr_expect_not(binder_is_busy(f.binder, "u1"));
    simbinder_stop(&f);
}

/* A call that is late arrives after the pod was seen unbound: nothing may be
 * said before it cannot come any more. */
Test(binder, does_not_give_up_a_call_that_is_under_way)
{
    struct simbinder f;
    struct asked a;
    simbinder_start_hasty(&f);
    bindserver_pod(f.server, "p1", "u1");
    f.leads_for = 1; /* so that it does not bind it again */
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_LATE_DONE), NONE), BINDER_UNKNOWN,
                 "%s", a.reason);
    cr_expect_eq(asked_await(&a.settled), BINDER_BOUND);
    cr_expect_eq(bindserver_n_bound(f.server), 1);
    simbinder_stop(&f);
}

Test(binder, settles_as_refused_when_no_call_can_arrive)
{
    const enum bindserver_fault silent[] = {FAULT_SILENT, FAULT_SILENT};
    struct simbinder f;
    struct asked a;
    simbinder_start_hasty(&f);
    bindserver_pod(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_SILENT), silent), BINDER_UNKNOWN);
    cr_expect_eq(asked_await(&a.settled), BINDER_REFUSED);
    cr_expect_geq(a.settled_ms - a.told_ms, CALL_MS / 4);
    expect_node(&f, "p1", "");
    simbinder_stop(&f);
}

/* It was stopped with our call unread, for longer than a call may take: when
 * it goes on it answers a look, and then does what it was asked before. */
Test(binder, one_look_after_a_silence_proves_nothing)
{
    const enum bindserver_fault silent[] = {FAULT_SILENT, FAULT_SILENT,
                                            FAULT_SILENT, FAULT_SILENT};
    struct simbinder f;
    struct asked a;
    simbinder_start_hasty(&f);
    bindserver_pod(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_LATE_DONE), silent), BINDER_UNKNOWN);
    cr_expect_eq(asked_await(&a.settled), BINDER_BOUND);
    simbinder_stop(&f);
}

Test(binder, waits_for_a_server_that_is_away)
{
    struct simbinder f;
    struct asked a;
    simbinder_start(&f);
    bindserver_pod(f.server, "p1", "u1");
    bindserver_close(f.server);
    ask(&f, &a, "p1", "u1", "n1");
    (void)usleep(100000);
    cr_expect_eq(a.outcome, -1);
    bindserver_open(f.server);
    cr_expect_eq(asked_await(&a.outcome), BINDER_BOUND);
    simbinder_stop(&f);
}

Test(binder, does_not_wait_for_ever_for_a_server)
{
    struct simbinder f;
    struct asked a;
    simbinder_start_hasty(&f);
    bindserver_pod(f.server, "p1", "u1");
    bindserver_close(f.server);
    ask(&f, &a, "p1", "u1", "n1");
    cr_expect_eq(asked_await(&a.outcome), BINDER_REFUSED,
                 "nobody has seen the call");
    simbinder_stop(&f);
}

Test(binder, does_not_bind_when_it_does_not_lead)
{
    struct simbinder f;
    struct asked a;
    simbinder_start(&f);
    bindserver_pod(f.server, "p1", "u1");
    f.leads_for = 0;
    cr_expect_eq(RUN(&f, &a, NONE, NONE), BINDER_REFUSED);
    cr_expect(strstr(a.reason, "leader"), "%s", a.reason);
    expect_calls(&f, "");
    simbinder_stop(&f);
}

/* On a busy machine it is renewed late, and no pod need be tried anew. */
Test(binder, waits_for_a_lease_that_is_renewed)
{
    struct simbinder f;
    struct asked a;
    simbinder_start(&f);
    bindserver_pod(f.server, "p1", "u1");
    f.lease_ms = 1;
    ask(&f, &a, "p1", "u1", "n1");
    while (f.asked < 4) /* twice each time */
        (void)usleep(1000);
    expect_calls(&f, "");
    f.lease_ms = INT_MAX;
    cr_expect_eq(asked_await(&a.outcome), BINDER_BOUND);
    simbinder_stop(&f);
}

Test(binder, does_not_wait_for_ever_for_a_lease)
{
    struct simbinder f;
    struct asked a;
    simbinder_start_hasty(&f);
    bindserver_pod(f.server, "p1", "u1");
    f.lease_ms = 1;
    ask(&f, &a, "p1", "u1", "n1");
    cr_expect_eq(asked_await(&a.outcome), BINDER_REFUSED);
    cr_expect(strstr(a.reason, "lease"), "%s", a.reason);
    expect_calls(&f, "");
    simbinder_stop(&f);
}

Test(binder, ends_with_what_it_does_not_know)
{
    struct simbinder f;
    struct asked a;
    enum bindserver_fault errors[64]; /* more than it looks up to its end */
    for (size_t i = 0; i < ARRAY_LEN(errors); i++)
        errors[i] = FAULT_ERROR;
    simbinder_start_hasty(&f);
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
    struct simbinder f;
    struct asked a;
    simbinder_start_timing(&f);
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
    struct simbinder f;
    struct asked *asked = xcalloc(N, sizeof *asked);
    unsigned n[3] = {0}, n_unknown = 0;
    simbinder_start_hasty(&f);
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
        int outcome = asked_await(&asked[i].outcome);
        n_unknown += outcome == BINDER_UNKNOWN;
        if (outcome == BINDER_UNKNOWN)
            outcome = asked_await(&asked[i].settled);
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
    simbinder_stop(&f);
    free(asked);
}
