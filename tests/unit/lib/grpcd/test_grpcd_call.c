/* A call as its handler sees it. */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/grpcd/grpcd_call.h"
#include "lib/io/clock.h"
#include "tests/lib/grpc/rpcclient.h"
#include "tests/lib/grpc/rpcserver.h"
#include "tests/lib/tmpdir.h"

/* A server with one method, which the test brings. */
struct rig {
    char *dir, *path;
    struct grpcd *s;
    struct rpc_client *c;
    enum grpcd_how how;
    grpcd_handler_f *handle;
    atomic_uint n_begun, n_hooks, n_ended;
    atomic_int seen, code;
};

static void route(void *ctx, const struct grpcd_call *call,
                  struct grpcd_route *ret_route)
{
    struct rig *r = ctx;
    (void)call;
    *ret_route =
        (struct grpcd_route){.how = r->how, .handle = r->handle, .ctx = r};
}

static void ended(void *ctx, const struct grpcd_end *end)
{
    struct rig *r = ctx;
    atomic_store(&r->code, end->code);
    atomic_fetch_add(&r->n_ended, 1);
}

static struct rig *rig_make(enum grpcd_how how, grpcd_handler_f *handle)
{
    struct rig *r = xcalloc(1, sizeof *r);
    struct error err = {0};
    r->dir = tmpdir_create();
    r->path = xasprintf("%s/s", r->dir);
    r->how = how;
    r->handle = handle;
    const struct grpcd_config config = {.path = r->path,
                                        .route = route,
                                        .ended = ended,
                                        .ctx = r,
                                        .message_max = 1000};
    cr_assert_eq(grpcd_create(&config, &r->s, &err), 0, "%s", err.text);
    cr_assert_eq(grpcd_start(r->s, &err), 0, "%s", err.text);
    r->c = rpc_open(r->path);
    return r;
}

static void rig_end(struct rig *r)
{
    rpc_close(r->c);
    grpcd_destroy(r->s);
    free(r->path);
    tmpdir_remove(r->dir);
    free(r);
}

static void begin(struct rig *r, struct rpc_call *call, const char *timeout)
{
    const char *const more[] = {"grpc-timeout", timeout, NULL};
    rpc_begin(r->c, call, "/t.T/It", timeout ? more : NULL);
    rpc_send(call, "abc", 3);
    rpc_send_end(call);
    rpc_turn(r->c, 0);
}

static int finish(struct rig *r, const char *timeout)
{
    struct rpc_call call;
    begin(r, &call, timeout);
    int code = rpc_wait(&call);
    rpc_end(&call);
    return code;
}

/* --- cancellation ----------------------------------------------------------- */

static void note(void *ctx)
{
    struct rig *r = ctx;
    atomic_fetch_add(&r->n_hooks, 1);
}

static void poll_fd(void *ctx, struct grpcd_call *call)
{
    struct rig *r = ctx;
    struct pollfd p = {.fd = grpcd_call_cancel_fd(call), .events = POLLIN};
    cr_assert_geq(p.fd, 0);
    cr_assert_eq(poll(&p, 1, 0), 0, "it is not cancelled");
    cr_assert_eq(grpcd_call_cancel_fd(call), p.fd);
    atomic_fetch_add(&r->n_begun, 1);
    cr_assert_eq(poll(&p, 1, RPC_PATIENCE_MS), 1);
    cr_assert_eq(poll(&p, 1, 0), 1, "and stays so");
    atomic_store(&r->seen, grpcd_call_cancelled(call));
    grpcd_call_on_cancel(call, note, r); /* it is too late to wait */
    cr_assert_eq(atomic_load(&r->n_hooks), 1);
    cr_assert_eq(grpcd_call_send(call, "x", 1), -ECANCELED);
    grpcd_call_finish(call, GRPC_OK, "nobody hears that");
}

Test(grpcd_call, a_descriptor_tells_of_the_end)
{
    struct rig *r = rig_make(GRPCD_LONG, poll_fd);
    struct rpc_call call;
    begin(r, &call, NULL);
    rpc_server_await(&r->n_begun, 1);
    rpc_reset(&call, NGHTTP2_CANCEL);
    rpc_server_await(&r->n_ended, 1);
    cr_expect_eq(atomic_load(&r->seen), GRPC_CANCELLED);
    cr_expect_eq(atomic_load(&r->code), GRPC_CANCELLED);
    rpc_end(&call);
    rig_end(r);
}

static void take_back(void *ctx, struct grpcd_call *call)
{
    struct rig *r = ctx;
    struct pollfd p = {.fd = grpcd_call_cancel_fd(call), .events = POLLIN};
    grpcd_call_on_cancel(call, note, r);
    grpcd_call_on_cancel(call, NULL, NULL);
    atomic_fetch_add(&r->n_begun, 1);
    (void)poll(&p, 1, RPC_PATIENCE_MS);
    grpcd_call_finish(call, GRPC_OK, NULL);
}

Test(grpcd_call, what_was_taken_back_is_not_called)
{
    struct rig *r = rig_make(GRPCD_BRIEF, take_back);
    struct rpc_call call;
    begin(r, &call, NULL);
    rpc_server_await(&r->n_begun, 1);
    rpc_reset(&call, NGHTTP2_CANCEL);
    rpc_server_await(&r->n_ended, 1);
    cr_expect_eq(atomic_load(&r->n_hooks), 0);
    rpc_end(&call);
    rig_end(r);
}

struct kept {
    struct rig *r;
    struct grpcd_call *call;
};

static void give_up(void *ctx)
{
    struct kept *k = ctx;
    note(k->r);
    grpcd_call_finish(k->call, GRPC_CANCELLED, NULL);
    free(k);
}

static void keep(void *ctx, struct grpcd_call *call)
{
    struct rig *r = ctx;
    struct kept *k = xcalloc(1, sizeof *k);
    *k = (struct kept){r, call};
    grpcd_call_on_cancel(call, give_up, k);
    atomic_fetch_add(&r->n_begun, 1);
}

Test(grpcd_call, the_hook_may_give_up_the_call)
{
    struct rig *r = rig_make(GRPCD_HERE, keep);
    struct rpc_call call;
    begin(r, &call, NULL);
    rpc_server_await(&r->n_begun, 1);
    rpc_reset(&call, NGHTTP2_CANCEL);
    rpc_server_await(&r->n_ended, 1);
    rpc_end(&call);
    begin(r, &call, NULL);
    rpc_server_await(&r->n_begun, 2);
    grpcd_stop(r->s, 0);
    cr_expect_eq(atomic_load(&r->n_hooks), 2);
    cr_expect_eq(atomic_load(&r->n_ended), 2);
    rpc_end(&call);
    rig_end(r);
}

/* --- times ------------------------------------------------------------------- */

static void look_at_time(void *ctx, struct grpcd_call *call)
{
    struct rig *r = ctx;
    int64_t due = grpcd_call_due_ms(call);
    atomic_store(&r->seen, due == INT64_MAX ? -1 : (int)(due - clock_ms()));
    cr_assert_eq(grpcd_call_left_ms(call, 100), 100);
    cr_assert_eq(grpcd_call_left_ms(call, 1000000),
                 due == INT64_MAX ? 1000000 : 5000);
    grpcd_call_finish(call, GRPC_OK, NULL);
}

Test(grpcd_call, the_deadline_is_that_of_the_client)
{
    struct rig *r = rig_make(GRPCD_BRIEF, look_at_time);
    clock_set_fake(1000);
    cr_expect_eq(finish(r, NULL), GRPC_OK);
    cr_expect_eq(atomic_load(&r->seen), -1);
    cr_expect_eq(finish(r, "5S"), GRPC_OK);
    cr_expect_eq(atomic_load(&r->seen), 5000);
    clock_set_fake(-1);
    rig_end(r);
}

/* --- messages ----------------------------------------------------------------- */

static void read_all(void *ctx, struct grpcd_call *call)
{
    struct rig *r = ctx;
    const char *message;
    size_t size;
    char large[1001] = "";
    cr_assert_eq(memcmp(grpcd_call_first(call, &size), "abc", 3), 0);
    cr_assert_eq(grpcd_call_next(call, &message, &size), 1);
    cr_assert_eq(size, 3);
    cr_assert_eq(memcmp(message, "abc", 3), 0);
    atomic_store(&r->seen, grpcd_call_next(call, &message, &size));
    cr_assert_eq(grpcd_call_send(call, large, sizeof large), -EMSGSIZE);
    grpcd_call_header(call, "x-early", "1", false);
    cr_assert_eq(grpcd_call_send(call, "a", 1), 0);
    grpcd_call_header(call, "x-late", "1", false);
    grpcd_call_header(call, "x-last", "1", true);
    grpcd_call_finish(call, GRPC_ABORTED, "100% \n");
}

Test(grpcd_call, messages_headers_and_a_status)
{
    struct rig *r = rig_make(GRPCD_BRIEF, read_all);
    struct rpc_call call;
    begin(r, &call, NULL);
    cr_expect_eq(rpc_wait(&call), GRPC_ABORTED);
    cr_expect_str_eq(rpc_text(&call), "100% \n");
    cr_expect_eq(atomic_load(&r->seen), 0);
    cr_expect_eq(call.in.size, 6);
    cr_expect_not_null(h2_fields_get(&call.head, "x-early"));
    cr_expect_null(h2_fields_get(&call.head, "x-late"));
    cr_expect_not_null(h2_fields_get(&call.trailers, "x-last"));
    rpc_end(&call);
    rig_end(r);
}

static void never_wait(void *ctx, struct grpcd_call *call)
{
    struct rig *r = ctx;
    const char *message;
    size_t size;
    char data[1000] = "";
    int n = 0, sent;
    cr_assert_eq(grpcd_call_next(call, &message, &size), 1);
    atomic_store(&r->seen, grpcd_call_next(call, &message, &size));
    do {
        sent = grpcd_call_send(call, data, sizeof data);
        n++;
    } while (sent == 0);
    cr_assert_eq(sent, -EAGAIN);
    cr_assert_geq(n, GRPCD_QUEUE_MAX / 1005);
    grpcd_call_finish(call, GRPC_OK, NULL);
}

Test(grpcd_call, on_the_servers_thread_nothing_waits)
{
    struct rig *r = rig_make(GRPCD_HERE, never_wait);
    struct rpc_call call;
    rpc_begin(r->c, &call, "/t.T/It", NULL);
    rpc_send(&call, "abc", 3); /* and more may follow */
    cr_expect_eq(rpc_wait(&call), GRPC_OK);
    cr_expect_eq(atomic_load(&r->seen), -EAGAIN);
    cr_expect_geq(call.in.size, GRPCD_QUEUE_MAX);
    rpc_end(&call);
    rig_end(r);
}

/* --- errors ------------------------------------------------------------------- */

static void fail_with(void *ctx, struct grpcd_call *call)
{
    struct rig *r = ctx;
    struct error err;
    (void)error_set(&err, atomic_load(&r->seen), "so it is");
    grpcd_call_fail(call, &err);
}

Test(grpcd_call, errors_have_their_codes)
{
    static const struct {
        int error, code;
    } cases[] = {
        {EINVAL, GRPC_INVALID_ARGUMENT},   {ENOENT, GRPC_NOT_FOUND},
        {EEXIST, GRPC_ALREADY_EXISTS},     {ETIMEDOUT, GRPC_DEADLINE_EXCEEDED},
        {ECANCELED, GRPC_CANCELLED},       {EPERM, GRPC_PERMISSION_DENIED},
        {ENOSPC, GRPC_RESOURCE_EXHAUSTED}, {ENOTSUP, GRPC_UNIMPLEMENTED},
        {ECONNREFUSED, GRPC_UNAVAILABLE},  {ECONNRESET, GRPC_UNAVAILABLE},
        {EHOSTUNREACH, GRPC_UNAVAILABLE},  {EIO, GRPC_UNKNOWN},
    };
    struct rig *r = rig_make(GRPCD_HERE, fail_with);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        atomic_store(&r->seen, cases[i].error);
        cr_expect_eq(finish(r, NULL), cases[i].code, "%d", cases[i].error);
    }
    rig_end(r);
}
