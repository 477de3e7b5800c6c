/* An answer that is followed as it comes, from a server that says what a test
 * wants. */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/http/http.h"
#include "tests/lib/http/rawclient.h"

/* libcurl looks for silence once a second. */
enum { QUIET_MS = 2500, SHORT_MS = 1000, CALM_MS = 600000 };

/* Each call has a connection: what is sent there, and then it is closed, or
 * kept for as long as the client stays. */
struct server {
    int fd;
    const char *says;
    bool keeps;
    const char *then; /* after QUIET_MS; NULL: nothing */
};

static void *serve(void *ctx)
{
    struct server *s = ctx;
    char block[4096];
    cleanup_fd int peer = accept(s->fd, NULL, NULL);
    cr_assert_geq(peer, 0);
    cr_assert_gt(recv(peer, block, sizeof block, 0), 0);
    (void)send(peer, s->says, strlen(s->says), MSG_NOSIGNAL);
    if (s->then) {
        (void)poll(NULL, 0, QUIET_MS);
        (void)send(peer, s->then, strlen(s->then), MSG_NOSIGNAL);
    }
    while (s->keeps && recv(peer, block, sizeof block, 0) > 0)
        ;
    return NULL;
}

static bool add(void *ctx, const char *data, size_t size)
{
    str_add_n(ctx, data, size);
    return !memchr(data, '!', size);
}

/* What http_send() returns; what was taken, and the answer's body. */
static int follow_for(const struct server *how, unsigned silent_ms,
                      struct str *taken, struct http_answer *answer)
{
    uint16_t port = 0;
    pthread_t thread;
    struct error err = {0};
    struct http_client *c;
    cleanup_fd int fd = raw_listen(&port);
    struct server s = *how;
    s.fd = fd;
    const struct http_follow f = {
        .take = add, .ctx = taken, .silent_ms = silent_ms};
    const struct http_request rq = {
        .method = "GET", .path = "/x", .follow = &f};
    cleanup_free char *base = xasprintf("http://127.0.0.1:%u", port);
    cr_assert_eq(pthread_create(&thread, NULL, serve, &s), 0);
    cr_assert_eq(http_client_create(base, 60000, &c, &err), 0);
    int r = http_send(c, &rq, answer, &err);
    http_client_destroy(c);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    return r;
}

/* Where silence is no error that is wanted, a slow machine makes none. */
static int follow(const char *says, bool keeps, bool silent, struct str *taken,
                  struct http_answer *answer)
{
    const struct server how = {.says = says, .keeps = keeps};
    return follow_for(&how, silent ? SHORT_MS : CALM_MS, taken, answer);
}

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

static void assert_follow(const char *says, bool keeps, int want, long status,
                          const char *taken, const char *body)
{
    cleanup_str struct str got = STR_INIT(4096);
    struct http_answer a = {.body = STR_INIT(4096)};
    cr_expect_eq(follow(says, keeps, want == -ETIMEDOUT, &got, &a), want, "%s",
                 says);
    cr_expect_eq(a.status, status);
    cr_expect_str_eq(str_text(&got), taken);
    cr_expect_str_eq(str_text(&a.body), body);
    str_fini(&a.body);
}

Test(http_follow, pieces_are_given_until_the_end)
{
    assert_follow(CHUNKED "2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n", false, 0, 200,
                  "abcde", "");
}

Test(http_follow, who_takes_them_ends_it)
{
    assert_follow(CHUNKED "2\r\nab\r\n2\r\nc!\r\n", true, 0, 200, "abc!", "");
}

Test(http_follow, another_status_is_an_answer)
{
    assert_follow("HTTP/1.1 404 No\r\nContent-Length: 3\r\n\r\nno!", false, 0,
                  404, "", "no!");
}

Test(http_follow, a_cut_is_an_error)
{
    assert_follow(CHUNKED "2\r\nab\r\n5\r\nc", false, -EIO, 200, "abc", "");
}

Test(http_follow, silence_is_an_error)
{
    assert_follow(CHUNKED "2\r\nab\r\n", true, -ETIMEDOUT, 200, "ab", "");
}

/* As the log of a pod that writes seldom. */
Test(http_follow, silence_may_last_when_no_time_is_said)
{
    cleanup_str struct str got = STR_INIT(4096);
    struct http_answer a = {.body = STR_INIT(4096)};
    const struct server how = {.says = CHUNKED "2\r\nab\r\n",
                               .then = "1\r\nc\r\n0\r\n\r\n"};
    cr_expect_eq(follow_for(&how, 0, &got, &a), 0);
    cr_expect_str_eq(str_text(&got), "abc");
    str_fini(&a.body);
}
