/* The server: calls of all kinds, caps, stops, and who takes its place. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/grpc/grpc.h"
#include "lib/grpcd/grpcd.h"
#include "lib/io/clock.h"
#include "tests/lib/grpc/rpcclient.h"
#include "tests/lib/grpc/rpcserver.h"

enum { HANGS_MS = 600000 };

static void expect_unary(struct rpc_client *c, const char *method,
                         const char *message)
{
    cleanup_str struct str reply = STR_INIT(1 << 20);
    int code = rpc_unary(c, method, message, strlen(message), &reply);
    cr_assert_eq(code, GRPC_OK, "%s: %d", method, code);
    cr_assert_str_eq(str_text(&reply), message);
}

Test(grpcd, answers_on_every_kind_of_thread)
{
    struct rpc_server *s = rpc_server_create(NULL, NULL, NULL);
    struct rpc_client *c = rpc_open(s->path);
    for (int i = 0; i < 20; i++) {
        expect_unary(c, "/t.T/Echo", "here");
        expect_unary(c, "/t.T/Work", "brief");
        expect_unary(c, "/t.T/Long", "long");
    }
    expect_unary(c, "/t.T/Echo", "");
    rpc_close(c);
    rpc_server_await(&s->n_ended, 61);
    cr_expect_eq(atomic_load(&s->n_ended), 61);
    rpc_server_destroy(s);
}

Test(grpcd, is_understood_by_our_client)
{
    struct rpc_server *s = rpc_server_create(NULL, NULL, NULL);
    cleanup_free char *endpoint = xasprintf("unix://%s", s->path);
    const struct grpc_config config = {.endpoint = endpoint};
    cleanup_str struct str reply = STR_INIT(32 << 20);
    cleanup_free char *large = xcalloc(1, GRPCD_MESSAGE_MAX);
    struct grpc *g;
    struct grpc_end end;
    struct error err = {0};
    cr_assert_eq(grpc_create(&config, &g, &err), 0);
    cr_expect_eq(
        grpc_call(g, "/t.T/Work", "abc", 3, HANGS_MS, &reply, &end, &err), 0,
        "%s", err.text);
    cr_expect_str_eq(str_text(&reply), "abc");
    cr_expect_eq(grpc_call(g, "/t.T/Fail", "5:50% \xc3\xa9", 8, HANGS_MS,
                           &reply, &end, &err),
                 -EREMOTEIO);
    cr_expect_eq(end.code, GRPC_NOT_FOUND);
    cr_expect_str_eq(end.message, ":50% \xc3\xa9");
    cr_expect_eq(grpc_call(g, "/t.T/None", "", 0, HANGS_MS, &reply, &end, &err),
                 -EREMOTEIO);
    cr_expect_eq(end.code, GRPC_UNIMPLEMENTED);
    memset(large, 'x', GRPCD_MESSAGE_MAX);
    cr_expect_eq(grpc_call(g, "/t.T/Echo", large, GRPCD_MESSAGE_MAX, HANGS_MS,
                           &reply, &end, &err),
                 0, "%s", err.text);
    cr_expect_eq(reply.size, (size_t)GRPCD_MESSAGE_MAX);
    cr_expect_eq(memcmp(reply.data, large, reply.size), 0);
    cr_expect_eq(grpc_call(g, "/t.T/Echo", large - 0, GRPCD_MESSAGE_MAX,
                           HANGS_MS, &reply, &end, &err),
                 0);
    grpc_destroy(g);
    rpc_server_destroy(s);
}

Test(grpcd, a_message_over_the_cap_is_refused)
{
    const struct grpcd_config small = {.message_max = 1000};
    struct rpc_server *s = rpc_server_create(NULL, NULL, &small);
    struct rpc_client *c = rpc_open(s->path);
    char data[1001] = {0};
    struct rpc_call call;
    rpc_begin(c, &call, "/t.T/Echo", NULL);
    rpc_send(&call, data, sizeof data);
    rpc_send_end(&call);
    cr_expect_eq(rpc_wait(&call), GRPC_RESOURCE_EXHAUSTED);
    cr_expect(strstr(rpc_text(&call), "1001 bytes"), "%s", rpc_text(&call));
    rpc_end(&call);
    rpc_begin(c, &call, "/t.T/Echo", NULL);
    rpc_send(&call, data, 1000);
    rpc_send_end(&call);
    cr_expect_eq(rpc_wait(&call), GRPC_OK);
    rpc_end(&call);
    rpc_close(c);
    rpc_server_destroy(s);
}

Test(grpcd, metadata_comes_and_goes)
{
    struct rpc_server *s = rpc_server_create(NULL, NULL, NULL);
    struct rpc_client *c = rpc_open(s->path);
    const char *const more[] = {"x-echo", "some value", NULL};
    struct rpc_call call;
    rpc_begin(c, &call, "/t.T/Work", more);
    rpc_send(&call, "a", 1);
    rpc_send_end(&call);
    cr_expect_eq(rpc_wait(&call), GRPC_OK);
    cr_expect_str_eq(h2_fields_get(&call.head, "x-echo"), "some value");
    cr_expect_str_eq(h2_fields_get(&call.head, "content-type"),
                     "application/grpc");
    cr_expect_str_eq(h2_fields_get(&call.trailers, "x-echo-last"),
                     "some value");
    rpc_end(&call);
    rpc_close(c);
    rpc_server_destroy(s);
}

Test(grpcd, many_messages_either_way)
{
    struct rpc_server *s = rpc_server_create(NULL, NULL, NULL);
    struct rpc_client *c = rpc_open(s->path);
    struct rpc_call call;
    cleanup_free char *data = xcalloc(1, 100000);
    rpc_begin(c, &call, "/t.T/Count", NULL);
    rpc_send(&call, "50 100000", 9);
    rpc_send_end(&call);
    cr_expect_eq(rpc_wait(&call), GRPC_OK);
    cr_expect_eq(call.in.size, 50u * 100005);
    cr_expect_eq(call.in.data[100005 * 49 + 5], 49);
    rpc_end(&call);
    rpc_begin(c, &call, "/t.T/Sum", NULL);
    for (int i = 0; i < 40; i++)
        rpc_send(&call, data, 100000);
    rpc_send_end(&call);
    cr_expect_eq(rpc_wait(&call), GRPC_OK);
    cr_expect_str_eq(str_text(&call.in) + 5, "4000000");
    rpc_end(&call);
    rpc_close(c);
    rpc_server_destroy(s);
}

/* The sender waits, and holds no more than what may wait. */
Test(grpcd, who_does_not_read_is_not_sent_to_for_ever)
{
    struct rpc_server *s = rpc_server_create(NULL, NULL, NULL);
    struct rpc_client *c = rpc_open(s->path), *other = rpc_open(s->path);
    struct grpcd_stats stats;
    struct rpc_call call;
    c->late = true;
    rpc_begin(c, &call, "/t.T/Count", NULL);
    rpc_send(&call, "1000 100000", 11);
    rpc_send_end(&call);
    rpc_wait_bytes(&call, 60000); /* its window is 65535 */
    for (int i = 0; i < 100; i++)
        expect_unary(other, "/t.T/Long", "others go on");
    grpcd_stats(s->grpcd, &stats);
    cr_expect_leq(stats.held, GRPCD_QUEUE_MAX + 2 * 100005u);
    rpc_reset(&call, NGHTTP2_CANCEL);
    rpc_server_await(&s->n_cancelled, 1);
    rpc_end(&call);
    rpc_close(c);
    rpc_close(other);
    rpc_server_await(&s->n_ended, 101);
    grpcd_stats(s->grpcd, &stats);
    cr_expect_eq(stats.held, 0, "%zu", stats.held);
    rpc_server_destroy(s);
}

Test(grpcd, those_that_block_hold_up_nobody)
{
    const struct grpcd_config few = {.long_threads = 2, .brief_threads = 1};
    struct rpc_server *s = rpc_server_create(NULL, NULL, &few);
    struct rpc_client *c = rpc_open(s->path);
    struct rpc_call calls[3];
    for (int i = 0; i < 3; i++) {
        rpc_begin(c, &calls[i], "/t.T/Wait", NULL);
        rpc_send(&calls[i], "", 0);
        rpc_send_end(&calls[i]);
    }
    rpc_turn(c, 0);
    rpc_server_await(&s->n_begun, 2);
    expect_unary(c, "/t.T/Echo", "here");
    expect_unary(c, "/t.T/Work", "brief");
    rpc_server_release(s);
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(rpc_wait(&calls[i]), GRPC_OK);
        rpc_end(&calls[i]);
    }
    rpc_close(c);
    rpc_server_destroy(s);
}

Test(grpcd, a_call_is_kept_without_a_thread)
{
    struct rpc_server *s = rpc_server_create(NULL, NULL, NULL);
    struct rpc_client *c = rpc_open(s->path);
    struct rpc_call call;
    rpc_begin(c, &call, "/t.T/Keep", NULL);
    rpc_send(&call, "", 0);
    rpc_send_end(&call);
    rpc_turn(c, 0);
    rpc_server_await(&s->n_begun, 1);
    rpc_server_release(s);
    cr_expect_eq(rpc_wait(&call), GRPC_OK);
    cr_expect_eq(memcmp(call.in.data + 5, "kept", 4), 0);
    rpc_end(&call);
    rpc_close(c);
    rpc_server_destroy(s);
}

Test(grpcd, handlers_hear_of_the_end)
{
    struct rpc_server *s = rpc_server_create(NULL, NULL, NULL);
    struct rpc_client *c = rpc_open(s->path);
    const char *const five[] = {"grpc-timeout", "5S", NULL};
    struct rpc_call call;
    /* reset */
    rpc_begin(c, &call, "/t.T/Wait", NULL);
    rpc_send(&call, "", 0);
    rpc_turn(c, 0);
    rpc_server_await(&s->n_begun, 1);
    rpc_reset(&call, NGHTTP2_CANCEL);
    rpc_server_await(&s->n_ended, 1);
    cr_expect_eq(atomic_load(&s->last_cancelled), GRPC_CANCELLED);
    cr_expect_eq(atomic_load(&s->last_code), GRPC_CANCELLED);
    rpc_end(&call);
    /* late */
    clock_set_fake(1000);
    rpc_begin(c, &call, "/t.T/Wait", five);
    rpc_send(&call, "", 0);
    rpc_send_end(&call);
    rpc_turn(c, 0);
    rpc_server_await(&s->n_begun, 2);
    clock_set_fake(6000);
    expect_unary(c, "/t.T/Echo", "wakes it");
    cr_expect_eq(rpc_wait(&call), GRPC_DEADLINE_EXCEEDED);
    rpc_end(&call);
    rpc_server_await(&s->n_ended, 3);
    clock_set_fake(-1);
    cr_expect_eq(atomic_load(&s->last_cancelled), GRPC_DEADLINE_EXCEEDED);
    /* gone */
    rpc_begin(c, &call, "/t.T/Wait", NULL);
    rpc_send(&call, "", 0);
    rpc_turn(c, 0);
    rpc_server_await(&s->n_begun, 4);
    rpc_end(&call);
    rpc_close(c);
    rpc_server_await(&s->n_ended, 4);
    cr_expect_eq(atomic_load(&s->n_cancelled), 3);
    rpc_server_destroy(s);
}

Test(grpcd, what_is_wrong_with_a_request_is_told)
{
    static const struct {
        const char *method, *name, *value;
        int code;
        const char *says;
    } cases[] = {
        {"/t.T/Nothing", "x", "y", GRPC_UNIMPLEMENTED, "no such method"},
        {"/t.T/Echo", "grpc-timeout", "soon", GRPC_INTERNAL, "soon"},
    };
    struct rpc_server *s = rpc_server_create(NULL, NULL, NULL);
    struct rpc_client *c = rpc_open(s->path);
    struct rpc_call call;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *const more[] = {cases[i].name, cases[i].value, NULL};
        rpc_begin(c, &call, cases[i].method, more);
        rpc_send(&call, "", 0);
        rpc_send_end(&call);
        cr_expect_eq(rpc_wait(&call), cases[i].code);
        cr_expect(strstr(rpc_text(&call), cases[i].says), "%s",
                  rpc_text(&call));
        rpc_end(&call);
    }
    const struct {
        const char *bytes;
        size_t size;
        int code;
    } bodies[] = {
        {"\1\0\0\0\1x", 6, GRPC_UNIMPLEMENTED}, /* compressed */
        {"\7\0\0\0\1x", 6, GRPC_INTERNAL},
        {"\0\0\0\0\2x", 6, GRPC_INTERNAL}, /* cut off */
        {"", 0, GRPC_INVALID_ARGUMENT},    /* by the method */
    };
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        rpc_begin(c, &call, "/t.T/Echo", NULL);
        rpc_send_raw(&call, bodies[i].bytes, bodies[i].size);
        rpc_send_end(&call);
        cr_expect_eq(rpc_wait(&call), bodies[i].code, "%zu", i);
        rpc_end(&call);
    }
    expect_unary(c, "/t.T/Echo", "and it goes on");
    rpc_close(c);
    rpc_server_destroy(s);
}

Test(grpcd, headers_over_the_cap_are_refused)
{
    struct rpc_server *s = rpc_server_create(NULL, NULL, NULL);
    struct rpc_client *c = rpc_open(s->path);
    char value[4000];
    const char *more[2 * 10 + 1] = {0};
    struct rpc_call call;
    memset(value, 'v', sizeof value);
    value[sizeof value - 1] = '\0';
    for (int i = 0; i < 20; i += 2) {
        more[i] = "x-large";
        more[i + 1] = value;
    }
    rpc_begin(c, &call, "/t.T/Echo", more);
    rpc_send(&call, "", 0);
    rpc_send_end(&call);
    cr_expect_eq(rpc_wait(&call), GRPC_RESOURCE_EXHAUSTED);
    rpc_end(&call);
    rpc_close(c);
    rpc_server_destroy(s);
}

Test(grpcd, more_calls_than_the_cap_are_refused)
{
    const struct grpcd_config few = {.calls = 2};
    struct rpc_server *s = rpc_server_create(NULL, NULL, &few);
    struct rpc_client *c = rpc_open(s->path);
    struct rpc_call calls[3];
    for (int i = 0; i < 3; i++) {
        rpc_begin(c, &calls[i], "/t.T/Keep", NULL);
        rpc_send(&calls[i], "", 0);
        rpc_send_end(&calls[i]);
    }
    cr_expect_eq(rpc_wait(&calls[2]), GRPC_RESOURCE_EXHAUSTED);
    rpc_server_await(&s->n_begun, 2);
    rpc_server_release(s);
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(rpc_wait(&calls[i]),
                     i < 2 ? GRPC_OK : GRPC_RESOURCE_EXHAUSTED);
        rpc_end(&calls[i]);
    }
    rpc_close(c);
    rpc_server_destroy(s);
}

Test(grpcd, what_holds_too_much_keeps_others_out)
{
    const struct grpcd_config little = {.memory_max = 1000};
    struct rpc_server *s = rpc_server_create(NULL, NULL, &little);
    struct rpc_client *c = rpc_open(s->path);
    struct grpcd_stats stats;
    struct rpc_call half, other;
    char data[2000] = "";
    rpc_begin(c, &half, "/t.T/Echo", NULL);
    rpc_send_raw(&half, "\0\0\0\20\0", 5); /* 4096 bytes are to come */
    rpc_send_raw(&half, data, sizeof data);
    do { /* until it has come */
        rpc_turn(c, 1);
        grpcd_stats(s->grpcd, &stats);
    } while (stats.held < sizeof data);
    rpc_begin(c, &other, "/t.T/Echo", NULL);
    rpc_send(&other, "a", 1);
    rpc_send_end(&other);
    cr_expect_eq(rpc_wait(&other), GRPC_RESOURCE_EXHAUSTED);
    cr_expect(strstr(rpc_text(&other), "1000 bytes"), "%s", rpc_text(&other));
    rpc_end(&other);
    rpc_send_raw(&half, data, sizeof data);
    rpc_send_raw(&half, data, 96);
    rpc_send_end(&half);
    cr_expect_eq(rpc_wait(&half), GRPC_OK);
    cr_expect_eq(half.in.size, 4101);
    rpc_end(&half);
    expect_unary(c, "/t.T/Echo", "there is room again");
    rpc_close(c);
    rpc_server_destroy(s);
}

Test(grpcd, the_idle_make_room_for_others)
{
    const struct grpcd_config few = {.connections = 2};
    struct rpc_server *s = rpc_server_create(NULL, NULL, &few);
    struct rpc_client *first = rpc_open(s->path);
    struct rpc_call call;
    rpc_begin(first, &call, "/t.T/Keep", NULL);
    rpc_send(&call, "", 0);
    rpc_send_end(&call);
    rpc_turn(first, 0);
    rpc_server_await(&s->n_begun, 1);
    struct rpc_client *idle = rpc_open(s->path);
    expect_unary(idle, "/t.T/Echo", "a");
    struct rpc_client *third = rpc_open(s->path);
    expect_unary(third, "/t.T/Echo", "b");
    while (!idle->closed)
        rpc_turn(idle, RPC_PATIENCE_MS);
    rpc_server_release(s);
    cr_expect_eq(rpc_wait(&call), GRPC_OK);
    rpc_end(&call);
    rpc_close(first);
    rpc_close(idle);
    rpc_close(third);
    rpc_server_destroy(s);
}
