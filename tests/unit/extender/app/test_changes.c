#include "extender/app/changes.h"

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "extender/app/followers.h"
#include "lib/base/mem.h"
#include "tests/lib/http/rawclient.h"

enum { MANY = 16, OF_ONE = MANY / FOLLOWERS_CLIENT_PART };

static _Atomic uint64_t version;

static uint64_t version_now(void *ctx)
{
    (void)ctx;
    return atomic_load(&version);
}

static void on_changes(struct httpd_request *rq, void *ctx)
{
    const char *who = httpd_header(rq, "X-Client");
    changes_follow(ctx, rq, who ? strtoull(who, NULL, 10) : 0);
}

static const struct httpd_route routes[] = {
    {HTTPD_GET, "/", on_changes, 0, "changes"}};
static struct changes *changes;
static struct followers *followers;
static struct httpd *server;

static void start(void)
{
    struct error err;
    atomic_store(&version, 7);
    followers = followers_create(MANY);
    cr_assert_eq(changes_start(version_now, NULL, followers, &changes, &err),
                 0);
    const struct httpd_config config = {.threads = 1,
                                        .name = "test",
                                        .listen = "127.0.0.1:0",
                                        .routes = routes,
                                        .n_routes = ARRAY_LEN(routes),
                                        .ctx = changes};
    cr_assert_eq(httpd_start(&config, &server, &err), 0, "%s", err.text);
}

static void stop(void)
{
    changes_quiesce(changes);
    httpd_stop(server);
    changes_stop(changes);
    followers_destroy(followers);
}

TestSuite(changes, .init = start, .fini = stop);

static int follow(const char *header)
{
    cleanup_str struct str text = STR_INIT(4096);
    int fd = raw_connect(httpd_port(server));
    str_addf(&text, "GET / HTTP/1.1\r\nHost: x\r\n%s\r\n", header);
    cr_assert(raw_send(fd, str_text(&text)));
    return fd;
}

/* Read on until that was said. */
static void hear(int fd, struct str *heard, const char *words)
{
    char part[256];
    while (!strstr(str_text(heard), words)) {
        ssize_t n = read(fd, part, sizeof part);
        cr_assert(n > 0, "the end, after %s", str_text(heard));
        str_add_n(heard, part, (size_t)n);
    }
}

Test(changes, are_told_as_they_come)
{
    cleanup_str struct str a = STR_INIT(1 << 16), b = STR_INIT(1 << 16);
    int first = follow(""), second;
    hear(first, &a, "event: change\nid: 7\ndata: {\"version\":7}\n\n");
    cr_expect(strstr(str_text(&a), "text/event-stream"));
    second = follow("Last-Event-ID: 7\r\n");
    hear(second, &b, ":\n\n");
    cr_expect_null(strstr(str_text(&b), "event:"));
    atomic_store(&version, 9);
    hear(first, &a, "id: 9\n");
    hear(second, &b, "id: 9\n");
    close(first); /* who goes is let go, and the others hear on */
    atomic_store(&version, 10);
    hear(second, &b, "id: 10\n");
    close(second);
}

/* Of that client; what it hears. */
static int follow_as(int client, const char *words)
{
    cleanup_str struct str heard = STR_INIT(1 << 16);
    char header[64];
    (void)snprintf(header, sizeof header, "X-Client: %d\r\n", client);
    int fd = follow(header);
    hear(fd, &heard, words);
    return fd;
}

Test(changes, go_to_so_many_and_no_more)
{
    int fds[MANY];
    for (int i = 0; i < MANY; i++)
        fds[i] = follow_as(i, "id: 7\n");
    close(follow_as(MANY, "\"status\":503"));
    close(fds[3]);
    cleanup_str struct str heard = STR_INIT(1 << 16);
    /* once it is noticed that it has gone, another one may */
    for (bool in = false; !in;) {
        int fd = follow("X-Client: 99\r\n");
        str_reset(&heard);
        hear(fd, &heard, "\r\n\r\n");
        in = strstr(str_text(&heard), " 200 ");
        fds[3] = in ? fd : fds[3];
        if (!in)
            close(fd);
    }
    for (int i = 0; i < MANY; i++)
        close(fds[i]);
}

Test(changes, go_to_so_many_of_one_client)
{
    int fds[OF_ONE];
    for (int i = 0; i < OF_ONE; i++)
        fds[i] = follow_as(1, "id: 7\n");
    close(follow_as(1, "\"status\":429"));
    close(follow_as(2, "id: 7\n")); /* it harms nobody else */
    for (int i = 0; i < OF_ONE; i++)
        close(fds[i]);
}

Test(changes, end_with_the_server)
{
    cleanup_str struct str heard = STR_INIT(1 << 16);
    int fd = follow("");
    hear(fd, &heard, "id: 7\n");
    changes_quiesce(changes);
    cr_expect(raw_closed_within(fd, RAW_PATIENCE_MS));
    close(fd);
}
