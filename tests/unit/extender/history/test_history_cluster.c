/* What the API server says of pods becomes history, once. */
#include "extender/history/history_cluster.h"

#include <criterion/criterion.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/tmpdir.h"

static char *dir;
static struct writer *writer;
static struct history *history;
static struct history_cluster *cluster;
static struct pod_listener listener;

static void set_up(void)
{
    struct error err = {0};
    log_set_level(LOG_ERROR + 1);
    dir = tmpdir_create();
    writer = sim_writer(NULL);
    const struct history_config c = {
        .dir = dir, .days = 30, .mib = 1024, .writer = writer};
    cr_assert_eq(history_start(&c, &history, &err), 0, "%s", err.text);
    cluster = history_cluster_create(history);
    listener = history_cluster_listener(cluster);
}

static void tear_down(void)
{
    history_stop(history);
    writer_stop(writer);
    history_cluster_destroy(cluster);
    history_destroy(history);
    tmpdir_remove(dir);
}

TestSuite(history_cluster, .init = set_up, .fini = tear_down);

static void put(const char *name, enum pod_phase phase, bool ready,
                const char *reason)
{
    struct kube_pod pod = {.phase = phase, .ready = ready};
    pod.demand = sim_pod(name, ROLE_HOST, "ring", 3);
    (void)snprintf(pod.node, sizeof pod.node, "n1");
    if (reason)
        pod.reason = (struct jtext){reason, strlen(reason), false};
    listener.put(listener.ctx, &pod);
}

struct asked {
    struct history_question question; /* first */
    struct str out;
    sem_t done;
};

static void add_line(void *ctx, const struct history_event *e)
{
    str_addf(ctx, "%s %s %s %s %d: %s\n", e->object, e->node, e->job,
             history_reason_name(e->reason), e->pair, e->message);
}

static void answer(struct history_question *q, struct history_reader *r)
{
    struct asked *a = (struct asked *)q;
    const struct history_filter f = {
        .kind = HISTORY_KINDS, .reason = HISTORY_REASONS, .limit = 100};
    uint64_t next;
    if (r)
        (void)history_read_events(r, &f, add_line, &a->out, &next, &q->error);
    (void)sem_post(&a->done);
}

static void expect_events(const char *lines)
{
    struct asked a = {.question = {.answer = answer}, .out = STR_INIT(65536)};
    history_settle(history);
    cr_assert_eq(sem_init(&a.done, 0, 0), 0);
    cr_assert_eq(history_ask(history, &a.question), 0);
    while (sem_wait(&a.done) != 0)
        ;
    (void)sem_destroy(&a.done);
    cr_expect_str_eq(str_text(&a.out), lines);
    str_fini(&a.out);
}

Test(history_cluster, what_was_so_before_the_list_is_not_told)
{
    put("a", POD_RUNNING, true, NULL);
    put("b", POD_FAILED, false, "Error");
    listener.listed(listener.ctx);
    put("a", POD_RUNNING, true, NULL);
    put("b", POD_FAILED, false, "Error");
    expect_events("");
    listener.gone(listener.ctx, "uid-a");
    listener.gone(listener.ctx, "uid-b");
    listener.gone(listener.ctx, "uid-unknown");
    expect_events("ns/a n1 ns/ring Ended 3: it was deleted\n");
}

static void tell(const char *pod, enum history_reason reason)
{
    history_post(history, &(struct history_event){.kind = HISTORY_POD,
                                                  .reason = reason,
                                                  .object = pod,
                                                  .pair = -1});
}

Test(history_cluster, what_happened_while_nobody_looked_is_told_once)
{
    tell("ns/started", HISTORY_BOUND);
    tell("ns/failed", HISTORY_BOUND);
    tell("ns/failed", HISTORY_STARTED);
    tell("ns/same", HISTORY_BOUND);
    tell("ns/same", HISTORY_STARTED);
    history_settle(history);      /* an earlier run has told it */
    for (int i = 0; i < 2; i++) { /* the second start tells nothing */
        put("started", POD_RUNNING, true, NULL);
        put("failed", POD_FAILED, false, "Error");
        put("same", POD_RUNNING, true, NULL);
        put("unknown", POD_RUNNING, true, NULL);
        listener.listed(listener.ctx);
        expect_events("ns/started   Bound -1: \n"
                      "ns/failed   Bound -1: \n"
                      "ns/failed   Started -1: \n"
                      "ns/same   Bound -1: \n"
                      "ns/same   Started -1: \n"
                      "ns/started n1 ns/ring Started 3: \n"
                      "ns/failed n1 ns/ring Failed 3: Error\n");
        history_cluster_destroy(cluster);
        cluster = history_cluster_create(history);
        listener = history_cluster_listener(cluster);
    }
}

Test(history_cluster, a_life_is_told_step_by_step)
{
    listener.listed(listener.ctx);
    put("a", POD_PENDING, false, "ContainerCreating");
    put("a", POD_RUNNING, true, NULL);
    put("a", POD_RUNNING, false, "Crash\\\"Loop");
    put("a", POD_RUNNING, true, NULL);
    put("a", POD_SUCCEEDED, false, "Completed");
    put("a", POD_SUCCEEDED, false, "Completed");
    listener.gone(listener.ctx, "uid-a");
    expect_events("ns/a n1 ns/ring Started 3: \n"
                  "ns/a n1 ns/ring Stopped 3: Crash\\\"Loop\n"
                  "ns/a n1 ns/ring Started 3: \n"
                  "ns/a n1 ns/ring Ended 3: Completed\n");
}

Test(history_cluster, events_that_say_more_are_kept)
{
    const struct events_pod pod = {"ns", "a", "uid-a"};
    history_cluster_told(cluster, &pod, EVENTS_ALIGNED, "as near as can be");
    history_cluster_told(cluster, &pod, EVENTS_REFUSED, "no node fits");
    history_cluster_told(cluster, &pod, EVENTS_CARD_LOST, "card is lost");
    /* which is told of elsewhere, and once */
    history_cluster_told(cluster, &pod, EVENTS_ALIGNMENT_LOST, "it is far");
    expect_events("ns/a   Refused -1: no node fits\n"
                  "ns/a   Lost -1: card is lost\n");
}

Test(history_cluster, each_way_of_eviction_is_kept)
{
    const struct events_pod pod = {"ns", "a", "uid-a"};
    history_cluster_told(cluster, &pod, EVENTS_EVICTED, "lost");
    history_cluster_told(cluster, &pod, EVENTS_DRAINED, "drained");
    history_cluster_told(cluster, &pod, EVENTS_PREEMPTED, "preempted");
    expect_events("ns/a   Evicted -1: lost\n"
                  "ns/a   Evicted -1: drained\n"
                  "ns/a   Evicted -1: preempted\n");
}
