/* What a server asks of requests that pages in a browser send. */
#include <criterion/criterion.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/http/httpd.h"
#include "tests/lib/http/rawclient.h"

static void on_echo(struct httpd_request *rq, void *ctx)
{
    size_t size;
    const char *body = httpd_body(rq, &size);
    (void)ctx;
    str_add_n(httpd_reply(rq), body, size);
}

static void on_cookie(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    if (!httpd_cookie(rq, "who", httpd_reply(rq)))
        httpd_status(rq, 404);
    for (int i = 0; i < 20; i++)
        httpd_set_header(rq, "X-Many", "1");
}

static const struct httpd_route routes[] = {
    {HTTPD_POST, "/echo", on_echo, 1000, "echo"},
    {HTTPD_POST | HTTPD_FROM_PAGES, "/own", on_echo, 1000, "own"},
    {HTTPD_GET, "/cookie", on_cookie, 0, "cookie"},
};

/* The status; `reply` gets all. */
static int ask(struct httpd *h, const char *method, const char *path,
               const char *header, struct raw_reply *reply)
{
    cleanup_str struct str text = STR_INIT(4096);
    int fd = raw_connect(httpd_port(h));
    str_addf(&text,
             "%s %s HTTP/1.1\r\nHost: x:1\r\n%sContent-Length: %d\r\n\r\n%s",
             method, path, header, *method == 'P', *method == 'P' ? "a" : "");
    raw_send(fd, text.data);
    int status = raw_read(fd, false, reply);
    close(fd);
    return status;
}

static struct httpd *server(void)
{
    const struct httpd_config config = {.threads = 1,
                                        .name = "test",
                                        .listen = "127.0.0.1:0",
                                        .routes = routes,
                                        .n_routes = ARRAY_LEN(routes)};
    struct httpd *h = NULL;
    struct error err;
    cr_assert_eq(httpd_start(&config, &h, &err), 0, "%s", err.text);
    return h;
}

Test(httpd_pages, are_of_this_server_where_they_change_something)
{
    static const struct {
        const char *path, *header;
        int status;
    } cases[] = {
        {"/echo", "Origin: http://x:1\r\n", 403},
        {"/own", "Origin: http://x:1\r\n", 200},
        {"/own", "Origin: HTTPS://X:1\r\n", 200},
        {"/own", "", 200},
        {"/own", "Origin: http://x\r\n", 403},
        {"/own", "Origin: http://evil\r\n", 403},
        {"/own", "Origin: null\r\n", 403},
        {"/own", "Origin: x:1\r\n", 403},
    };
    struct httpd *h = server();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct raw_reply reply = {.body = STR_INIT(4096)};
        reply.head = STR_INIT(4096);
        cr_expect_eq(ask(h, "POST", cases[i].path, cases[i].header, &reply),
                     cases[i].status, "%zu", i);
        raw_reply_fini(&reply);
    }
    httpd_stop(h);
}

Test(httpd_pages, have_cookies)
{
    static const struct {
        const char *header;
        int status;
        const char *value;
    } cases[] = {
        {"", 404, ""},
        {"Cookie: who=me\r\n", 200, "me"},
        {"Cookie: a=who=b; who=me=you; b=c\r\n", 200, "me=you"},
        {"Cookie: xwho=me; who; whose=me\r\n", 404, ""},
        {"Cookie: ;;= ;who=\r\n", 200, ""},
    };
    struct httpd *h = server();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct raw_reply reply = {.body = STR_INIT(4096)};
        reply.head = STR_INIT(4096);
        cr_expect_eq(ask(h, "GET", "/cookie", cases[i].header, &reply),
                     cases[i].status, "%zu", i);
        cr_expect_str_eq(str_text(&reply.body), cases[i].value, "%zu", i);
        raw_reply_fini(&reply);
    }
    httpd_stop(h);
}
