#include "extender/app/changes.h"

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "tests/lib/http/rawclient.h"

static _Atomic uint64_t version;

static uint64_t version_now(void *ctx)
{
    (void)ctx;
    return atomic_load(&version);
}

static void on_changes(struct httpd_request *rq, void *ctx)
{
    changes_follow(ctx, rq);
}

static const struct httpd_route routes[] = {
    {HTTPD_GET, "/", on_changes, 0, "changes"}};
static struct changes *changes;
static struct httpd *server;

static void start(void)
{
    struct error err;
    atomic_store(&version, 7);
    cr_assert_eq(changes_start(version_now, NULL, &changes, &err), 0);
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

Test(changes, go_to_so_many_and_no_more)
{
    enum { MORE = CHANGES_CLIENTS_MAX + 1 };
    cleanup_free int *fds = xcalloc(MORE, sizeof *fds);
    for (int i = 0; i < MORE; i++) {
        cleanup_str struct str heard = STR_INIT(1 << 16);
        fds[i] = follow("");
        hear(fds[i], &heard,
             i < CHANGES_CLIENTS_MAX ? "id: 7\n" : "clients listen already");
    }
    for (int i = 0; i < MORE; i++)
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
