/* A client that asks for more memory than there is gets 503, and others are
 * served as before. */
#include <criterion/criterion.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "tests/lib/http/h2rig.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sanitized.h"

enum {
    BODY_MAX = 64 << 20,
    LARGE = 32 << 20,
    PIECE = 1 << 20,
    LEFT = TRY_SPARE / 2, /* bytes that may be had once memory is short */
};

/* Nothing large can be had from now on.  Sanitizers keep far more than any
 * such limit for themselves. */
static void make_short(void)
{
    unsigned long pages = 0;
    (void)malloc_trim(0);
    cleanup_file FILE *f = fopen("/proc/self/statm", "re");
    cr_assert(f && fscanf(f, "%lu", &pages) == 1);
    rlim_t limit = pages * (rlim_t)sysconf(_SC_PAGESIZE) + LEFT;
    const struct rlimit as = {.rlim_cur = limit, .rlim_max = limit};
    cr_assert_eq(setrlimit(RLIMIT_AS, &as), 0);
}

/* A sanitizer maps far more than is left here. */
#ifdef SANITIZED
#define NEED_A_LIMIT() cr_skip_test("a sanitizer needs more address space")
#else
#define NEED_A_LIMIT() (void)0
#endif

/* --- HTTP/1.1 ------------------------------------------------------------- */

static void on_size(struct httpd_request *rq, void *ctx)
{
    size_t size;
    (void)ctx;
    (void)httpd_body(rq, &size);
    str_addf(httpd_reply(rq), "%zu", size);
}

static void on_large(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    for (int i = 0; i < LARGE / 32; i++)
        str_add(httpd_reply(rq), "0123456789abcdef0123456789abcdef");
}

static const struct httpd_route routes[] = {
    {HTTPD_POST, "/size", on_size, BODY_MAX, "size"},
    {HTTPD_GET, "/large", on_large, 0, "large"},
};

static struct httpd *server(void)
{
    const struct httpd_config config = {.name = "test",
                                        .listen = "127.0.0.1:0",
                                        .routes = routes,
                                        .n_routes = ARRAY_LEN(routes)};
    struct httpd *h = NULL;
    struct error err = {0};
    cr_assert_eq(httpd_start(&config, &h, &err), 0, "%s", err.text);
    return h;
}

static void expect_served(struct httpd *h, struct raw_reply *reply)
{
    cr_assert_eq(raw_call(httpd_port(h), "POST", "/size", "", "fine", reply),
                 200);
    cr_expect_str_eq(reply->body.data, "4");
}

/* A body of LARGE bytes, or what the server takes of it; the status. */
static int send_body(struct httpd *h, bool chunked, struct raw_reply *ret_reply)
{
    char line[128];
    cleanup_free char *piece = xcalloc(1, PIECE);
    int fd = raw_connect(httpd_port(h));
    (void)snprintf(line, sizeof line, "Content-Length: %d\r\n\r\n", LARGE);
    (void)raw_send(fd, "POST /size HTTP/1.1\r\nHost: x\r\n");
    (void)raw_send(fd, chunked ? "Transfer-Encoding: chunked\r\n\r\n" : line);
    (void)snprintf(line, sizeof line, "%x\r\n", PIECE);
    for (int i = 0; i < LARGE / PIECE; i++)
        if ((chunked && !raw_send(fd, line)) || !raw_send_n(fd, piece, PIECE) ||
            (chunked && !raw_send(fd, "\r\n")))
            break;
    if (chunked)
        (void)raw_send(fd, "0\r\n\r\n");
    int status = raw_read(fd, false, ret_reply);
    (void)close(fd);
    return status;
}

Test(httpd_memory, refuses_a_body)
{
    NEED_A_LIMIT();
    struct httpd *h = server();
    struct raw_reply reply = {0};
    cr_assert_eq(send_body(h, false, &reply), 200);
    make_short();
    cr_expect_eq(send_body(h, false, &reply), 503);
    cr_expect(strstr(reply.body.data, "no memory for a body of 33554432 bytes"),
              "%s", reply.body.data);
    expect_served(h, &reply);
    cr_expect_eq(send_body(h, true, &reply), 503);
    cr_expect(strstr(reply.body.data, "no memory for a body of "), "%s",
              reply.body.data);
    expect_served(h, &reply);
    raw_reply_fini(&reply);
    httpd_stop(h);
}

Test(httpd_memory, refuses_a_reply)
{
    NEED_A_LIMIT();
    struct httpd *h = server();
    struct raw_reply reply = {0};
    make_short();
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(raw_call(httpd_port(h), "GET", "/large", "", NULL, &reply),
                     503);
        cr_expect(strstr(reply.body.data, "no memory for a reply of more than"),
                  "%s", reply.body.data);
        expect_served(h, &reply);
    }
    raw_reply_fini(&reply);
    httpd_stop(h);
}

/* --- what is made of a body ------------------------------------------------ */

Test(httpd_memory, makes_no_tree_that_does_not_fit)
{
    NEED_A_LIMIT();
    enum { N = 1 << 20 };
    struct error err = {0};
    cJSON *tree = NULL;
    cleanup_free char *array = xmalloc(2 * N);
    cleanup_str struct str keys = STR_INIT(1 << 24);
    memset(array, ',', 2 * N);
    for (int i = 0; i < N; i++)
        array[2 * i] = i ? '1' : '[';
    array[1] = ' ';
    array[2 * N - 1] = ']';
    str_add(&keys, "{");
    for (int i = 0; i < 50000; i++)
        str_addf(&keys, "%s\"%d\":0", i ? "," : "", i);
    str_add(&keys, "}");
    cr_assert_eq(json_parse(array, 2 * N, &tree, &err), 0, "%s", err.text);
    cJSON_Delete(tree);
    make_short();
    cr_expect_eq(json_parse(array, 2 * N, &tree, &err), -ENOMEM);
    cr_expect_str_eq(err.text,
                     "there is no memory for a JSON text of 2097152 bytes");
    cr_expect_eq(httpd_unread(&err), 503);
    cr_expect_eq(json_check(keys.data, keys.size, &err), -ENOMEM, "%s",
                 err.text);
    cr_expect_eq(json_parse("[1]", 3, &tree, &err), 0);
    cJSON_Delete(tree);
}

/* --- HTTP/2 --------------------------------------------------------------- */

/* The status of a body of H2_BODY_MAX bytes. */
static int h2_send_body(struct h2_client *c)
{
    enum { FRAME = 16000 };
    static const char zeros[FRAME];
    cleanup_str struct str block = STR_INIT(1 << 10);
    h2_request(&block, "POST", "/");
    cr_assert(h2_client_frame(c, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1,
                              block.data, block.size));
    /* the windows of the connection and of the stream: as wide as is sent */
    for (int sent = 0; sent + FRAME <= 1 << 20; sent += FRAME)
        cr_assert(h2_client_frame(c, NGHTTP2_DATA, 0, 1, zeros, FRAME));
    cr_assert(
        h2_client_frame(c, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, "", 0));
    cr_assert(h2_client_read_to(c, NGHTTP2_DATA, 1));
    return c->status;
}

Test(httpd_memory, refuses_bodies_and_replies_of_http2)
{
    NEED_A_LIMIT();
    struct h2_server *s = h2_server_create(0, 0);
    const struct tls_client_config how = h2_server_me(s);
    struct h2_client c;
    cr_assert(h2_client_open(&c, &how, true));
    cr_assert(h2_client_get(&c, 3, "/"));
    cr_assert(h2_client_read_to(&c, NGHTTP2_DATA, 3));
    h2_client_close(&c);
    make_short();
    cr_assert(h2_client_open(&c, &how, true));
    cr_expect_eq(h2_send_body(&c), 503);
    cr_expect(strstr(c.payload.data, "no memory for a body"), "%s",
              c.payload.data);
    cr_assert(h2_client_get(&c, 5, "/large"));
    cr_assert(h2_client_read_to(&c, NGHTTP2_DATA, 5));
    cr_expect_eq(c.status, 503);
    cr_expect(strstr(c.payload.data, "no memory for a reply"), "%s",
              c.payload.data);
    cr_assert(h2_client_get(&c, 7, "/"));
    cr_assert(h2_client_read_to(&c, NGHTTP2_DATA, 7));
    cr_expect_str_eq(c.payload.data, "me 0");
    h2_client_close(&c);
    h2_server_destroy(s);
}
