/* A remote: what it has is there at once, whatever it does; what was made is
 * seen; what is of nobody goes. */
#include <criterion/criterion.h>
#include <poll.h>
#include <string.h>

#include "lib/io/clock.h"
#include "router/keep/sweep.h"
#include "tests/lib/router/keeprig.h"
#include "tests/lib/router/remoterig.h"
#include "tests/lib/virtual.h"

enum { LOST_MS = 10000 }; /* long enough to be taken for lost */

static void make(struct remoterig *r, const struct kept *what,
                 char ret_id[KEPT_ID_MAX + 1])
{
    struct error err = {0};
    cr_assert_eq(remoterig_make(r, what, ret_id, &err), 0, "%s", err.text);
    remoterig_pass(r, 0, 50); /* it is listed soon */
}

static void make_pod(struct remoterig *r, const char *uid,
                     char ret_sandbox[KEPT_ID_MAX + 1],
                     char ret_container[KEPT_ID_MAX + 1])
{
    const struct kept s = keeprig_sandbox(uid, 0);
    make(r, &s, ret_sandbox);
    const struct kept c = keeprig_container(uid, ret_sandbox, "c", 0);
    make(r, &c, ret_container);
}

static size_t list_size(struct remoterig *r, enum method_id method)
{
    cleanup_with(remote_view) struct remote_view *v = remote_view(r->remote);
    return remote_view_list(v, method_get(method)).size;
}

Test(remote, what_was_made_is_listed_with_its_status)
{
    struct remoterig r;
    char sandbox[KEPT_ID_MAX + 1], container[KEPT_ID_MAX + 1];
    remoterig_open(&r);
    cr_assert_eq(list_size(&r, METHOD_LIST_CONTAINERS), 0);
    make_pod(&r, "u-1", sandbox, container);
    cr_assert_gt(list_size(&r, METHOD_LIST_POD_SANDBOX), 0);
    cr_assert_gt(list_size(&r, METHOD_STREAM_CONTAINERS), 0);
    cr_assert_eq(list_size(&r, METHOD_VERSION), 0);
    cr_assert_eq(remoterig_status(&r, sandbox), 0);
    cr_assert_eq(remoterig_status(&r, container), CRI_CREATED);
    unsigned asked = runtimeserver_calls(r.server, "ContainerStatus");
    remoterig_pass(&r, 0, 5000);
    cr_assert_eq(runtimeserver_calls(r.server, "ContainerStatus"), asked,
                 "it is asked for when something has happened");
    runtimeserver_set(r.server, container, CRI_EXITED, false);
    remoterig_pass(&r, 0, REMOTE_LIST_MS + 100);
    cr_assert_eq(remoterig_status(&r, container), CRI_EXITED);
    remote_touch(r.remote, container);
    remoterig_pass(&r, 0, 50);
    cr_assert_eq(runtimeserver_calls(r.server, "ContainerStatus"), asked + 2);
    remoterig_close(&r);
}

Test(remote, tells_what_has_changed)
{
    struct remoterig r;
    char sandbox[KEPT_ID_MAX + 1], container[KEPT_ID_MAX + 1];
    remoterig_open(&r);
    make_pod(&r, "u-1", sandbox, container);
    cr_assert_eq(r.n_changes, 2);
    cr_assert(r.changes[0].sandbox && r.changes[0].kind == CRI_EVENT_STARTED);
    cr_assert_eq(r.changes[1].kind, CRI_EVENT_CREATED);
    cr_assert_str_eq(r.changes[1].id, container);
    cr_assert_str_eq(r.changes[1].sandbox_id, sandbox);
    runtimeserver_set(r.server, container, CRI_RUNNING, false);
    remoterig_pass(&r, 0, REMOTE_LIST_MS + 100);
    runtimeserver_set(r.server, container, CRI_EXITED, false);
    remoterig_pass(&r, 0, REMOTE_LIST_MS + 100);
    runtimeserver_remove(r.server, sandbox);
    remoterig_pass(&r, 0, REMOTE_LIST_MS + 100);
    cr_assert_eq(r.n_changes, 6);
    cr_assert_eq(r.changes[2].kind, CRI_EVENT_STARTED);
    cr_assert_eq(r.changes[3].kind, CRI_EVENT_STOPPED);
    cr_assert_eq(r.changes[4].kind, CRI_EVENT_DELETED);
    cr_assert_eq(r.changes[5].kind, CRI_EVENT_DELETED);
    cr_assert_eq(keep_count(r.keep, "card-0", KEPT_MADE), 0,
                 "what is gone is forgotten");
    remoterig_close(&r);
}

Test(remote, frozen_is_known_as_it_was_and_calls_fail_at_once)
{
    struct remoterig r;
    struct grpc_end end;
    struct error err = {0};
    char sandbox[KEPT_ID_MAX + 1], container[KEPT_ID_MAX + 1];
    char reason[ACT_MESSAGE_MAX];
    remoterig_open(&r);
    make_pod(&r, "u-1", sandbox, container);
    runtimeserver_freeze(r.server, true);
    remoterig_pass(&r, 0, LOST_MS);
    cr_assert_eq(remote_health(r.remote, reason), ACT_LOST);
    cr_assert(*reason);
    cr_assert_gt(list_size(&r, METHOD_LIST_CONTAINERS), 0);
    cr_assert_eq(remoterig_status(&r, container), CRI_CREATED);
    int64_t before = clock_ms();
    cr_assert_eq(remoterig_call(&r, METHOD_START_CONTAINER, container, 60000,
                                &end, &err),
                 -EHOSTDOWN);
    cr_assert_eq(clock_ms(), before);
    cr_assert_eq(end.code, GRPC_UNAVAILABLE);
    cr_assert(end.unsent);
    cr_assert(strstr(err.text, "card-0") && strstr(err.text, "lost"), "%s",
              err.text);
    cr_assert_eq(remote_fresh(r.remote, before + 60000, &err), -EHOSTDOWN);
    cr_assert_eq(clock_ms(), before);
    cr_assert_eq(keep_count(r.keep, "card-0", KEPT_MADE), 2);
    runtimeserver_freeze(r.server, false);
    remoterig_pass(&r, 0, 20000);
    cr_assert_eq(remote_health(r.remote, reason), ACT_READY);
    cr_assert_str_eq(reason, "");
    cr_assert_eq(
        remoterig_call(&r, METHOD_START_CONTAINER, container, 1000, &end, &err),
        0);
    cr_assert_eq(r.healths[0], ACT_READY);
    cr_assert_eq(r.healths[r.n_healths - 1], ACT_READY);
    remoterig_close(&r);
}

Test(remote, killed_and_back_is_told_as_it_really_is)
{
    struct remoterig r;
    char a[2][KEPT_ID_MAX + 1], b[2][KEPT_ID_MAX + 1];
    remoterig_open(&r);
    make_pod(&r, "u-1", a[0], a[1]);
    make_pod(&r, "u-2", b[0], b[1]);
    runtimeserver_down(r.server);
    remoterig_pass(&r, 0, LOST_MS);
    cr_assert_eq(remote_health(r.remote, NULL), ACT_LOST);
    cr_assert_eq(remoterig_status(&r, a[1]), CRI_CREATED);
    runtimeserver_remove(r.server, a[0]);
    runtimeserver_set(r.server, b[1], CRI_EXITED, false);
    runtimeserver_up(r.server);
    remoterig_pass(&r, 0, 20000);
    cr_assert_eq(remote_health(r.remote, NULL), ACT_READY);
    cr_assert_eq(remoterig_status(&r, a[1]), UINT32_MAX);
    cr_assert_eq(remoterig_status(&r, b[1]), CRI_EXITED);
    cr_assert_eq(keep_count(r.keep, "card-0", KEPT_MADE), 2);
    remoterig_close(&r);
}

/* --- calls of threads ------------------------------------------------------- */

struct caller {
    struct remoterig *r;
    const char *id;
    unsigned ms;
    bool fresh;
    int e;
    struct grpc_end end;
    struct error err;
    pthread_t thread;
};

static void *call(void *arg)
{
    struct caller *c = arg;
    c->e = c->fresh ? remote_fresh(c->r->remote, clock_ms() + c->ms, &c->err)
                    : remoterig_call(c->r, METHOD_STOP_CONTAINER, c->id, c->ms,
                                     &c->end, &c->err);
    return NULL;
}

static void begin(struct caller *c)
{
    cr_assert_eq(pthread_create(&c->thread, NULL, call, c), 0);
}

Test(remote, a_call_under_way_ends_when_the_remote_is_lost)
{
    struct remoterig r;
    char sandbox[KEPT_ID_MAX + 1], container[KEPT_ID_MAX + 1];
    remoterig_open(&r);
    make_pod(&r, "u-1", sandbox, container);
    struct caller c = {.r = &r, .id = container, .ms = 3600000};
    runtimeserver_freeze(r.server, true);
    begin(&c);
    while (runtimeserver_held(r.server) == 0)
        (void)poll(NULL, 0, 1);
    while (remote_health(r.remote, NULL) != ACT_LOST) {
        (void)poll(NULL, 0, 1); /* the thread goes on */
        virtual_take(100);
    }
    (void)pthread_join(c.thread, NULL);
    cr_assert_eq(c.e, -EHOSTDOWN, "%d %s", c.e, c.err.text);
    cr_assert_not(c.end.unsent, "it may have been carried out");
    runtimeserver_freeze(r.server, false);
    remoterig_close(&r);
}

/* The remote has just failed a probe; a call that comes then waits, and nothing
 * was sent. */
static void begin_while_suspect(struct caller *c)
{
    int64_t next;
    runtimeserver_hold(c->r->server, "StopContainer", true);
    runtimeserver_freeze(c->r->server, true);
    while (remote_health(c->r->remote, NULL) == ACT_READY)
        remoterig_pass(c->r, 0, 100);
    cr_assert_eq(remote_health(c->r->remote, NULL), ACT_SUSPECT);
    size_t before = clock_waiting(&next);
    begin(c);
    while (clock_waiting(&next) == before)
        (void)poll(NULL, 0, 1);
}

Test(remote, a_call_waits_for_who_is_back_soon)
{
    struct remoterig r;
    char sandbox[KEPT_ID_MAX + 1], container[KEPT_ID_MAX + 1];
    remoterig_open(&r);
    make_pod(&r, "u-1", sandbox, container);
    struct caller c = {.r = &r, .id = container, .ms = 60000};
    begin_while_suspect(&c);
    cr_assert_eq(runtimeserver_calls(r.server, "StopContainer"), 0);
    runtimeserver_freeze(r.server, false);
    while (remote_health(r.remote, NULL) != ACT_READY)
        remoterig_pass(&r, 1, 100);
    runtimeserver_hold(r.server, "StopContainer", false);
    (void)pthread_join(c.thread, NULL);
    cr_assert_eq(c.e, 0, "%d %s", c.e, c.err.text);
    cr_assert_eq(runtimeserver_calls(r.server, "StopContainer"), 1);
    remoterig_close(&r);
}

Test(remote, a_call_waits_no_longer_than_until_the_remote_is_lost)
{
    struct remoterig r;
    char sandbox[KEPT_ID_MAX + 1], container[KEPT_ID_MAX + 1];
    remoterig_open(&r);
    make_pod(&r, "u-1", sandbox, container);
    struct caller c = {.r = &r, .id = container, .ms = 3600000};
    begin_while_suspect(&c);
    while (remote_health(r.remote, NULL) != ACT_LOST)
        remoterig_pass(&r, 0, 100);
    (void)pthread_join(c.thread, NULL);
    cr_assert_eq(c.e, -EHOSTDOWN, "%d %s", c.e, c.err.text);
    cr_assert(c.end.unsent);
    runtimeserver_freeze(r.server, false);
    remoterig_close(&r);
}

Test(remote, a_call_ends_when_the_router_stops)
{
    struct remoterig r;
    struct error err = {0};
    char sandbox[KEPT_ID_MAX + 1], container[KEPT_ID_MAX + 1];
    remoterig_open(&r);
    make_pod(&r, "u-1", sandbox, container);
    struct caller c = {.r = &r, .id = container, .ms = 3600000};
    runtimeserver_hold(r.server, "StopContainer", true);
    begin(&c);
    while (runtimeserver_held(r.server) == 0)
        virtual_settle(0);
    remote_stop(r.remote);
    (void)pthread_join(c.thread, NULL);
    cr_assert_eq(c.e, -ECANCELED, "%d %s", c.e, c.err.text);
    cr_assert_eq(remoterig_call(&r, METHOD_STOP_CONTAINER, container, 1000,
                                &c.end, &err),
                 -ECANCELED);
    cr_assert_eq(remote_fresh(r.remote, clock_ms() + 1000, &err), -ECANCELED);
    runtimeserver_hold(r.server, "StopContainer", false);
    remoterig_close(&r);
}

Test(remote, who_waits_for_a_list_gets_one_that_began_after)
{
    struct remoterig r;
    char sandbox[KEPT_ID_MAX + 1], container[KEPT_ID_MAX + 1];
    remoterig_open(&r);
    make_pod(&r, "u-1", sandbox, container);
    runtimeserver_hold(r.server, "ListPodSandbox", true);
    remote_touch(r.remote, container);
    remoterig_pass(&r, 0, 20); /* a list is under way … */
    cr_assert_eq(runtimeserver_held(r.server), 1);
    runtimeserver_set(r.server, container, CRI_RUNNING, false);
    struct caller c = {.r = &r, .ms = 60000, .fresh = true};
    begin(&c);
    remoterig_pass(&r, 1, 0);
    runtimeserver_hold(r.server, "ListPodSandbox", false);
    remoterig_pass(&r, 0, 100);
    (void)pthread_join(c.thread, NULL);
    cr_assert_eq(c.e, 0, "%s", c.err.text);
    cr_assert_eq(remoterig_status(&r, container), CRI_RUNNING);
    remoterig_close(&r);
}

static bool gave_up(void *ctx)
{
    return atomic_load((atomic_bool *)ctx);
}

struct unwanted_call {
    struct remoterig *r;
    atomic_bool gone;
    int e;
    pthread_t thread;
};

static void *call_unwanted(void *arg)
{
    struct unwanted_call *u = arg;
    cleanup_str struct str reply = STR_INIT(1024);
    struct grpc_end end;
    const struct remote_ask ask = {.method = method_get(METHOD_VERSION),
                                   .request = {"", 0},
                                   .ms = 3600000,
                                   .unwanted = gave_up,
                                   .ctx = &u->gone};
    u->e = remote_call(u->r->remote, &ask, &reply, &end, NULL);
    return NULL;
}

Test(remote, a_call_that_nobody_waits_for_ends)
{
    struct remoterig r;
    remoterig_open(&r);
    struct unwanted_call u = {.r = &r};
    runtimeserver_hold(r.server, "Version", true);
    cr_assert_eq(pthread_create(&u.thread, NULL, call_unwanted, &u), 0);
    while (runtimeserver_held(r.server) == 0)
        virtual_settle(0);
    atomic_store(&u.gone, true);
    remote_nudge(r.remote);
    (void)pthread_join(u.thread, NULL);
    cr_assert_eq(u.e, -ECANCELED);
    runtimeserver_hold(r.server, "Version", false);
    remoterig_close(&r);
}

/* --- never twice, never forgotten ------------------------------------------- */

Test(remote, a_call_that_seemed_to_fail_is_adopted)
{
    static const int codes[] = {-GRPC_UNAVAILABLE, -GRPC_UNKNOWN,
                                -GRPC_DEADLINE_EXCEEDED};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        struct remoterig r;
        struct error err = {0};
        char id[KEPT_ID_MAX + 1];
        const struct kept s = keeprig_sandbox("u-1", 0);
        remoterig_open(&r);
        runtimeserver_fail(r.server, "RunPodSandbox", codes[i], 1);
        cr_assert_lt(remoterig_make(&r, &s, id, &err), 0);
        make(&r, &s, id);
        cr_assert_eq(runtimeserver_count(r.server, "u-1"), 1);
        cr_assert_eq(runtimeserver_calls(r.server, "RunPodSandbox"), 1);
        remoterig_close(&r);
    }
}

Test(remote, what_a_list_has_of_an_unclear_call_is_adopted)
{
    struct remoterig r;
    struct error err = {0};
    char id[KEPT_ID_MAX + 1];
    const struct kept s = keeprig_sandbox("u-1", 0);
    remoterig_open(&r);
    runtimeserver_fail(r.server, "RunPodSandbox", -GRPC_UNAVAILABLE, 1);
    cr_assert_lt(remoterig_make(&r, &s, id, &err), 0);
    cr_assert_eq(keep_count(r.keep, "card-0", KEPT_ANNOUNCED), 1);
    remoterig_pass(&r, 0, REMOTE_SWEEP_MS + 100);
    cr_assert_eq(keep_count(r.keep, "card-0", KEPT_MADE), 1);
    make(&r, &s, id);
    cr_assert_eq(runtimeserver_calls(r.server, "RunPodSandbox"), 1);
    remoterig_close(&r);
}

Test(remote, strays_are_swept_after_their_grace_one_at_a_time)
{
    struct remoterig r;
    char stray[4][KEPT_ID_MAX + 1], sandbox[KEPT_ID_MAX + 1];
    char container[KEPT_ID_MAX + 1];
    remoterig_open(&r);
    make_pod(&r, "u-1", sandbox, container);
    remoterig_stray(&r, "s-1", stray[0]);
    remoterig_stray(&r, "s-2", stray[1]);
    remoterig_stray(&r, "s-3", stray[2]);
    remoterig_stray(&r, "biga-helper-card-0", stray[3]);
    remoterig_pass(&r, 0, SWEEP_GRACE_MS - 2000);
    cr_assert_eq(runtimeserver_count(r.server, NULL), 6);
    int64_t begun = clock_ms();
    while (runtimeserver_count(r.server, NULL) > 3)
        remoterig_pass(&r, 0, 100);
    cr_assert_geq(clock_ms() - begun, 2 * SWEEP_PACE_MS);
    remoterig_pass(&r, 0, 60000);
    cr_assert_eq(runtimeserver_count(r.server, "biga-helper-card-0"), 1);
    cr_assert_eq(runtimeserver_count(r.server, "u-1"), 2);
    remoterig_close(&r);
}

/* Its containers say every second whether anything has happened. */
Test(remote, at_rest_sandboxes_are_rarely_asked_for)
{
    struct remoterig r;
    char sandbox[KEPT_ID_MAX + 1], container[KEPT_ID_MAX + 1];
    remoterig_open(&r);
    make_pod(&r, "u-1", sandbox, container);
    runtimeserver_set(r.server, container, CRI_RUNNING, false);
    remoterig_pass(&r, 0, REMOTE_LIST_MS + 100);
    unsigned pods = runtimeserver_calls(r.server, "ListPodSandbox");
    unsigned containers = runtimeserver_calls(r.server, "ListContainers");
    remoterig_pass(&r, 0, 10LL * REMOTE_WHOLE_MS);
    pods = runtimeserver_calls(r.server, "ListPodSandbox") - pods;
    containers = runtimeserver_calls(r.server, "ListContainers") - containers;
    cr_expect_geq(pods, 8, "%u", pods);
    cr_expect_leq(pods, 11, "%u", pods);
    cr_expect_geq(containers, 45, "%u", containers);
    r.n_changes = 0;
    runtimeserver_set(r.server, container, CRI_EXITED, false);
    remoterig_pass(&r, 0, REMOTE_LIST_MS + 100);
    cr_expect_eq(r.n_changes, 1, "and then all is looked at, at once");
    remoterig_pass(&r, 0, 60000);
    cr_expect_gt(remote_tidy(r.remote) + remote_tidy(r.remote), 0);
    cr_expect_eq(remote_tidy(r.remote), 0);
    remoterig_close(&r);
}

/* --- stats, and one that hangs ----------------------------------------------- */

Test(remote, stats_are_fetched_while_somebody_asks)
{
    struct remoterig r;
    remoterig_open(&r);
    remoterig_pass(&r, 0, 60000);
    cr_assert_eq(runtimeserver_calls(r.server, "ListContainerStats"), 0);
    remote_stats_unref(remote_stats(r.remote));
    remoterig_pass(&r, 0, 100);
    struct remote_stats *s = remote_stats(r.remote);
    cr_assert_gt(remote_stats_time(s), 0);
    remote_stats_unref(s);
    cr_assert_eq(runtimeserver_calls(r.server, "ListContainerStats"), 1);
    remoterig_pass(&r, 0, 300000);
    unsigned n = runtimeserver_calls(r.server, "ListContainerStats");
    cr_assert_leq(n, 8, "%u", n);
    remoterig_close(&r);
}

Test(remote, a_status_that_hangs_keeps_no_other)
{
    struct remoterig r;
    char sandbox[KEPT_ID_MAX + 1], container[KEPT_ID_MAX + 1];
    remoterig_open(&r);
    const struct kept s = keeprig_sandbox("u-1", 0);
    make(&r, &s, sandbox);
    runtimeserver_hold(r.server, "ContainerStatus", true);
    const struct kept c = keeprig_container("u-1", sandbox, "c", 0);
    struct error err;
    cr_assert_eq(remoterig_make(&r, &c, container, &err), 0);
    remoterig_pass(&r, 0, 30000);
    cr_assert_eq(remote_health(r.remote, NULL), ACT_READY);
    cr_assert_eq(r.n_healths, 1);
    runtimeserver_set(r.server, sandbox, 1, false);
    remoterig_pass(&r, 0, 5000);
    cr_assert_eq(remoterig_status(&r, sandbox), 1);
    cr_assert_eq(remoterig_status(&r, container), UINT32_MAX);
    runtimeserver_hold(r.server, "ContainerStatus", false);
    remoterig_pass(&r, 0, 5000);
    cr_assert_eq(remoterig_status(&r, container), CRI_CREATED);
    remoterig_close(&r);
}
