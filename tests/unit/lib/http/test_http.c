/* The client against our own server, and against sockets that misbehave. */
#include "lib/http/http.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/http/httpd.h"
#include "lib/io/clock.h"
#include "tests/lib/http/rawclient.h"

/* Says what it was asked: "METHOD accept=… body=…". */
static void echo(struct httpd_request *rq, void *ctx)
{
    size_t size;
    const char *body = httpd_body(rq, &size);
    const char *accept = httpd_header(rq, "Accept");
    const char *type = httpd_header(rq, "Content-Type");
    (void)ctx;
    str_addf(httpd_reply(rq), "%d accept=%s type=%s body=%.*s",
             (int)httpd_method(rq), accept ? accept : "none",
             type ? type : "none", (int)size, body ? body : "");
}

static void refuse(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    httpd_fail(rq, 409, "spec.driver: is \"x\"");
}

static void redirect(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    httpd_status(rq, 302);
    httpd_set_header(rq, "Location", "/echo");
}

static void huge(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    for (int i = 0; i < 100000; i++)
        str_add(httpd_reply(rq), "0123456789");
}

static struct httpd *start(struct http_client **ret_client)
{
    static const unsigned all = HTTPD_GET | HTTPD_PUT | HTTPD_POST |
                                HTTPD_DELETE;
    static const struct httpd_route routes[] = {
        {all, "/echo", echo, 1 << 20, "echo"},
        {HTTPD_GET, "/refuse", refuse, 0, "refuse"},
        {HTTPD_GET, "/redirect", redirect, 0, "redirect"},
        {HTTPD_GET, "/huge", huge, 0, "huge"},
    };
    const struct httpd_config config = {.listen = "127.0.0.1:0",
                                        .routes = routes,
                                        .n_routes = ARRAY_LEN(routes),
                                        .threads = 1};
    struct httpd *h;
    struct error err;
    cr_assert_eq(httpd_start(&config, &h, &err), 0, "%s", err.text);
    cleanup_free char *base = xasprintf("http://127.0.0.1:%u/", httpd_port(h));
    cr_assert_eq(http_client_create(base, 60000, ret_client, &err), 0, "%s",
                 err.text);
    return h;
}

static void assert_call(struct http_client *c, const char *method,
                        const char *body, const char *want)
{
    struct http_answer a = {.body = STR_INIT(4096)};
    struct error err;
    cr_assert_eq(http_call(c, method, "/echo", body, body ? strlen(body) : 0,
                           NULL, &a, &err),
                 0, "%s", err.text);
    cr_assert_eq(a.status, 200);
    cr_expect_str_eq(str_text(&a.body), want);
    str_fini(&a.body);
}

/* A body does not stick to the next request of the same connection. */
Test(http, methods_and_bodies)
{
    struct http_client *c;
    struct httpd *h = start(&c);
    assert_call(c, "PUT", "{}",
                "2 accept=application/json type=application/json body={}");
    assert_call(c, "GET", NULL, "1 accept=application/json type=none body=");
    assert_call(c, "DELETE", NULL, "8 accept=application/json type=none body=");
    assert_call(c, "POST", "",
                "4 accept=application/json type=application/json body=");
    assert_call(c, "GET", NULL, "1 accept=application/json type=none body=");
    http_client_destroy(c);
    httpd_stop(h);
}

Test(http, headers_of_the_last_answer)
{
    struct http_client *c;
    struct httpd *h = start(&c);
    struct http_answer a = {0};
    struct error err;
    cr_assert_eq(http_call(c, "GET", "/redirect", NULL, 0, NULL, &a, &err), 0);
    cr_assert_not_null(http_client_header(c, "location"));
    cr_expect_str_eq(http_client_header(c, "location"), "/echo");
    cr_expect_null(http_client_header(c, "Locatio"));
    cr_assert_eq(http_call(c, "GET", "/echo", NULL, 0, NULL, &a, &err), 0);
    cr_expect_null(http_client_header(c, "Location"));
    str_fini(&a.body);
    http_client_destroy(c);
    httpd_stop(h);
}

Test(http, statuses_are_answers_and_redirects_are_not_followed)
{
    struct http_client *c;
    struct httpd *h = start(&c);
    struct http_answer a = {0};
    struct error err;
    cleanup_str struct str text = STR_INIT(512);
    cr_assert_eq(http_call(c, "GET", "/refuse", NULL, 0, NULL, &a, &err), 0);
    cr_assert_eq(a.status, 409);
    http_answer_error(&a, &text);
    cr_assert_str_eq(str_text(&text), "spec.driver: is \"x\"");
    cr_assert_eq(http_call(c, "GET", "/redirect", NULL, 0, NULL, &a, &err), 0);
    cr_assert_eq(a.status, 302);
    str_fini(&a.body);
    http_client_destroy(c);
    httpd_stop(h);
}

Test(http, answers_have_a_cap)
{
    struct http_client *c;
    struct httpd *h = start(&c);
    struct http_answer a = {.body = STR_INIT(100000)};
    struct error err;
    cr_assert_eq(http_call(c, "GET", "/huge", NULL, 0, NULL, &a, &err),
                 -EMSGSIZE);
    cr_assert_not_null(strstr(err.text, "/huge: the answer is over 100000"));
    /* and the client goes on */
    cr_assert_eq(http_call(c, "GET", "/echo", NULL, 0, NULL, &a, &err), 0);
    cr_assert_eq(a.status, 200);
    str_fini(&a.body);
    http_client_destroy(c);
    httpd_stop(h);
}

static int call_port(unsigned port, unsigned timeout_ms, struct error *err)
{
    cleanup_free char *base = xasprintf("http://127.0.0.1:%u", port);
    struct http_client *c;
    struct http_answer a = {0};
    cr_assert_eq(http_client_create(base, timeout_ms, &c, err), 0);
    int r = http_call(c, "GET", "/x", NULL, 0, NULL, &a, err);
    str_fini(&a.body);
    http_client_destroy(c);
    return r;
}

Test(http, deadline_holds_against_a_server_that_is_silent)
{
    uint16_t port = 0;
    struct error err;
    cleanup_fd int fd = raw_listen(&port);
    int64_t begin = clock_ms();
    cr_assert_eq(call_port(port, 200, &err), -ETIMEDOUT);
    int64_t took = clock_ms() - begin;
    cr_assert(took >= 150 && took < 30000, "%lld ms", (long long)took);
    cr_assert_not_null(strstr(err.text, "GET http://127.0.0.1:"));
    cr_assert_not_null(strstr(err.text, "overloaded or stopped"));
}

Test(http, nobody_there_says_the_url_and_what_to_check)
{
    uint16_t port;
    struct error err;
    cleanup_fd int fd = raw_nowhere(&port);
    cr_assert_eq(call_port(port, 60000, &err), -ECONNREFUSED);
    cr_assert_not_null(strstr(err.text, "/x: "));
    cr_assert_not_null(strstr(err.text, "is the server running"));
}

Test(http, environment_does_not_send_us_to_a_proxy)
{
    (void)setenv("http_proxy", "http://127.0.0.1:1", 1);
    (void)setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    struct http_client *c;
    struct httpd *h = start(&c);
    assert_call(c, "GET", NULL, "1 accept=application/json type=none body=");
    http_client_destroy(c);
    httpd_stop(h);
}

Test(http, addresses_that_are_none)
{
    static const char *const wrong[] = {
        "",         "127.0.0.1:8702",     "http://",
        "https://", "file:///etc/passwd", "ftp://x"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct http_client *c;
        struct error err;
        cr_expect_eq(http_client_create(wrong[i], 100, &c, &err), -EINVAL, "%s",
                     wrong[i]);
        cr_expect_not_null(strstr(err.text, "http://127.0.0.1:PORT"));
    }
}

static void assert_error_text(const char *body, const char *want)
{
    struct http_answer a = {.status = 500, .body = STR_INIT(4096)};
    cleanup_str struct str text = STR_INIT(4096);
    str_add(&a.body, body);
    http_answer_error(&a, &text);
    cr_expect_str_eq(str_text(&text), want);
    str_fini(&a.body);
}

Test(http, error_texts)
{
    assert_error_text("{\"error\":\"no\",\"status\":500}", "no");
    assert_error_text("{\"kind\":\"Status\",\"message\":\"gone\"}", "gone");
    assert_error_text("plain words\r\n", "plain words");
    assert_error_text("{\"error\":5}", "{\"error\":5}");
    assert_error_text("", "status 500");
}
