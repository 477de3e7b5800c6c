/* Calls, against a server that answers as the API server does, or worse. */
#include "lib/kube/client.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/http/httpd.h"
#include "lib/io/clock.h"
#include "lib/kube/access.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/tmpdir.h"

#define STATUS                                                           \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\"," \
    "\"message\":\"%s\",\"reason\":\"%s\",\"code\":%u}"

/* /status/CODE/REASON */
static void status(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    unsigned code = (unsigned)strtoul(httpd_arg(rq, 0), NULL, 10);
    httpd_status(rq, code);
    str_addf(httpd_reply(rq), STATUS, "so it is", httpd_arg(rq, 1), code);
}

/* /retry/SECONDS */
static void retry(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    httpd_status(rq, 429);
    httpd_set_header(rq, "Retry-After", httpd_arg(rq, 0));
    str_add(httpd_reply(rq), "{\"message\":\"slow down\"}");
}

static void details(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    httpd_status(rq, 504);
    str_add(httpd_reply(rq), "{\"kind\":\"Status\",\"message\":\"late\","
                             "\"details\":{\"retryAfterSeconds\":2}}");
}

static void echo(struct httpd_request *rq, void *ctx)
{
    size_t size;
    const char *body = httpd_body(rq, &size);
    const char *authorization = httpd_header(rq, "Authorization");
    const char *type = httpd_header(rq, "Content-Type");
    (void)ctx;
    str_addf(httpd_reply(rq), "%d|%s|%s|%.*s", (int)httpd_method(rq),
             authorization ? authorization : "", type ? type : "", (int)size,
             body ? body : "");
}

static void page(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    httpd_status(rq, 503);
    httpd_content_type(rq, "text/html");
    str_add(httpd_reply(rq), "<html>a proxy's page\n");
}

static void large(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    for (size_t i = 0; i < KUBE_ANSWER_MAX / 16 + 1; i++)
        str_add(httpd_reply(rq), "0123456789abcdef");
}

struct api {
    struct httpd *httpd;
    struct kube_config config;
    struct kube_client *client;
    struct http_answer answer;
};

static struct api api_start(const char *token, const char *token_file)
{
    enum { ALL = 31 };
    static const struct httpd_route routes[] = {
        {ALL, "/status/:/:", status, 65536, "status"},
        {HTTPD_GET, "/retry/:", retry, 0, "retry"},
        {HTTPD_GET, "/details", details, 0, "details"},
        {ALL, "/echo", echo, 65536, "echo"},
        {HTTPD_GET, "/page", page, 0, "page"},
        {HTTPD_GET, "/large", large, 0, "large"},
    };
    const struct httpd_config config = {.listen = "127.0.0.1:0",
                                        .routes = routes,
                                        .n_routes = ARRAY_LEN(routes),
                                        .threads = 1};
    struct api a = {0};
    struct error err = {0};
    cr_assert_eq(httpd_start(&config, &a.httpd, &err), 0, "%s", err.text);
    a.config.server = xasprintf("http://127.0.0.1:%u", httpd_port(a.httpd));
    a.config.token = token ? xstrdup(token) : NULL;
    a.config.token_file = token_file ? xstrdup(token_file) : NULL;
    return a;
}

static void api_connect(struct api *a)
{
    struct error err = {0};
    cr_assert_eq(kube_client_create(&a->config, 60000, &a->client, &err), 0,
                 "%s", err.text);
}

static void api_stop(struct api *a)
{
    kube_client_destroy(a->client);
    httpd_stop(a->httpd);
    str_fini(&a->answer.body);
    free(a->config.server);
    free(a->config.token);
    free(a->config.token_file);
}

static int get(struct api *a, const char *path, struct error *err)
{
    const struct kube_request rq = {.method = "GET", .path = path};
    return kube_call(a->client, &rq, &a->answer, err);
}

Test(kube_client, statuses_become_errors_with_their_message)
{
    static const struct {
        const char *path;
        int want;
    } cases[] = {
        {"/status/200/x", 0},
        {"/status/201/x", 0},
        {"/status/400/BadRequest", -EINVAL},
        {"/status/401/Unauthorized", -EACCES},
        {"/status/403/Forbidden", -EACCES},
        {"/status/404/NotFound", -ENOENT},
        {"/status/405/MethodNotAllowed", -EPROTO},
        {"/status/409/AlreadyExists", -EEXIST},
        {"/status/409/Conflict", -EBUSY},
        {"/status/410/Expired", -ESTALE},
        {"/status/415/UnsupportedMediaType", -EPROTO},
        {"/status/422/Invalid", -EINVAL},
        {"/status/429/TooManyRequests", -EAGAIN},
        {"/status/500/InternalError", -EAGAIN},
        {"/status/501/x", -EPROTO},
        {"/status/502/x", -EAGAIN},
        {"/status/503/x", -EAGAIN},
        {"/status/504/Timeout", -EAGAIN},
        {"/status/302/x", -EPROTO},
    };
    struct api a = api_start(NULL, NULL);
    api_connect(&a);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err = {0};
        const char *reason = strrchr(cases[i].path, '/') + 1;
        int r = get(&a, cases[i].path, &err);
        cr_expect_eq(r, cases[i].want, "%s: %d", cases[i].path, r);
        cr_expect_eq(a.answer.status, strtol(cases[i].path + 8, NULL, 10));
        cleanup_free char *want = xasprintf("GET %s: status %ld: so it is",
                                            cases[i].path, a.answer.status);
        if (r < 0)
            cr_expect_str_eq(err.text, want);
        cr_expect_eq(kube_client_reason_is(a.client, reason), r < 0);
        cr_expect_not(kube_client_reason_is(a.client, "Other"));
    }
    api_stop(&a);
}

Test(kube_client, what_is_no_status_is_shown)
{
    struct api a = api_start(NULL, NULL);
    struct error err = {0};
    api_connect(&a);
    cr_expect_eq(get(&a, "/page", &err), -EAGAIN);
    cr_expect_str_eq(err.text, "GET /page: status 503: <html>a proxy's page");
    cr_expect_not(kube_client_reason_is(a.client, "Conflict"));
    api_stop(&a);
}

Test(kube_client, retry_after)
{
    struct api a = api_start(NULL, NULL);
    struct error err = {0};
    api_connect(&a);
    cr_expect_eq(get(&a, "/retry/7", &err), -EAGAIN);
    cr_expect_eq(kube_client_retry_ms(a.client), 7000);
    cr_expect_eq(get(&a, "/status/503/x", &err), -EAGAIN);
    cr_expect_eq(kube_client_retry_ms(a.client), 0, "not the one before");
    cr_expect_eq(get(&a, "/details", &err), -EAGAIN);
    cr_expect_eq(kube_client_retry_ms(a.client), 2000);
    cr_expect_eq(get(&a, "/retry/999999999", &err), -EAGAIN);
    cr_expect_eq(kube_client_retry_ms(a.client), 3600000, "an hour at most");
    cr_expect_eq(get(&a, "/retry/-5", &err), -EAGAIN);
    cr_expect_eq(kube_client_retry_ms(a.client), 0);
    cr_expect_eq(get(&a, "/echo", &err), 0);
    cr_expect_eq(kube_client_retry_ms(a.client), 0);
    api_stop(&a);
}

Test(kube_client, bodies_and_their_types)
{
    static const struct {
        enum kube_body type;
        const char *method, *want;
    } cases[] = {
        {KUBE_JSON, "POST", "4||application/json|{}"},
        {KUBE_MERGE_PATCH, "PATCH", "16||application/merge-patch+json|{}"},
        {KUBE_APPLY, "PATCH", "16||application/apply-patch+yaml|{}"},
        {KUBE_JSON_PATCH, "PATCH", "16||application/json-patch+json|{}"},
        {KUBE_JSON, "DELETE", "8||application/json|{}"},
        {KUBE_JSON, "PUT", "2||application/json|{}"},
    };
    struct api a = api_start(NULL, NULL);
    struct error err = {0};
    api_connect(&a);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct kube_request rq = {.method = cases[i].method,
                                        .path = "/echo",
                                        .type = cases[i].type,
                                        .body = "{}",
                                        .body_size = 2};
        cr_assert_eq(kube_call(a.client, &rq, &a.answer, &err), 0, "%s",
                     err.text);
        cr_expect_str_eq(a.answer.body.data, cases[i].want);
    }
    cr_expect_eq(get(&a, "/echo", &err), 0);
    cr_expect_str_eq(a.answer.body.data, "1|||");
    api_stop(&a);
}

Test(kube_client, answers_have_a_cap)
{
    struct api a = api_start(NULL, NULL);
    struct error err = {0};
    api_connect(&a);
    cr_expect_eq(get(&a, "/large", &err), -EIO);
    cr_expect_eq(a.answer.status, 0);
    cr_expect_not_null(strstr(err.text, "over 16777216 bytes"), "%s", err.text);
    cr_expect_eq(get(&a, "/echo", &err), 0, "and it goes on");
    api_stop(&a);
}

/* --- where there is no answer ------------------------------------------- */

/* After which nothing comes any more; by which all was sent; and before. */
enum { HANGS_MS = 60000, SENT_MS = 3000, SOON_MS = 150 };

static int call_port(unsigned port, const char *scheme, unsigned timeout_ms,
                     struct error *err)
{
    cleanup_free char *server = xasprintf("%s://127.0.0.1:%u", scheme, port);
    const struct kube_config config = {.server = server};
    const struct kube_request rq = {.method = "POST",
                                    .path = "/x",
                                    .body = "{}",
                                    .body_size = 2,
                                    .timeout_ms = timeout_ms};
    struct kube_client *c;
    struct http_answer answer = {0};
    cr_assert_eq(kube_client_create(&config, HANGS_MS, &c, err), 0);
    int r = kube_call(c, &rq, &answer, err);
    cr_expect_eq(err->code, -r);
    cr_expect_eq(answer.status, 0);
    str_fini(&answer.body);
    kube_client_destroy(c);
    return r;
}

Test(kube_client, nobody_there_means_nothing_was_done)
{
    uint16_t port;
    struct error err = {0};
    cleanup_fd int fd = raw_nowhere(&port);
    cr_expect_eq(call_port(port, "http", HANGS_MS, &err), -ECONNREFUSED);
    cr_expect_not_null(strstr(err.text, "POST http://127.0.0.1:"), "%s",
                       err.text);
}

/* The call's own deadline, not the client's; it was sent, so who knows. */
Test(kube_client, silence_after_sending_is_unknown)
{
    uint16_t port = 0;
    struct error err = {0};
    cleanup_fd int fd = raw_listen(&port);
    cr_expect_eq(call_port(port, "http", SENT_MS, &err), -ETIMEDOUT);
}

/* A handshake that never ends: nothing was sent. */
Test(kube_client, silence_before_sending_means_nothing_was_done)
{
    uint16_t port = 0;
    struct error err = {0};
    cleanup_fd int fd = raw_listen(&port);
    cr_expect_eq(call_port(port, "https", SOON_MS, &err), -ECONNREFUSED, "%s",
                 err.text);
}

Test(kube_client, a_connection_that_ends_after_sending_is_unknown)
{
    uint16_t port = 0;
    struct error err = {0};
    cleanup_fd int fd = raw_listen(&port);
    pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        char buffer[4096];
        int one = accept(fd, NULL, NULL);
        _exit(one < 0 || read(one, buffer, sizeof buffer) <= 0);
    }
    cr_expect_eq(call_port(port, "http", HANGS_MS, &err), -EIO, "%s", err.text);
}

Test(kube_client, a_path_that_is_too_long)
{
    struct api a = api_start(NULL, NULL);
    struct error err = {0};
    cleanup_free char *path = xcalloc(1, 5001);
    memset(path, '/', 5000);
    api_connect(&a);
    cr_expect_eq(get(&a, path, &err), -EINVAL);
    api_stop(&a);
}

/* --- tokens ------------------------------------------------------------- */

static void put(const char *path, const char *text)
{
    cleanup_free char *next = xasprintf("%s.next", path);
    FILE *f = fopen(next, "we");
    cr_assert_not_null(f);
    cr_assert_geq(fputs(text, f), 0);
    cr_assert_eq(fclose(f), 0);
    cr_assert_eq(rename(next, path), 0);
}

static void expect_token(struct api *a, int64_t now_ms, const char *want)
{
    struct error err = {0};
    cleanup_free char *text = xasprintf("1|%s||", want);
    clock_set_fake(now_ms);
    cr_assert_eq(get(a, "/echo", &err), 0, "%s", err.text);
    cr_expect_str_eq(a->answer.body.data, text);
}

Test(kube_client, tokens_are_read_again)
{
    char *dir = tmpdir_create();
    cleanup_free char *path = xasprintf("%s/token", dir);
    put(path, "first\n");
    clock_set_fake(100000);
    struct api a = api_start("fixed", path);
    api_connect(&a);
    expect_token(&a, 100000, "Bearer first");
    put(path, "second");
    expect_token(&a, 100999, "Bearer first"); /* at most once a second */
    expect_token(&a, 101000, "Bearer second");
    /* nothing of use: what was goes on */
    put(path, "");
    expect_token(&a, 103000, "Bearer second");
    put(path, "two words\n");
    expect_token(&a, 105000, "Bearer second");
    put(path, "evil\r\nX-Remote-User: admin\r\n");
    expect_token(&a, 107000, "Bearer second");
    cr_assert_eq(unlink(path), 0);
    expect_token(&a, 109000, "Bearer second");
    put(path, "  third\n\n");
    expect_token(&a, 111000, "Bearer third");
    clock_set_fake(-1);
    api_stop(&a);
    tmpdir_remove(dir);
}

Test(kube_client, a_token_of_the_configuration)
{
    struct api a = api_start("fixed", NULL);
    api_connect(&a);
    expect_token(&a, 1000, "Bearer fixed");
    clock_set_fake(-1);
    api_stop(&a);
}

Test(kube_client, files_must_be_there_at_first)
{
    struct kube_client *c = NULL;
    struct error err = {0};
    struct kube_config config = {.server = (char[]){"https://127.0.0.1:1"},
                                 .token_file = (char[]){"/nonexistent/t"}};
    cr_expect_eq(kube_client_create(&config, 0, &c, &err), -ENOENT);
    cr_expect_not_null(strstr(err.text, "/nonexistent/t"));
    config.token_file = NULL;
    config.cert_file = (char[]){"/nonexistent/c"};
    cr_expect_eq(kube_client_create(&config, 0, &c, &err), -ENOENT);
    cr_expect_not_null(strstr(err.text, "/nonexistent/c"));
    config.cert_file = NULL;
    config.token = (char[]){"secret\001word"};
    cr_expect_eq(kube_client_create(&config, 0, &c, &err), -EINVAL);
    cr_expect_null(strstr(err.text, "secret"), "tokens are never shown");
}

/* --- paths -------------------------------------------------------------- */

static void expect_path(const char *segment, const char *want)
{
    cleanup_str struct str out = STR_INIT(1024);
    kube_path_add(&out, segment);
    cr_expect_str_eq(str_text(&out), want);
}

Test(kube_client, path_segments)
{
    expect_path("node-1.example_~", "node-1.example_~");
    expect_path("a/b?c#d%", "a%2Fb%3Fc%23d%25");
    expect_path("..", "%2E%2E");
    expect_path(".", "%2E");
    expect_path("\xc3\xa9 x", "%C3%A9%20x");
    expect_path("", "");
}
