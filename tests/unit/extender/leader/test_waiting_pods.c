/* Pods that were refused, and what wakes them: every way in which room
 * appears, in virtual time. */
#include "extender/leader/waiting_pods.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/keep/writer.h"
#include "extender/leader/waker.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/sim/simstate.h"

enum { BEGIN_MS = 1000000 };

struct rig {
    struct writer *writer;
    struct waiting_pods *waiting;
    struct demand pod; /* that waits */
};

static struct kube_pod object(const struct demand *d)
{
    return (struct kube_pod){.demand = *d,
                             .phase = POD_PENDING,
                             .xpu_ready = -1,
                             .unschedulable = true};
}

/* One host with so many cards, and a pod that its watch shows as put aside. */
static struct rig start(unsigned n_cards)
{
    struct rig r = {.waiting = waiting_pods_create(),
                    .pod = sim_pod("waits", ROLE_HOST, "", 0)};
    log_set_level(LOG_ERROR);
    clock_set_fake(BEGIN_MS);
    r.writer = sim_writer(NULL);
    cr_assert_eq(sim_publish(r.writer, "n0", n_cards, "boot", 1), 0);
    return r;
}

static void finish(struct rig *r)
{
    waiting_pods_destroy(r->waiting);
    writer_stop(r->writer);
    clock_set_fake(-1);
}

static void run(struct rig *r, struct writer_op op)
{
    cr_assert_eq(writer_run(r->writer, &op), 0, "%s", op.error.text);
}

/* Filter is asked about the pod, and refuses it. */
static void refuse(struct rig *r)
{
    struct waiting_pods_verdict v;
    struct kube_pod pod = object(&r->pod);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(r->writer);
    waker_judge(NULL, s, &r->pod, NULL, &v);
    cr_assert_not(v.fits_named, "it fits");
    waiting_pods_put(r->waiting, &pod);
    waiting_pods_asked(r->waiting, r->pod.uid, s->number, true, NULL);
}

/* The same while another has the place, which is free afterwards. */
static void refuse_full(struct rig *r)
{
    struct demand other = sim_pod("other", ROLE_HOST, "", 0);
    cr_assert_eq(sim_bind(r->writer, &other, "n0", NULL, NULL), 0);
    refuse(r);
    cr_assert_eq(sim_release(r->writer, "other"), 0);
}

static int64_t judge(struct rig *r, const char *uid,
                     struct waiting_pods_verdict *ret_verdict)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(r->writer);
    cleanup_with(candidates) struct candidates *named =
        waiting_pods_named(r->waiting, uid);
    waker_judge(NULL, s, &r->pod, named, ret_verdict);
    return waiting_pods_judge(r->waiting, uid, ret_verdict, clock_ms());
}

/* When ours may be woken, or will be; INT64_MAX: never. */
static int64_t next_ms(struct rig *r)
{
    struct waiting_pods_pod pod;
    int64_t due_ms = clock_ms();
    (void)waiting_pods_next(r->waiting, clock_ms(), &pod, &due_ms);
    return due_ms;
}

/* One look at the pods: whether ours is woken. */
static bool look_with(struct rig *r, int result)
{
    size_t n;
    struct waiting_pods_pod pod;
    struct waiting_pods_verdict v;
    int64_t due_ms;
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(r->writer);
    cleanup_free struct waiting_pods_pod *list =
        waiting_pods_list(r->waiting, s->number, &n);
    for (size_t i = 0; i < n; i++)
        (void)judge(r, list[i].uid, &v);
    if (!waiting_pods_next(r->waiting, clock_ms(), &pod, &due_ms))
        return false;
    cr_assert_leq(judge(r, pod.uid, &v), clock_ms());
    waiting_pods_woken(r->waiting, pod.uid, &v, result, clock_ms());
    return true;
}

static bool look(struct rig *r)
{
    return look_with(r, 0);
}

/* It is woken once, and not again. */
static void expect_woken(struct rig *r, const char *by)
{
    cr_expect(look(r), "not woken by %s", by);
    cr_expect_not(look(r), "woken twice by %s", by);
}

static struct policy *policy_of(const char *text)
{
    struct policy *policy = NULL;
    struct error err = {0};
    cr_assert_eq(policy_read(text, strlen(text), &policy, &err), 0, "%s",
                 err.text);
    return policy;
}

static void set_policy(struct rig *r, const char *text)
{
    struct policy *policy = policy_of(text);
    run(r, (struct writer_op){.kind = WRITER_SET_POLICY, .policy = policy});
    policy_unref(policy);
}

/* --- what makes room ------------------------------------------------------ */

/* A job of two pairs binds one, and the other place is leased. */
static struct demand lease_place(struct rig *r)
{
    struct demand first = sim_member("a-0", ROLE_HOST, "a", 0, 2);
    cr_assert_eq(sim_bind(r->writer, &first, "n0", NULL, NULL), 0);
    return first;
}

Test(waiting_pods, a_lease_that_ends)
{
    struct rig r = start(2);
    int64_t until_ms = 0;
    cr_expect_not(writer_lease_end(r.writer, "", &until_ms));
    (void)lease_place(&r);
    cr_expect(writer_lease_end(r.writer, "ns/a", &until_ms));
    cr_expect_eq(until_ms, BEGIN_MS + WRITER_LEASE_MS);
    cr_expect(writer_lease_end(r.writer, "", &until_ms));
    cr_expect_not(writer_lease_end(r.writer, "ns/b", &until_ms));
    refuse(&r);
    cr_expect_not(look(&r));
    clock_set_fake(BEGIN_MS + 10000);
    cr_assert_eq(sim_publish(r.writer, "n0", 2, "boot", 2), 0);
    cr_expect_not(look(&r), "it holds on");
    clock_set_fake(BEGIN_MS + WRITER_LEASE_MS - 1);
    cr_assert_eq(sim_publish(r.writer, "n0", 2, "boot", 3), 0);
    cr_expect_not(look(&r));
    clock_set_fake(BEGIN_MS + WRITER_LEASE_MS);
    writer_sweep(r.writer);
    expect_woken(&r, "the end of a lease");
    finish(&r);
}

Test(waiting_pods, a_lease_that_is_given_back)
{
    struct rig r = start(2);
    (void)lease_place(&r);
    refuse(&r);
    cr_assert_eq(sim_release(r.writer, "a/1"), 0);
    expect_woken(&r, "the operator, who gives back what is held");
    finish(&r);
}

Test(waiting_pods, a_release)
{
    struct rig r = start(1);
    struct demand other = sim_pod("other", ROLE_HOST, "", 0);
    cr_assert_eq(sim_bind(r.writer, &other, "n0", NULL, NULL), 0);
    refuse(&r);
    cr_assert_eq(sim_release(r.writer, "other"), 0);
    expect_woken(&r, "a release");
    finish(&r);
}

Test(waiting_pods, a_follower_that_takes_over)
{
    struct rig r = start(2);
    (void)lease_place(&r);
    refuse(&r);
    run(&r, (struct writer_op){.kind = WRITER_FOLLOW});
    cr_expect(look(&r), "what a leader of before held is free");
    finish(&r);

    /* what another replica has answered is not known */
    r = start(1);
    struct kube_pod pod = object(&r.pod);
    waiting_pods_put(r.waiting, &pod);
    expect_woken(&r, "a new leader");
    waiting_pods_again(r.waiting);
    cr_expect_not(look(&r), "not in short order");
    clock_set_fake(BEGIN_MS + WAITING_PODS_PAUSE_MIN_MS);
    expect_woken(&r, "the next leader");
    finish(&r);
}

Test(waiting_pods, a_quota)
{
    struct rig r = start(1);
    set_policy(&r, "{\"quotas\":[{\"namespace\":\"ns\",\"cards\":0}]}");
    refuse(&r);
    set_policy(&r, "{\"quotas\":[{\"namespace\":\"ns\",\"cards\":1}]}");
    expect_woken(&r, "a quota");
    finish(&r);
}

Test(waiting_pods, a_share_of_a_service)
{
    struct rig r = start(1);
    r.pod = sim_need(sim_pod("waits", ROLE_XPU, "", 0), 8, 1024);
    set_policy(&r, "{\"services\":[{\"namespace\":\"infra\",\"name\":\"s\","
                   "\"cores\":12,\"memoryMiB\":1024}]}");
    refuse(&r);
    set_policy(&r, "{\"services\":[{\"namespace\":\"infra\",\"name\":\"s\","
                   "\"cores\":1,\"memoryMiB\":1024}]}");
    expect_woken(&r, "a service's share");
    finish(&r);
}

Test(waiting_pods, a_node_that_is_heard_again)
{
    struct rig r = start(1);
    clock_set_fake(BEGIN_MS + 60000);
    writer_sweep(r.writer);
    refuse(&r);
    run(&r, (struct writer_op){.kind = WRITER_HEARD, .node = "n0"});
    writer_sweep(r.writer);
    expect_woken(&r, "a heartbeat");
    finish(&r);
}

Test(waiting_pods, a_node_that_is_back)
{
    struct rig r = start(1);
    run(&r,
        (struct writer_op){.kind = WRITER_LOST, .node = "n0", .gone = true});
    refuse(&r);
    run(&r, (struct writer_op){.kind = WRITER_LOST, .node = "n0"});
    expect_woken(&r, "a Node that is ready again");
    finish(&r);
}

Test(waiting_pods, a_slice_that_changes)
{
    struct rig r = start(1);
    struct demand other = sim_pod("other", ROLE_HOST, "", 0);
    cr_assert_eq(sim_bind(r.writer, &other, "n0", NULL, NULL), 0);
    refuse(&r);
    cr_assert_eq(sim_publish(r.writer, "n0", 2, "boot", 2), 0);
    expect_woken(&r, "one more card, or one that is well again");
    struct rig next = start(1);
    struct demand d = sim_pod("other", ROLE_HOST, "", 0);
    cr_assert_eq(sim_bind(next.writer, &d, "n0", NULL, NULL), 0);
    refuse(&next);
    cr_assert_eq(sim_publish(next.writer, "n1", 1, "boot", 1), 0);
    expect_woken(&next, "a node that has come");
    finish(&next);
    waiting_pods_destroy(r.waiting);
    writer_stop(r.writer);
}

/* A whole job has room once the host has. */
Test(waiting_pods, room_of_a_host)
{
    struct rig r = start(2);
    const struct writer_room none = {.node = "n0", .room = {INT64_MAX, 64, 10}};
    const struct writer_room some = {.node = "n0",
                                     .room = {INT64_MAX, 1 << 20, 10}};
    r.pod = sim_member("waits", ROLE_HOST, "job", 0, 2);
    r.pod.memory_mib = 64;
    run(&r,
        (struct writer_op){.kind = WRITER_ROOMS, .rooms = &none, .n_rooms = 1});
    refuse(&r);
    run(&r,
        (struct writer_op){.kind = WRITER_ROOMS, .rooms = &some, .n_rooms = 1});
    expect_woken(&r, "room on the host");
    finish(&r);
}

/* --- when it is not ---------------------------------------------------------- */

Test(waiting_pods, what_kubernetes_has_told_already)
{
    struct rig r = start(1);
    struct demand other = sim_pod("other", ROLE_HOST, "", 0);
    cr_assert_eq(sim_bind(r.writer, &other, "n0", NULL, NULL), 0);
    refuse(&r);
    cr_assert_eq(sim_release(r.writer, "other"), 0);
    struct demand third = sim_pod("third", ROLE_HOST, "", 0);
    cr_assert_eq(sim_bind(r.writer, &third, "n0", NULL, NULL), 0);
    refuse(&r); /* it was tried meanwhile */
    cr_expect_not(look(&r));
    finish(&r);
}

Test(waiting_pods, who_does_not_wait)
{
    struct rig r = start(1);
    struct kube_pod pod = object(&r.pod);
    pod.unschedulable = false;
    waiting_pods_put(r.waiting, &pod);
    cr_expect_not(look(&r), "it is in kube-scheduler's queue");
    pod.unschedulable = pod.gated = true;
    waiting_pods_put(r.waiting, &pod);
    cr_expect_not(look(&r), "it is not to be scheduled");
    pod.gated = false;
    pod.deleting = true;
    waiting_pods_put(r.waiting, &pod);
    cr_expect_not(look(&r));
    pod.deleting = false;
    waiting_pods_put(r.waiting, &pod);
    waiting_pods_gone(r.waiting, r.pod.uid);
    cr_expect_not(look(&r));
    waiting_pods_put(r.waiting, &pod);
    cr_expect(look(&r));
    finish(&r);
}

/* So many seconds, in each of which the place is taken and free again: how
 * often is it woken? */
static unsigned woken_within(struct rig *r, int64_t *from_s, int64_t n_s,
                             int result)
{
    unsigned woken = 0;
    struct demand other = sim_pod("other", ROLE_HOST, "", 0);
    for (int64_t end_s = *from_s + n_s; *from_s < end_s;) {
        clock_set_fake(BEGIN_MS + ++*from_s * 1000);
        cr_assert_eq(sim_publish(r->writer, "n0", 1, "boot", *from_s + 1), 0);
        cr_assert_eq(sim_bind(r->writer, &other, "n0", NULL, NULL), 0);
        cr_expect_not(look(r));
        cr_assert_eq(sim_release(r->writer, "other"), 0);
        woken += look_with(r, result);
    }
    return woken;
}

/* Whoever was woken and is not asked about waits for something else: not each
 * time that a place becomes free, and less and less often. */
Test(waiting_pods, who_is_woken_in_vain)
{
    struct rig r = start(1);
    int64_t s = 0;
    struct kube_pod pod = object(&r.pod);
    waiting_pods_put(r.waiting, &pod);
    cr_expect(look(&r));
    cr_expect_eq(woken_within(&r, &s, 420, 0), 3, "after 1, 2 and 4 minutes");
    cr_expect_eq(woken_within(&r, &s, 5 * 3600, 0), 3 + 4,
                 "after 8, 16 and 32, and then once in an hour");
    refuse_full(&r); /* it is asked about: that begins anew */
    cr_expect(look(&r));
    cr_expect_eq(woken_within(&r, &s, 419, 0), 2);
    finish(&r);
}

/* What the API server refuses for good is not said each few seconds. */
Test(waiting_pods, a_wake_that_is_refused_for_good)
{
    static const int refusals[] = {-EACCES, -EINVAL, -EPROTO, -ENOENT};
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        struct rig r = start(1);
        int64_t s = 0;
        struct waiting_pods_state state;
        refuse_full(&r);
        cr_expect(look_with(&r, refusals[i]));
        waiting_pods_state(r.waiting, r.pod.uid, &state);
        cr_expect_eq(state.woken_ms, -1, "it was told nothing");
        cr_expect_eq(woken_within(&r, &s, 420, refusals[i]), 3, "%s",
                     strerror(-refusals[i]));
        clock_set_fake(BEGIN_MS + s * 1000 + WAITING_PODS_PAUSE_MAX_MS);
        refuse_full(&r);
        expect_woken(&r, "the next refusal");
        waiting_pods_state(r.waiting, r.pod.uid, &state);
        cr_expect_eq(state.woken_ms, clock_ms());
        finish(&r);
    }
}

/* A call that fails is made again; one that is refused each time it is asked
 * about, while it would fit, is woken less and less often. */
Test(waiting_pods, a_call_that_fails)
{
    struct rig r = start(1);
    struct kube_pod pod = object(&r.pod);
    waiting_pods_put(r.waiting, &pod);
    cr_expect(look_with(&r, -EAGAIN));
    cr_expect_not(look(&r));
    cr_expect_eq(next_ms(&r), BEGIN_MS + WAITING_PODS_PAUSE_MIN_MS);
    clock_set_fake(BEGIN_MS + WAITING_PODS_PAUSE_MIN_MS);
    expect_woken(&r, "the second call");
    struct waiting_pods_state state;
    waiting_pods_state(r.waiting, r.pod.uid, &state);
    cr_expect(state.aside);
    cr_expect_eq(state.woken_ms, BEGIN_MS + WAITING_PODS_PAUSE_MIN_MS);
    cr_expect_eq(next_ms(&r), INT64_MAX, "nothing is left");
    finish(&r);
}

/* Who waits for Biga goes before who may wait for anything; then who matters
 * more, and then who came first. */
Test(waiting_pods, in_order)
{
    struct waiting_pods *w = waiting_pods_create();
    static const struct {
        const char *uid;
        int64_t priority;
        bool refused;
    } rows[] = {{"low", 0, true},  {"odd", 1000, false},    {"high", 10, true},
                {"late", 0, true}, {"later odd", 0, false}, {"also", 10, true}};
    static const char *const order[] = {"uid-high", "uid-also",
                                        "uid-low",  "uid-late",
                                        "uid-odd",  "uid-later odd"};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct demand d = sim_pod(rows[i].uid, ROLE_XPU, "", 0);
        d.priority = rows[i].priority;
        struct kube_pod pod = object(&d);
        waiting_pods_put(w, &pod);
        if (rows[i].refused)
            waiting_pods_asked(w, d.uid, 1, true, NULL);
    }
    size_t n;
    cleanup_free struct waiting_pods_pod *list = waiting_pods_list(w, 2, &n);
    cr_assert_eq(n, ARRAY_LEN(order));
    for (size_t i = 0; i < n; i++)
        cr_expect_str_eq(list[i].uid, order[i]);
    waiting_pods_destroy(w);
}
