/* When pods are judged and woken, in virtual time: what the thread of waker.c
 * does, with judgements and calls that take as long as they are said to. */
#include "extender/leader/wake_pace.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "extender/leader/waiting_pods.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/simstate.h"

enum { MANY = 2000, SOON_MS = 1000 };

struct world {
    struct wake_pace pace;
    struct waiting_pods *waiting;
    int64_t now_ms, judge_ms, call_ms; /* how long each takes */
    uint64_t number;                   /* of the snapshot */
    bool room[MANY];                   /* for each pod */
    int64_t woken_ms[MANY];            /* -1: it was not */
    unsigned n_woken;
    int64_t judging_ms;
    struct waiting_pods_pod *round;
    size_t n_round, n_judged;
};

static struct kube_pod object(unsigned i)
{
    struct demand d = sim_pod("p", ROLE_HOST, "", 0);
    (void)snprintf(d.uid, sizeof d.uid, "%u", i);
    return (struct kube_pod){.demand = d,
                             .phase = POD_PENDING,
                             .xpu_ready = -1,
                             .unschedulable = true};
}

/* So many pods that are put aside: refused, or nothing is known of them. */
static struct world *start(unsigned n, bool refused)
{
    struct world *w = xcalloc(1, sizeof *w);
    *w = (struct world){.waiting = waiting_pods_create(),
                        .now_ms = 1000000,
                        .judge_ms = 1,
                        .call_ms = 5,
                        .number = 1};
    wake_pace_init(&w->pace);
    for (unsigned i = 0; i < MANY; i++)
        w->woken_ms[i] = -1;
    for (unsigned i = 0; i < n; i++) {
        struct kube_pod pod = object(i);
        waiting_pods_put(w->waiting, &pod);
        if (refused)
            waiting_pods_asked(w->waiting, pod.demand.uid, w->number, true,
                               NULL);
    }
    return w;
}

static void finish(struct world *w)
{
    waiting_pods_destroy(w->waiting);
    free(w->round);
    free(w);
}

/* There is room for these now. */
static void give_room(struct world *w, unsigned first, unsigned n)
{
    for (unsigned i = first; i < first + n; i++)
        w->room[i] = true;
    w->number++;
    wake_pace_hear(&w->pace, w->now_ms);
}

static bool look_at(struct world *w, const char *uid,
                    struct waiting_pods_verdict *ret_verdict)
{
    bool fits = w->room[strtoul(uid, NULL, 10)];
    *ret_verdict = (struct waiting_pods_verdict){w->number, fits, fits};
    w->now_ms += w->judge_ms;
    w->judging_ms += w->judge_ms;
    int64_t ripe_ms = waiting_pods_judge(w->waiting, uid, ret_verdict,
                                         w->now_ms);
    wake_pace_judged(&w->pace, w->judge_ms * 1000000, ripe_ms);
    return ripe_ms <= w->now_ms;
}

static void wake(struct world *w)
{
    struct waiting_pods_pod pod;
    struct waiting_pods_verdict v;
    int64_t due_ms;
    wake_pace_look(&w->pace, w->now_ms);
    if (!waiting_pods_next(w->waiting, w->now_ms, &pod, &due_ms)) {
        wake_pace_none(&w->pace, due_ms);
        return;
    }
    if (!look_at(w, pod.uid, &v))
        return;
    wake_pace_call(&w->pace, w->now_ms);
    w->now_ms += w->call_ms;
    waiting_pods_woken(w->waiting, pod.uid, &v, 0, w->now_ms);
    w->woken_ms[strtoul(pod.uid, NULL, 10)] = w->now_ms;
    w->n_woken++;
}

/* Until that time, or until nothing is left to do. */
static void run(struct world *w, int64_t until_ms)
{
    while (w->now_ms < until_ms) {
        int64_t due_ms;
        switch (wake_pace_next(&w->pace, w->now_ms, &due_ms)) {
        case WAKE_PACE_WAIT:
            cr_assert_gt(due_ms, w->now_ms);
            w->now_ms = due_ms < until_ms ? due_ms : until_ms;
            break;
        case WAKE_PACE_BEGIN:
            wake_pace_begin(&w->pace);
            free(w->round);
            w->round = waiting_pods_list(w->waiting, w->number, &w->n_round);
            w->n_judged = 0;
            break;
        case WAKE_PACE_JUDGE: {
            struct waiting_pods_verdict v;
            if (w->n_judged < w->n_round)
                (void)look_at(w, w->round[w->n_judged++].uid, &v);
            else
                wake_pace_end(&w->pace, w->now_ms);
            break;
        }
        case WAKE_PACE_WAKE:
            wake(w);
        }
    }
}

/* --- news is not kept waiting -------------------------------------------- */

/* 200 have room; while they are woken one more has. */
Test(wake_pace, one_more_after_a_burst)
{
    struct world *w = start(201, true);
    w->room[200] = false;
    give_room(w, 0, 200);
    run(w, w->now_ms + 3000);
    cr_expect_gt(w->n_woken, 40);
    cr_expect_lt(w->n_woken, 80, "they are spaced");
    struct kube_pod urgent = object(200);
    urgent.demand.priority = 1;
    waiting_pods_put(w->waiting, &urgent);
    int64_t news_ms = w->now_ms;
    give_room(w, 200, 1);
    run(w, news_ms + 60000);
    cr_expect_eq(w->n_woken, 201);
    cr_expect_geq(w->woken_ms[200], news_ms);
    cr_expect_lt(w->woken_ms[200] - news_ms, 3 * SOON_MS, "%lld ms",
                 (long long)(w->woken_ms[200] - news_ms));
    finish(w);
}

/* All that have room are woken, and then comes one more. */
Test(wake_pace, one_more_after_all)
{
    struct world *w = start(201, true);
    give_room(w, 0, 200);
    while (w->n_woken < 200)
        run(w, w->now_ms + 50);
    int64_t news_ms = w->now_ms;
    give_room(w, 200, 1);
    run(w, news_ms + 60000);
    cr_expect_eq(w->n_woken, 201);
    cr_expect_lt(w->woken_ms[200] - news_ms, SOON_MS, "%lld ms",
                 (long long)(w->woken_ms[200] - news_ms));
    finish(w);
}

/* An API server that does not answer keeps the next ones for as long as its
 * call lasts. */
Test(wake_pace, one_more_after_a_call_that_hangs)
{
    struct world *w = start(2, true);
    w->call_ms = 3000;
    give_room(w, 0, 1);
    while (!w->n_woken)
        run(w, w->now_ms + 1);
    run(w, w->now_ms + 300); /* the round is over */
    w->call_ms = 5;
    int64_t news_ms = w->now_ms;
    give_room(w, 1, 1);
    run(w, news_ms + 60000);
    cr_expect_eq(w->n_woken, 2);
    cr_expect_lt(w->woken_ms[1] - news_ms, SOON_MS, "%lld ms",
                 (long long)(w->woken_ms[1] - news_ms));
    finish(w);
}

/* A new leader has many to wake, of which it knows nothing; one of them is
 * asked about and refused meanwhile, and has room then. */
Test(wake_pace, one_more_after_a_failover)
{
    enum { LAST = MANY - 1 };
    struct world *w = start(MANY, false);
    give_room(w, 0, LAST);
    run(w, w->now_ms + 10000);
    char uid[16];
    (void)snprintf(uid, sizeof uid, "%u", (unsigned)LAST);
    waiting_pods_asked(w->waiting, uid, w->number, true, NULL);
    int64_t news_ms = w->now_ms;
    give_room(w, LAST, 1);
    run(w, news_ms + 100000);
    cr_expect_eq(w->n_woken, MANY);
    cr_expect_lt(w->woken_ms[LAST] - news_ms, 12 * SOON_MS, "%lld ms",
                 (long long)(w->woken_ms[LAST] - news_ms));
    finish(w);
}

/* --- and costs little ------------------------------------------------------ */

/* Something changes all the time, and nobody has room: a fifth at most. */
Test(wake_pace, judging_takes_a_fifth)
{
    struct world *w = start(500, true);
    int64_t begun_ms = w->now_ms;
    while (w->now_ms < begun_ms + 100000) {
        give_room(w, 0, 0);
        run(w, w->now_ms + 10);
    }
    int64_t took_ms = w->now_ms - begun_ms;
    cr_expect_leq(w->judging_ms, took_ms / 5 + 500);
    cr_expect_geq(w->judging_ms, took_ms / 6, "each round takes 500 ms");
    cr_expect_eq(w->n_woken, 0);
    finish(w);
}

/* Those that were to be woken, and have no room any more, keep nobody from
 * being judged. */
Test(wake_pace, room_that_is_gone)
{
    struct world *w = start(MANY, true);
    w->judge_ms = 2;
    give_room(w, 0, MANY - 1);
    run(w, w->now_ms + 5000);
    memset(w->room, 0, sizeof w->room);
    unsigned n_woken = w->n_woken;
    int64_t news_ms = w->now_ms;
    give_room(w, MANY - 1, 1);
    run(w, news_ms + 60000);
    cr_expect_eq(w->n_woken, n_woken + 1);
    cr_expect_lt(w->woken_ms[MANY - 1] - news_ms, 40 * SOON_MS, "%lld ms",
                 (long long)(w->woken_ms[MANY - 1] - news_ms));
    finish(w);
}

/* The first change begins the grace; while somebody else leads nothing is
 * done. */
Test(wake_pace, grace_and_idleness)
{
    struct wake_pace p;
    int64_t due_ms;
    wake_pace_init(&p);
    cr_expect_eq(wake_pace_next(&p, 1000, &due_ms), WAKE_PACE_WAIT);
    cr_expect_eq(due_ms, INT64_MAX);
    wake_pace_hear(&p, 1000);
    wake_pace_hear(&p, 1100);
    cr_expect_eq(wake_pace_next(&p, 1100, &due_ms), WAKE_PACE_WAIT);
    cr_expect_eq(due_ms, 1000 + WAKE_PACE_GRACE_MS);
    cr_expect_eq(wake_pace_next(&p, due_ms, &due_ms), WAKE_PACE_BEGIN);
    wake_pace_idle(&p, 3000);
    cr_expect_eq(wake_pace_next(&p, 2999, &due_ms), WAKE_PACE_WAIT);
    cr_expect_eq(due_ms, 3000);
    cr_expect_eq(wake_pace_next(&p, 3000, &due_ms), WAKE_PACE_BEGIN);
}
