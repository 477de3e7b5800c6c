#include "extender/leader/elect.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "lib/http/httpd.h"
#include "lib/io/clock.h"
#include "lib/kube/lease.h"
#include "tests/lib/virtual.h"

/* --- an API server with one Lease --------------------------------------- */

static struct {
    pthread_mutex_t lock;
    bool exists, down, homeless; /* homeless: there is no namespace */
    struct kube_lease lease;
    unsigned version;
    bool slow; /* a call takes a while, by turns */
    unsigned n_calls;
    char cut; /* nothing that this one writes arrives */
} api = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void status(struct httpd_request *rq, unsigned code, const char *reason)
{
    httpd_status(rq, code);
    str_addf(httpd_reply(rq),
             "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":"
             "\"Failure\",\"reason\":\"%s\",\"code\":%u}",
             reason, code);
}

static bool is_down(struct httpd_request *rq)
{
    static const int64_t takes_ms[] = {0, 30, 0, 500, 7, 0, 1100};
    if (api.slow)
        virtual_take(takes_ms[api.n_calls++ % ARRAY_LEN(takes_ms)]);
    if (api.down)
        status(rq, 503, "ServiceUnavailable");
    return api.down;
}

static void on_get(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    pthread_mutex_lock(&api.lock);
    if (is_down(rq))
        ;
    else if (api.exists)
        kube_lease_write(&api.lease, NULL, NULL, httpd_reply(rq));
    else
        status(rq, 404, "NotFound");
    pthread_mutex_unlock(&api.lock);
}

static void store(struct httpd_request *rq, bool create)
{
    size_t size;
    const char *body = httpd_body(rq, &size);
    struct kube_lease lease;
    struct error err = {0};
    int r = kube_lease_read(body, size, &lease, &err);
    if (r < 0) {
        status(rq, 400, "BadRequest");
    } else if (api.cut && lease.holder[0] == api.cut) {
        status(rq, 503, "ServiceUnavailable");
    } else if (create && api.exists) {
        status(rq, 409, "AlreadyExists");
    } else if (!create && !api.exists) {
        status(rq, 404, "NotFound");
    } else if (!create &&
               strcmp(lease.resource_version, api.lease.resource_version)) {
        status(rq, 409, "Conflict");
    } else {
        (void)snprintf(lease.resource_version, sizeof lease.resource_version,
                       "%u", ++api.version);
        (void)snprintf(lease.uid, sizeof lease.uid, "%s",
                       create ? "uid" : api.lease.uid);
        api.lease = lease;
        api.exists = true;
        kube_lease_write(&lease, NULL, NULL, httpd_reply(rq));
    }
}

static void on_put(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    pthread_mutex_lock(&api.lock);
    if (!is_down(rq))
        store(rq, false);
    pthread_mutex_unlock(&api.lock);
}

static void on_post(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    pthread_mutex_lock(&api.lock);
    if (is_down(rq))
        ;
    else if (api.homeless)
        status(rq, 404, "NotFound");
    else
        store(rq, true);
    pthread_mutex_unlock(&api.lock);
}

static const struct httpd_route routes[] = {
    {HTTPD_POST, "/apis/coordination.k8s.io/v1/namespaces/biga-system/leases",
     on_post, 65536, "post"},
    {HTTPD_GET,
     "/apis/coordination.k8s.io/v1/namespaces/biga-system/leases/biga-extender",
     on_get, 0, "get"},
    {HTTPD_PUT,
     "/apis/coordination.k8s.io/v1/namespaces/biga-system/leases/biga-extender",
     on_put, 65536, "put"},
};

static void set_down(bool down)
{
    pthread_mutex_lock(&api.lock);
    api.down = down;
    pthread_mutex_unlock(&api.lock);
}

/* --- candidates --------------------------------------------------------- */

enum {
    DURATION = 2000,
    RENEW = 240,
    DEADLINE = 1200,
    PATIENCE = 60000,
    STEP = 10,
};

struct candidate {
    struct elect *elect;
    atomic_int asked, followed;
    atomic_bool unready;
};

static struct httpd *httpd;
static struct kube_config kube;
static char server[64], namespace[] = "default";
static size_t n_threads; /* that wait: those of candidates and one of httpd */

static int on_lead(void *ctx)
{
    struct candidate *c = ctx;
    atomic_fetch_add(&c->asked, 1);
    return atomic_load(&c->unready) ? -EAGAIN : 0;
}

static void on_follow(void *ctx)
{
    struct candidate *c = ctx;
    atomic_fetch_add(&c->followed, 1);
}

static void start(struct candidate *c, const char *identity, bool alone)
{
    struct elect_config config = {
        .kube = &kube,
        .namespace = "biga-system",
        .name = "biga-extender",
        .identity = identity,
        .alone = alone,
        .lead = on_lead,
        .follow = on_follow,
        .ctx = c,
        .duration_ms = DURATION,
        .renew_ms = RENEW,
        .deadline_ms = DEADLINE,
    };
    struct error err = {0};
    cr_assert_eq(elect_start(&config, &c->elect, &err), 0, "%s", err.text);
    n_threads++;
}

static void stop(struct candidate *c)
{
    elect_stop(c->elect);
    n_threads--;
}

static void set_up(void)
{
    struct error err = {0};
    struct httpd_config config = {
        .name = "api",
        .listen = "127.0.0.1:0",
        .routes = routes,
        .n_routes = 3,
        .connections_max = 16,
    };
    virtual_begin();
    n_threads = 1;
    cr_assert_eq(httpd_start(&config, &httpd, &err), 0, "%s", err.text);
    (void)snprintf(server, sizeof server, "http://127.0.0.1:%u",
                   httpd_port(httpd));
    kube = (struct kube_config){.server = server, .namespace = namespace};
}

static void tear_down(void)
{
    httpd_stop(httpd);
    virtual_end();
}

TestSuite(elect, .init = set_up, .fini = tear_down, .timeout = 180);

static void step(void)
{
    virtual_step(n_threads, STEP);
}

/* How long until it is so; -1: not within `max_ms`. */
static int64_t until(struct candidate *c, bool holds, int64_t max_ms)
{
    virtual_settle(n_threads);
    int64_t begun = clock_ms();
    while (elect_holds(c->elect, 0) != holds) {
        if (clock_ms() - begun > max_ms)
            return -1;
        step();
    }
    return clock_ms() - begun;
}

Test(elect, a_new_lease_holds_later_and_is_given_back)
{
    struct candidate a = {0}, b = {0};
    char leader[254];
    start(&a, "a", false);
    int64_t ms = until(&a, true, PATIENCE);
    cr_expect_geq(ms, DURATION - RENEW, "%lld", (long long)ms);
    elect_leader(a.elect, leader);
    cr_expect_str_eq(leader, "a");
    while (!elect_holds(a.elect, 100))
        step();
    cr_expect_not(elect_holds(a.elect, DEADLINE + 1));

    start(&b, "b", false);
    cr_expect_eq(until(&b, true, DURATION * 2), -1, "a renews it");
    elect_leader(b.elect, leader);
    cr_expect_str_eq(leader, "a");
    cr_expect_eq(b.asked, 0);

    stop(&a);
    cr_expect_eq(a.followed, 1);
    pthread_mutex_lock(&api.lock);
    cr_expect_str_neq(api.lease.holder, "a", "it was given back");
    pthread_mutex_unlock(&api.lock);
    cr_expect_geq(until(&b, true, PATIENCE), 0);
    stop(&b);
    cr_expect_str_eq(api.lease.holder, "");
}

/* The next one waits as for a leader that died. */
Test(elect, a_kept_lease_is_not_given_back)
{
    struct candidate a = {0}, b = {0};
    start(&a, "a", false);
    cr_expect_geq(until(&a, true, PATIENCE), 0);
    start(&b, "b", false);
    elect_keep(a.elect);
    stop(&a);
    cr_expect_eq(a.followed, 1);
    cr_expect_str_eq(api.lease.holder, "a");
    cr_expect_eq(until(&b, true, DURATION / 2), -1);
    cr_expect_geq(until(&b, true, PATIENCE), 0);
    stop(&b);
}

Test(elect, nothing_is_held_before_all_is_in_order)
{
    struct candidate a = {0};
    atomic_store(&a.unready, true);
    start(&a, "a", false);
    cr_expect_eq(until(&a, true, 3 * DURATION), -1);
    cr_expect_gt(a.asked, 2, "it is asked again and again");
    atomic_store(&a.unready, false);
    cr_expect_geq(until(&a, true, PATIENCE), 0);
    cr_expect_eq(a.followed, 0);
    stop(&a);
}

Test(elect, who_cannot_renew_stops_by_itself)
{
    struct candidate a = {0};
    start(&a, "a", false);
    cr_assert_geq(until(&a, true, PATIENCE), 0);
    set_down(true);
    int64_t ms = until(&a, false, PATIENCE);
    cr_expect(ms >= 0 && ms <= DEADLINE, "%lld", (long long)ms);
    for (int64_t begun = clock_ms();
         a.followed == 0 && clock_ms() - begun < RENEW;)
        step();
    cr_expect_eq(a.followed, 1, "its thread notices");
    set_down(false);
    cr_expect_geq(until(&a, true, PATIENCE), 0);
    stop(&a);
}

Test(elect, a_missing_namespace_is_told_and_waited_for)
{
    struct candidate a = {0};
    struct error trouble = {0};
    api.homeless = true;
    start(&a, "a", false);
    for (int64_t begun = clock_ms();
         !elect_trouble(a.elect, &trouble) && clock_ms() - begun < PATIENCE;)
        step();
    cr_expect_eq(trouble.code, ENOENT);
    cr_expect(strstr(trouble.text, "cannot write the Lease"), "%s",
              trouble.text);
    cr_expect(strstr(trouble.text, "create the namespace"), "%s", trouble.text);
    pthread_mutex_lock(&api.lock);
    api.homeless = false;
    pthread_mutex_unlock(&api.lock);
    cr_expect_geq(until(&a, true, PATIENCE), 0);
    cr_expect_not(elect_trouble(a.elect, &trouble));
    stop(&a);
}

/* Now nobody can reach the server, now one of them cannot write. */
static void disturb(unsigned *seed)
{
    *seed = *seed * 1664525U + 1013904223U;
    if (*seed >> 16 >= 1200)
        return;
    pthread_mutex_lock(&api.lock);
    unsigned how = *seed >> 8 & 7;
    api.down = how == 0;
    api.cut = how > 3 ? (char)('a' + how % 3) : '\0';
    pthread_mutex_unlock(&api.lock);
}

Test(elect, never_do_two_hold_at_once)
{
    struct candidate c[3] = {{0}};
    unsigned n_changes = 0, seed = 7;
    size_t last = 3;
    static const char *const names[] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++)
        start(&c[i], names[i], false);
    api.slow = true;
    for (int64_t end = clock_ms() + 1200000; clock_ms() < end;) {
        unsigned n = 0;
        virtual_step(n_threads, 5 * STEP);
        for (size_t i = 0; i < 3; i++) {
            if (!elect_holds(c[i].elect, 0))
                continue;
            n++;
            n_changes += i != last;
            last = i;
        }
        cr_assert_leq(n, 1);
        disturb(&seed);
    }
    (void)fprintf(stderr, "elect: %u changes\n", n_changes);
    cr_expect_gt(n_changes, 1);
    for (size_t i = 0; i < 3; i++)
        stop(&c[i]);
}

Test(elect, alone_there_is_no_lease)
{
    struct candidate a = {0};
    char leader[254];
    start(&a, "a", true);
    cr_expect_geq(until(&a, true, PATIENCE), 0);
    elect_leader(a.elect, leader);
    cr_expect_str_eq(leader, "a");
    cr_expect(elect_holds(a.elect, 100000));
    cr_expect_not(api.exists);
    stop(&a);
    cr_expect_eq(a.followed, 1);
}
