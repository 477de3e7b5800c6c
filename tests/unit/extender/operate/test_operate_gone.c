/* A client that leaves while the writer works on what it has asked for: that is
 * done all the same, with what follows from it, and nothing is left of the
 * request. */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "extender/operate/operate.h"
#include "extender/pods/applied_set.h"
#include "extender/pods/pending_demands.h"
#include "extender/serve/routes_nodes.h"
#include "extender/serve/routes_pods.h"
#include "extender/serve/routes_publish.h"
#include "extender/serve/routes_read.h"
#include "lib/base/mem.h"
#include "tests/lib/http/h2rig.h"
#include "tests/lib/sim/extender.h"
#include "tests/lib/sim/simstate.h"

static struct test_extender x;
static struct h2_server *certs;
static struct httpd *https; /* the routes of `x`, for clients that leave */
static struct httpd_route routes[128], real[128];
static size_t n_routes;
static atomic_uint n_handled;

/* The route's own handler, of which the test is told. */
static void on_any(struct httpd_request *rq, void *ctx)
{
    for (size_t i = 0; i < n_routes; i++)
        if (strcmp(real[i].name, httpd_route_name(rq)) == 0) {
            real[i].handle(rq, ctx);
            break;
        }
    atomic_fetch_add(&n_handled, 1);
}

static void add(const struct httpd_route *more, size_t n)
{
    cr_assert_leq(n_routes + n, ARRAY_LEN(routes));
    for (size_t i = 0; i < n; i++) {
        real[n_routes] = routes[n_routes] = more[i];
        routes[n_routes++].handle = on_any;
    }
}

static void start(void)
{
    struct error err;
    add(operate_routes, n_operate_routes);
    add(pods_routes, n_pods_routes);
    add(node_routes, n_node_routes);
    add(publish_routes, n_publish_routes);
    add(read_routes, n_read_routes);
    test_extender_start(&x, routes, n_routes, NULL);
    certs = h2_server_create(0, 0);
    const struct httpd_config config = {
        .name = "test",
        .listen = "127.0.0.1:0",
        .routes = routes,
        .n_routes = n_routes,
        .ctx = &x.app,
        .tls = certs->tls,
        .request_ms = 600000,
    };
    cr_assert_eq(httpd_start(&config, &https, &err), 0, "%s", err.text);
    cr_assert_eq(sim_publish(x.app.writer, "n1", 2, "boot", 1), 0);
}

static void stop(void)
{
    httpd_stop(https);
    h2_server_destroy(certs);
    test_extender_stop(&x);
}

TestSuite(operate_gone, .init = start, .fini = stop, .timeout = 300);

/* --- a writer that is busy ------------------------------------------------ */

struct busy {
    struct writer_op op;
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool begun, over;
};

static void be_busy(void *ctx)
{
    struct busy *b = ctx;
    hold_lock(&b->lock);
    b->begun = true;
    pthread_cond_broadcast(&b->news);
    while (!b->over)
        (void)pthread_cond_wait(&b->news, &b->lock);
}

static void done(struct writer_op *op)
{
    (void)op;
}

static void busy_begin(struct busy *b)
{
    *b = (struct busy){.lock = PTHREAD_MUTEX_INITIALIZER,
                       .news = PTHREAD_COND_INITIALIZER};
    b->op = (struct writer_op){
        .kind = WRITER_CALL, .call = be_busy, .ctx = b, .done = done};
    writer_post(x.app.writer, &b->op);
    hold_lock(&b->lock);
    while (!b->begun)
        (void)pthread_cond_wait(&b->news, &b->lock);
}

static void busy_end(struct busy *b)
{
    hold_lock(&b->lock);
    b->over = true;
    pthread_cond_broadcast(&b->news);
}

/* Ask, and leave before the writer has come to it. */
static void ask_and_leave(const char *method, const char *target,
                          const char *body)
{
    static struct busy busy;
    struct tls_client c = {.fd = -1};
    struct tls_client_config how = h2_server_me(certs);
    unsigned before = atomic_load(&n_handled);
    how.port = httpd_port(https);
    how.alpn = NULL;
    cleanup_free char *text =
        xasprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                  "application/json\r\nContent-Length: %zu\r\n\r\n%s",
                  method, target, strlen(body), body);
    cr_assert(tls_client_open(&c, &how));
    busy_begin(&busy);
    cr_assert(tls_client_send(&c, text, strlen(text)));
    while (atomic_load(&n_handled) == before)
        (void)poll(NULL, 0, 1);
    tls_client_close(&c);
    busy_end(&busy);
    while (httpd_held(https).n_requests > 0)
        (void)poll(NULL, 0, 1);
}

/* --- what is done --------------------------------------------------------- */

#define POD                                                                  \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"labels\":{\"biga.dev/" \
    "role\":\"service\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image" \
    "\":\"i:1\"}]}}"

static void bind_applied(void)
{
    cleanup_with(pod_set) struct pod_set *set =
        applied_get(x.embedded->store.applied);
    const struct applied_pod *p = pod_set_find(set, "default", "a");
    struct demand d = sim_pod("a", ROLE_SERVICE, "", 0);
    struct error err = {0};
    cr_assert(p);
    (void)snprintf(d.namespace, sizeof d.namespace, "default");
    (void)snprintf(d.uid, sizeof d.uid, "%s", p->uid);
    cr_assert_eq(sim_bind(x.app.writer, &d, "n1", NULL, &err), 0, "%s",
                 err.text);
}

static bool is_ending(void)
{
    cleanup_with(pod_set) struct pod_set *set =
        applied_get(x.embedded->store.applied);
    const struct applied_pod *p = pod_set_find(set, "default", "a");
    return !p || p->deleting;
}

Test(operate_gone, a_drain_evicts)
{
    ask_and_leave("POST", "/v1/pods", POD);
    bind_applied();
    cr_assert_not(is_ending());
    ask_and_leave("POST", "/v1/nodes/n1/drain",
                  "{\"reason\":\"r\",\"evict\":true}");
    cr_expect(is_ending());
    ask_and_leave("DELETE", "/v1/nodes/n1/drain", "");
}

Test(operate_gone, a_release_is_forgotten_by_all)
{
    struct demand seen, d = sim_pod("b", ROLE_SERVICE, "", 0);
    cr_assert_eq(sim_bind(x.app.writer, &d, "n1", NULL, NULL), 0);
    pending_demands_put(x.app.demands, &d);
    ask_and_leave("DELETE", "/v1/allocations/ns/b", "");
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(x.app.writer);
    cr_expect_null(alloc_index_find(s->allocations, "ns", "b"));
    cr_expect_not(pending_demands_find_uid(x.app.demands, d.uid, &seen));
}

Test(operate_gone, a_slice_is_created)
{
    cleanup_free char *slice = sim_slice("n2", 2, "boot", 1, 0);
    ask_and_leave("POST", "/apis/resource.k8s.io/v1/resourceslices", slice);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(x.app.writer);
    cr_expect_neq(snapshot_find(s, "n2", 2), NODE_NONE);
    ask_and_leave("GET", "/apis/resource.k8s.io/v1/resourceslices", "");
    ask_and_leave("DELETE", "/v1/doubt", "");
}
