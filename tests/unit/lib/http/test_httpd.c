#include "lib/http/httpd_private.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/virtual.h"

enum { REQUEST_MS = 1000, LASTS_MS = 20000, ENOUGH = 20, BODY_MAX = 64 << 20 };

/* --- a server with handlers that show what they were given ---------------- */

struct waiting_pods {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct httpd_request *rq;
};
static struct waiting_pods waiting = {PTHREAD_MUTEX_INITIALIZER,
                                      PTHREAD_COND_INITIALIZER, NULL};
static atomic_uint observed;

static void on_echo(struct httpd_request *rq, void *ctx)
{
    size_t size;
    const char *body = httpd_body(rq, &size);
    (void)ctx;
    str_add_n(httpd_reply(rq), body, size);
    httpd_content_type(rq, "text/plain");
}

static void on_text(struct httpd_request *rq, void *ctx)
{
    on_echo(rq, ctx);
    httpd_content_type(rq, HTTPD_TEXT);
}

static void on_size(struct httpd_request *rq, void *ctx)
{
    size_t size;
    uint64_t sum = 0;
    const char *body = httpd_body(rq, &size);
    (void)ctx;
    for (size_t i = 0; i < size; i++)
        sum += (unsigned char)body[i];
    str_addf(httpd_reply(rq), "%zu %llu %d", size, (unsigned long long)sum,
             body[size]);
}

static void on_args(struct httpd_request *rq, void *ctx)
{
    static const char *const names[] = {"a", "b", NULL};
    const char *a = httpd_query(rq, "a"), *b = httpd_query(rq, "b");
    (void)ctx;
    if (!httpd_query_only(rq, names))
        return;
    str_addf(httpd_reply(rq), "[%s][%s] a=%s b=%s path=%s text=%d",
             httpd_arg(rq, 0), httpd_arg(rq, 1), a ? a : "-", b ? b : "-",
             httpd_path(rq), httpd_wants_text(rq));
    httpd_set_header(rq, "ETag", "\"7\"");
}

static void on_wait(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    pthread_mutex_lock(&waiting.lock);
    httpd_suspend(rq);
    waiting.rq = rq;
    pthread_cond_signal(&waiting.wake);
    pthread_mutex_unlock(&waiting.lock);
}

static void on_large(struct httpd_request *rq, void *ctx)
{
    cleanup_free char *zeros = xmalloc(1 << 20);
    (void)ctx;
    memset(zeros, '0', 1 << 20);
    for (int i = 0; i < 32; i++)
        str_add_n(httpd_reply(rq), zeros, 1 << 20);
}

static void on_observe(void *ctx, const struct httpd_observation *o)
{
    (void)ctx;
    (void)o;
    atomic_fetch_add(&observed, 1);
}

static const struct httpd_route routes[] = {
    {HTTPD_POST | HTTPD_PUT, "/echo", on_echo, 1000, "echo"},
    {HTTPD_POST, "/text", on_text, 1000, "text"},
    {HTTPD_POST, "/size", on_size, BODY_MAX, "size"},
    {HTTPD_GET, "/args/:", on_args, 0, "args"},
    {HTTPD_GET, "/args/:/of/:", on_args, 0, "args2"},
    {HTTPD_GET, "/rest/::", on_args, 0, "rest"},
    {HTTPD_GET, "/wait", on_wait, 0, "wait"},
    {HTTPD_GET, "/large", on_large, 0, "large"},
};

static struct httpd *server_of(unsigned connections_max, unsigned request_ms,
                               unsigned threads, size_t memory_max)
{
    struct httpd_config config = {
        .threads = threads,
        .memory_max = memory_max,
        .name = "test",
        .listen = "127.0.0.1:0",
        .routes = routes,
        .n_routes = ARRAY_LEN(routes),
        .connections_max = connections_max,
        .request_ms = request_ms,
        .reply_ms = request_ms,
        .observe = on_observe,
    };
    struct httpd *h = NULL;
    struct error err;
    cr_assert_eq(httpd_start(&config, &h, &err), 0, "%s", err.text);
    return h;
}

static struct httpd *server_with(unsigned connections_max, unsigned request_ms)
{
    return server_of(connections_max, request_ms, 1, 0);
}

/* Cuts nobody off, however slow the machine is. */
static struct httpd *server(unsigned connections_max)
{
    return server_with(connections_max, 60000);
}

static struct httpd *impatient_server(unsigned connections_max)
{
    return server_with(connections_max, REQUEST_MS);
}

static struct raw_reply reply;

static int call(struct httpd *h, const char *method, const char *target,
                const char *headers, const char *body)
{
    return raw_call(httpd_port(h), method, target, headers, body, &reply);
}

static const char *header(const char *name)
{
    static char value[256];
    return raw_header(&reply, name, value, sizeof value);
}

/* --- ordinary requests ---------------------------------------------------- */

Test(httpd, answers)
{
    struct httpd *h = server(0);
    cr_assert_eq(call(h, "POST", "/echo", "", "hello"), 200);
    cr_assert_str_eq(reply.body.data, "hello");
    cr_assert_str_eq(header("Content-Length"), "5");
    cr_assert_str_eq(header("Content-Type"), "text/plain");
    cr_assert_eq(call(h, "POST", "/echo", "", NULL), 200);
    cr_assert_eq(reply.body.size, 0);
    cr_assert_eq(call(h, "HEAD", "/args/x", "", NULL), 200);
    cr_assert_str_neq(header("Content-Length"), "0");
    httpd_stop(h);
    cr_assert_eq(atomic_load(&observed), 3);
}

/* What is for a terminal does not steer it; all else is as it was written. */
Test(httpd, texts_hide_nothing)
{
    static const char body[] = "a\x1b[2J\tb\n\xc2\x9b\xe2\x80\xae é\xff\n";
    struct httpd *h = server(0);
    cr_assert_eq(call(h, "POST", "/text", "", body), 200);
    cr_assert_str_eq(reply.body.data, "a?[2J\tb\n?? é?\n");
    cr_assert_str_eq(header("Content-Type"), HTTPD_TEXT);
    cr_assert_eq(call(h, "POST", "/text", "", NULL), 200);
    cr_assert_eq(reply.body.size, 0);
    cr_assert_eq(call(h, "POST", "/echo", "", body), 200);
    cr_assert_str_eq(reply.body.data, body);
    httpd_stop(h);
}

Test(httpd, refuses_unknown_paths_and_methods)
{
    struct httpd *h = server(0);
    cr_assert_eq(call(h, "GET", "/nothing", "", NULL), 404);
    cr_assert_str_eq(reply.body.data, "{\"error\":\"there is nothing at "
                                      "\\\"/nothing\\\"\",\"status\":404}\n");
    cr_assert_eq(call(h, "GET", "/echo", "", NULL), 405);
    cr_assert_str_eq(header("Allow"), "PUT, POST");
    cr_assert_eq(call(h, "BREW", "/args/x", "", NULL), 405);
    cr_assert_str_eq(header("Allow"), "GET, HEAD");
    cr_assert_eq(call(h, "GET", "/args/", "", NULL), 404);
    cr_assert_eq(call(h, "GET", "/args/x/", "", NULL), 404);
    httpd_stop(h);
}

Test(httpd, decodes_paths_and_queries)
{
    struct httpd *h = server(0);
    cr_assert_eq(call(h, "GET", "/args/a%2fb%20+", "", NULL), 200);
    cr_assert_str_eq(reply.body.data,
                     "[a/b +][] a=- b=- path=/args/a%2fb%20+ text=0");
    cr_assert_eq(call(h, "GET", "/%61rgs/x/of/y?a=1%202+3&&b", "", NULL), 200);
    cr_assert_str_eq(reply.body.data, "[x][y] a=1 2 3 b= "
                                      "path=/%61rgs/x/of/y text=0");
    cr_assert_str_eq(header("ETag"), "\"7\"");
    cr_assert_eq(call(h, "GET", "/rest/a/b%2f/c", "", NULL), 200);
    cr_assert_str_eq(reply.body.data, "[a/b%2f/c][] a=- b=- "
                                      "path=/rest/a/b%2f/c text=0");
    static const char *const bad[] = {
        "/args/%",
        "/args/%2",
        "/args/%zz",
        "/args/a%00b",
        "/args/%0a",
        "/args/x?a=%",
        "/args/x?%4",
        "/args/x?a=1&a=2",
        "/args/x?c=1",
        "nopath",
        "/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        cr_assert_eq(call(h, "GET", bad[i], "", NULL), 400, "%s", bad[i]);
    cr_assert_eq(call(h, "GET", "/args/x?c=1", "", NULL), 400);
    cr_assert(strstr(reply.body.data, "unknown query parameter \\\"c\\\""));
    cleanup_free char *longest = xcalloc(1, URI_MAX + 2);
    memset(longest, 'a', URI_MAX + 1);
    longest[0] = '/';
    cr_assert_eq(call(h, "GET", longest, "", NULL), 414);
    httpd_stop(h);
}

Test(httpd, reads_accept)
{
    static const struct {
        const char *accept;
        bool text;
    } cases[] = {
        {"Accept: text/plain\r\n", true},
        {"Accept: application/json\r\n", false},
        {"Accept: application/json, text/plain\r\n", false},
        {"Accept: text/plain, application/json\r\n", true},
        {"Accept: application/json;q=0.5, text/plain\r\n", true},
        {"Accept: */*\r\n", false},
        {"Accept: text/plainest\r\n", false},
    };
    struct httpd *h = server(0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cr_assert_eq(call(h, "GET", "/args/x", cases[i].accept, NULL), 200);
        cr_assert_eq(strstr(reply.body.data, "text=1") != NULL, cases[i].text,
                     "%s", cases[i].accept);
    }
    httpd_stop(h);
}

Test(httpd, keeps_connections_and_pipelines)
{
    struct httpd *h = server(0);
    int fd = raw_connect(httpd_port(h));
    for (int i = 0; i < 100; i++) {
        raw_send(fd, "PUT /echo HTTP/1.1\r\nHost: x\r\n"
                     "Content-Length: 3\r\n\r\nabc");
        cr_assert_eq(raw_read(fd, false, &reply), 200);
        cr_assert_str_eq(reply.body.data, "abc");
    }
    raw_send(fd, "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n"
                 "oneGET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"
                 "PUT /echo HTTP/1.1\r\nHost: x\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n"
                 "2\r\nth\r\n3\r\nree\r\n0\r\n\r\n");
    cr_assert_eq(raw_read(fd, false, &reply), 200);
    cr_assert_str_eq(reply.body.data, "one");
    cr_assert_eq(raw_read(fd, false, &reply), 404);
    cr_assert_eq(raw_read(fd, false, &reply), 200);
    cr_assert_str_eq(reply.body.data, "three");
    close(fd);
    httpd_stop(h);
}

/* --- bodies --------------------------------------------------------------- */

Test(httpd, caps_bodies)
{
    struct httpd *h = server(0);
    cleanup_free char *body = xcalloc(1, 1002);
    memset(body, 'x', 1001);
    int fd = raw_connect(httpd_port(h));
    /* a little too long: dropped, and the connection lives on */
    raw_send(fd, "PUT /echo HTTP/1.1\r\nHost: x\r\n"
                 "Content-Length: 1001\r\n\r\n");
    raw_send(fd, body);
    cr_assert_eq(raw_read(fd, false, &reply), 413);
    raw_send(fd, "PUT /echo HTTP/1.1\r\nHost: x\r\n"
                 "Content-Length: 1000\r\n\r\n");
    raw_send_n(fd, body, 1000);
    cr_assert_eq(raw_read(fd, false, &reply), 200);
    cr_assert_eq(reply.body.size, 1000);
    raw_send(fd, "PUT /echo HTTP/1.1\r\nHost: x\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n3e9\r\n");
    raw_send(fd, body);
    raw_send(fd, "\r\n0\r\n\r\n");
    cr_assert_eq(raw_read(fd, false, &reply), 413);
    cr_assert(raw_closed_within(fd, RAW_PATIENCE_MS));
    close(fd);
    fd = raw_connect(httpd_port(h));
    /* much too long: answered before it is sent */
    raw_send(fd, "PUT /echo HTTP/1.1\r\nHost: x\r\n"
                 "Content-Length: 70000000\r\n\r\n");
    cr_assert_eq(raw_read(fd, false, &reply), 413);
    cr_assert(raw_closed_within(fd, RAW_PATIENCE_MS));
    close(fd);
    /* a GET takes none */
    cr_assert_eq(call(h, "GET", "/args/x", "", "abc"), 413);
    httpd_stop(h);
}

static long rss_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

Test(httpd, takes_large_bodies_in_bounded_memory)
{
    struct httpd *h = server(0);
    enum { CHUNK = 1 << 20 };
    cleanup_free char *chunk = xmalloc(CHUNK);
    memset(chunk, 1, CHUNK);
    long before = rss_kib();
    for (int round = 0; round < 3; round++) {
        int fd = raw_connect(httpd_port(h));
        raw_send(fd, "POST /size HTTP/1.1\r\nHost: x\r\n"
                     "Content-Length: 67108864\r\n\r\n");
        for (int i = 0; i < BODY_MAX / CHUNK; i++)
            cr_assert(raw_send_n(fd, chunk, CHUNK));
        cr_assert_eq(raw_read(fd, false, &reply), 200);
        cr_assert_str_eq(reply.body.data, "67108864 67108864 0");
        close(fd);
    }
#ifndef SANITIZED /* a sanitizer keeps what was freed */
    cr_assert_lt(rss_kib() - before, (BODY_MAX >> 10) * 5 / 4);
#else
    (void)before;
#endif
    httpd_stop(h);
}

Test(httpd, continues_when_expected)
{
    struct httpd *h = server(0);
    int fd = raw_connect(httpd_port(h));
    raw_send(fd, "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
                 "Expect: 100-continue\r\n\r\n");
    cr_assert_eq(raw_read(fd, true, &reply), 100);
    raw_send(fd, "abc");
    cr_assert_eq(raw_read(fd, false, &reply), 200);
    raw_send(fd, "PUT /echo HTTP/1.1\r\nHost: x\r\n"
                 "Content-Length: 70000000\r\nExpect: 100-continue\r\n\r\n");
    cr_assert_eq(raw_read(fd, false, &reply), 413);
    close(fd);
    httpd_stop(h);
}

Test(httpd, refuses_unclear_framing)
{
    static const char *const bad[] = {
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        "Content-Length: 3\r\nContent-Length: 4\r\n",
        "Content-Length: 3x\r\n",
        "Content-Length: -3\r\n",
        "Content-Length: 99999999999999999999999\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
    };
    struct httpd *h = server(0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct str text = STR_INIT(1000);
        str_addf(&text, "PUT /echo HTTP/1.1\r\nHost: x\r\n%s\r\nabc", bad[i]);
        int fd = raw_connect(httpd_port(h));
        raw_send(fd, text.data);
        int status = raw_read(fd, false, &reply);
        cr_assert(status == 400 || status == 413, "%d for %s", status, bad[i]);
        cr_assert(raw_closed_within(fd, RAW_PATIENCE_MS), "%s", bad[i]);
        close(fd);
        str_fini(&text);
    }
    cr_assert_eq(call(h, "PUT", "/echo", "", "fine"), 200);
    httpd_stop(h);
}

Test(httpd, refuses_foreign_pages)
{
    struct httpd *h = server(0);
    cr_assert_eq(call(h, "POST", "/echo", "Origin: http://evil\r\n", "a"), 403);
    cr_assert_eq(call(h, "POST", "/echo", "Origin: null\r\n", "a"), 403);
    cr_assert_eq(call(h, "POST", "/echo", "Origin: http://x\r\n", "a"), 403);
    httpd_stop(h);
}

/* Virtual time goes on whenever the server has read what came. */
static void pass_until_ended(struct httpd *h, int fd)
{
    struct pollfd end = {.fd = fd, .events = POLLRDHUP};
    while (poll(&end, 1, 1) == 0) {
        cr_assert_eq(call(h, "PUT", "/echo", "", "prompt"), 200);
        virtual_step(1, REQUEST_MS / 10);
    }
}

Test(httpd, survives_garbage)
{
    static const struct {
        const char *bytes;
        size_t size;
    } bad[] = {
#define BYTES(text) {text, sizeof(text) - 1}
        BYTES("\r\n\r\n\r\n"),
        BYTES("\0\0\0\0\r\n\r\n"),
        BYTES("GET\r\n\r\n"),
        BYTES("GET /args/x\r\n\r\n"),
        BYTES("GET /args/x HTTP/9.9\r\n\r\n"),
        BYTES("GET /args/x HTTP/1.1\r\n\r\n"), /* no Host */
        BYTES("GET /args/x HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n"),
        BYTES("PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked"
              "\r\n\r\nzz\r\nabc\r\n"),
        BYTES("PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked"
              "\r\n\r\nffffffffffffffffff\r\nabc\r\n"),
        BYTES("PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked"
              "\r\n\r\n-1\r\nabc\r\n"),
        BYTES("PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked"
              "\r\n\r\n3\r\nabcdef\r\n0\r\n\r\n"),
        BYTES("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
        BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
#undef BYTES
    };
    virtual_begin();
    struct httpd *h = impatient_server(0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int fd = raw_connect(httpd_port(h));
        raw_send_n(fd, bad[i].bytes, bad[i].size);
        pass_until_ended(h, fd);
        cr_expect(raw_closed_within(fd, RAW_PATIENCE_MS), "case %zu", i);
        close(fd);
        cr_assert_eq(call(h, "PUT", "/echo", "", "fine"), 200, "case %zu", i);
        cr_assert_str_eq(reply.body.data, "fine");
    }
    httpd_stop(h);
    virtual_end();
}

Test(httpd, refuses_large_headers)
{
    struct httpd *h = server(0);
    struct str text = STR_INIT(1 << 20);
    str_add(&text, "GET /args/x HTTP/1.1\r\nHost: x\r\n");
    for (int i = 0; i < 2000; i++)
        str_addf(&text, "X-%d: %064d\r\n", i, i);
    str_add(&text, "\r\n");
    int fd = raw_connect(httpd_port(h));
    (void)raw_send_n(fd, text.data, text.size); /* refused on the way */
    int status = raw_read(fd, false, &reply);
    cr_expect(status == 0 || status == 413 || status == 431, "%d", status);
    close(fd);
    cr_assert_eq(call(h, "PUT", "/echo", "", "fine"), 200);
    str_fini(&text);
    httpd_stop(h);
}

Test(httpd, caps_the_memory_of_all_bodies)
{
    enum { BODY = 4 << 20, MANY = 4 };
    struct httpd *h = server_of(0, 60000, 1, 10 << 20);
    cleanup_free char *body = xcalloc(1, BODY);
    int fds[MANY], refused = 0;
    for (int i = 0; i < MANY; i++) { /* all but the last byte */
        fds[i] = raw_connect(httpd_port(h));
        raw_send(fds[i], "POST /size HTTP/1.1\r\nHost: x\r\n"
                         "Content-Length: 4194304\r\n\r\n");
        cr_assert(raw_send_n(fds[i], body, BODY - 1));
    }
    for (int i = 0; i < MANY; i++) {
        raw_send_n(fds[i], body, 1);
        int status = raw_read(fds[i], false, &reply);
        cr_expect(status == 200 || status == 503, "%d", status);
        refused += status == 503;
        close(fds[i]);
    }
    /* two fit; how far each had come when the room ran out is chance */
    cr_expect(refused >= 1 && refused < MANY, "%d refused", refused);
    cr_assert_eq(call(h, "POST", "/size", "", "fine"), 200);
    httpd_stop(h);
}

static void *call_many(void *arg)
{
    struct httpd *h = arg;
    struct raw_reply mine = {0};
    int fd = raw_connect(httpd_port(h)), bad = 0;
    for (int i = 0; i < 500; i++) {
        raw_send(fd, "PUT /echo HTTP/1.1\r\nHost: x\r\n"
                     "Content-Length: 3\r\n\r\nabc");
        bad += raw_read(fd, false, &mine) != 200;
    }
    raw_reply_fini(&mine);
    close(fd);
    return (void *)(intptr_t)bad;
}

Test(httpd, serves_from_several_threads)
{
    struct httpd *h = server_of(0, 60000, 3, 0);
    pthread_t threads[6];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_create(&threads[i], NULL, call_many, h);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        void *bad;
        pthread_join(threads[i], &bad);
        cr_expect_null(bad);
    }
    httpd_stop(h);
    cr_expect_eq(atomic_load(&observed), 500 * ARRAY_LEN(threads));
}

/* --- waiting -------------------------------------------------------------- */

static void *resume_soon(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&waiting.lock);
    while (!waiting.rq)
        pthread_cond_wait(&waiting.wake, &waiting.lock);
    struct httpd_request *rq = steal(&waiting.rq);
    pthread_mutex_unlock(&waiting.lock);
    str_add(httpd_reply(rq), "from another thread");
    httpd_status(rq, 202);
    httpd_resume(rq);
    return NULL;
}

Test(httpd, resumes_from_another_thread)
{
    struct httpd *h = server(0);
    int fd = raw_connect(httpd_port(h));
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, resume_soon, NULL);
        raw_send(fd, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
        cr_assert_eq(raw_read(fd, false, &reply), 202);
        cr_assert_str_eq(reply.body.data, "from another thread");
        pthread_join(thread, NULL);
    }
    close(fd);
    httpd_stop(h);
}

static void await_waiting(void)
{
    pthread_mutex_lock(&waiting.lock);
    while (!waiting.rq)
        pthread_cond_wait(&waiting.wake, &waiting.lock);
    pthread_mutex_unlock(&waiting.lock);
}

/* Each time the one that cuts connections off has looked. */
static void pass_time(int64_t ms)
{
    for (int64_t end = clock_ms() + ms; clock_ms() < end;)
        virtual_step(1, REQUEST_MS / 10);
}

Test(httpd, serves_others_while_one_waits)
{
    virtual_begin();
    struct httpd *h = impatient_server(0);
    int fd = raw_connect(httpd_port(h));
    raw_send(fd, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    await_waiting();
    pass_time(3 * REQUEST_MS); /* our own slowness cuts nobody off */
    cr_assert_eq(call(h, "PUT", "/echo", "", "hi"), 200);
    resume_soon(NULL);
    cr_assert_eq(raw_read(fd, false, &reply), 202);
    close(fd);
    httpd_stop(h);
    virtual_end();
}

static void *stop_server(void *arg)
{
    httpd_stop(arg);
    return NULL;
}

Test(httpd, takes_no_more_work_while_it_stops)
{
    struct httpd *h = server(0);
    int waits = raw_connect(httpd_port(h)), late = raw_connect(httpd_port(h));
    pthread_t thread;
    raw_send(waits, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    await_waiting(); /* or it would be what comes too late */
    raw_send(late, "GET /args/x HTTP/1.1\r\nHost: x\r\n\r\n");
    cr_assert_eq(raw_read(late, false, &reply), 200);
    pthread_create(&thread, NULL, stop_server, h);
    while (!atomic_load(&h->stopping)) /* then it waits for the first request */
        usleep(1000);
    raw_send(late, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    cr_expect_eq(raw_read(late, false, &reply), 503);
    resume_soon(NULL);
    cr_expect_eq(raw_read(waits, false, &reply), 202);
    pthread_join(thread, NULL);
    close(waits);
    close(late);
}

/* --- clients that trickle ------------------------------------------------- */

/* Sends `text` a byte at a time until the server hangs up. */
struct trickle {
    pthread_t thread;
    uint16_t port;
    const char *at_once, *text;
    atomic_uint n_sent;
    atomic_bool cut;
};

static atomic_uint n_allowed; /* bytes of each */

static void *trickle_run(void *arg)
{
    struct trickle *t = arg;
    int fd = raw_connect(t->port);
    bool open = raw_send(fd, t->at_once);
    for (size_t i = 0; open; i++) {
        char c = t->text[i % strlen(t->text)];
        open = raw_send_n(fd, &c, 1);
        atomic_store(&t->n_sent, (unsigned)i + 1);
        while (open && i + 1 >= atomic_load(&n_allowed))
            open = !raw_closed_within(fd, 1);
    }
    atomic_store(&t->cut, true);
    close(fd);
    return NULL;
}

static const struct trickle tricks[] = {
    {.at_once = "", .text = "GET"},
    {.at_once = "GET /args/", .text = "abc"},
    {.at_once = "GET /args/x HTTP/1.1\r\nHost: x\r\n", .text = "X: y\r\n"},
    {.at_once = "GET /args/x HTTP/1.1\r\nHost: x\r\nX: ", .text = "y"},
    {.at_once = "PUT /echo HTTP/1.1\r\nHost: x\r\n"
                "Content-Length: 900\r\n\r\n",
     .text = "x"},
    {.at_once = "PUT /echo HTTP/1.1\r\nHost: x\r\n"
                "Transfer-Encoding: chunked\r\n\r\n",
     .text = "1\r\nx\r\n"},
    {.at_once = "POST /nothing HTTP/1.1\r\nHost: x\r\n"
                "Content-Length: 900\r\n\r\n",
     .text = "x"},
    {.at_once = "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n"
                "x",
     .text = "GE"},
};

/* Each that is not cut off yet sends another byte. */
static void all_go_on(struct trickle *t)
{
    unsigned n = atomic_fetch_add(&n_allowed, 1) + 1;
    for (size_t i = 0; i < ARRAY_LEN(tricks); i++)
        while (!atomic_load(&t[i].cut) && atomic_load(&t[i].n_sent) < n)
            (void)sched_yield();
}

/* Time stands at first, so that whoever waits for one of them waits for ever.
 * Then it goes on, and they are cut off. */
Test(httpd, cuts_off_who_trickles_and_delays_nobody, .timeout = 180)
{
    virtual_begin();
    struct httpd *h = impatient_server(2 * ARRAY_LEN(tricks));
    atomic_store(&n_allowed, ENOUGH);
    static struct trickle t[ARRAY_LEN(tricks)];
    for (size_t i = 0; i < ARRAY_LEN(tricks); i++) {
        t[i].at_once = tricks[i].at_once;
        t[i].text = tricks[i].text;
        t[i].port = httpd_port(h);
        pthread_create(&t[i].thread, NULL, trickle_run, &t[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(tricks); i++)
        while (atomic_load(&t[i].n_sent) < ENOUGH)
            cr_assert_eq(call(h, "PUT", "/echo", "", "prompt"), 200);
    for (size_t i = 0; i < ARRAY_LEN(tricks); i++)
        cr_expect_not(atomic_load(&t[i].cut), "trick %zu", i);
    int64_t begun = clock_ms();
    for (size_t i = 0; i < ARRAY_LEN(tricks); i++)
        while (!atomic_load(&t[i].cut)) {
            cr_assert_lt(clock_ms(), begun + LASTS_MS, "trick %zu", i);
            virtual_step(1, REQUEST_MS / 10);
            all_go_on(t);
            /* it has read what came, or it would cut nobody off */
            cr_assert_eq(call(h, "PUT", "/echo", "", "prompt"), 200);
        }
    cr_expect_gt(clock_ms() - begun, REQUEST_MS / 2);
    for (size_t i = 0; i < ARRAY_LEN(tricks); i++)
        pthread_join(t[i].thread, NULL);
    cr_assert_eq(call(h, "PUT", "/echo", "", "prompt"), 200);
    httpd_stop(h);
    virtual_end();
}

Test(httpd, leaves_idle_connections_alone)
{
    virtual_begin();
    struct httpd *h = impatient_server(0);
    int used = raw_connect(httpd_port(h)), unused = raw_connect(httpd_port(h));
    raw_send(used, "GET /args/x HTTP/1.1\r\nHost: x\r\n\r\n");
    cr_assert_eq(raw_read(used, false, &reply), 200);
    /* its thread has another one: it is done with that reply */
    cr_assert_eq(call(h, "PUT", "/echo", "", "hi"), 200);
    pass_time(4 * REQUEST_MS);
    raw_send(used, "GET /args/x HTTP/1.1\r\nHost: x\r\n\r\n");
    cr_assert_eq(raw_read(used, false, &reply), 200);
    raw_send(unused, "GET /args/x HTTP/1.1\r\nHost: x\r\n\r\n");
    cr_assert_eq(raw_read(unused, false, &reply), 200);
    close(used);
    close(unused);
    httpd_stop(h);
    virtual_end();
}

Test(httpd, makes_room_for_new_connections)
{
    enum { MAX = 4, MANY = 300 };
    struct httpd *h = server(MAX);
    int fds[MANY];
    for (int i = 0; i < MANY; i++) {
        fds[i] = raw_connect(httpd_port(h));
        cr_assert_eq(call(h, "PUT", "/echo", "", "hi"), 200, "at %d", i);
    }
    for (int i = 0; i < MANY; i++)
        close(fds[i]);
    httpd_stop(h);
}

Test(httpd, cuts_off_who_does_not_read)
{
    virtual_begin();
    struct httpd *h = impatient_server(0);
    int fd = raw_connect(httpd_port(h));
    raw_send(fd, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    struct pollfd begun = {.fd = fd, .events = POLLIN};
    cr_assert_eq(poll(&begun, 1, 60000), 1);
    pass_time(4 * REQUEST_MS);
    /* it had not been taken by then, so it never comes whole */
    cr_assert_eq(raw_read(fd, false, &reply), 0);
    close(fd);
    fd = raw_connect(httpd_port(h));
    raw_send(fd, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    cr_assert_eq(raw_read(fd, false, &reply), 200);
    cr_assert_eq(reply.body.size, 32 << 20);
    close(fd);
    httpd_stop(h);
    virtual_end();
}
