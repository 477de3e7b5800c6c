/* Calls that another thread ends. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/grpc/grpc.h"
#include "tests/lib/grpc/rpcserver.h"
#include "tests/lib/http/certs.h"
#include "tests/lib/http/h2server.h"
#include "tests/lib/tmpdir.h"

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

/* A runtime that hangs, over TLS. */
struct hanging {
    char *dir, *ca, *cert, *key, *endpoint;
    struct h2_server *server;
    struct grpc *g;
};

static void hang(struct hanging *h)
{
    const struct cert_spec spec = {
        .name = "both", .purposes = CERT_SERVER | CERT_CLIENT, .local = true};
    struct cert *ca = cert_authority("cards");
    struct cert *own = cert_create(ca, &spec);
    h->dir = tmpdir_create();
    h->ca = xasprintf("%s/ca", h->dir);
    h->cert = xasprintf("%s/cert", h->dir);
    h->key = xasprintf("%s/key", h->dir);
    cert_write(ca, h->ca);
    cert_write(own, h->cert);
    cert_write_key(own, h->key);
    cert_destroy(own);
    cert_destroy(ca);
    const struct h2_config config = {
        .cert = h->cert, .key = h->key, .ca = h->ca};
    h->server = h2_server_start(&config);
    h2_server_fault(h->server, H2_SILENT);
    h->endpoint = xasprintf("tcp://127.0.0.1:%u", h2_server_port(h->server));
}

static void *interrupt_hanging(void *arg)
{
    struct hanging *h = arg;
    while (h2_server_calls(h->server) == 0)
        (void)sched_yield();
    grpc_interrupt(h->g);
    return NULL;
}

Test(grpc_cancel, who_hangs_over_tls_is_left)
{
    struct hanging h;
    struct grpc_end end;
    struct error err = {0};
    cleanup_str struct str reply = STR_INIT(1000);
    pthread_t thread;
    hang(&h);
    const struct grpc_config config = {
        .endpoint = h.endpoint, .ca = h.ca, .cert = h.cert, .key = h.key};
    cr_assert_eq(grpc_create(&config, &h.g, &err), 0, "%s", err.text);
    cr_assert_eq(pthread_create(&thread, NULL, interrupt_hanging, &h), 0);
    cr_expect_eq(
        grpc_call(h.g, "/r.S/Version", "", 0, 600000, &reply, &end, &err),
        -ECANCELED, "%s", err.text);
    (void)pthread_join(thread, NULL);
    h2_server_reply(h.server, NULL, "good", 4);
    h2_server_fault(h.server, H2_WELL);
    cr_expect_eq(
        grpc_call(h.g, "/r.S/Version", "", 0, 600000, &reply, &end, &err), 0,
        "%s", err.text);
    grpc_destroy(h.g);
    h2_server_stop(h.server);
    char *const texts[] = {h.ca, h.cert, h.key, h.endpoint};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free(texts[i]);
    tmpdir_remove(h.dir);
}
