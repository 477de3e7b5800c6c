#include <criterion/criterion.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "tests/lib/http/h2rig.h"
#include "tests/lib/http/rawclient.h"

/* A request that waits when its client resets the connection: whoever resumes
 * it is told of it, in one way or the other, and not left with what it kept. */

static struct httpd_request *_Atomic waiting;
static atomic_uint n_then, n_lost;

static void then(struct httpd_request *rq, void *arg)
{
    (void)rq;
    (void)arg;
    atomic_fetch_add(&n_then, 1);
}

static void lost(void *arg)
{
    (void)arg;
    atomic_fetch_add(&n_lost, 1);
}

static void on_wait(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    httpd_then(rq, then, NULL);
    httpd_or_else(rq, lost);
    httpd_suspend(rq);
    atomic_store(&waiting, rq);
}

static const struct httpd_route routes[] = {
    {HTTPD_GET, "/wait", on_wait, 0, "wait"},
};

TestSuite(httpd_lost, .timeout = 300);

static void is_told(bool tls, bool reset)
{
    enum { N = 20 };
    struct h2_server *certs = h2_server_create(0, 0);
    struct httpd_config config = {
        .name = "test",
        .listen = "127.0.0.1:0",
        .routes = routes,
        .n_routes = ARRAY_LEN(routes),
        .request_ms = 600000,
        .tls = tls ? certs->tls : NULL,
    };
    struct httpd *h;
    struct error err;
    cr_assert_eq(httpd_start(&config, &h, &err), 0, "%s", err.text);
    for (unsigned i = 0; i < N; i++) {
        const char ask[] = "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n";
        struct tls_client c = {.fd = -1};
        struct tls_client_config how = h2_server_me(certs);
        how.port = httpd_port(h);
        how.alpn = NULL;
        int fd;
        if (tls) {
            cr_assert(tls_client_open(&c, &how));
            cr_assert(tls_client_send(&c, ask, sizeof ask - 1));
            fd = c.fd;
        } else {
            fd = raw_connect(how.port);
            cr_assert(raw_send_n(fd, ask, sizeof ask - 1));
        }
        while (!atomic_load(&waiting))
            (void)poll(NULL, 0, 1);
        const struct linger now = {.l_onoff = 1};
        if (reset)
            (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        if (tls)
            tls_client_close(&c);
        else
            (void)close(fd);
        struct httpd_request *rq = atomic_exchange(&waiting, NULL);
        httpd_resume(rq);
        while (atomic_load(&n_then) + atomic_load(&n_lost) <= i)
            (void)poll(NULL, 0, 1);
    }
    while (httpd_held(h).n_requests > 0)
        (void)poll(NULL, 0, 1);
    cr_expect_eq(atomic_load(&n_then) + atomic_load(&n_lost), N, "once each");
    httpd_stop(h);
    h2_server_destroy(certs);
}

Test(httpd_lost, plain_closed)
{
    is_told(false, false);
}

Test(httpd_lost, plain_reset)
{
    is_told(false, true);
}

Test(httpd_lost, tls_closed)
{
    is_told(true, false);
}

Test(httpd_lost, tls_reset)
{
    is_told(true, true);
}
