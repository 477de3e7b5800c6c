/* A listener with several threads: a handler that takes its time holds up its
 * own thread alone, and nothing is lost when the listener stops. */
#include <criterion/criterion.h>
#include <semaphore.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/http/httpd.h"
#include "tests/lib/http/rawclient.h"

enum { THREADS = 4, CLIENTS = 32, ROUNDS = 4, HANGS_MS = 600000 };

static sem_t entered, released;

static void on_slow(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    sem_post(&entered);
    sem_wait(&released);
    str_add(httpd_reply(rq), "slow");
}

static void on_quick(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    str_add(httpd_reply(rq), "quick");
}

static const struct httpd_route routes[] = {
    {HTTPD_GET, "/slow", on_slow, 0, "slow"},
    {HTTPD_GET, "/quick", on_quick, 0, "quick"},
};

static struct httpd *start(void)
{
    const struct httpd_config config = {.listen = "127.0.0.1:0",
                                        .routes = routes,
                                        .n_routes = ARRAY_LEN(routes),
                                        .threads = THREADS,
                                        .request_ms = HANGS_MS};
    struct httpd *h = NULL;
    struct error err = {0};
    sem_init(&entered, 0, 0);
    sem_init(&released, 0, 0);
    cr_assert_eq(httpd_start(&config, &h, &err), 0, "%s", err.text);
    return h;
}

static void ask(int fd, const char *path)
{
    cleanup_free char *text = xasprintf("GET %s HTTP/1.1\r\nHost: x\r\n\r\n",
                                        path);
    cr_assert(raw_send(fd, text));
}

static void expect(int fd, const char *body)
{
    struct raw_reply reply = {0};
    cr_assert_eq(raw_read(fd, false, &reply), 200);
    cr_assert_str_eq(str_text(&reply.body), body);
    raw_reply_fini(&reply);
}

/* All threads but one are kept busy, one after the other: who is busy accepts
 * nobody. */
Test(httpd_threads, those_that_are_busy_hold_up_nobody_else)
{
    struct httpd *h = start();
    int slow[THREADS - 1], quick[CLIENTS];
    for (size_t i = 0; i < ARRAY_LEN(slow); i++) {
        slow[i] = raw_connect(httpd_port(h));
        ask(slow[i], "/slow");
        sem_wait(&entered);
    }
    for (size_t i = 0; i < CLIENTS; i++)
        quick[i] = raw_connect(httpd_port(h));
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < CLIENTS; i++)
            ask(quick[i], "/quick");
        for (size_t i = 0; i < CLIENTS; i++)
            expect(quick[i], "quick");
    }
    for (size_t i = 0; i < ARRAY_LEN(slow); i++)
        sem_post(&released);
    for (size_t i = 0; i < ARRAY_LEN(slow); i++) {
        expect(slow[i], "slow");
        (void)close(slow[i]);
    }
    for (size_t i = 0; i < CLIENTS; i++)
        (void)close(quick[i]);
    httpd_stop(h);
}

Test(httpd_threads, stop_with_connections_on_all_of_them)
{
    struct httpd *h = start();
    int fds[CLIENTS];
    for (size_t i = 0; i < CLIENTS; i++) {
        fds[i] = raw_connect(httpd_port(h));
        ask(fds[i], "/quick");
        expect(fds[i], "quick");
    }
    httpd_stop(h);
    for (size_t i = 0; i < CLIENTS; i++) {
        cr_expect(raw_closed_within(fds[i], RAW_PATIENCE_MS));
        (void)close(fds[i]);
    }
}
