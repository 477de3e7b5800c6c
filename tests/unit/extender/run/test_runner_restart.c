/* What the runner makes of restarts, of services that change, and of chance. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/run/embedded.h"
#include "extender/serve/app.h"
#include "lib/io/clock.h"
#include "tests/lib/randnode.h"
#include "tests/lib/sim/simapp.h"
#include "tests/lib/tmpdir.h"

static void start(void)
{
    simapp_begin(NULL);
}

TestSuite(runner_roll, .init = start, .fini = simapp_end);

/* --- services ------------------------------------------------------------- */

enum { COPIES = 4 };

static void apply_service(const char *notes)
{
    struct simapp_pod specs[COPIES];
    char names[COPIES][16];
    for (unsigned i = 0; i < COPIES; i++) {
        (void)snprintf(names[i], sizeof names[i], "s%u", i);
        specs[i] = (struct simapp_pod){.name = names[i],
                                       .role = "service",
                                       .job = "agent",
                                       .notes = notes};
    }
    cr_assert_eq(simapp_apply(specs, COPIES), 0);
}

/* How many run, and how many of them as applied last. */
static unsigned count_ready(const char *part, unsigned *ret_new)
{
    cleanup_with(pod_set) struct pod_set *set =
        applied_get(server_embedded(simapp_server)->store.applied);
    unsigned n = 0;
    *ret_new = 0;
    for (size_t i = 0; i < set->n_pods; i++) {
        const struct applied_pod *p = set->pods[i];
        n += p->status->ready && !p->deleting;
        *ret_new += p->status->ready && strstr(p->json, part);
    }
    return n;
}

/* With a restart at one step, unless that is none. */
static void roll_service(const char *dir, unsigned restart_at)
{
    unsigned least = COPIES, n_new = 0, step = 0;
    simapp_begin(dir);
    apply_service(NULL);
    simapp_settle();
    cr_expect_eq(count_ready("test/v2", &n_new), COPIES);
    apply_service(",\"test/v2\":\"1\"");
    for (; n_new < COPIES && step < 64; step++) {
        if (step == restart_at)
            simapp_restart(dir);
        runner_settle(simapp_runner());
        for (unsigned i = 0; i < SIMAPP_NODES; i++) {
            (void)simnode_ask(&simapp_nodes[i], 0);
            (void)simnode_step(&simapp_nodes[i]);
            simnode_tell(&simapp_nodes[i], false);
        }
        unsigned n = count_ready("test/v2", &n_new);
        if (step > restart_at + 2 || step < restart_at)
            least = n < least ? n : least;
    }
    simapp_settle();
    cr_expect_eq(n_new, COPIES, "restarted at %u", restart_at);
    cr_expect_geq(least, (unsigned)COPIES - 1, "%u, restarted at %u", least,
                  restart_at);
    simapp_end();
}

Test(runner_restart, a_service_rolls_card_by_card)
{
    for (unsigned at = 0; at < 20; at += 3) {
        char *dir = tmpdir_create();
        simapp_applied = 0;
        roll_service(dir, at);
        tmpdir_remove(dir);
    }
}

Test(runner_roll, a_roll_halts_at_what_does_not_start)
{
    unsigned n_new;
    apply_service(NULL);
    simapp_settle();
    apply_service(",\"test/fails\":\"1\"");
    simapp_settle();
    cr_expect_eq(count_ready("test/fails", &n_new), COPIES - 1);
    cr_expect_eq(n_new, 0);
    simapp_expect("s0", POD_STATE_FAILED, "ImageMissing", "");
    apply_service(",\"test/v3\":\"1\"");
    simapp_settle();
    cr_expect_eq(count_ready("test/v3", &n_new), COPIES);
    cr_expect_eq(n_new, COPIES);
}

Test(runner_roll, a_service_that_is_deleted_is_not_replaced)
{
    apply_service(NULL);
    simapp_settle();
    apply_service(",\"test/v2\":\"1\"");
    runner_settle(simapp_runner());
    cr_assert_eq(simapp_delete("s0"), 0);
    cr_assert_eq(simapp_delete("s3"), 0);
    simapp_settle();
    cr_expect_not(simapp_has("s0"));
    cr_expect_not(simapp_has("s3"));
    simapp_expect("s2", POD_STATE_RUNNING, "", "");
    cr_expect_eq(simapp_allocations(), 2);
}

/* --- restarts ------------------------------------------------------------- */

/* At every point of a job's life. */
Test(runner_restart, goes_on_where_it_was)
{
    for (unsigned at = 0; at < 12; at++) {
        char *dir = tmpdir_create();
        struct simapp_pod specs[16];
        char names[16][16];
        simapp_applied = 0;
        simapp_begin(dir);
        size_t n = simapp_job(specs, names, "ring", 3);
        cr_assert_eq(simapp_apply(specs, n), 0);
        for (unsigned step = 0; step < 12; step++) {
            if (step == at)
                simapp_restart(dir);
            if (step == 5)
                simapp_delete_all(names, n);
            if (step % 2)
                runner_settle(simapp_runner());
            for (unsigned i = 0; i < SIMAPP_NODES; i++) {
                (void)simnode_ask(&simapp_nodes[i], 0);
                (void)simnode_step(&simapp_nodes[i]);
                simnode_tell(&simapp_nodes[i], false);
            }
        }
        simapp_settle();
        for (size_t i = 0; i < n; i++)
            cr_expect_not(simapp_has(names[i]), "%s, restarted at %u", names[i],
                          at);
        cr_expect_eq(simapp_allocations(), 0, "restarted at %u", at);
        simapp_end();
        tmpdir_remove(dir);
    }
}

/* What was torn down, or has finished, is not begun again. */
Test(runner_restart, what_is_over_stays_over)
{
    char *dir = tmpdir_create();
    struct simapp_pod specs[16];
    char names[16][16];
    simapp_begin(dir);
    size_t n = simapp_job(specs, names, "ring", 2);
    specs[3].notes = ",\"test/fails\":\"1\"";
    cr_assert_eq(simapp_apply(specs, n), 0);
    simapp_settle();
    simapp_expect(names[0], POD_STATE_FAILED, "JobTornDown", "ImageMissing");
    simapp_restart(dir);
    simapp_settle();
    simapp_expect(names[0], POD_STATE_FAILED, "JobTornDown", "ImageMissing");
    cr_expect_eq(simapp_allocations(), 0);
    simapp_end();
    tmpdir_remove(dir);
}

/* --- after a newer extender ----------------------------------------------- */

/* What it stored has something that we do not understand. */
static void go_back(const char *old, const char *new)
{
    char *dir = tmpdir_create();
    struct simapp_pod specs[32];
    char names[32][16];
    simapp_applied = 0;
    simapp_begin(dir);
    size_t n = simapp_job(specs, names, "ring", 2);
    size_t fill = simapp_job(specs + n, names + n, "fill", 6);
    size_t late = simapp_job(specs + n + fill, names + n + fill, "late", 4);
    cr_assert_eq(simapp_apply(specs, n + fill + late), 0);
    simapp_settle();
    simapp_restart_edited(dir, old, new);
    simapp_settle(); /* it asserts that no node forgets what runs there */
    for (size_t i = 0; i < n; i++)
        cr_expect_eq(simapp_find(names[i])->state, POD_STATE_RUNNING,
                     "%s is %s", names[i],
                     pod_state_name(simapp_find(names[i])->state));
    simapp_expect("ring-x0", POD_STATE_RUNNING, "NotUnderstood",
                  "a newer extender");
    simapp_expect("ring-x1", POD_STATE_RUNNING, "NotUnderstood",
                  "delete the pod");
    simapp_delete_all(names + n, fill);
    simapp_settle();
    simapp_expect("late-x0", POD_STATE_PENDING, "NotUnderstood",
                  "a newer extender");
    cr_expect_eq(simapp_allocations(), n, "there is room, and nothing comes");

    simapp_restart(dir);
    simapp_settle();
    simapp_expect("ring-x0", POD_STATE_RUNNING, "NotUnderstood",
                  "a newer extender");

    simapp_delete_all(names, n);
    simapp_delete_all(names + n + fill, late);
    simapp_settle();
    for (size_t i = 0; i < n + fill + late; i++)
        cr_expect_not(simapp_has(names[i]), "%s", names[i]);
    cr_expect_eq(simapp_allocations(), 0);
    simapp_end();
    tmpdir_remove(dir);
}

Test(runner_restart, what_a_newer_spec_says_goes_on)
{
    go_back("\"containers\":[", "\"brandNew\":{\"x\":1},\"containers\":[");
}

Test(runner_restart, what_has_a_newer_role_goes_on)
{
    go_back("\"biga.dev/role\":\"xpu\"", "\"biga.dev/role\":\"quantum\"");
}

/* The newer one is back: nothing was lost. */
Test(runner_restart, what_is_understood_again_is_as_it_was)
{
    const char *old = "\"containers\":[";
    const char *new = "\"brandNew\":{\"x\":1},\"containers\":[";
    char *dir = tmpdir_create();
    struct simapp_pod specs[16];
    char names[16][16];
    simapp_begin(dir);
    size_t n = simapp_job(specs, names, "ring", 2);
    cr_assert_eq(simapp_apply(specs, n), 0);
    simapp_settle();
    simapp_restart_edited(dir, old, new);
    simapp_settle();
    simapp_restart_edited(dir, new, old);
    simapp_settle();
    for (size_t i = 0; i < n; i++)
        simapp_expect(names[i], POD_STATE_RUNNING, "", "");
    simapp_end();
    tmpdir_remove(dir);
}

/* --- what ran ------------------------------------------------------------- */

/* A pod of a job fails while no extender hears of it; the job goes on when the
 * pod ran before. */
static void fail_unheard(bool ran)
{
    char *dir = tmpdir_create();
    struct simapp_pod specs[16];
    char names[16][16];
    simapp_begin(dir);
    size_t n = simapp_job(specs, names, "ring", 2);
    cr_assert_eq(simapp_apply(specs, n), 0);
    if (ran)
        simapp_settle();
    runner_settle(simapp_runner());
    for (unsigned i = 0; i < SIMAPP_NODES; i++)
        (void)simnode_ask(&simapp_nodes[i], 0);
    struct simnode_pod *x0 = simapp_find("ring-x0");
    x0->fails = x0->changed = true;
    x0->bare = ran;
    x0->state = POD_STATE_FAILED;
    simapp_restart(dir);
    simapp_settle();
    simapp_expect("ring-x0", POD_STATE_FAILED, "ImageMissing", "no image");
    if (ran) {
        simapp_expect("ring-h0", POD_STATE_RUNNING, "XpuPodFailed", "ring-x0");
        simapp_expect("ring-h1", POD_STATE_RUNNING, "", "");
    } else {
        simapp_expect("ring-h1", POD_STATE_FAILED, "JobTornDown", "ring-x0");
    }
    cr_expect_eq(simapp_allocations(), ran ? n : 0);
    simapp_end();
    tmpdir_remove(dir);
}

Test(runner_restart, what_ran_could_start)
{
    fail_unheard(true);
}

Test(runner_restart, what_never_ran_could_not_start)
{
    fail_unheard(false);
}

/* --- one that lacks a place ------------------------------------------------- */

/* A job of xPU pods runs, of which one was deleted, and whose place somebody
 * else has by now; it comes again, and the extender is started again. */
static void lack_one(bool stale)
{
    enum { SIZE = SIMAPP_NODES * SIMAPP_CARDS - 1 };
    char *dir = tmpdir_create();
    struct simapp_pod specs[SIZE + 2];
    char names[SIZE + 2][16];
    simapp_begin(dir);
    for (int i = 0; i < SIZE + 2; i++) {
        (void)snprintf(names[i], sizeof names[i],
                       i < SIZE ? "ring-%d" : "other-%d", i);
        specs[i] = (struct simapp_pod){.name = names[i], .role = "xpu"};
        if (i >= SIZE)
            continue;
        specs[i].job = "ring";
        specs[i].pair = i;
        specs[i].size = SIZE;
    }
    cr_assert_eq(simapp_apply(specs, SIZE), 0);
    simapp_settle();
    cr_assert_eq(simapp_delete(names[SIZE - 1]), 0);
    simapp_settle();
    clock_set_fake(clock_ms() + WRITER_LEASE_MS + 1);
    writer_sweep(server_app(simapp_server)->writer);
    clock_set_fake(-1);
    cr_assert_eq(simapp_apply(specs + SIZE, 2), 0);
    simapp_settle();
    cr_assert_eq(simapp_apply(specs + SIZE - 1, 1), 0);
    simapp_settle();
    simapp_expect(names[SIZE], POD_STATE_RUNNING, "", "");
    simapp_expect(names[SIZE + 1], POD_STATE_RUNNING, "", "");
    simapp_expect(names[SIZE - 1], POD_STATE_PENDING, "NoPlace", "");

    for (int i = 0; i < SIZE - 1; i++)
        simapp_find(names[i])->stale = stale;
    simapp_restart(dir);
    simapp_settle();
    for (unsigned k = 1; k <= 2; k++) {
        clock_set_fake(clock_ms() + RUNNER_STUCK_MS);
        runner_settle(simapp_runner());
    }
    clock_set_fake(-1);
    simapp_settle();
    for (int i = 0; i < SIZE - 1; i++)
        simapp_expect(names[i], POD_STATE_RUNNING, stale ? "CardLost" : "", "");
    simapp_expect(names[SIZE - 1], POD_STATE_PENDING, "NoPlace", "");
    simapp_end();
    tmpdir_remove(dir);
}

Test(runner_restart, a_running_job_goes_on_without_one)
{
    lack_one(false);
}

/* Nobody knows whether they run now; that they did is enough. */
Test(runner_restart, a_job_on_silent_cards_goes_on_without_one)
{
    lack_one(true);
}

/* --- by chance ------------------------------------------------------------ */

static void random_apply(char names[][16], size_t *n, unsigned serial)
{
    struct simapp_pod specs[16];
    char job[12];
    int size = (int)roll(3) + 1;
    (void)snprintf(job, sizeof job, "j%u", serial);
    size_t added = simapp_job(specs, names + *n, job, size);
    for (size_t i = 0; i < added; i++) {
        if (size == 1)
            specs[i].size = 0;
        if (odds(8))
            specs[i].notes = ",\"test/fails\":\"1\"";
        else if (odds(10))
            specs[i].notes = ",\"test/ends\":\"1\"";
        specs[i].priority = (int)roll(3);
    }
    cr_assert_eq(simapp_apply(specs, added), 0);
    *n += added;
}

Test(runner_restart, keeps_its_promises_by_chance)
{
    enum { ROUNDS = 120, NAMES = 2048 };
    static char names[NAMES][16];
    size_t n = 0;
    char *dir = tmpdir_create();
    uint64_t seed = chance_init();
    simapp_begin(dir);
    for (unsigned round = 0; round < ROUNDS; round++) {
        cleanup_str struct str why = STR_INIT(4096);
        if (odds(30) && n + 16 < NAMES)
            random_apply(names, &n, round);
        if (odds(40) && n > 0)
            (void)simapp_delete(names[roll((uint32_t)n)]); /* or it is gone */
        if (odds(20) && n > 0)
            (void)simapp_release(names[roll((uint32_t)n)], NULL); /* or not */
        if (odds(5))
            simapp_restart(dir);
        if (odds(50))
            runner_settle(simapp_runner());
        struct simnode *node = &simapp_nodes[roll(SIMAPP_NODES)];
        if (odds(80))
            (void)simnode_ask(node, 0);
        if (odds(80))
            (void)simnode_step(node);
        if (odds(80))
            simnode_tell(node, odds(10));
        for (unsigned i = 0; i < SIMAPP_NODES; i++)
            cr_assert(simnode_check(&simapp_nodes[i], &why),
                      "seed %llu round %u: %s", (unsigned long long)seed, round,
                      str_text(&why));
    }
    for (size_t i = 0; i < n; i++)
        (void)simapp_delete(names[i]); /* or it is gone */
    simapp_settle();
    cr_expect_eq(simapp_allocations(), 0, "seed %llu",
                 (unsigned long long)seed);
    for (size_t i = 0; i < n; i++)
        cr_expect_not(simapp_has(names[i]), "seed %llu: %s",
                      (unsigned long long)seed, names[i]);
    simapp_end();
    tmpdir_remove(dir);
}
