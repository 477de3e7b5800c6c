/* Streams of many servers on one thread: they come, end alone, and none keeps
 * another waiting. */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/grpc/grpc.h"
#include "lib/io/clock.h"
#include "tests/lib/http/certs.h"
#include "tests/lib/http/h2server.h"
#include "tests/lib/tmpdir.h"

#define METHOD "/runtime.v1.RuntimeService/GetContainerEvents"

enum {
    SIDES = 3,
    STEP_MS = 5,  /* between good messages */
    GAP_MS = 500, /* of work for others between two of them */
    END_MS = 300000,
    MESSAGES = 20,
    WAKES = 20, /* a turn may end by itself, but not each time */
};

struct side {
    struct h2_server *server;
    char *endpoint;
    struct grpc_config config;
    struct grpc_flow *flow; /* NULL: ended */
    atomic_uint n;          /* messages */
    unsigned stop_after;    /* of them; 0: never */
    unsigned sent;          /* by give_pair() */
    int64_t last_ms, gap_ms;
    int code;
    char text[ERROR_TEXT_MAX];
};

struct rig {
    char *dir, *ca, *cert, *key;
    struct grpc_hub *hub;
    struct side sides[SIDES];
};

/* What this thread, which turns the hub, has done so far. */
static int64_t worked_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* cannot fail */
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int take(void *ctx, const void *message, size_t size)
{
    struct side *s = ctx;
    int64_t now = worked_ms();
    (void)message;
    cr_assert_eq(size, 5);
    if (s->n > 0 && now - s->last_ms > s->gap_ms)
        s->gap_ms = now - s->last_ms;
    s->last_ms = now;
    s->n++;
    return s->n == s->stop_after ? 77 : 0;
}

static void ended(void *ctx, int code, const struct grpc_end *end,
                  const struct error *err)
{
    struct side *s = ctx;
    (void)end;
    s->flow = NULL;
    s->code = code;
    (void)snprintf(s->text, sizeof s->text, "%s", code ? err->text : "");
}

static void write_keys(struct rig *r)
{
    const struct cert_spec spec = {
        .name = "both", .purposes = CERT_SERVER | CERT_CLIENT, .local = true};
    struct cert *ca = cert_authority("cards");
    struct cert *own = cert_create(ca, &spec);
    r->ca = xasprintf("%s/ca", r->dir);
    r->cert = xasprintf("%s/cert", r->dir);
    r->key = xasprintf("%s/key", r->dir);
    cert_write(ca, r->ca);
    cert_write(own, r->cert);
    cert_write_key(own, r->key);
    cert_destroy(own);
    cert_destroy(ca);
}

/* 0: over TLS, 1: in cleartext over TCP, 2: over a unix socket */
static void serve(struct rig *r, size_t i, size_t how)
{
    struct side *s = &r->sides[i];
    cleanup_free char *path = xasprintf("%s/%zu.sock", r->dir, i);
    struct h2_config config = {0};
    if (how == 0)
        config =
            (struct h2_config){.cert = r->cert, .key = r->key, .ca = r->ca};
    else if (how == 2)
        config.socket = path;
    s->server = h2_server_start(&config);
    h2_server_reply(s->server, NULL, "event", 5);
    s->endpoint = how == 2 ? xasprintf("unix://%s", path)
                           : xasprintf("tcp://127.0.0.1:%u",
                                       h2_server_port(s->server));
    s->config.endpoint = s->endpoint;
    s->config.plaintext = how == 1;
    if (how == 0) {
        s->config.ca = r->ca;
        s->config.cert = r->cert;
        s->config.key = r->key;
    }
}

static void follow(struct rig *r, size_t i)
{
    struct side *s = &r->sides[i];
    const struct grpc_flow_config what = {.method = METHOD,
                                          .request = "",
                                          .visit = take,
                                          .ended = ended,
                                          .ctx = s};
    struct error err = {0};
    s->n = 0;
    s->gap_ms = 0;
    cr_assert_eq(grpc_hub_open(r->hub, &s->config, &what, &s->flow, &err), 0,
                 "%s", err.text);
}

static void rig_init(struct rig *r, const size_t how[SIDES])
{
    *r = (struct rig){.dir = tmpdir_create(), .hub = grpc_hub_create()};
    write_keys(r);
    for (size_t i = 0; i < SIDES; i++)
        serve(r, i, how[i]);
}

static void rig_fini(struct rig *r)
{
    grpc_hub_destroy(r->hub);
    for (size_t i = 0; i < SIDES; i++) {
        h2_server_stop(r->sides[i].server);
        free(r->sides[i].endpoint);
    }
    tmpdir_remove(r->dir);
    free(r->ca);
    free(r->cert);
    free(r->key);
}

static void turn_until_ended(struct rig *r, size_t i, int64_t ms)
{
    for (int64_t end = clock_ms() + ms; r->sides[i].flow && clock_ms() < end;)
        grpc_hub_turn(r->hub, 100);
}

static void turn_until_it_stands(struct rig *r, size_t i)
{
    const struct side *s = &r->sides[i];
    while (s->flow && !grpc_flow_stands(s->flow))
        grpc_hub_turn(r->hub, 100);
    cr_assert_not_null(s->flow, "%s", s->text);
}

static const size_t all[SIDES] = {0, 1, 2};

Test(grpc_hub, streams_come_and_end, .timeout = 600)
{
    struct rig r;
    rig_init(&r, all);
    for (size_t i = 0; i < SIDES; i++) {
        h2_server_repeat(r.sides[i].server, 50, STEP_MS);
        follow(&r, i);
        cr_expect_not(grpc_flow_stands(r.sides[i].flow));
    }
    turn_until_it_stands(&r, 0);
    for (size_t i = 0; i < SIDES; i++) {
        turn_until_ended(&r, i, END_MS);
        cr_expect_null(r.sides[i].flow, "%zu", i);
        cr_expect_eq(r.sides[i].code, 0, "%zu: %s", i, r.sides[i].text);
        cr_expect_eq(r.sides[i].n, 50, "%zu: %u", i, r.sides[i].n);
        cr_expect_lt(r.sides[i].gap_ms, GAP_MS);
    }
    rig_fini(&r);
}

/* Two messages, at once, when those of before were given to who follows. */
static int give_pair(void *ctx, const char *method, const void *request,
                     size_t size, struct str *ret_reply)
{
    struct side *s = ctx;
    (void)method;
    (void)request;
    (void)size;
    if (s->sent % 2 == 0 && atomic_load(&s->n) < s->sent) {
        (void)poll(NULL, 0, 1);
        return H2_MORE;
    }
    str_add(ret_reply, "event");
    s->sent++;
    return H2_MORE;
}

/* A message is given when it comes, also in cleartext, where libcurl may have
 * read it with others: where one is kept back no other comes. */
Test(grpc_hub, nothing_is_kept_back, .timeout = 600)
{
    struct rig r;
    rig_init(&r, all);
    for (size_t i = 0; i < SIDES; i++) {
        h2_server_handle(r.sides[i].server, give_pair, &r.sides[i]);
        follow(&r, i);
    }
    for (size_t i = 0; i < SIDES; i++) {
        while (r.sides[i].flow && r.sides[i].n < MESSAGES)
            grpc_hub_turn(r.hub, 3600000);
        cr_expect_not_null(r.sides[i].flow, "%zu: %s", i, r.sides[i].text);
    }
    rig_fini(&r);
}

Test(grpc_hub, refusals_are_told, .timeout = 600)
{
    struct rig r;
    rig_init(&r, all);
    for (size_t i = 0; i < SIDES; i++) {
        h2_server_status(r.sides[i].server, NULL, GRPC_UNIMPLEMENTED, "no");
        follow(&r, i);
        turn_until_ended(&r, i, END_MS);
        cr_expect_eq(r.sides[i].code, -EREMOTEIO, "%d", r.sides[i].code);
        cr_expect(strstr(r.sides[i].text, "UNIMPLEMENTED"), "%s",
                  r.sides[i].text);
        int port = h2_server_leave(r.sides[i].server);
        follow(&r, i);
        turn_until_ended(&r, i, END_MS);
        cr_expect_eq(r.sides[i].code, -ECONNREFUSED, "%d %s", r.sides[i].code,
                     r.sides[i].text);
        (void)close(port);
        free(r.sides[i].endpoint);
        serve(&r, i, all[i] == 2 ? 1 : all[i]);
    }
    rig_fini(&r);
}

static void beside(struct rig *r, enum h2_fault fault)
{
    struct side *ill = &r->sides[0], *good = &r->sides[1];
    h2_server_fault(ill->server, fault);
    h2_server_repeat(good->server, 100000, STEP_MS);
    follow(r, 1);
    for (int64_t end = clock_ms() + END_MS; good->n < 5 && clock_ms() < end;)
        grpc_hub_turn(r->hub, 100);
    cr_assert_geq(good->n, 5);
    follow(r, 0);
    int64_t from = clock_ms();
    turn_until_ended(r, 0, END_MS);
    fprintf(stderr, "%2d: ended after %4d ms, gap %3d ms: %s\n", (int)fault,
            (int)(clock_ms() - from), (int)good->gap_ms, ill->text);
    cr_expect_null(ill->flow, "%d does not end", (int)fault);
    cr_expect_lt(ill->code, 0);
    for (int i = 0; i < 20; i++)
        grpc_hub_turn(r->hub, 100);
    cr_expect_lt(good->gap_ms, GAP_MS, "%d: %d ms", (int)fault,
                 (int)good->gap_ms);
    cr_assert_not_null(good->flow, "%s", good->text);
    grpc_hub_close(r->hub, good->flow);
    good->flow = NULL;
    ill->flow = NULL;
}

static void hostile(const size_t how[SIDES])
{
    static const enum h2_fault ends[] = {
        H2_EMPTY_FLOOD,   H2_PING_FLOOD,  H2_SETTINGS_FLOOD, H2_TRAILERS_FLOOD,
        H2_HEADERS_FLOOD, H2_PREFIX_2GIB, H2_HALF,           H2_CLOSE_HALF,
        H2_RESET_HALF,    H2_GOAWAY,      H2_HPACK_BOMB,     H2_NOISE,
    };
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        struct rig r;
        rig_init(&r, how);
        beside(&r, ends[i]);
        rig_fini(&r);
    }
}

Test(grpc_hub, a_hostile_server_costs_its_stream_alone, .timeout = 600)
{
    static const size_t tls[SIDES] = {0, 0, 2}, clear[SIDES] = {1, 1, 2};
    hostile(tls);
    hostile(all);
    hostile(clear);
}

/* What ends a stream of good messages without end is its visitor. */
Test(grpc_hub, a_visitor_can_end_it, .timeout = 600)
{
    struct rig r;
    rig_init(&r, all);
    h2_server_repeat(r.sides[1].server, 100000, STEP_MS);
    follow(&r, 1);
    for (size_t i = 0; i < SIDES; i += 2) {
        h2_server_fault(r.sides[i].server, H2_WELL);
        h2_server_repeat(r.sides[i].server, 50, STEP_MS);
        r.sides[i].stop_after = 7;
        follow(&r, i);
        turn_until_ended(&r, i, END_MS);
        cr_expect_eq(r.sides[i].code, 77);
        cr_expect_eq(r.sides[i].n, 7);
        h2_server_reply(r.sides[i].server, NULL, "event", 5);
        h2_server_repeat(r.sides[i].server, 100000, 0);
        r.sides[i].stop_after = 20000;
        follow(&r, i);
        turn_until_ended(&r, i, END_MS);
        cr_expect_eq(r.sides[i].code, 77, "%zu: %d %s", i, r.sides[i].code,
                     r.sides[i].text);
        cr_expect_lt(r.sides[1].gap_ms, GAP_MS);
    }
    rig_fini(&r);
}

struct waker {
    struct grpc_hub *hub;
    atomic_int turns, woke; /* rounds */
};

static void *wake_soon(void *arg)
{
    struct waker *w = arg;
    for (int i = 1; i <= WAKES; i++) {
        while (atomic_load(&w->turns) < i)
            (void)usleep(1000);
        (void)usleep(50000); /* by then it waits, most likely */
        atomic_store(&w->woke, i);
        grpc_hub_wake(w->hub);
    }
    return NULL;
}

Test(grpc_hub, a_wait_can_be_ended, .timeout = 600)
{
    struct rig r;
    pthread_t thread;
    rig_init(&r, all);
    h2_server_fault(r.sides[0].server, H2_SILENT);
    follow(&r, 0);
    turn_until_it_stands(&r, 0);
    struct waker w = {.hub = r.hub};
    cr_assert_eq(pthread_create(&thread, NULL, wake_soon, &w), 0);
    for (int i = 1; i <= WAKES; i++) {
        atomic_store(&w.turns, i);
        while (atomic_load(&w.woke) < i)
            grpc_hub_turn(r.hub, 3600000); /* who is not woken hangs */
    }
    (void)pthread_join(thread, NULL);
    cr_expect_not_null(r.sides[0].flow, "it stands");
    rig_fini(&r);
}

Test(grpc_hub, streams_are_counted, .timeout = 600)
{
    struct rig r;
    struct error err = {0};
    struct grpc_flow *flows[GRPC_HUB_MAX + 1] = {0};
    rig_init(&r, all);
    const struct grpc_flow_config what = {.method = METHOD,
                                          .request = "",
                                          .visit = take,
                                          .ended = ended,
                                          .ctx = &r.sides[1]};
    for (size_t i = 0; i < GRPC_HUB_MAX; i++)
        cr_assert_eq(
            grpc_hub_open(r.hub, &r.sides[1].config, &what, &flows[i], &err),
            0);
    cr_expect_eq(grpc_hub_open(r.hub, &r.sides[1].config, &what,
                               &flows[GRPC_HUB_MAX], &err),
                 -ENOSPC);
    grpc_hub_close(r.hub, flows[0]);
    cr_assert_eq(
        grpc_hub_open(r.hub, &r.sides[1].config, &what, &flows[0], &err), 0);
    const struct grpc_config none = {.endpoint = "tcp://x"};
    cr_expect_eq(grpc_hub_open(r.hub, &none, &what, &flows[1], &err), -ENOSPC);
    grpc_hub_close(r.hub, flows[0]);
    cr_expect_eq(grpc_hub_open(r.hub, &none, &what, &flows[1], &err), -EINVAL);
    rig_fini(&r);
}
