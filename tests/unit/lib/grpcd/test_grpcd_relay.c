/* Calls that pass on to another server, and what becomes of them when it, or
 * the client, does not behave. */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/grpcd/grpcd_relay.h"
#include "lib/io/clock.h"
#include "tests/lib/grpc/rpcclient.h"
#include "tests/lib/grpc/rpcserver.h"
#include "tests/lib/http/h2server.h"
#include "tests/lib/tmpdir.h"

struct rig {
    struct rpc_server *far, *near;
    struct rpc_client *c;
};

static struct rig rig_make(const struct grpcd_config *config)
{
    struct rig r;
    r.far = rpc_server_create(NULL, NULL, NULL);
    r.near = rpc_server_create(NULL, r.far->path, config);
    r.c = rpc_open(r.near->path);
    return r;
}

static void rig_end(struct rig *r)
{
    rpc_close(r->c);
    rpc_server_destroy(r->near);
    rpc_server_destroy(r->far);
}

static void expect_unary(struct rpc_client *c, const char *method,
                         const char *message, const char *answer)
{
    cleanup_str struct str reply = STR_INIT(1 << 20);
    int code = rpc_unary(c, method, message, strlen(message), &reply);
    cr_assert_eq(code, GRPC_OK, "%s: %d", method, code);
    cr_assert_str_eq(str_text(&reply), answer);
}

Test(grpcd_relay, calls_pass_both_ways)
{
    struct rig r = rig_make(NULL);
    struct rpc_call call;
    const char *const more[] = {"x-echo", "v", "x-bin", "AAEC", NULL};
    expect_unary(r.c, "/r.R/Echo", "a", "a");
    expect_unary(r.c, "/r.R/Work", "b", "b");
    cr_expect(grpcd_relay_stands(r.near->relay));
    rpc_begin(r.c, &call, "/r.R/Echo", more);
    rpc_send(&call, "c", 1);
    rpc_send_end(&call);
    cr_expect_eq(rpc_wait(&call), GRPC_OK);
    cr_expect_str_eq(h2_fields_get(&call.head, "x-echo"), "v");
    cr_expect_str_eq(h2_fields_get(&call.trailers, "x-echo-last"), "v");
    rpc_end(&call);
    rpc_begin(r.c, &call, "/r.R/Fail", NULL);
    rpc_send(&call, "9:50% \xc3\xa9", 8);
    rpc_send_end(&call);
    cr_expect_eq(rpc_wait(&call), GRPC_FAILED_PRECONDITION);
    cr_expect_str_eq(rpc_text(&call), ":50% \xc3\xa9");
    rpc_end(&call);
    rpc_server_await(&r.near->n_ended, 4);
    cr_expect_eq(atomic_load(&r.near->last_code), GRPC_FAILED_PRECONDITION);
    rpc_begin(r.c, &call, "/r.R/NobodyKnows", NULL);
    rpc_send_end(&call);
    cr_expect_eq(rpc_wait(&call), GRPC_UNIMPLEMENTED, "as it says there");
    rpc_end(&call);
    rig_end(&r);
}

Test(grpcd_relay, a_look_at_the_message_changes_nothing)
{
    struct rig r = rig_make(NULL);
    cleanup_free char *large = xcalloc(1, GRPCD_MESSAGE_MAX);
    cleanup_str struct str reply = STR_INIT(GRPCD_MESSAGE_MAX + 100);
    expect_unary(r.c, "/r.Peek/Echo", "abc", "abc");
    expect_unary(r.c, "/r.Peek/Echo", "work", "work");
    memset(large, 'x', GRPCD_MESSAGE_MAX);
    cr_expect_eq(
        rpc_unary(r.c, "/r.Peek/Echo", large, GRPCD_MESSAGE_MAX, &reply),
        GRPC_OK);
    cr_expect_eq(reply.size, (size_t)GRPCD_MESSAGE_MAX);
    cr_expect_eq(memcmp(reply.data, large, reply.size), 0);
    cr_expect_eq(rpc_unary(r.c, "/r.R/Long", large, GRPCD_MESSAGE_MAX, &reply),
                 GRPC_OK);
    cr_expect_eq(reply.size, (size_t)GRPCD_MESSAGE_MAX);
    rig_end(&r);
}

Test(grpcd_relay, requests_and_replies_are_edited)
{
    struct rig r = rig_make(NULL);
    struct rpc_call call;
    expect_unary(r.c, "/r.Edit/Echo", "abc", "<abc>");
    expect_unary(r.c, "/r.Edit/Echo", "", "<>");
    rpc_begin(r.c, &call, "/r.Edit/Echo", NULL);
    rpc_send(&call, "bad", 3);
    rpc_send_end(&call);
    cr_expect_eq(rpc_wait(&call), GRPC_INVALID_ARGUMENT);
    cr_expect_str_eq(rpc_text(&call), "that reply is bad");
    rpc_end(&call);
    rpc_server_await(&r.near->n_ended, 3);
    cr_expect_eq(atomic_load(&r.near->n_edits_done), 3);
    rig_end(&r);
}

Test(grpcd_relay, streams_of_both_kinds)
{
    struct rig r = rig_make(NULL);
    struct rpc_call call;
    cleanup_free char *data = xcalloc(1, 100000);
    rpc_begin(r.c, &call, "/r.R/Count", NULL);
    rpc_send(&call, "50 100000", 9);
    rpc_send_end(&call);
    cr_expect_eq(rpc_wait(&call), GRPC_OK);
    cr_expect_eq(call.in.size, 50u * 100005);
    rpc_end(&call);
    static const char *const sums[] = {"/r.R/Sum", "/r.Peek/Sum"};
    for (int i = 0; i < 2; i++) {
        rpc_begin(r.c, &call, sums[i], NULL);
        for (int k = 0; k < 40; k++)
            rpc_send(&call, data, 100000);
        rpc_send_end(&call);
        cr_expect_eq(rpc_wait(&call), GRPC_OK);
        cr_expect_str_eq(str_text(&call.in) + 5, "4000000");
        rpc_end(&call);
    }
    rig_end(&r);
}

/* Neither side is read faster than the other reads, and no call suffers. */
Test(grpcd_relay, memory_is_bounded_by_the_windows)
{
    struct rig r = rig_make(NULL);
    struct rpc_client *late = rpc_open(r.near->path);
    struct grpcd_stats stats;
    struct rpc_call down, up;
    cleanup_free char *data = xcalloc(1, 100000);
    late->late = true;
    rpc_begin(late, &down, "/r.R/Count", NULL);
    rpc_send(&down, "200 100000", 10);
    rpc_send_end(&down);
    rpc_wait_bytes(&down, 60000);
    /* nobody reads it there */
    rpc_begin(r.c, &up, "/r.R/Keep", NULL);
    rpc_send(&up, "", 0);
    for (int i = 0; i < 80; i++)
        rpc_send(&up, data, 100000);
    for (int i = 0; i < 100; i++)
        expect_unary(r.c, "/r.R/Echo", "x", "x");
    grpcd_stats(r.near->grpcd, &stats);
    cr_expect_leq(stats.held, 3u * GRPCD_WINDOW, "%zu", stats.held);
    cr_expect_lt(up.n_out, (1u << 20));
    rpc_reset(&up, NGHTTP2_CANCEL);
    rpc_end(&up);
    rpc_reset(&down, NGHTTP2_CANCEL);
    rpc_end(&down);
    rpc_server_await(&r.near->n_ended, 102);
    rpc_server_await(&r.far->n_cancelled, 1);
    grpcd_stats(r.near->grpcd, &stats);
    cr_expect_eq(stats.held, 0, "%zu", stats.held);
    rpc_close(late);
    rig_end(&r);
}

Test(grpcd_relay, the_end_of_one_side_is_told_to_the_other)
{
    struct rig r = rig_make(NULL);
    struct rpc_call call;
    const char *const five[] = {"grpc-timeout", "5S", NULL};
    rpc_begin(r.c, &call, "/r.R/Wait", NULL);
    rpc_send(&call, "", 0);
    rpc_turn(r.c, 0);
    rpc_server_await(&r.far->n_begun, 1);
    rpc_reset(&call, NGHTTP2_CANCEL);
    rpc_server_await(&r.far->n_cancelled, 1);
    rpc_end(&call);
    clock_set_fake(1000);
    rpc_begin(r.c, &call, "/r.R/Wait", five);
    rpc_send(&call, "", 0);
    rpc_send_end(&call);
    rpc_turn(r.c, 0);
    rpc_server_await(&r.far->n_begun, 2);
    clock_set_fake(6000);
    expect_unary(r.c, "/r.R/Echo", "wakes both", "wakes both");
    cr_expect_eq(rpc_wait(&call), GRPC_DEADLINE_EXCEEDED);
    rpc_end(&call);
    rpc_server_await(&r.far->n_ended, 3);
    clock_set_fake(-1);
    rig_end(&r);
}

Test(grpcd_relay, who_is_away_is_named_and_found_again)
{
    struct rig r = rig_make(NULL);
    cleanup_free char *path = xstrdup(r.far->path);
    struct rpc_call call;
    expect_unary(r.c, "/r.R/Echo", "a", "a");
    rpc_begin(r.c, &call, "/r.R/Wait", NULL);
    rpc_send(&call, "", 0);
    rpc_turn(r.c, 0);
    rpc_server_await(&r.far->n_begun, 2);
    grpcd_stop(r.far->grpcd, 0);
    cr_expect_eq(rpc_wait(&call), GRPC_UNAVAILABLE);
    rpc_end(&call);
    rpc_begin(r.c, &call, "/r.R/Echo", NULL);
    rpc_send(&call, "a", 1);
    rpc_send_end(&call);
    cr_expect_eq(rpc_wait(&call), GRPC_UNAVAILABLE);
    cr_expect(strstr(rpc_text(&call), "the other server") &&
                  strstr(rpc_text(&call), path) &&
                  strstr(rpc_text(&call), "not carried out"),
              "%s", rpc_text(&call));
    cr_expect(!grpcd_relay_stands(r.near->relay));
    rpc_end(&call);
    struct rpc_server *again = rpc_server_create(path, NULL, NULL);
    expect_unary(r.c, "/r.R/Echo", "a", "a");
    cr_expect(grpcd_relay_stands(r.near->relay));
    rpc_server_destroy(again);
    rig_end(&r);
}

static void try_fault(struct h2_server *far, const char *path,
                      enum h2_fault fault)
{
    struct rpc_server *near = rpc_server_create(NULL, path, NULL);
    struct rpc_client *c = rpc_open(near->path);
    const char *const brief[] = {"grpc-timeout", "300m", NULL};
    struct rpc_call call;
    h2_server_reply(far, NULL, "good", 4);
    h2_server_fault(far, fault);
    rpc_begin(c, &call, "/r.R/Version", fault == H2_WELL ? NULL : brief);
    rpc_send(&call, "", 0);
    rpc_send_end(&call);
    int code = rpc_wait(&call);
    cr_expect(!c->closed, "fault %d", fault);
    cr_expect(fault != H2_WELL || code == GRPC_OK);
    rpc_end(&call);
    expect_unary(c, "/t.T/Echo", "others go on", "others go on");
    rpc_server_await(&near->n_ended, 2);
    cr_expect_eq(atomic_load(&near->n_ended), 2);
    rpc_close(c);
    rpc_server_destroy(near);
}

/* Whatever comes from there: one end for each call, and others go on. */
Test(grpcd_relay, survives_every_fault_of_the_other_server)
{
    char *dir = tmpdir_create();
    cleanup_free char *path = xasprintf("%s/far", dir);
    const struct h2_config config = {.socket = path};
    struct h2_server *far = h2_server_start(&config);
    for (int fault = 0; fault < H2_FAULTS; fault++)
        try_fault(far, path, (enum h2_fault)fault);
    h2_server_stop(far);
    tmpdir_remove(dir);
}
