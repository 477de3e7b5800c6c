/* A full listener parts with the connections of clients that have gone, not
 * with those of others that are idle. */
#include <criterion/criterion.h>
#include <semaphore.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/http/httpd.h"
#include "lib/io/clock.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/virtual.h"

enum { MAX = 8, GONE = 3 * MAX, STEP_MS = 1000, REQUEST_MS = 60000 };

static sem_t entered, released;

static void on_hold(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    sem_post(&entered);
    sem_wait(&released);
    str_add(httpd_reply(rq), "held");
}

static void on_quick(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    str_add(httpd_reply(rq), "quick");
}

static const struct httpd_route routes[] = {
    {HTTPD_GET, "/hold", on_hold, 0, "hold"},
    {HTTPD_GET, "/quick", on_quick, 0, "quick"},
};

static struct httpd *start(void)
{
    const struct httpd_config config = {.listen = "127.0.0.1:0",
                                        .routes = routes,
                                        .n_routes = ARRAY_LEN(routes),
                                        .connections_max = MAX,
                                        .request_ms = REQUEST_MS};
    struct httpd *h = NULL;
    struct error err = {0};
    sem_init(&entered, 0, 0);
    sem_init(&released, 0, 0);
    cr_assert_eq(httpd_start(&config, &h, &err), 0, "%s", err.text);
    return h;
}

static struct raw_reply reply;

static void ask(int fd, const char *path)
{
    cleanup_free char *text = xasprintf("GET %s HTTP/1.1\r\nHost: x\r\n\r\n",
                                        path);
    cr_assert(raw_send(fd, text));
}

/* The listener's thread finds what was sent and its end at the same time. */
static void come_and_go(struct httpd *h, const char *half)
{
    int holder = raw_connect(httpd_port(h));
    ask(holder, "/hold");
    sem_wait(&entered);
    int fd = raw_connect(httpd_port(h));
    cr_assert(raw_send(fd, half));
    (void)close(fd);
    sem_post(&released);
    cr_assert_eq(raw_read(holder, false, &reply), 200);
    (void)close(holder);
    /* who comes after it is served after it was read */
    cr_assert_eq(raw_call(httpd_port(h), "GET", "/quick", "", NULL, &reply),
                 200);
}

/* So that even a request that was arriving has had its chance. */
static void pass_time(void)
{
    for (int64_t end = clock_ms() + 2 * STEP_MS; clock_ms() < end;)
        virtual_step(1, STEP_MS);
}

static void keeps_who_is_idle(const char *half)
{
    virtual_begin();
    struct httpd *h = start();
    int kept = raw_connect(httpd_port(h));
    ask(kept, "/quick");
    cr_assert_eq(raw_read(kept, false, &reply), 200);
    for (int i = 0; i < GONE; i++) {
        come_and_go(h, half);
        pass_time();
    }
    ask(kept, "/quick");
    cr_assert_eq(raw_read(kept, false, &reply), 200, "was cut off");
    (void)close(kept);
    raw_reply_fini(&reply);
    httpd_stop(h);
    virtual_end();
}

Test(httpd_gone, in_a_request_line)
{
    keeps_who_is_idle("GET /qui");
}

Test(httpd_gone, in_a_header)
{
    keeps_who_is_idle("GET /quick HTTP/1.1\r\nHos");
}
