/* The binder opening gates, against an API server that misbehaves. */
#include <criterion/criterion.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include "extender/leader/binder_private.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/sim/simbinder.h"

static const char note[] = SIMBINDER_NOTE;

#define GATES ",\"spec\":{\"schedulingGates\":null,\"affinity\":{"
#define PIN(node)                                                            \
    "\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{" \
    "\"nodeSelectorTerms\":[{\"matchFields\":[{\"key\":\"metadata.name\","   \
    "\"operator\":\"In\",\"values\":[\"" node "\"]}]}]}}}}}"

/* As gate_open_write() has it. */
static const char patch[] =
    "{\"metadata\":{\"uid\":\"u1\",\"annotations\":{\"biga.dev/allocation\":"
    "\"{\\\"cards\\\":[\\\"\\\\\\\"c0\\\\\\\"\\\"]}\"}}" GATES PIN("n1");

static void write_binding(struct asked *a, const char *text,
                          const char *allocation)
{
    asked_init(a, "p1", "u1", "n1", allocation);
    a->b.patch = text;
    a->b.patch_size = strlen(text);
}

static void ask(struct simbinder *f, struct asked *a)
{
    write_binding(a, patch, note);
    cr_assert_eq(binder_post(f->binder, &a->b), 0);
}

/* The gate of p1 is to be opened for n1, with these faults. */
static int run(struct simbinder *f, struct asked *a,
               const enum bindserver_fault *patches, size_t n_patches,
               const enum bindserver_fault *looks, size_t n_gets)
{
    bindserver_faults(f->server, "PATCH", patches, n_patches);
    bindserver_faults(f->server, "GET", looks, n_gets);
    ask(f, a);
    return asked_await(&a->outcome);
}

#define RUN(f, a, patches, looks) \
    run(f, a, patches, ARRAY_LEN(patches), looks, ARRAY_LEN(looks))

static void expect_calls(struct simbinder *f, const char *wanted)
{
    cleanup_free char *calls = bindserver_calls(f->server);
    cr_expect_str_eq(calls, wanted);
}

#define NONE                  \
    (enum bindserver_fault[]) \
    {                         \
        FAULT_NONE            \
    }
#define FAULTS(...) ((enum bindserver_fault[]){__VA_ARGS__})
/* A call is lost that is not the first one: libcurl sends it again when its
 * connection was kept. */
#define LOST FAULTS(FAULT_CUT, FAULT_CUT)

/* Open for n1 alone, with what was decided; or closed. */
static void expect_open(struct simbinder *f, bool wanted)
{
    char pin[64], node[64];
    cleanup_free char *allocation = NULL;
    cr_expect_eq(bindserver_pin(f->server, "p1", pin), wanted);
    cr_expect_str_eq(pin, wanted ? "n1" : "");
    cr_assert(bindserver_node(f->server, "p1", node, &allocation));
    cr_expect_str_eq(allocation, wanted ? note : "");
    cr_expect_eq(bindserver_n_bound(f->server), wanted);
}

Test(binder_gate, opens_in_one_call)
{
    struct simbinder f;
    struct asked a;
    simbinder_start(&f);
    bindserver_gated(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, NONE, NONE), BINDER_BOUND, "%s", a.reason);
    expect_calls(&f, "PATCH p1 n1\n");
    expect_open(&f, true);
    cleanup_free char *body = bindserver_last_body(f.server);
    cr_expect_str_eq(body, patch);
    simbinder_stop(&f);
}

/* The second time nothing changes. */
Test(binder_gate, repeats_after_an_error)
{
    struct simbinder f;
    struct asked a;
    simbinder_start(&f);
    bindserver_gated(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_ERROR_DONE, FAULT_BUSY), NONE),
                 BINDER_BOUND, "%s", a.reason);
    expect_calls(&f, "PATCH p1 n1\nPATCH p1 n1\nPATCH p1 n1\n");
    expect_open(&f, true);
    simbinder_stop(&f);
}

Test(binder_gate, knows_its_deed_after_a_lost_answer)
{
    static const enum bindserver_fault lost[] = {FAULT_CUT_DONE, FAULT_GARBAGE};
    for (size_t i = 0; i < ARRAY_LEN(lost); i++) {
        struct simbinder f;
        struct asked a;
        simbinder_start(&f);
        bindserver_gated(f.server, "p1", "u1");
        cr_expect_eq(RUN(&f, &a, FAULTS(lost[i]), NONE), BINDER_BOUND, "%s",
                     a.reason);
        expect_open(&f, true);
        simbinder_stop(&f);
    }
}

Test(binder_gate, opens_again_after_a_lost_call)
{
    struct simbinder f;
    struct asked a;
    simbinder_start(&f);
    bindserver_gated(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_CUT), NONE), BINDER_BOUND, "%s",
                 a.reason);
    expect_calls(&f, "PATCH p1 n1\nGET p1\nPATCH p1 n1\n");
    expect_open(&f, true);
    simbinder_stop(&f);
}

Test(binder_gate, looks_up_what_a_timeout_leaves_open)
{
    struct simbinder f;
    struct asked a;
    simbinder_start_timing(&f);
    bindserver_gated(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_SILENT_DONE), NONE), BINDER_BOUND);
    expect_calls(&f, "PATCH p1 n1\nGET p1\n");
    expect_open(&f, true);
    simbinder_stop(&f);
}

Test(binder_gate, refuses_what_it_may_not)
{
    static const enum bindserver_fault refusals[] = {FAULT_FORBIDDEN,
                                                     FAULT_INVALID};
    static const char *const words[] = {"forbidden", "invalid"};
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        struct simbinder f;
        struct asked a;
        simbinder_start(&f);
        bindserver_gated(f.server, "p1", "u1");
        cr_expect_eq(RUN(&f, &a, FAULTS(refusals[i]), NONE), BINDER_REFUSED);
        cr_expect(strstr(a.reason, words[i]), "%s", a.reason);
        expect_calls(&f, "PATCH p1 n1\n");
        expect_open(&f, false);
        simbinder_stop(&f);
    }
}

Test(binder_gate, says_that_it_does_not_know_and_settles_later)
{
    struct simbinder f;
    struct asked a;
    simbinder_start_hasty(&f);
    bindserver_gated(f.server, "p1", "u1");
    bindserver_faults(f.server, "PATCH", FAULTS(FAULT_SILENT_DONE), 1);
    bindserver_always(f.server, "GET", FAULT_SILENT);
    ask(&f, &a);
    cr_expect_eq(asked_await(&a.outcome), BINDER_UNKNOWN);
    cr_expect(binder_is_busy(f.binder, "u1"));
    bindserver_always(f.server, "GET", FAULT_NONE);
    cr_expect_eq(asked_await(&a.settled), BINDER_BOUND);
    expect_open(&f, true);
    simbinder_stop(&f);
}

/* A call that is late opens the gate after it was seen closed. */
Test(binder_gate, does_not_give_up_a_call_that_is_under_way)
{
    struct simbinder f;
    struct asked a;
    simbinder_start_hasty(&f);
    bindserver_gated(f.server, "p1", "u1");
    f.leads_for = 1; /* so that it does not open it again */
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_LATE_DONE), NONE), BINDER_UNKNOWN,
                 "%s", a.reason);
    cr_expect_eq(asked_await(&a.settled), BINDER_BOUND);
    expect_open(&f, true);
    simbinder_stop(&f);
}

Test(binder_gate, settles_as_refused_when_no_call_can_arrive)
{
    const enum bindserver_fault silent[] = {FAULT_SILENT, FAULT_SILENT};
    struct simbinder f;
    struct asked a;
    simbinder_start_hasty(&f);
    bindserver_gated(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_SILENT), silent), BINDER_UNKNOWN);
    cr_expect_eq(asked_await(&a.settled), BINDER_REFUSED);
    expect_open(&f, false);
    simbinder_stop(&f);
}

/* Its affinity cannot be changed any more; or the call was lost, and it is
 * found so. */
Test(binder_gate, refuses_what_somebody_else_has_opened)
{
    struct simbinder f;
    struct asked a;
    simbinder_start(&f);
    bindserver_gated(f.server, "p1", "u1");
    bindserver_open_gate(f.server, "p1");
    cr_expect_eq(RUN(&f, &a, NONE, NONE), BINDER_REFUSED);
    expect_calls(&f, "PATCH p1 n1\n");
    cr_expect_eq(RUN(&f, &a, LOST, NONE), BINDER_REFUSED);
    cr_expect(strstr(a.reason, "somebody else has opened"), "%s", a.reason);
    cleanup_free char *allocation = NULL;
    char node[64];
    (void)bindserver_node(f.server, "p1", node, &allocation);
    cr_expect_str_eq(allocation, "");
    simbinder_stop(&f);
}

Test(binder_gate, refuses_what_is_gone_or_another)
{
    struct simbinder f;
    struct asked a;
    simbinder_start(&f);
    cr_expect_eq(RUN(&f, &a, NONE, NONE), BINDER_REFUSED);
    expect_calls(&f, "PATCH p1 n1\n");
    cr_expect_eq(RUN(&f, &a, LOST, NONE), BINDER_REFUSED);
    cr_expect(strstr(a.reason, "no such pod"), "%s", a.reason);
    bindserver_gated(f.server, "p1", "u2");
    cr_expect_eq(RUN(&f, &a, NONE, NONE), BINDER_REFUSED);
    cr_expect_eq(RUN(&f, &a, LOST, NONE), BINDER_REFUSED);
    cr_expect(strstr(a.reason, "another pod"), "%s", a.reason);
    expect_open(&f, false);
    bindserver_gated(f.server, "p1", "u1");
    bindserver_deleting(f.server, "p1");
    cr_expect_eq(RUN(&f, &a, LOST, NONE), BINDER_REFUSED);
    cr_expect(strstr(a.reason, "deleted"), "%s", a.reason);
    expect_open(&f, false);
    simbinder_stop(&f);
}

/* Right after a call whose answer is lost. */
Test(binder_gate, knows_what_kube_scheduler_has_bound_meanwhile)
{
    struct simbinder f;
    struct asked a;
    char node[64];
    simbinder_start(&f);
    bindserver_schedules(f.server, true);
    bindserver_gated(f.server, "p1", "u1");
    cr_expect_eq(RUN(&f, &a, FAULTS(FAULT_CUT_DONE), NONE), BINDER_BOUND, "%s",
                 a.reason);
    expect_calls(&f, "PATCH p1 n1\nGET p1\n");
    (void)bindserver_node(f.server, "p1", node, NULL);
    cr_expect_str_eq(node, "n1");
    bindserver_bind(f.server, "p1", "n2", "{}");
    cr_expect_eq(RUN(&f, &a, LOST, NONE), BINDER_REFUSED);
    cr_expect(strstr(a.reason, "bound to node n2"), "%s", a.reason);
    simbinder_stop(&f);
}

Test(binder_gate, opens_nothing_when_it_does_not_lead)
{
    struct simbinder f;
    struct asked a;
    simbinder_start(&f);
    bindserver_gated(f.server, "p1", "u1");
    f.leads_for = 0;
    cr_expect_eq(RUN(&f, &a, NONE, NONE), BINDER_REFUSED);
    expect_calls(&f, "");
    simbinder_stop(&f);
}

/* Whatever happens, what is said at the end is so. */
Test(binder_gate, is_right_in_the_end, .timeout = 120)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct simbinder f;
        struct asked a;
        char pin[64];
        simbinder_start_hasty(&f);
        bindserver_chaos(f.server, 500, seed);
        bindserver_schedules(f.server, seed % 3 == 0);
        bindserver_gated(f.server, "p1", "u1");
        ask(&f, &a);
        int outcome = asked_await(&a.outcome);
        if (outcome == BINDER_UNKNOWN)
            outcome = asked_await(&a.settled);
        bool open = bindserver_pin(f.server, "p1", pin);
        cr_expect_eq(outcome, open ? BINDER_BOUND : BINDER_REFUSED,
                     "seed %u: %d", (unsigned)seed, outcome);
        simbinder_stop(&f);
    }
}

/* The first was carried out when its connection ended; the second is refused. */
Test(binder_gate, knows_that_a_call_was_sent_again)
{
    struct bindserver *server = bindserver_start();
    cleanup_with(kube_client) struct kube_client *client = NULL;
    struct http_answer answer = {.body = STR_INIT(65536)};
    struct error err = {0};
    char node[64];
    static const char body[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":"
        "\"p1\",\"namespace\":\"ns\",\"uid\":\"u1\"},\"target\":{"
        "\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n1\"}}";
    const struct kube_request get = {.method = "GET",
                                     .path = "/api/v1/namespaces/ns/pods/p1"};
    const struct kube_request post = {
        .method = "POST",
        .path = "/api/v1/namespaces/ns/pods/p1/binding",
        .body = body,
        .body_size = sizeof body - 1};
    bindserver_pod(server, "p1", "u1");
    cr_assert_eq(
        kube_client_create(bindserver_config(server), CALM_MS, &client, &err),
        0, "%s", err.text);
    cr_assert_eq(kube_call(client, &get, &answer, &err), 0, "%s", err.text);
    cr_expect_not(kube_client_resent(client));
    bindserver_faults(
        server, "POST",
        (const enum bindserver_fault[]){FAULT_CUT_DONE, FAULT_FORBIDDEN}, 2);
    cr_expect_eq(kube_call(client, &post, &answer, &err), -EACCES, "%s",
                 err.text);
    cr_expect(kube_client_resent(client));
    (void)bindserver_node(server, "p1", node, NULL);
    cr_expect_str_eq(node, "n1");
    str_fini(&answer.body);
    bindserver_stop(server);
}
