/* A start tells what is different since, once all is known, and nothing
 * twice. */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "extender/history/history.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "tests/lib/sim/simpast.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/tmpdir.h"

static char *dir;
static struct writer *writer;
static struct history *history;
static atomic_bool ready;

static bool is_ready(void *ctx)
{
    (void)ctx;
    return atomic_load(&ready);
}

static void begin(void)
{
    struct error err = {0};
    const struct history_config c = {.dir = dir,
                                     .days = 30,
                                     .mib = 1024,
                                     .writer = writer,
                                     .is_ready = is_ready};
    cr_assert_eq(history_start(&c, &history, &err), 0, "%s", err.text);
}

static void end(void)
{
    history_stop(history);
    writer_stop(writer);
    history_destroy(history);
}

static void set_up(void)
{
    log_set_level(LOG_ERROR + 1);
    dir = tmpdir_create();
    writer = sim_writer(NULL);
    atomic_store(&ready, true);
    begin();
}

static void tear_down(void)
{
    end();
    tmpdir_remove(dir);
}

TestSuite(history_start, .init = set_up, .fini = tear_down);

/* Another replica, to which the API server has told nothing yet. */
static void start_over(void)
{
    end();
    writer = sim_writer(NULL);
    atomic_store(&ready, false);
    begin();
}

static void publish(const char *node)
{
    cr_assert_eq(sim_publish(writer, node, 4, "boot", 1), 0);
}

static void bind_pod(const char *pod, const char *node)
{
    struct demand d = sim_pod(pod, ROLE_HOST, "", 0);
    struct error err = {0};
    cr_assert_eq(sim_bind(writer, &d, node, NULL, &err), 0, "%s", err.text);
}

static void expect_events(const char *object, const char *lines)
{
    cleanup_str struct str out = STR_INIT(1 << 20);
    sim_past(history, object, &out);
    cr_expect_str_eq(str_text(&out), lines);
}

Test(history_start, what_came_before_all_was_known_ends_nothing)
{
    cleanup_str struct str before = STR_INIT(1 << 20);
    publish("n1");
    publish("n2");
    bind_pod("p1", "n1");
    sim_past(history, "ns/p1", &before);
    start_over();
    struct sim_past_hold *hold = sim_past_hold(history);
    publish("n1"); /* and neither n2 nor the pod */
    publish("n2");
    bind_pod("p1", "n1");
    atomic_store(&ready, true); /* before the first of them is looked at */
    sim_past_go_on(hold);
    expect_events("ns/p1", str_text(&before));
    expect_events("n1", "node n1 NodeReady: \n");
    expect_events("n2", "node n2 NodeReady: \n");
}

Test(history_start, nothing_is_told_until_all_is_known)
{
    publish("n1");
    bind_pod("p1", "n1");
    bind_pod("p2", "n1");
    expect_events("n1", "node n1 NodeReady: \n");
    start_over();
    expect_events("n1", "node n1 NodeReady: \n");
    publish("n2");
    expect_events("n2", "");
    publish("n1");
    bind_pod("p1", "n1");
    atomic_store(&ready, true);
    bind_pod("p3", "n2");
    expect_events("n1", "node n1 NodeReady: \n");
    expect_events("n2", "node n2 NodeReady: \n");
    expect_events("ns/p2",
                  "pod ns/p2 Bound: card 0000:13:00.0; NODE\n"
                  "pod ns/p2 Released: its place was given back before this "
                  "start, or while nothing was recorded\n");
}

Test(history_start, a_pod_that_has_another_place_gave_its_own_back)
{
    cleanup_str struct str out = STR_INIT(1 << 20);
    publish("n1");
    publish("n2");
    bind_pod("p1", "n1");
    sim_past(history, NULL, &out);
    start_over();
    publish("n1");
    publish("n2");
    bind_pod("p1", "n2");
    atomic_store(&ready, true);
    expect_events("ns/p1", "pod ns/p1 Bound: card 0000:12:00.0; NODE\n"
                           "pod ns/p1 Released: it has another place now\n"
                           "pod ns/p1 Bound: card 0000:12:00.0; NODE\n");
}

/* --- jobs ----------------------------------------------------------------- */

static void bind_member(int pair, int size)
{
    struct error err = {0};
    char name[8];
    (void)snprintf(name, sizeof name, "m%d", pair);
    struct demand d = sim_member(name, ROLE_HOST, "ring", pair, size);
    cr_assert_eq(sim_bind(writer, &d, "n1", NULL, &err), 0, "%s", err.text);
}

/* As the API server tells another replica of a pod: places that were held are
 * not known there. */
static void start_over_with(const char *pod)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(writer);
    struct allocation *a = (struct allocation *)alloc_index_find(s->allocations,
                                                                 "ns", pod);
    cr_assert(a);
    start_over();
    publish("n1");
    struct writer_op op = {.kind = WRITER_ADOPT, .allocation = a};
    cr_assert_eq(writer_run(writer, &op), 0, "%s", op.error.text);
    atomic_store(&ready, true);
}

Test(history_start, a_job_that_was_planned_and_bound_meanwhile_is_told_of)
{
    start_over();
    publish("n1");
    bind_member(0, 2);
    atomic_store(&ready, true);
    expect_events("ns/ring",
                  "job ns/ring Planned: places for 2 of 2 pairs are held\n");
    start_over();
    publish("n1");
    bind_member(0, 2);
    bind_member(1, 2);
    atomic_store(&ready, true);
    expect_events("ns/ring",
                  "job ns/ring Planned: places for 2 of 2 pairs are held\n"
                  "job ns/ring Bound: all of its 2 pairs have a place\n");
}

/* Of one moment, too. */
static void expect_order(void)
{
    static const char *const order[] = {
        "job ns/ring Planned: places for 2 of 2 pairs",
        "pod ns/m0 of ns/ring Bound: ", "pod ns/m1 of ns/ring Bound: ",
        "job ns/ring Bound: all of its 2 pairs"};
    cleanup_str struct str out = STR_INIT(1 << 20);
    sim_past(history, NULL, &out);
    const char *at = str_text(&out);
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        at = strstr(at, order[i]);
        cr_assert(at, "no \"%s\" in its turn in\n%s", order[i], str_text(&out));
    }
}

Test(history_start, a_job_is_planned_before_its_pods_are_bound)
{
    publish("n1");
    history_settle(history); /* it is told of changes from here on */
    bind_member(0, 2);
    bind_member(1, 2);
    expect_order();
}

Test(history_start, a_start_tells_it_in_this_order_too)
{
    start_over();
    publish("n1");
    bind_member(0, 2);
    atomic_store(&ready, true);
    history_settle(history);
    bind_member(1, 2);
    expect_order();
}

Test(history_start, a_job_that_ended_meanwhile_is_told_of)
{
    cleanup_str struct str out = STR_INIT(1 << 20);
    publish("n1");
    bind_member(0, 2);
    sim_past(history, NULL, &out);
    start_over();
    publish("n1");
    atomic_store(&ready, true);
    expect_events("ns/ring",
                  "job ns/ring Planned: places for 2 of 2 pairs are held\n"
                  "job ns/ring Ended: none of its pods has a place any "
                  "more\n");
    sim_past(history, "ns/m0", &out);
    cr_expect(strstr(str_text(&out), "pod ns/m0 of ns/ring Released: its"),
              "%s", str_text(&out));
}

Test(history_start, places_that_were_held_for_a_job_are_told_to_have_gone)
{
    history_post(history, &(struct history_event){.kind = HISTORY_JOB,
                                                  .reason = HISTORY_PLANNED,
                                                  .object = "ns/ring",
                                                  .job = "ns/ring",
                                                  .pair = -1,
                                                  .message = "held"});
    history_settle(history);
    for (int i = 0; i < 2; i++) { /* and once */
        start_over();
        atomic_store(&ready, true);
        expect_events("ns/ring",
                      "job ns/ring Planned: held\n"
                      "job ns/ring Released: the places held for it were "
                      "given back before this start, or while nothing was "
                      "recorded\n");
    }
}

Test(history_start, places_that_are_held_again_are_told_once)
{
    cleanup_str struct str before = STR_INIT(1 << 20);
    publish("n1");
    bind_member(0, 3);
    sim_past(history, NULL, &before);
    start_over_with("m0");
    expect_events(NULL, str_text(&before));
    bind_member(1, 3); /* which has the last one held again */
    expect_events("ns/ring",
                  "job ns/ring Planned: places for 3 of 3 pairs are held\n");
    bind_member(2, 3);
    expect_events("ns/ring",
                  "job ns/ring Planned: places for 3 of 3 pairs are held\n"
                  "job ns/ring Bound: all of its 3 pairs have a place\n");
}
