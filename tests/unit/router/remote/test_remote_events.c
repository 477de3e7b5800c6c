/* What a remote tells by itself has it listed; without it lists are rare, as
 * long as it tells all. */
#include <criterion/criterion.h>
#include <poll.h>

#include "lib/io/clock.h"
#include "router/remote/remote_private.h"
#include "tests/lib/router/keeprig.h"
#include "tests/lib/router/remoterig.h"

static bool is_live(struct remoterig *r)
{
    hold_lock(&r->remote->lock);
    return r->remote->events;
}

/* Its stream has stood long enough, in virtual time; what happens is told once
 * the server has begun with it. */
static void wait_live(struct remoterig *r)
{
    while (!is_live(r)) {
        remoterig_pass(r, 0, 200);
        grpc_hub_wake(r->remote->hub); /* that thread's time is real */
        (void)poll(NULL, 0, 1);
    }
    while (runtimeserver_calls(r->server, "GetContainerEvents") == 0)
        (void)poll(NULL, 0, 1);
    remoterig_pass(r, 0, 100);
}

static void make_pod(struct remoterig *r, char ret_container[KEPT_ID_MAX + 1])
{
    char sandbox[KEPT_ID_MAX + 1];
    struct error err = {0};
    const struct kept s = keeprig_sandbox("u-1", 0);
    cr_assert_eq(remoterig_make(r, &s, sandbox, &err), 0, "%s", err.text);
    const struct kept c = keeprig_container("u-1", sandbox, "c", 0);
    cr_assert_eq(remoterig_make(r, &c, ret_container, &err), 0, "%s", err.text);
    remoterig_pass(r, 0, 100);
}

Test(remote_events, what_is_told_is_listed_at_once)
{
    struct remoterig r;
    char container[KEPT_ID_MAX + 1];
    remoterig_open_events(&r);
    wait_live(&r);
    make_pod(&r, container);
    int64_t begun = clock_ms();
    runtimeserver_set(r.server, container, CRI_EXITED, true);
    while (remoterig_status(&r, container) != CRI_EXITED)
        remoterig_pass(&r, 0, clock_ms() - begun < 1000 ? 1 : 0);
    cr_assert_lt(clock_ms() - begun, REMOTE_SWEEP_MS / 2);
    cr_assert(is_live(&r));
    remoterig_close(&r);
}

Test(remote_events, lists_are_rare_until_something_was_not_told)
{
    struct remoterig r;
    char container[KEPT_ID_MAX + 1];
    remoterig_open_events(&r);
    wait_live(&r);
    make_pod(&r, container);
    unsigned before = runtimeserver_calls(r.server, "ListContainers");
    remoterig_pass(&r, 0, 10 * REMOTE_SWEEP_MS);
    unsigned rare = runtimeserver_calls(r.server, "ListContainers") - before;
    cr_assert_leq(rare, 11);
    runtimeserver_set(r.server, container, CRI_EXITED, false);
    remoterig_pass(&r, 0, REMOTE_SWEEP_MS + 1000);
    cr_assert_eq(remoterig_status(&r, container), CRI_EXITED);
    cr_assert_not(is_live(&r));
    before = runtimeserver_calls(r.server, "ListContainers");
    remoterig_pass(&r, 0, 10 * REMOTE_LIST_MS);
    cr_assert_geq(runtimeserver_calls(r.server, "ListContainers") - before, 9);
    remoterig_close(&r);
}
