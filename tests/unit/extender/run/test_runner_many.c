/* More pods wait than one look tries: looks one by one, without the runner's
 * thread, so that each test says what happens between which of them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/run/embedded.h"
#include "extender/run/runner_private.h"
#include "extender/serve/app.h"
#include "lib/io/clock.h"
#include "tests/lib/sim/simapp.h"

enum {
    CARDS = SIMAPP_NODES * SIMAPP_CARDS,
    PODS = 1600, /* more than a look tries, fewer than two */
    FIRST = 700, /* of them, that come first: a look that goes on where the last
                  * one ended comes to some of them, but not to all */
    PART = 50,
    LOOKS = 12, /* many enough for two rounds, and for what is done in them */
};

static struct runner *runner;
static unsigned changes;

static void start(void)
{
    simapp_begin(NULL);
    runner = simapp_runner();
    runner_stop(runner);
    runner->stopping = false; /* the looks are ours now */
}

TestSuite(runner_many, .init = start, .fini = simapp_end);

/* Another snapshot: who has found no place in the last one is tried again. */
static void change(void)
{
    const struct writer_room room = {
        .node = "node000",
        .room = {.cpu_milli = 1000000 + changes++,
                 .memory_mib = 1000000,
                 .pods = 100000},
    };
    struct writer_op op = {.kind = WRITER_ROOMS,
                           .rooms = &room,
                           .n_rooms = 1,
                           .out = STR_INIT(4096)};
    cr_assert_eq(writer_run(server_app(simapp_server)->writer, &op), 0);
    str_fini(&op.out);
}

/* Until nothing is left to do. */
static void settle(void)
{
    bool acted = true;
    int64_t due_ms = 0;
    for (unsigned i = 0; acted || due_ms == 0; i++) {
        cr_assert_lt(i, 100U, "it does not settle");
        due_ms = runner_look(runner, &acted);
    }
}

/* Looks between which something changes each time. */
static void look_on(unsigned n)
{
    bool acted;
    for (unsigned i = 0; i < n; i++) {
        change();
        (void)runner_look(runner, &acted);
    }
}

/* Only what changes nothing else is left, of which a look cannot try all. */
static void begin_round(void)
{
    bool acted = true;
    settle();
    cr_assert_not(runner->resumes);
    change();
    (void)runner_look(runner, &acted);
    cr_assert_not(acted);
    cr_assert(runner->resumes, "not all were tried");
}

static void apply_many(void)
{
    struct simapp_pod specs[PART];
    char names[PART][16];
    for (unsigned i = 0; i < PODS; i += PART) {
        for (unsigned k = 0; k < PART; k++) {
            (void)snprintf(names[k], sizeof names[k], "p%u", i + k);
            specs[k] = (struct simapp_pod){
                .name = names[k], .role = "xpu", .priority = i < FIRST};
        }
        cr_assert_eq(simapp_apply(specs, PART), 0);
    }
}

static bool has_place(const char *name)
{
    struct app *app = server_app(simapp_server);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app->writer);
    return alloc_index_find(s->allocations, "ns", name) != NULL;
}

/* It is deleted, and its node says that nothing of it is left. */
static void end_pod(const char *name)
{
    struct app *app = server_app(simapp_server);
    cr_assert_eq(simapp_delete(name), 0, "%s", name);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app->writer);
    const struct allocation *a = alloc_index_find(s->allocations, "ns", name);
    cleanup_with(pod_status) struct pod_status *gone = pod_status_create(0);
    gone->state = POD_STATE_GONE;
    if (a)
        node_reports_put(server_embedded(simapp_server)->store.reports,
                         a->demand.uid, a->node, gone);
}

/* --- order ---------------------------------------------------------------- */

Test(runner_many, whoever_comes_first_gets_what_becomes_free)
{
    const struct simapp_pod urgent = {
        .name = "urgent", .role = "xpu", .priority = 100};
    apply_many();
    begin_round();
    cr_assert(has_place("p0"));
    cr_assert_not(has_place("p8"));
    cr_assert_eq(simapp_apply(&urgent, 1), 0);
    end_pod("p0");
    settle();
    simapp_expect("urgent", POD_STATE_WANTED, "", "");
    cr_expect_eq(simapp_allocations(), (size_t)CARDS);

    begin_round();
    end_pod("p1");
    settle();
    cr_expect(has_place("p8"), "it is the first that waits");
    cr_expect_not(has_place("p9"));
    cr_expect_eq(simapp_allocations(), (size_t)CARDS);
}

/* --- what is remembered --------------------------------------------------- */

Test(runner_many, who_waits_no_more_is_forgotten)
{
    apply_many();
    begin_round();
    cr_assert_geq(runner->waits.n, (size_t)(PODS - CARDS));
    for (unsigned i = 0; i < 400; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "p%u", CARDS + i);
        cr_assert_eq(simapp_delete(name), 0);
    }
    look_on(LOOKS);
    cr_expect_eq(runner->waits.n, (size_t)(PODS - CARDS - 400));
}

/* --- jobs in part --------------------------------------------------------- */

/* Its pairs from that one on, of two. */
static int apply_ring(int first_pair, int priority)
{
    struct simapp_pod specs[4];
    char names[4][16];
    size_t n = simapp_job(specs, names, "ring", 2);
    for (size_t i = 0; i < n; i++)
        specs[i].priority = priority;
    return simapp_apply(specs + 2 * first_pair, n - 2 * (size_t)first_pair);
}

/* The job is placed; then its pair 1 loses its place to another pod, and is
 * the last of those that come first. */
static void place_in_part(void)
{
    cr_assert_eq(apply_ring(0, 50), 0);
    look_on(LOOKS);
    cr_assert(has_place("ring-x0") && has_place("ring-x1"));
    end_pod("ring-h1");
    end_pod("ring-x1");
    look_on(LOOKS);
    cr_assert_eq(apply_ring(1, 1), 0);
    look_on(LOOKS);
    cr_assert(has_place("ring-x0"));
    cr_assert_not(has_place("ring-x1"));
}

Test(runner_many, a_job_of_the_same_name_has_its_own_time)
{
    int64_t began_ms = clock_ms();
    struct node_reports *told = server_embedded(simapp_server)->store.reports;
    node_reports_asked(told, "node000", began_ms);
    node_reports_asked(told, "node001", began_ms);
    clock_set_fake(began_ms);
    apply_many();
    place_in_part();
    cr_assert_eq(runner->stuck.n, (size_t)1);
    /* first what has a place, so that what is left waits for its pair 0 */
    end_pod("ring-h0");
    end_pod("ring-x0");
    look_on(LOOKS);
    end_pod("ring-h1");
    end_pod("ring-x1");
    look_on(LOOKS);
    cr_assert_not(simapp_has("ring-x1"));
    cr_expect_eq(runner->stuck.n, (size_t)0, "the job is gone");

    end_pod("p0");
    end_pod("p1");
    clock_set_fake(began_ms + RUNNER_STUCK_MS);
    place_in_part();
    simapp_expect("ring-x0", POD_STATE_WANTED, "", "");
    simapp_expect("ring-h1", POD_STATE_PENDING, "NoPlace", "");
    clock_set_fake(began_ms + 2 * RUNNER_STUCK_MS);
    look_on(LOOKS);
    simapp_expect("ring-x0", POD_STATE_FAILED, "JobTornDown", "pair 1");
    clock_set_fake(-1);
}
