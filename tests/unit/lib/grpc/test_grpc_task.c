/* How long a call waits before it looks what has become of it, and when
 * libcurl ends it. */
#include <criterion/criterion.h>
#include <poll.h>

#include "lib/base/mem.h"
#include "lib/grpc/grpc_private.h"
#include "lib/grpc/grpc_pump.h"
#include "lib/io/clock.h"
#include "tests/lib/http/h2server.h"
#include "tests/lib/tmpdir.h"
#include "tests/lib/virtual.h"

#define METHOD "/runtime.v1.RuntimeService/Version"

enum { SOON_MS = 50, LONG_MS = 60000, RARE_MS = 1000 };

static int wait_of(bool tls, int64_t due_ms)
{
    struct grpc g = {.to.tls = tls};
    const struct grpc_task t = {.g = &g, .due_ms = due_ms};
    return grpc_task_poll_ms(&t);
}

Test(grpc_task, one_that_waits_long_looks_rarely)
{
    cr_expect_geq(wait_of(true, clock_ms() + LONG_MS), RARE_MS);
    cr_expect_geq(wait_of(true, INT64_MAX), RARE_MS);
}

Test(grpc_task, looks_once_it_is_late)
{
    cr_expect_leq(wait_of(true, clock_ms() + SOON_MS), SOON_MS + 1);
    cr_expect_eq(wait_of(true, clock_ms() - LONG_MS), 0);
    cr_expect_eq(wait_of(false, clock_ms() - LONG_MS), 0);
}

Test(grpc_task, cleartext_looks_often)
{
    cr_expect_eq(wait_of(false, INT64_MAX), GRPC_PLAIN_MS);
}

/* --- a server, over a unix socket ----------------------------------------- */

static struct {
    char *dir, *endpoint;
    struct h2_server *server;
    struct grpc *grpc;
    struct str reply;
    struct grpc_end end;
    struct error err;
} at;

static void begin(void)
{
    at.dir = tmpdir_create();
    cleanup_free char *path = xasprintf("%s/sock", at.dir);
    at.endpoint = xasprintf("unix://%s", path);
    const struct h2_config config = {.socket = path};
    const struct grpc_config to = {.endpoint = at.endpoint};
    at.server = h2_server_start(&config);
    cr_assert_eq(grpc_create(&to, &at.grpc, &at.err), 0, "%s", at.err.text);
}

static void end(void)
{
    grpc_destroy(at.grpc);
    h2_server_stop(at.server);
    tmpdir_remove(at.dir);
    free(at.endpoint);
    str_fini(&at.reply);
}

/* libcurl's timer is real: this waits for it. */
Test(grpc_task, a_deadline_is_libcurls_too, .timeout = 180)
{
    CURLcode code = CURLE_OK;
    begin();
    h2_server_fault(at.server, H2_SILENT);
    struct grpc_task t = {.g = at.grpc,
                          .method = METHOD,
                          .request = "question",
                          .request_size = 8,
                          .deadline_ms = SOON_MS};
    grpc_task_reply(&t, &at.reply);
    grpc_task_init(&t);
    t.due_ms = INT64_MAX; /* so it is not ours that ends it */
    cr_assert_eq(grpc_transfer_begin(&t), CURLE_OK);
    for (;;) {
        if (at.grpc->pump)
            grpc_pump_turn(at.grpc->pump);
        if (!grpc_transfer_go_on(&t, &code))
            break;
        (void)poll(NULL, 0, 1);
    }
    grpc_transfer_end(&t);
    cr_expect_eq(code, CURLE_OPERATION_TIMEDOUT, "%d", (int)code);
    cr_expect_eq(grpc_transfer_judge(&t, code, &at.end, &at.err), -ETIMEDOUT,
                 "%s", at.err.text);
    end();
}

/* After more real time than the deadline is. */
static int answer_slowly(void *ctx, const char *method, const void *request,
                         size_t size, struct str *ret_reply)
{
    (void)ctx;
    (void)method;
    (void)request;
    (void)size;
    (void)poll(NULL, 0, 2 * SOON_MS);
    str_add(ret_reply, "hello");
    return 0;
}

Test(grpc_task, but_not_while_time_is_virtual, .timeout = 180)
{
    virtual_begin();
    begin();
    h2_server_handle(at.server, answer_slowly, NULL);
    cr_expect_eq(grpc_call(at.grpc, METHOD, "question", 8, SOON_MS, &at.reply,
                           &at.end, &at.err),
                 0, "%s", at.err.text);
    end();
    virtual_end();
}
