/* What is late, in virtual time: the timer and the deadlines of both listeners
 * are the threads that wait for it. */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "extender/app/app_metrics.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/sim/relayrig.h"
#include "tests/lib/virtual.h"

enum { WAITING = 3 };

static struct relay_rig rig;
static struct str head = {.max = 1 << 16}, body = {.max = 1 << 20};

static void start(void)
{
    virtual_begin();
    relay_rig_start(&rig, false);
}

static void stop(void)
{
    virtual_end();
    relay_rig_stop(&rig);
    str_fini(&head);
    str_fini(&body);
}

TestSuite(relay_time, .init = start, .fini = stop, .timeout = 300);

static void pass(int64_t ms)
{
    for (int64_t end = clock_ms() + ms; clock_ms() < end;)
        virtual_step(WAITING, end - clock_ms());
}

/* Until something comes there, or it ends; what the carrier has taken up is
 * seen by that alone. */
static void pass_until(const struct relay_peer *peer)
{
    struct pollfd p = {.fd = peer->fd, .events = POLLIN};
    while (poll(&p, 1, 1) == 0)
        pass(1000);
}

/* The answer to a client's request, which is none of a stream. */
static void expect_refusal(struct relay_peer *p, int status, const char *text)
{
    cr_expect_eq(relay_peer_head(p, &head), status, "%s", str_text(&head));
    const char *length = strstr(str_text(&head), "Content-Length: ");
    size_t size = length ? strtoul(length + 16, NULL, 10) : 0;
    str_reset(&body);
    for (char c; body.size < size && relay_peer_take(p, &c, 1);)
        str_add_c(&body, c);
    cr_expect(strstr(str_text(&body), text), "%s", str_text(&body));
    relay_peer_close(p);
}

static void expect_refused(int status, const char *text)
{
    struct relay_peer p = relay_rig_ask(&rig, "n1-a", "log", "");
    expect_refusal(&p, status, text);
}

/* One that its node was told of. */
static struct relay_peer told(char ret_id[65])
{
    struct relay_peer p = relay_rig_ask(&rig, "n1-a", "log", "");
    relay_rig_until(&rig, 1);
    cr_assert(relay_rig_feed(&rig, "n1", 0, &body, ret_id));
    return p;
}

Test(relay_time, waits_for_a_node_as_long_as_it_says)
{
    char id[65];
    struct relay_peer p = relay_rig_ask(&rig, "n1-a", "log", ""), node;
    relay_rig_until(&rig, 1);
    pass(RELAY_COME_MS);
    expect_refusal(&p, 504, "node n1 did not ask within 10 s");
    p = told(id);
    pass(RELAY_COME_MS);
    expect_refusal(&p, 504, "node n1 was told, and did not come within 10 s");
    cr_expect_eq(relay_rig_come(&rig, "n1", id, &node), 404);
    relay_peer_close(&node);
}

Test(relay_time, says_at_once_that_a_node_is_away)
{
    char id[65];
    pass(RELAY_START_MS + 1);
    expect_refused(503, "it has not asked for streams");
    cr_expect_not(relay_rig_feed(&rig, "n1", 0, &body, id));
    pass(RELAY_AWAY_MS);
    struct relay_peer p = told(id); /* it may be about to ask */
    pass(RELAY_AWAY_MS + 1);
    expect_refused(503, "node n1 is away since 20");
    cr_expect(strstr(body.data, "it asks for streams no more"), "%s",
              body.data);
    relay_peer_close(&p);
    rig.silent_since_ms = clock_ms();
    cr_expect_not(relay_rig_feed(&rig, "n1", 0, &body, id));
    expect_refused(503, "node n1 is away since 20");
    rig.silent_since_ms = -1;
    const char *labels[] = {"log", "away"};
    cr_expect_eq(metrics_get(rig.metrics, APP_STREAMS_TOTAL, labels), 3);
    pass(RELAY_COME_MS);
}

Test(relay_time, waits_for_the_first_line)
{
    char id[65], byte;
    struct relay_peer p = told(id), node;
    cr_assert_eq(relay_rig_come(&rig, "n1", id, &node), 101);
    cr_expect(relay_peer_send(&node, "{\"status\"", 9));
    int64_t since = clock_ms();
    pass_until(&p);
    cr_expect_geq(clock_ms() - since, RELAY_COME_MS);
    expect_refusal(&p, 504, "node n1: it came, and does not say more");
    cr_expect_not(relay_peer_take(&node, &byte, 1));
    relay_peer_close(&node);
}

struct question {
    pthread_t thread;
    struct str body;
    bool told;
};

static void *ask_feed(void *question)
{
    struct question *q = question;
    char id[65];
    q->told = relay_rig_feed(&rig, "n1", 30, &q->body, id);
    return NULL;
}

Test(relay_time, answers_a_question_that_waits)
{
    struct question first = {.body = STR_INIT(1 << 20)}, second = first;
    cr_assert_eq(pthread_create(&first.thread, NULL, ask_feed, &first), 0);
    while (httpd_held(rig.publish).n_requests < 1)
        (void)poll(NULL, 0, 1);
    /* another one takes its place */
    cr_assert_eq(pthread_create(&second.thread, NULL, ask_feed, &second), 0);
    (void)pthread_join(first.thread, NULL);
    cr_expect_not(first.told);
    cr_expect_str_eq(first.body.data, "{\"streams\":[]}\n");
    while (httpd_held(rig.publish).n_requests != 1)
        (void)poll(NULL, 0, 1);
    pass(RELAY_FEED_MAX_S * 1000);
    (void)pthread_join(second.thread, NULL);
    cr_expect_not(second.told);
    cr_assert_eq(pthread_create(&first.thread, NULL, ask_feed, &first), 0);
    while (httpd_held(rig.publish).n_requests != 1)
        (void)poll(NULL, 0, 1);
    struct relay_peer p = relay_rig_ask(&rig, "n1-a", "log", "");
    (void)pthread_join(first.thread, NULL);
    cr_expect(first.told, "at once");
    pass(RELAY_COME_MS);
    expect_refusal(&p, 504, "was told");
    str_fini(&first.body);
    str_fini(&second.body);
}

/* The node hangs up while its question waits: it is away, since then. */
Test(relay_time, notices_a_node_that_hangs_up)
{
    struct relay_peer node = {.fd = raw_connect(httpd_port(rig.publish))};
    struct raw_reply reply = {0};
    cr_assert(raw_send(node.fd, "GET /v1/nodes/n1/streams?wait=30 HTTP/1.1\r\n"
                                "Host: x\r\n\r\n"));
    while (httpd_held(rig.publish).n_requests != 1)
        (void)poll(NULL, 0, 1);
    pass(RELAY_AWAY_MS + 1000);
    struct relay_peer p = relay_rig_ask(&rig, "n1-a", "log", "");
    cr_expect_eq(raw_read(node.fd, false, &reply), 200);
    cr_assert(raw_send(node.fd, "GET /v1/nodes/n1/streams?wait=30 HTTP/1.1\r\n"
                                "Host: x\r\n\r\n"));
    while (httpd_held(rig.publish).n_requests != 1)
        (void)poll(NULL, 0, 1);
    pass(RELAY_COME_MS);
    expect_refusal(&p, 504, "was told");
    relay_peer_close(&node);
    expect_refused(503, "node n1 is away since 20");
    raw_reply_fini(&reply);
}

/* The client says that it sends no more: the node has some time to end, too. */
Test(relay_time, ends_what_only_one_side_ends)
{
    char byte;
    struct relay_peer client = relay_rig_ask(
                          &rig, "n1-a", "exec?command=a&stdin=1", RELAY_WS),
                      node;
    relay_rig_join(&rig, "n1", &node);
    cr_assert_eq(relay_peer_head(&client, &head), 101);
    cr_expect_eq(shutdown(client.fd, SHUT_WR), 0);
    cr_expect_not(relay_peer_take(&node, &byte, 1), "it is told");
    cr_expect(relay_peer_send(&node, "x", 1));
    cr_expect(relay_peer_take(&client, &byte, 1), "and may still speak");
    int64_t since = clock_ms();
    pass_until(&client);
    cr_expect_geq(clock_ms() - since, RELAY_LINGER_MS);
    cr_expect_not(relay_peer_take(&client, &byte, 1));
    relay_rig_until(&rig, 0);
    relay_peer_close(&client);
    relay_peer_close(&node);
}
