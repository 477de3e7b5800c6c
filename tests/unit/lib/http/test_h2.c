#include <criterion/criterion.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/await.h"
#include "tests/lib/http/h2rig.h"
#include "tests/lib/virtual.h"

/* --- a client ------------------------------------------------------------- */

struct get {
    CURL *curl;
    struct str body, head;
    long status, version, connects;
};

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
    str_add_n(arg, data, size * n);
    return size * n;
}

#define SET(option, value) \
    cr_assert_eq(curl_easy_setopt(g->curl, option, value), CURLE_OK)

static void get_init(struct get *g, const struct h2_server *s, const char *path)
{
    char url[256];
    (void)snprintf(url, sizeof url, "https://localhost:%u%s",
                   httpd_port(s->httpd), path);
    memset(g, 0, sizeof *g);
    str_init(&g->body, 64 << 20);
    str_init(&g->head, 1 << 20);
    g->curl = curl_easy_init();
    cr_assert_not_null(g->curl);
    SET(CURLOPT_URL, url);
    SET(CURLOPT_CAINFO, s->ca);
    SET(CURLOPT_SSLCERT, s->my_cert);
    SET(CURLOPT_SSLKEY, s->my_key);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    SET(CURLOPT_PIPEWAIT, 1L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_TIMEOUT_MS, 60000L);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, &g->body);
    SET(CURLOPT_HEADERFUNCTION, on_body);
    SET(CURLOPT_HEADERDATA, &g->head);
}

static void get_done(struct get *g)
{
    (void)curl_easy_getinfo(g->curl, CURLINFO_RESPONSE_CODE, &g->status);
    (void)curl_easy_getinfo(g->curl, CURLINFO_HTTP_VERSION, &g->version);
    (void)curl_easy_getinfo(g->curl, CURLINFO_NUM_CONNECTS, &g->connects);
}

static void get_run(struct get *g)
{
    str_reset(&g->body);
    str_reset(&g->head);
    CURLcode code = curl_easy_perform(g->curl);
    cr_expect_eq(code, CURLE_OK, "%s", curl_easy_strerror(code));
    get_done(g);
    cr_expect_eq(g->version, CURL_HTTP_VERSION_2_0);
}

static void get_to(struct get *g, const struct h2_server *s, const char *path)
{
    char url[256];
    (void)snprintf(url, sizeof url, "https://localhost:%u%s",
                   httpd_port(s->httpd), path);
    SET(CURLOPT_URL, url);
    get_run(g);
}

static void get_fini(struct get *g)
{
    curl_easy_cleanup(g->curl);
    str_fini(&g->body);
    str_fini(&g->head);
}

/* --- what it carries ------------------------------------------------------ */

Test(h2, serves_both_versions)
{
    struct h2_server *s = h2_server_create(0, 0);
    struct get get, *g = &get;
    get_init(g, s, "/");
    get_run(g);
    cr_expect_eq(g->status, 200);
    cr_expect_str_eq(g->body.data, "me 0");
    cr_expect(strstr(g->head.data, "content-type: application/json"), "%s",
              g->head.data);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_FRESH_CONNECT, 1L);
    str_reset(&g->body);
    cr_expect_eq(curl_easy_perform(g->curl), CURLE_OK);
    get_done(g);
    cr_expect_eq(g->version, CURL_HTTP_VERSION_1_1);
    cr_expect_str_eq(g->body.data, "me 0");
    get_fini(g);
    struct tls_client_config how = h2_server_me(s);
    how.alpn = NULL; /* nor does this one ask */
    cr_expect_eq(tls_client_once(&how, "/", NULL), 200);
    how.alpn = "http/1.1";
    cr_expect_eq(tls_client_once(&how, "/", NULL), 200);
    h2_server_destroy(s);
}

Test(h2, reads_a_hello_that_comes_in_pieces)
{
    struct h2_server *s = h2_server_create(0, 0);
    struct tls_client_config how = h2_server_me(s);
    struct h2_client c;
    how.in_pieces = true;
    cr_assert(h2_client_open(&c, &how, true));
    cr_assert(h2_client_get(&c, 1, "/"));
    cr_assert(h2_client_read_to(&c, NGHTTP2_DATA, 1));
    cr_expect_eq(c.status, 200);
    h2_client_close(&c);
    how.alpn = NULL;
    cr_expect_eq(tls_client_once(&how, "/", NULL), 200);
    h2_server_destroy(s);
}

Test(h2, answers_as_ever)
{
    static const struct {
        const char *method, *path, *header;
        long status;
        const char *body, *head;
    } cases[] = {
        {"GET", "/nothing", NULL, 404, "nothing at \\\"/nothing", "HTTP/2 404"},
        {"DELETE", "/", NULL, 405, "not allowed", "allow: GET, HEAD, POST"},
        {"GET", "/%zz", NULL, 400, "", "HTTP/2 400"},
        {"OPTIONS", "/", NULL, 405, "OPTIONS", ""},
        {"GET", "/header", "X-TEST: a b", 200, "a b localhost:", "HTTP/2 200"},
        {"POST", "/", "Origin: https://x", 403, "pages of", "HTTP/2 403"},
        {"GET", "/wait?n=1&n=2", NULL, 400, "", ""},
    };
    struct h2_server *s = h2_server_create(0, 0);
    struct get get, *g = &get;
    get_init(g, s, "/");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct curl_slist *headers =
            cases[i].header ? curl_slist_append(NULL, cases[i].header) : NULL;
        SET(CURLOPT_CUSTOMREQUEST, cases[i].method);
        SET(CURLOPT_HTTPHEADER, headers);
        get_to(g, s, cases[i].path);
        cr_expect_eq(g->status, cases[i].status, "%zu: %ld", i, g->status);
        cr_expect(strstr(str_text(&g->body), cases[i].body), "%zu: %s", i,
                  str_text(&g->body));
        cr_expect(strstr(str_text(&g->head), cases[i].head), "%zu: %s", i,
                  str_text(&g->head));
        curl_slist_free_all(headers);
    }
    SET(CURLOPT_HTTPHEADER, NULL);
    SET(CURLOPT_CUSTOMREQUEST, NULL);
    SET(CURLOPT_NOBODY, 1L);
    get_to(g, s, "/");
    cr_expect_eq(g->status, 200, "HEAD");
    cr_expect(strstr(g->head.data, "content-length: 4"), "%s", g->head.data);
    cr_expect_eq(g->body.size, 0);
    get_fini(g);
    h2_server_destroy(s);
}

Test(h2, carries_large_bodies)
{
    struct h2_server *s = h2_server_create(0, 0);
    struct get get, *g = &get;
    cleanup_free char *body = xmalloc(H2_BODY_MAX + 1);
    memset(body, 'x', H2_BODY_MAX + 1);
    get_init(g, s, "/");
    for (int i = 0; i < 3; i++) {
        SET(CURLOPT_POSTFIELDS, body);
        SET(CURLOPT_POSTFIELDSIZE, (long)H2_BODY_MAX);
        get_to(g, s, "/");
        cr_expect_eq(g->status, 200);
        cr_expect_str_eq(g->body.data, "me 4194304");
        SET(CURLOPT_POSTFIELDSIZE, (long)H2_BODY_MAX + 1);
        get_to(g, s, "/");
        cr_expect_eq(g->status, 413, "%ld", g->status);
        cr_expect_eq(g->connects, 0, "the connection goes on");
        SET(CURLOPT_HTTPGET, 1L);
        get_to(g, s, "/large");
        cr_expect_eq(g->body.size, H2_LARGE);
        cr_expect_eq(g->connects, 0);
    }
    get_fini(g);
    h2_server_destroy(s);
}

/* Its record and those of requests come in one piece. */
Test(h2, goes_on_after_new_keys)
{
    struct h2_server *s = h2_server_create(0, 0);
    const struct tls_client_config how = h2_server_me(s);
    struct h2_client c;
    const int on = 1, off = 0;
    cr_assert(h2_client_open(&c, &how, true));
    for (int32_t id = 1; id < 8; id += 2) {
        (void)setsockopt(c.tls.fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on);
        cr_assert_eq(gnutls_session_key_update(c.tls.session, GNUTLS_KU_PEER),
                     0);
        cr_assert(h2_client_get(&c, id, "/"));
        (void)setsockopt(c.tls.fd, IPPROTO_TCP, TCP_CORK, &off, sizeof off);
        cr_assert(h2_client_read_to(&c, NGHTTP2_DATA, id));
    }
    h2_client_close(&c);
    h2_server_destroy(s);
}

/* --- many at once --------------------------------------------------------- */

struct late {
    struct h2_server *s;
    unsigned n;
};

/* The last that came is the first to go on. */
static void *resume_backwards(void *arg)
{
    const struct late *l = arg;
    h2_server_await(l->s, l->n);
    for (unsigned i = l->n; i-- > 0;)
        httpd_resume(atomic_load(&l->s->waiting[i]));
    return NULL;
}

static void run_all(CURLM *multi)
{
    int running = 1;
    while (running) {
        cr_assert_eq(curl_multi_perform(multi, &running), CURLM_OK);
        if (running)
            (void)curl_multi_poll(multi, NULL, 0, 1000, NULL);
    }
}

Test(h2, multiplexes)
{
    enum { N = 100, ROUNDS = 2 };
    struct h2_server *s = h2_server_create(0, 0);
    struct get many[N];
    struct late late = {s, N};
    long connects = 0;
    CURLM *multi = curl_multi_init();
    cr_assert_not_null(multi);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread;
        atomic_store(&s->n_waiting, 0);
        cr_assert_eq(pthread_create(&thread, NULL, resume_backwards, &late), 0);
        for (int i = 0; i < N; i++) {
            char path[32];
            (void)snprintf(path, sizeof path, "/wait?n=%d", i);
            get_init(&many[i], s, path);
            (void)curl_multi_add_handle(multi, many[i].curl);
        }
        run_all(multi);
        cr_assert_eq(pthread_join(thread, NULL), 0);
        for (int i = 0; i < N; i++) {
            char wanted[32];
            (void)snprintf(wanted, sizeof wanted, "%d of me", i);
            get_done(&many[i]);
            cr_expect_eq(many[i].status, 200, "%d", i);
            cr_expect_eq(many[i].version, CURL_HTTP_VERSION_2_0);
            cr_expect_str_eq(str_text(&many[i].body), wanted);
            connects += many[i].connects;
            (void)curl_multi_remove_handle(multi, many[i].curl);
            get_fini(&many[i]);
        }
    }
    cr_expect_eq(connects, 1, "%ld connections", connects);
    (void)curl_multi_cleanup(multi);
    h2_server_destroy(s);
}

Test(h2, serves_others_while_one_waits)
{
    virtual_begin();
    struct h2_server *s = h2_server_create(0, 0);
    const struct tls_client_config how = h2_server_me(s);
    struct h2_client c;
    cr_assert(h2_client_open(&c, &how, true));
    cr_assert(h2_client_get(&c, 1, "/wait?n=a"));
    cr_assert(h2_client_get(&c, 3, "/"));
    cr_assert(h2_client_read_to(&c, NGHTTP2_DATA, -1));
    cr_expect_eq(c.id, 3);
    h2_server_pass(2 * H2_REQUEST_MS);
    httpd_resume(atomic_load(&s->waiting[0]));
    cr_assert(h2_client_read_to(&c, NGHTTP2_DATA, 1), "as long as it takes");
    cr_expect_str_eq(c.payload.data, "a of me");
    h2_client_close(&c);
    virtual_end();
    h2_server_destroy(s);
}

/* Its client resets it, or goes away: it is its owner's until it resumes. */
Test(h2, suspended_requests_outlive_their_clients)
{
    enum { N = 10 };
    struct h2_server *s = h2_server_create(0, 0);
    const struct tls_client_config how = h2_server_me(s);
    struct h2_client c;
    cr_assert(h2_client_open(&c, &how, true));
    for (int i = 0; i < N; i++)
        cr_assert(h2_client_get(&c, 2 * i + 1, "/wait?n=a"));
    h2_server_await(s, N);
    const uint32_t cancel = 0x08000000;
    cr_assert(h2_client_frame(&c, NGHTTP2_RST_STREAM, 0, 1, &cancel, 4));
    cr_assert(h2_client_get(&c, 2 * N + 1, "/"));
    cr_assert(h2_client_read_to(&c, NGHTTP2_DATA, 2 * N + 1));
    httpd_resume(atomic_load(&s->waiting[0]));
    h2_client_close(&c);
    (void)usleep(50000);
    for (int i = 1; i < N; i++)
        httpd_resume(atomic_load(&s->waiting[i]));
    h2_server_destroy(s);
}

static void *stop(void *arg)
{
    struct h2_server *s = arg;
    httpd_stop(steal(&s->httpd));
    return NULL;
}

Test(h2, stops_once_all_is_answered)
{
    struct h2_server *s = h2_server_create(0, 0);
    const struct tls_client_config how = h2_server_me(s);
    struct h2_client c, idle;
    pthread_t thread;
    cr_assert(h2_client_open(&c, &how, true));
    cr_assert(h2_client_open(&idle, &how, true));
    cr_assert(h2_client_get(&idle, 1, "/"));
    cr_assert(h2_client_read_to(&idle, NGHTTP2_DATA, 1));
    cr_assert(h2_client_get(&c, 1, "/wait?n=a"));
    h2_server_await(s, 1);
    cleanup_str struct str block = STR_INIT(1 << 16);
    h2_request(&block, "POST", "/");
    cr_assert(h2_client_frame(&c, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 3,
                              block.data, block.size));
    /* frames are taken in their order: once this is answered, it began */
    cr_assert(h2_client_frame(&c, NGHTTP2_PING, 0, 0, "12345678", 8));
    cr_assert(h2_client_read_to(&c, NGHTTP2_PING, 0));
    cr_assert_eq(pthread_create(&thread, NULL, stop, s), 0);
    cr_expect_eq(h2_client_goaway(&idle), NGHTTP2_NO_ERROR);
    cr_expect(h2_client_closed(&idle));
    cr_expect(h2_client_read_to(&c, NGHTTP2_RST_STREAM, 3));
    cr_expect_eq(c.payload.data[3], NGHTTP2_REFUSED_STREAM,
                 "what has not come whole may be asked of another");
    httpd_resume(atomic_load(&s->waiting[0]));
    cr_assert(h2_client_read_to(&c, NGHTTP2_DATA, 1));
    cr_expect_str_eq(c.payload.data, "a of me");
    cr_expect(h2_client_closed(&c));
    cr_assert_eq(pthread_join(thread, NULL), 0);
    h2_client_close(&c);
    h2_client_close(&idle);
    h2_server_destroy(s);
}

Test(h2, leaves_when_the_handler_says_so)
{
    struct h2_server *s = h2_server_create(0, 0);
    const struct tls_client_config how = h2_server_me(s);
    struct h2_client c;
    struct get get, *g = &get;
    get_init(g, s, "/close");
    get_run(g);
    cr_expect(strstr(g->head.data, "x-left: yes"), "%s", g->head.data);
    get_to(g, s, "/");
    cr_expect_eq(g->status, 200);
    cr_expect_eq(g->connects, 1, "anew");
    get_fini(g);
    /* what was asked before is answered before */
    cr_assert(h2_client_open(&c, &how, true));
    cr_assert(h2_client_get(&c, 1, "/wait?n=a"));
    h2_server_await(s, 1);
    cr_assert(h2_client_get(&c, 3, "/close"));
    cr_expect_eq(h2_client_goaway(&c), NGHTTP2_NO_ERROR);
    cr_expect_eq(c.payload.data[3], 3, "the last one taken");
    httpd_resume(atomic_load(&s->waiting[0]));
    cr_expect(h2_client_read_to(&c, NGHTTP2_DATA, 1));
    cr_expect(h2_client_closed(&c));
    h2_client_close(&c);
    h2_server_destroy(s);
}

/* --- who is let in -------------------------------------------------------- */

static void expect_refused(struct h2_server *s, struct h2_client *c, int32_t id,
                           const char *word)
{
    cr_assert(h2_client_get(c, id, "/"));
    cr_assert(h2_client_read_to(c, NGHTTP2_DATA, id));
    cr_expect_eq(c->status, 403);
    AWAIT(atomic_load(&s->refused));
    cr_expect_str_eq(s->refusal, word);
}

Test(h2, judges_clients)
{
    struct h2_server *s = h2_server_create(0, 0);
    struct tls_client_config how = h2_server_me(s);
    struct cert *foreign = cert_authority("authority");
    const struct cert_spec me = {.name = "me", .purposes = CERT_CLIENT};
    struct cert *mine = cert_create(foreign, &me);
    struct h2_client c;
    how.cert_file = NULL;
    cr_assert(h2_client_open(&c, &how, true));
    expect_refused(s, &c, 1, "missing");
    h2_client_close(&c);
    atomic_store(&s->refused, 0);
    cert_write(mine, s->my_cert);
    cert_write_key(mine, s->my_key);
    how.cert_file = s->my_cert;
    cr_assert(h2_client_open(&c, &how, true));
    expect_refused(s, &c, 1, "foreign");
    /* its authority is accepted from now on, on the same connection */
    cert_write(foreign, s->ca);
    tls_poll(s->tls);
    cr_assert(h2_client_get(&c, 3, "/"));
    cr_assert(h2_client_read_to(&c, NGHTTP2_DATA, 3));
    cr_expect_str_eq(c.payload.data, "me 0");
    h2_client_close(&c);
    cert_destroy(mine);
    cert_destroy(foreign);
    h2_server_destroy(s);
}

/* GnuTLS looks at the clock by itself. */
static time_t wall_time(time_t *ret_now)
{
    time_t now = (time_t)clock_wall_s();
    if (ret_now)
        *ret_now = now;
    return now;
}

Test(h2, refuses_a_certificate_that_ends_meanwhile)
{
    enum { UNTIL_S = 600 };
    struct h2_server *s = h2_server_create(0, UNTIL_S);
    const struct tls_client_config how = h2_server_me(s);
    struct h2_client c;
    cr_assert(h2_client_open(&c, &how, true));
    cr_assert(h2_client_get(&c, 1, "/"));
    cr_assert(h2_client_read_to(&c, NGHTTP2_DATA, 1));
    cr_expect_eq(c.status, 200);
    gnutls_global_set_time_function(wall_time);
    clock_set_wall_ahead(UNTIL_S + 1);
    expect_refused(s, &c, 3, "expired");
    clock_set_wall_ahead(0);
    gnutls_global_set_time_function(time);
    h2_client_close(&c);
    h2_server_destroy(s);
}

Test(h2, counts_handshakes_that_fail)
{
    struct h2_server *s = h2_server_create(0, 0);
    struct tls_client_config how = h2_server_me(s);
    how.priorities = "NORMAL:-VERS-ALL:+VERS-TLS1.1:+VERS-TLS1.0";
    struct h2_client c;
    cr_expect_not(h2_client_open(&c, &how, true));
    how.priorities = "NORMAL:-VERS-ALL:+VERS-TLS1.2";
    cr_assert(h2_client_open(&c, &how, true));
    cr_assert(h2_client_get(&c, 1, "/"));
    cr_assert(h2_client_read_to(&c, NGHTTP2_DATA, 1));
    h2_client_close(&c);
    httpd_stop(steal(&s->httpd));
    cr_expect_eq(atomic_load(&s->refused), 1);
    cr_expect_str_eq(s->refusal, "handshake");
    h2_server_destroy(s);
}
