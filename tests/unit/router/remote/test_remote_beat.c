/* When a remote is asked again while nothing happens, and by whom. */
#include <criterion/criterion.h>
#include <poll.h>
#include <string.h>

#include "lib/io/clock.h"
#include "router/remote/remote_private.h"
#include "tests/lib/router/keeprig.h"
#include "tests/lib/router/remoterig.h"
#include "tests/lib/virtual.h"

enum {
    BEGUN_MS = 123456 * REMOTE_LIST_MS,
    RIGS = 2,
    ALL = RIGS * REMOTERIG_THREADS + 1, /* and the beat */
    HANG_MS = 100000,                   /* of virtual time, until it is lost */
    SHORT_MS = 4000,
    MORE = 64 << 10,
    BEATS = 30,
    SEEN_MS = 3000, /* sooner than all is listed anyway */
};

Test(remote_beat, is_one_for_all_remotes)
{
    int64_t beat = remote_next_beat(BEGUN_MS + 1);
    cr_expect_eq(beat, BEGUN_MS + REMOTE_LIST_MS);
    for (int64_t ms = 1; ms < REMOTE_LIST_MS; ms++)
        cr_assert_eq(remote_next_beat(BEGUN_MS + ms), beat);
}

Test(remote_beat, comes_within_the_time_between_lists)
{
    cr_expect_eq(remote_next_beat(BEGUN_MS), BEGUN_MS + REMOTE_LIST_MS);
    cr_expect_gt(remote_next_beat(BEGUN_MS + REMOTE_LIST_MS - 1),
                 BEGUN_MS + REMOTE_LIST_MS - 1);
}

/* --- the thread --------------------------------------------------------------- */

struct beat_rig {
    struct remote_beat *beat;
    struct remoterig rigs[RIGS];
    char containers[RIGS][KEPT_ID_MAX + 1];
};

/* Its next beat is the beat's. */
static bool sleeps(struct remoterig *r)
{
    struct remote *m = r->remote;
    hold_lock(&m->lock);
    return m->sleeps_ms > clock_ms() + REMOTE_LIST_MS && !m->asking &&
           m->health.now == ACT_READY;
}

static void pass(struct beat_rig *b, int64_t ms)
{
    remoterig_pass(&b->rigs[0], ALL - REMOTERIG_THREADS, ms);
}

static void make_pod(struct remoterig *r, char ret_container[KEPT_ID_MAX + 1])
{
    char sandbox[KEPT_ID_MAX + 1];
    struct error err = {0};
    const struct kept s = keeprig_sandbox("u-1", 0);
    cr_assert_eq(remoterig_make(r, &s, sandbox, &err), 0, "%s", err.text);
    const struct kept c = keeprig_container("u-1", sandbox, "c", 0);
    cr_assert_eq(remoterig_make(r, &c, ret_container, &err), 0, "%s", err.text);
}

static void wait_asleep(struct beat_rig *b)
{
    for (size_t i = 0; i < RIGS; i++)
        while (!sleeps(&b->rigs[i]))
            pass(b, 100);
}

/* All are listed, and their threads sleep. */
static void rig_open_idle(struct beat_rig *b, int64_t lost_ms)
{
    struct error err = {0};
    virtual_begin();
    cr_assert_eq(remote_beat_create(&b->beat, &err), 0, "%s", err.text);
    for (size_t i = 0; i < RIGS; i++)
        remoterig_open_beat(&b->rigs[i], b->beat, lost_ms, 0);
    b->rigs[0].beside = &b->rigs[1];
    wait_asleep(b);
}

/* The same, and each has a pod. */
static void rig_open(struct beat_rig *b, int64_t lost_ms)
{
    rig_open_idle(b, lost_ms);
    for (size_t i = 0; i < RIGS; i++)
        make_pod(&b->rigs[i], b->containers[i]);
    pass(b, REMOTE_LIST_MS);
    wait_asleep(b);
}

static void rig_close(struct beat_rig *b)
{
    for (size_t i = 0; i < RIGS; i++)
        remoterig_close(&b->rigs[i]);
    remote_beat_destroy(b->beat);
}

static unsigned lists(struct remoterig *r)
{
    return runtimeserver_calls(r->server, "ListContainers");
}

static unsigned whole_lists(struct remoterig *r)
{
    return runtimeserver_calls(r->server, "ListPodSandbox");
}

Test(remote_beat, lists_go_on_while_threads_sleep)
{
    struct beat_rig b;
    rig_open(&b, HANG_MS);
    struct remoterig *r = &b.rigs[1];
    unsigned n = lists(r), whole = whole_lists(r), slept = 0;
    for (int i = 0; i < BEATS; i++) {
        pass(&b, REMOTE_LIST_MS);
        slept += sleeps(r);
    }
    cr_expect_geq(lists(r), n + BEATS * 3 / 4);
    cr_expect_geq(whole_lists(r), whole + BEATS / 10);
    cr_expect_leq(whole_lists(r), whole + BEATS / 3);
    cr_expect_geq(slept, BEATS / 3);
    rig_close(&b);
}

Test(remote_beat, one_that_has_nothing_is_probed)
{
    struct beat_rig b;
    rig_open_idle(&b, HANG_MS);
    struct remoterig *r = &b.rigs[1];
    unsigned n = runtimeserver_calls(r->server, "Version"), slept = 0;
    unsigned whole = whole_lists(r);
    for (int i = 0; i < BEATS; i++) {
        pass(&b, REMOTE_LIST_MS);
        slept += sleeps(r);
    }
    cr_expect_geq(runtimeserver_calls(r->server, "Version"), n + BEATS / 3);
    cr_expect_leq(whole_lists(r), whole + BEATS / 6);
    cr_expect_geq(slept, BEATS / 3);
    cr_expect_eq(remote_health(r->remote, NULL), ACT_READY);
    rig_close(&b);
}

Test(remote_beat, a_change_that_it_sees_is_listed)
{
    struct beat_rig b;
    rig_open(&b, HANG_MS);
    struct remoterig *r = &b.rigs[0];
    int64_t begun = clock_ms();
    runtimeserver_set(r->server, b.containers[0], CRI_EXITED, false);
    while (remoterig_status(r, b.containers[0]) != CRI_EXITED)
        pass(&b, 100);
    cr_expect_leq(clock_ms() - begun, SEEN_MS);
    rig_close(&b);
}

/* The beat looks what time it is. */
static void kick(struct beat_rig *b)
{
    remote_beat_expect(b->rigs[0].remote->member, 0);
}

static void hang(struct remoterig *r)
{
    runtimeserver_freeze(r->server, true);
    virtual_take(REMOTE_LIST_MS);
    while (runtimeserver_held(r->server) == 0)
        (void)poll(NULL, 0, 1);
}

Test(remote_beat, a_remote_that_hangs_delays_no_other)
{
    struct beat_rig b;
    rig_open(&b, HANG_MS);
    struct remoterig *ill = &b.rigs[0], *good = &b.rigs[1];
    hang(ill);
    for (int i = 0; i < 3; i++) {
        unsigned n = lists(good);
        virtual_take(REMOTE_LIST_MS);
        kick(&b);
        while (lists(good) == n)
            (void)poll(NULL, 0, 1);
    }
    cr_expect_eq(runtimeserver_held(ill->server), 1);
    cr_expect_eq(remote_health(ill->remote, NULL), ACT_READY);
    runtimeserver_freeze(ill->server, false);
    while (!sleeps(ill))
        pass(&b, 100);
    cr_expect_eq(remote_health(ill->remote, NULL), ACT_READY);
    rig_close(&b);
}

Test(remote_beat, one_is_stopped_while_it_is_asked)
{
    struct beat_rig b;
    rig_open(&b, HANG_MS);
    hang(&b.rigs[0]);
    remote_stop(b.rigs[0].remote);
    unsigned n = lists(&b.rigs[1]);
    virtual_take(REMOTE_LIST_MS);
    while (lists(&b.rigs[1]) == n)
        (void)poll(NULL, 0, 1);
    rig_close(&b);
}

/* Between two beats, and its thread sleeps; when the next one is. */
static int64_t wait_between(struct beat_rig *b, struct remoterig *r)
{
    int64_t ms = clock_ms() % REMOTE_LIST_MS;
    while (!sleeps(r) || ms < REMOTE_LIST_MS / 4 || ms > REMOTE_LIST_MS / 2) {
        pass(b, 100);
        ms = clock_ms() % REMOTE_LIST_MS;
    }
    return remote_next_beat(clock_ms());
}

/* All is listed, unless the server holds that. */
static void list_all(struct beat_rig *b, struct remoterig *r)
{
    unsigned n = whole_lists(r);
    remote_touch(r->remote, b->containers[0]);
    while (whole_lists(r) == n)
        (void)poll(NULL, 0, 1);
    while (runtimeserver_held(r->server) == 0 && !sleeps(r))
        (void)poll(NULL, 0, 1);
}

/* The beat, which nobody wants to be sooner, and a thread that sweeps. */
static void wait_forgotten(int64_t due_ms)
{
    int64_t next_ms;
    while (clock_waiting(&next_ms) < 2 || next_ms <= due_ms)
        (void)poll(NULL, 0, 1);
}

/* Who is forgotten hangs. */
Test(remote_beat, one_that_lists_when_it_looks_is_not_forgotten, .timeout = 180)
{
    struct beat_rig b;
    rig_open(&b, HANG_MS);
    struct remoterig *r = &b.rigs[0];
    int64_t due = wait_between(&b, r);
    remote_stop(b.rigs[1].remote);
    list_all(&b, r); /* then it has said when it is due */
    virtual_take(REMOTE_GAP_MS);
    runtimeserver_hold(r->server, "ListPodSandbox", true);
    list_all(&b, r);
    kick(&b);
    wait_forgotten(due);
    runtimeserver_hold(r->server, "ListPodSandbox", false);
    while (!sleeps(r))
        (void)poll(NULL, 0, 1);
    unsigned n = lists(r);
    virtual_take(due - clock_ms());
    while (lists(r) == n)
        (void)poll(NULL, 0, 1);
    rig_close(&b);
}

Test(remote_beat, who_goes_away_is_suspect_then_lost_then_back)
{
    static const enum act_health expected[] = {ACT_READY, ACT_SUSPECT, ACT_LOST,
                                               ACT_READY};
    struct beat_rig b;
    rig_open(&b, SHORT_MS);
    struct remoterig *r = &b.rigs[0];
    runtimeserver_down(r->server);
    int64_t begun = clock_ms();
    while (remote_health(r->remote, NULL) != ACT_LOST)
        pass(&b, 100);
    cr_expect_leq(clock_ms() - begun, SHORT_MS + 2 * REMOTE_LIST_MS);
    cr_expect_eq(remote_health(b.rigs[1].remote, NULL), ACT_READY);
    runtimeserver_up(r->server);
    while (!sleeps(r))
        pass(&b, 100);
    cr_assert_eq(r->n_healths, ARRAY_LEN(expected));
    for (size_t i = 0; i < ARRAY_LEN(expected); i++)
        cr_expect_eq(r->healths[i], expected[i], "%zu", i);
    rig_close(&b);
}

/* A field that nobody knows. */
static int swell(void *ctx, const char *method, int code, struct str *reply)
{
    static const char zeros[MORE];
    (void)ctx;
    if (strcmp(method, "ListContainers") == 0)
        proto_add_bytes(reply, 99, (struct proto_bytes){zeros, MORE});
    return code;
}

Test(remote_beat, a_list_that_is_much_larger_is_the_threads)
{
    struct beat_rig b;
    rig_open(&b, HANG_MS);
    struct remoterig *r = &b.rigs[0];
    unsigned whole = whole_lists(r);
    int64_t begun = clock_ms();
    runtimeserver_lie(r->server, swell, NULL);
    while (whole_lists(r) == whole)
        pass(&b, 100);
    cr_expect_leq(clock_ms() - begun, SEEN_MS);
    cr_expect_eq(remote_health(r->remote, NULL), ACT_READY);
    rig_close(&b);
}
