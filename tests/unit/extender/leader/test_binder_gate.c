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
