/* Calls that another thread ends. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/grpc/grpc.h"
#include "tests/lib/grpc/rpcserver.h"

struct rig {
    struct rpc_server *s;
    char *endpoint;
    struct grpc_config config;
    struct grpc *g;
};

static struct rig *rig_make(void)
{
    struct rig *r = xcalloc(1, sizeof *r);
    struct error err = {0};
    r->s = rpc_server_create(NULL, NULL, NULL);
    r->endpoint = xasprintf("unix://%s", r->s->path);
    r->config.endpoint = r->endpoint;
    cr_assert_eq(grpc_create(&r->config, &r->g, &err), 0);
    return r;
}

static void rig_end(struct rig *r)
{
    grpc_destroy(r->g);
    rpc_server_destroy(r->s);
    free(r->endpoint);
    free(r);
}

static int call(struct rig *r, const char *method, struct error *err)
{
    cleanup_str struct str reply = STR_INIT(1000);
    struct grpc_end end;
    return grpc_call(r->g, method, "abc", 3, 600000, &reply, &end, err);
}

static void *cancel_later(void *arg)
{
    struct rig *r = arg;
    rpc_server_await(&r->s->n_begun, 1);
    grpc_cancel(r->g);
    return NULL;
}

static void *interrupt_later(void *arg)
{
    struct rig *r = arg;
    rpc_server_await(&r->s->n_begun, 1);
    grpc_interrupt(r->g);
    return NULL;
}

Test(grpc_cancel, cancelled_is_cancelled_for_ever)
{
    struct rig *r = rig_make();
    struct error err = {0};
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, cancel_later, r), 0);
    cr_expect_eq(call(r, "/t.T/Wait", &err), -ECANCELED);
    cr_expect(strstr(err.text, "Wait") && strstr(err.text, "cancelled"), "%s",
              err.text);
    (void)pthread_join(thread, NULL);
    rpc_server_await(&r->s->n_cancelled, 1); /* it is told */
    cr_expect_eq(call(r, "/t.T/Echo", &err), -ECANCELED);
    cr_expect_eq(call(r, "/t.T/Echo", &err), -ECANCELED);
    rig_end(r);
}

Test(grpc_cancel, one_call_is_interrupted)
{
    struct rig *r = rig_make();
    struct error err = {0};
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, interrupt_later, r), 0);
    cr_expect_eq(call(r, "/t.T/Wait", &err), -ECANCELED);
    (void)pthread_join(thread, NULL);
    rpc_server_await(&r->s->n_cancelled, 1);
    cr_expect_eq(call(r, "/t.T/Echo", &err), 0, "%s", err.text);
    rig_end(r);
}

Test(grpc_cancel, what_comes_between_calls_ends_the_next)
{
    struct rig *r = rig_make();
    struct error err = {0};
    grpc_interrupt(r->g);
    cr_expect_eq(call(r, "/t.T/Echo", &err), -ECANCELED);
    cr_expect_eq(call(r, "/t.T/Echo", &err), 0, "%s", err.text);
    grpc_interrupt(r->g);
    grpc_resume(r->g);
    cr_expect_eq(call(r, "/t.T/Echo", &err), 0, "%s", err.text);
    rig_end(r);
}
