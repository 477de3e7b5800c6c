/* Many streams at once, slow readers, and all that ends in the middle. */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "extender/app/app_metrics.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/relayrig.h"

enum { N = 100, MUCH = 24 << 20, PIECE = 16 << 10 };

static struct relay_rig rig;
static struct str head = {.max = 1 << 16}, body = {.max = 64 << 20};

static void finish(void)
{
    str_fini(&head);
    str_fini(&body);
}

TestSuite(relay_many, .fini = finish, .timeout = 300);

struct pair {
    struct relay_peer client, node;
};

static struct pair join(const char *pod, const char *what)
{
    struct pair p;
    p.client = relay_rig_ask(&rig, pod, what,
                             strncmp(what, "log", 3) == 0 ? "" : RELAY_WS);
    relay_rig_join(&rig, "n1", &p.node);
    int status = relay_peer_head(&p.client, &head);
    cr_assert(status == 101 || status == 200, "%s: %d", what, status);
    return p;
}

static void pair_close(struct pair *p)
{
    relay_peer_close(&p->client);
    relay_peer_close(&p->node);
}

/* --- one that does not read ------------------------------------------------- */

static char letter(size_t at)
{
    return (char)('a' + at % 23);
}

static void *write_much(void *peer)
{
    char piece[PIECE];
    for (size_t at = 0; at < MUCH; at += PIECE) {
        for (size_t i = 0; i < PIECE; i++)
            piece[i] = letter(at + i);
        if (!relay_peer_send(peer, piece, PIECE))
            return peer; /* the stream has ended */
    }
    return NULL;
}

static int64_t bytes_to_client(void)
{
    const char *way = "to-client";
    return metrics_get(rig.metrics, APP_STREAM_BYTES, &way);
}

/* Both ways, on a stream whose sides read. */
static void converse(struct pair *p, unsigned i)
{
    char text[32], back[32];
    size_t size = (size_t)snprintf(text, sizeof text, "stream %u", i);
    cr_assert(relay_peer_send(&p->client, text, size), "%u", i);
    cr_assert(relay_peer_take(&p->node, back, size), "%u", i);
    cr_assert_eq(memcmp(text, back, size), 0);
    cr_assert(relay_peer_send(&p->node, text, size), "%u", i);
    cr_assert(relay_peer_take(&p->client, back, size), "%u", i);
    cr_assert_eq(memcmp(text, back, size), 0);
}

/* Its reader takes nothing: then no more is taken from its node, and all others
 * go on; later it gets all of it. */
static void a_slow_reader_harms_nobody(bool tls)
{
    static struct pair pairs[N];
    const struct rlimit files = {4096, 4096};
    pthread_t writer;
    void *failure;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    relay_rig_start(&rig, tls);
    for (unsigned i = 0; i < N; i++)
        pairs[i] = join("n1-a", "exec?command=cat&stdin=1&stdout=1");
    cr_assert_eq(pthread_create(&writer, NULL, write_much, &pairs[0].node), 0);
    for (unsigned round = 0; round < 20; round++)
        for (unsigned i = 1; i < N; i++)
            converse(&pairs[i], i);
    cr_expect_lt(bytes_to_client(), MUCH, "what waits has a bound");
    cleanup_free char *piece = xmalloc(PIECE);
    for (size_t at = 0; at < MUCH; at += PIECE) {
        cr_assert(relay_peer_take(&pairs[0].client, piece, PIECE));
        for (size_t i = 0; i < PIECE; i++)
            if (piece[i] != letter(at + i))
                cr_assert_fail("byte %zu is wrong", at + i);
    }
    cr_assert_eq(pthread_join(writer, &failure), 0);
    cr_expect_null(failure);
    for (unsigned i = 0; i < N; i++)
        pair_close(&pairs[i]);
    relay_rig_until(&rig, 0);
    relay_rig_stop(&rig);
}

Test(relay_many, a_slow_reader_harms_nobody_plain)
{
    a_slow_reader_harms_nobody(false);
}

Test(relay_many, a_slow_reader_harms_nobody_tls)
{
    a_slow_reader_harms_nobody(true);
}

/* The same of a log, whose client is one of HTTP. */
static void a_slow_log(bool tls)
{
    pthread_t writer;
    void *failure;
    relay_rig_start(&rig, tls);
    struct pair slow = join("n1-a", "log?follow=1");
    cr_assert_eq(pthread_create(&writer, NULL, write_much, &slow.node), 0);
    struct pair quick = join("n1-a", "exec?command=cat&stdin=1&stdout=1");
    for (unsigned i = 0; i < 50; i++)
        converse(&quick, i);
    pair_close(&quick);
    cr_expect_lt(bytes_to_client(), MUCH);
    str_reset(&body);
    while (body.size < MUCH) {
        char line[32];
        size_t n = 0;
        do
            cr_assert(n < sizeof line &&
                      relay_peer_take(&slow.client, &line[n], 1));
        while (line[n++] != '\n');
        size_t size = strtoul(line, NULL, 16);
        cr_assert_gt(size, 0);
        cr_assert(str_reserve(&body, size + 2));
        cr_assert(relay_peer_take(&slow.client, body.data + body.size, size));
        body.size += size;
        cr_assert(relay_peer_take(&slow.client, line, 2));
    }
    for (size_t i = 0; i < MUCH; i++)
        if (body.data[i] != letter(i))
            cr_assert_fail("byte %zu is wrong", i);
    cr_assert_eq(pthread_join(writer, &failure), 0);
    cr_expect_null(failure);
    relay_peer_end(&slow.node);
    str_reset(&body);
    cr_expect(relay_peer_rest(&slow.client, true, &body));
    relay_peer_close(&slow.client);
    relay_rig_stop(&rig);
}

Test(relay_many, a_slow_log_plain)
{
    a_slow_log(false);
}

Test(relay_many, a_slow_log_tls)
{
    a_slow_log(true);
}

/* --- ends in the middle ------------------------------------------------------- */

static void reset(struct relay_peer *p)
{
    const struct linger now = {.l_onoff = 1};
    (void)setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    relay_peer_close(p);
}

static void a_side_vanishes(bool tls)
{
    char byte;
    relay_rig_start(&rig, tls);
    struct pair exec = join("n1-a", "exec?command=cat&stdin=1&stdout=1");
    struct pair log = join("n1-a", "log?follow=1");
    cr_expect(relay_peer_send(&log.node, "half a line", 11));
    converse(&exec, 1);
    reset(&exec.node);
    reset(&log.node);
    cr_expect_not(relay_peer_take(&exec.client, &byte, 1));
    str_reset(&body);
    cr_expect_not(relay_peer_rest(&log.client, true, &body),
                  "a log that is not whole does not look so");
    pair_close(&exec);
    pair_close(&log);
    /* and the clients */
    exec = join("n1-a", "exec?command=cat&stdin=1&stdout=1");
    log = join("n1-a", "log?follow=1");
    reset(&exec.client);
    relay_peer_close(&log.client);
    cr_expect_not(relay_peer_take(&exec.node, &byte, 1));
    cr_expect_not(relay_peer_take(&log.node, &byte, 1),
                  "though nothing was sent there");
    pair_close(&exec);
    pair_close(&log);
    relay_rig_until(&rig, 0);
    relay_rig_stop(&rig);
}

Test(relay_many, a_side_vanishes_plain)
{
    a_side_vanishes(false);
}

Test(relay_many, a_side_vanishes_tls)
{
    a_side_vanishes(true);
}

/* A client that has gone before its node came. */
static void a_client_goes_early(bool tls)
{
    char id[65], byte;
    struct relay_peer node;
    relay_rig_start(&rig, tls);
    for (int i = 0; i < 4; i++) {
        struct relay_peer client = relay_rig_ask(
            &rig, "n1-a", i % 2 ? "log" : "exec?command=a&stdout=1",
            i % 2 ? "" : RELAY_WS);
        while (!relay_rig_feed(&rig, "n1", 30, &body, id))
            ;
        if (i < 2)
            reset(&client);
        else
            relay_peer_close(&client);
        cr_assert_eq(relay_rig_come(&rig, "n1", id, &node), 101);
        cr_expect(relay_peer_send(&node, "{\"status\":200}\n", 15));
        while (relay_peer_take(&node, &byte, 1))
            ;
        relay_peer_close(&node);
    }
    relay_rig_until(&rig, 0);
    relay_rig_stop(&rig);
}

Test(relay_many, a_client_goes_early_plain)
{
    a_client_goes_early(false);
}

Test(relay_many, a_client_goes_early_tls)
{
    a_client_goes_early(true);
}

/* --- the extender stops ------------------------------------------------------- */

struct asking {
    pthread_t thread;
    struct relay_peer peer;
    int status;
};

static void *await_answer(void *asking)
{
    struct asking *a = asking;
    struct str text = STR_INIT(1 << 16);
    a->status = relay_peer_head(&a->peer, &text);
    str_fini(&text);
    return NULL;
}

/* In each of its states: a stream that is wanted, one whose node has come, one
 * that is joined, and a node that asks. */
static void the_server_stops(bool tls)
{
    char id[65], byte;
    struct relay_peer node;
    struct asking wanted, taken;
    relay_rig_start(&rig, tls);
    struct pair exec = join("n1-a", "exec?command=cat&stdin=1&stdout=1");
    struct pair log = join("n1-a", "log?follow=1");
    taken.peer = relay_rig_ask(&rig, "n1-a", "log", "");
    while (!relay_rig_feed(&rig, "n1", 30, &body, id))
        ;
    cr_assert_eq(relay_rig_come(&rig, "n1", id, &node), 101);
    wanted.peer = relay_rig_ask(&rig, "n1-a", "log", "");
    relay_rig_until(&rig, 4);
    cr_assert_eq(pthread_create(&wanted.thread, NULL, await_answer, &wanted),
                 0);
    cr_assert_eq(pthread_create(&taken.thread, NULL, await_answer, &taken), 0);
    relay_rig_stop(&rig);
    (void)pthread_join(wanted.thread, NULL);
    (void)pthread_join(taken.thread, NULL);
    cr_expect_eq(wanted.status, 503);
    cr_expect_eq(taken.status, 503);
    cr_expect_not(relay_peer_take(&exec.client, &byte, 1));
    cr_expect_not(relay_peer_take(&exec.node, &byte, 1));
    cr_expect_not(relay_peer_take(&log.node, &byte, 1));
    cr_expect_not(relay_peer_take(&node, &byte, 1));
    str_reset(&body);
    cr_expect_not(relay_peer_rest(&log.client, true, &body));
    pair_close(&exec);
    pair_close(&log);
    relay_peer_close(&node);
    relay_peer_close(&wanted.peer);
    relay_peer_close(&taken.peer);
}

Test(relay_many, the_server_stops_plain)
{
    the_server_stops(false);
}

Test(relay_many, the_server_stops_tls)
{
    the_server_stops(true);
}

/* --- caps ----------------------------------------------------------------------- */

Test(relay_many, has_caps)
{
    static struct relay_peer all[RELAY_CLIENT_MAX];
    const struct rlimit files = {4096, 4096};
    (void)setrlimit(RLIMIT_NOFILE, &files);
    relay_rig_start(&rig, false);
    for (unsigned i = 0; i < RELAY_CLIENT_MAX; i++)
        all[i] = relay_rig_ask(&rig, i % 2 ? "n1-a" : "n2-a", "log",
                               "X-Client: 7\r\n");
    relay_rig_until(&rig, RELAY_CLIENT_MAX);
    struct relay_peer more = relay_rig_ask(&rig, "n1-a", "log",
                                           "X-Client: 7\r\n");
    cr_expect_eq(relay_peer_head(&more, &head), 429);
    relay_peer_close(&more);
    more = relay_rig_ask(&rig, "n1-a", "log", "X-Client: 8\r\n");
    relay_rig_until(&rig, RELAY_CLIENT_MAX + 1);
    relay_peer_close(&more);
    relay_quiesce(rig.relay);
    for (unsigned i = 0; i < RELAY_CLIENT_MAX; i++) {
        cr_expect_eq(relay_peer_head(&all[i], &head), 503);
        relay_peer_close(&all[i]);
    }
    relay_rig_stop(&rig);
}
