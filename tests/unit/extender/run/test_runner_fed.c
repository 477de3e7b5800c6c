/* What a node was never told of it has never begun: that is deleted and given
 * back at once, and nothing else is. */
#include <criterion/criterion.h>
#include <sqlite3.h>
#include <stdio.h>

#include "extender/serve/app.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/sim/simapp.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/world.h"
#include "tests/lib/testdata.h"
#include "tests/lib/tmpdir.h"

static char *dir;

static void start(void)
{
    dir = tmpdir_create();
    simapp_begin(dir);
}

static void stop(void)
{
    simapp_end();
    tmpdir_remove(dir);
}

TestSuite(runner_fed, .init = start, .fini = stop);

static const struct simapp_pod pair_specs[] = {
    {.name = "h", .role = "host", .job = "one"},
    {.name = "x", .role = "xpu", .job = "one"},
};

static void place_pair(void)
{
    cr_assert_eq(simapp_apply(pair_specs, 2), 0);
    runner_settle(simapp_runner());
    cr_assert_eq(simapp_allocations(), 2);
}

static void expect_all_gone(void)
{
    runner_settle(simapp_runner());
    cr_expect_eq(simapp_allocations(), 0);
    cr_expect_not(simapp_has("h"));
    cr_expect_not(simapp_has("x"));
}

/* All nodes ask, and say nothing. */
static void all_ask(void)
{
    for (unsigned i = 0; i < SIMAPP_NODES; i++)
        (void)simnode_ask(&simapp_nodes[i], 0);
}

Test(runner_fed, what_was_never_begun_is_deleted)
{
    place_pair();
    cr_assert_eq(simapp_delete("h"), 0);
    expect_all_gone();
}

Test(runner_fed, also_after_a_restart)
{
    place_pair();
    simapp_restart(dir);
    runner_settle(simapp_runner());
    cr_assert_eq(simapp_delete("h"), 0);
    expect_all_gone();
}

Test(runner_fed, what_was_never_begun_is_given_back)
{
    const struct simapp_pod one = {.name = "a", .role = "xpu"};
    cr_assert_eq(simapp_apply(&one, 1), 0);
    runner_settle(simapp_runner());
    cr_expect_eq(simapp_release("a", "\"released\""), 200);
    simapp_settle();
    simapp_expect("a", POD_STATE_RUNNING, "", "");
    cr_expect_eq(simapp_release("a", "delete it (biga delete)"), 409);
}

/* However little was heard of it since, and across restarts. */
Test(runner_fed, what_may_have_begun_is_kept)
{
    place_pair();
    all_ask();
    cr_expect_eq(simapp_release("x", "its node may run it"), 409);
    cr_assert_eq(simapp_delete("h"), 0);
    for (unsigned i = 0; i < 2; i++) {
        runner_settle(simapp_runner());
        cr_expect_eq(simapp_allocations(), 2);
        cr_expect_eq(simapp_release("h", "may still run on node node00"), 409);
        simapp_restart(dir);
    }
    simapp_settle();
    expect_all_gone();
}

/* Of two pods on one node it was told of the first. */
Test(runner_fed, each_pod_for_itself)
{
    const struct simapp_pod first = {.name = "a", .role = "xpu"};
    const struct simapp_pod second = {.name = "b", .role = "xpu"};
    cr_assert_eq(simapp_apply(&first, 1), 0);
    runner_settle(simapp_runner());
    all_ask();
    cr_assert_eq(simapp_apply(&second, 1), 0);
    runner_settle(simapp_runner());
    cr_assert_eq(simapp_delete("a"), 0);
    cr_assert_eq(simapp_delete("b"), 0);
    runner_settle(simapp_runner());
    cr_expect(simapp_has("a"));
    cr_expect_not(simapp_has("b"));
}

/* What an older extender has bound may run: it wrote nothing down. */
Test(runner_fed, of_an_older_state_nothing_is_known)
{
    place_pair();
    server_stop(simapp_server);
    char path[256];
    sqlite3 *db = NULL;
    (void)snprintf(path, sizeof path, "%s/biga.db", dir);
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, "DELETE FROM meta WHERE key LIKE 'fed/%'",
                              NULL, NULL, NULL),
                 SQLITE_OK);
    cr_assert_gt(sqlite3_changes(db), 0);
    cr_assert_eq(sqlite3_close(db), SQLITE_OK);
    simapp_begin_again(dir);
    cr_assert_eq(simapp_delete("h"), 0);
    runner_settle(simapp_runner());
    cr_expect_eq(simapp_allocations(), 2);
    cr_expect_eq(simapp_release("h", "may still run on node node00"), 409);
    simapp_settle();
    expect_all_gone();
}

/* One that was started again in between writes no mark either. */
Test(runner_fed, of_an_older_program_in_between_nothing_is_known)
{
    cleanup_free char *path = xasprintf("%s/biga.db-mark", dir);
    size_t size;
    place_pair();
    server_stop(simapp_server);
    cleanup_free char *mark = testdata_read(path, &size);
    simapp_begin_again(dir);
    cr_assert_eq(simapp_delete("h"), 0);
    expect_all_gone();
    place_pair();
    server_stop(simapp_server);
    FILE *f = fopen(path, "w");
    cr_assert(f);
    cr_assert_eq(fwrite(mark, 1, size, f), size);
    cr_assert_eq(fclose(f), 0);
    simapp_begin_again(dir);
    cr_assert_eq(simapp_delete("h"), 0);
    runner_settle(simapp_runner());
    cr_expect_eq(simapp_allocations(), 2);
    simapp_settle();
    expect_all_gone();
}

/* Two answers to one node cross. */
Test(runner_fed, what_was_told_stays_told)
{
    place_pair();
    struct writer *w = server_app(simapp_server)->writer;
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    const struct allocation *a = alloc_index_find(s->allocations, "ns", "x");
    struct writer_op told = {
        .kind = WRITER_FED, .node = a->node, .number = a->number};
    cr_assert_eq(writer_run(w, &told), 0);
    told.number = 1;
    cr_assert_eq(writer_run(w, &told), 0);
    simapp_restart(dir);
    w = server_app(simapp_server)->writer;
    cr_expect_eq(writer_fed(w, a->node), a->number);
}

/* Nor does a node that runs no pods any more say that they have ended: the
 * refusal names what to do. */
Test(runner_fed, of_a_node_that_runs_none_the_ways_out_are_told)
{
    static const char ways[] =
        "start its biga-advertiser with --actuate, or stop that until the "
        "node is stale, see that nothing of the pod runs there, and release "
        "it then";
    cleanup_with(topo) struct topo *none =
        simhost_runs(simapp_nodes[0].name, SIMAPP_CARDS, TOPO_RUNS_NONE, 0);
    place_pair();
    all_ask();
    cr_assert_eq(simapp_delete("h"), 0);
    runner_settle(simapp_runner());
    cr_expect_eq(simapp_release("h", "when that node is gone for good"), 409);
    world_publish_topo(simapp_server, none, 2);
    runner_settle(simapp_runner());
    cr_expect_eq(simapp_allocations(), 2);
    cr_expect_eq(simapp_release("h", ways), 409);
}

/* The node was told while somebody gave it back. */
Test(runner_fed, whoever_is_first_has_it)
{
    struct writer *w = server_app(simapp_server)->writer;
    place_pair();
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    const struct allocation *a = alloc_index_find(s->allocations, "ns", "x");
    struct writer_op told = {
        .kind = WRITER_FED, .node = a->node, .number = a->number};
    struct writer_op back = {.kind = WRITER_FREE,
                             .namespace = "ns",
                             .pod = "x",
                             .uid = a->demand.uid,
                             .unfed = true};
    cr_assert_eq(writer_run(w, &told), 0);
    cr_expect_eq(writer_run(w, &back), -EBUSY);
    cr_expect(strstr(back.error.text, "has just been told"), "%s",
              back.error.text);
    back.kind = WRITER_RELEASE;
    cr_expect_eq(writer_run(w, &back), -EBUSY);
    cr_expect_eq(simapp_allocations(), 2);
    back.unfed = false;
    cr_expect_eq(writer_run(w, &back), 0);
}
