#include "extender/relay/relay.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "extender/app/app_metrics.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/relayrig.h"

static struct relay_rig rig;
static struct str head = {.max = 1 << 16}, body = {.max = 64 << 20};

static int64_t count_of(enum relay_kind kind, const char *result)
{
    const char *labels[] = {relay_kind_name(kind), result};
    return metrics_get(rig.metrics, APP_STREAMS_TOTAL, labels);
}

static void finish(void)
{
    str_fini(&head);
    str_fini(&body);
}

TestSuite(relay, .fini = finish, .timeout = 300);

/* An answer that is none of a stream. */
static int refusal(struct relay_peer *p)
{
    int status = relay_peer_head(p, &head);
    const char *length = strstr(str_text(&head), "Content-Length: ");
    size_t size = length ? strtoul(length + 16, NULL, 10) : 0;
    str_reset(&body);
    for (char c; body.size < size && relay_peer_take(p, &c, 1);)
        str_add_c(&body, c);
    relay_peer_close(p);
    return status;
}

static int refused(const char *pod, const char *what, const char *headers)
{
    struct relay_peer p = relay_rig_ask(&rig, pod, what, headers);
    return refusal(&p);
}

/* --- what it carries ------------------------------------------------------ */

static void gives_logs(bool tls)
{
    struct relay_peer client, node;
    relay_rig_start(&rig, tls);
    client = relay_rig_ask(&rig, "n1-a", "log?container=c&follow=true", "");
    relay_rig_join(&rig, "n1", &node);
    cr_expect_eq(relay_peer_head(&client, &head), 200);
    cr_expect(strstr(head.data, "text/plain"), "%s", head.data);
    cr_expect(relay_peer_send(&node, "one\n", 4));
    cr_expect(relay_peer_send(&node, "two\n", 4));
    relay_peer_end(&node);
    str_reset(&body);
    cr_expect(relay_peer_rest(&client, true, &body), "it is whole");
    cr_expect_str_eq(body.data, "one\ntwo\n");
    relay_peer_close(&client);
    relay_rig_until(&rig, 0);
    cr_expect_eq(count_of(RELAY_LOG, "joined"), 1);
    relay_rig_stop(&rig);
}

Test(relay, gives_logs_plain)
{
    gives_logs(false);
}

Test(relay, gives_logs_tls)
{
    gives_logs(true);
}

static void carries_both_ways(bool tls)
{
    struct relay_peer client, node;
    char text[16];
    relay_rig_start(&rig, tls);
    client = relay_rig_ask(&rig, "n1-a", "exec?command=sh&stdin=true",
                           RELAY_WS);
    relay_rig_join(&rig, "n1", &node);
    cr_expect(relay_peer_send(&node, "first", 5));
    cr_expect_eq(relay_peer_head(&client, &head), 101);
    cr_expect(strstr(head.data, "\r\nUpgrade: websocket\r\n"), "%s", head.data);
    /* RFC 6455, 1.3 */
    cr_expect(strstr(head.data, "\r\nSec-WebSocket-Accept: "
                                "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"),
              "%s", head.data);
    cr_expect(strstr(head.data, "-Protocol: v5.channel.k8s.io\r\n"), "%s",
              head.data);
    cr_expect(relay_peer_take(&client, text, 5));
    cr_expect_eq(memcmp(text, "first", 5), 0);
    for (int i = 0; i < 10; i++) {
        cr_expect(relay_peer_send(&client, "to the node", 11));
        cr_expect(relay_peer_take(&node, text, 11));
        cr_expect_eq(memcmp(text, "to the node", 11), 0);
        cr_expect(relay_peer_send(&node, "to the client", 13));
        cr_expect(relay_peer_take(&client, text, 13));
    }
    relay_peer_close(&node);
    cr_expect_not(relay_peer_take(&client, text, 1), "it has ended");
    relay_peer_close(&client);
    relay_rig_until(&rig, 0);
    relay_rig_stop(&rig);
}

Test(relay, carries_both_ways_plain)
{
    carries_both_ways(false);
}

Test(relay, carries_both_ways_tls)
{
    carries_both_ways(true);
}

Test(relay, tells_all_that_was_asked)
{
    char id[65];
    relay_rig_start(&rig, false);
    struct relay_peer p = relay_rig_ask(
        &rig, "n1-a",
        "exec?command=sh&command=-c&command=echo%0A%22x&container=main&"
        "stdin=1&stdout=true&tty=true",
        RELAY_WS);
    while (!relay_rig_feed(&rig, "n1", 30, &body, id))
        ;
    cr_expect_eq(strlen(id), 32);
    cleanup_free char *all =
        xasprintf("{\"streams\":[{\"id\":\"%s\",\"kind\":\"exec\","
                  "\"command\":[\"sh\",\"-c\","
                  "\"echo\\n\\\"x\"],\"container\":\"main\",\"stdin\":true,"
                  "\"stdout\":true,\"stderr\":false,\"tty\":true,\"protocol\":"
                  "\"v5.channel.k8s.io\",\"namespace\":\"ns\","
                  "\"name\":\"n1-a\",\"uid\":\"u-1\"}]}\n",
                  id);
    cr_expect_str_eq(body.data, all);
    cr_expect_not(relay_rig_feed(&rig, "n1", 0, &body, id), "told once");
    cr_expect_str_eq(body.data, "{\"streams\":[]}\n");
    cr_expect_not(relay_rig_feed(&rig, "n2", 0, &body, id), "another's");
    relay_peer_close(&p);
    relay_rig_stop(&rig);
}

/* --- refusals ------------------------------------------------------------- */

Test(relay, refuses_what_cannot_be)
{
    static const struct {
        const char *what, *headers;
        int status;
        const char *text;
    } cases[] = {
        {"log?follow=maybe", "", 400, "follow: is \\\"maybe\\\", must be true"},
        {"log?tailLines=-1", "", 400, "tailLines: is \\\"-1\\\", must be"},
        {"log?tailLines=1x", "", 400, "tailLines"},
        {"log?limitBytes=0", "", 400, "from 1 to"},
        {"log?sinceTime=noon", "", 400, "RFC 3339"},
        {"log?sinceTime=2026-01-01T00:00:00Z&sinceSeconds=3", "", 400,
         "beside sinceSeconds"},
        {"log?container=A%20b", "", 400, "container"},
        {"log?lines=3", "", 400, "unknown query parameter \\\"lines\\\""},
        {"exec?stdout=true", RELAY_WS, 400, "command"},
        {"exec?command=a", RELAY_WS, 400, "at least one of them"},
        {"exec?command=%ff&stdout=1", RELAY_WS, 400, "UTF-8"},
        {"exec?command=a&tty=1&stderr=1", RELAY_WS, 400, "beside tty"},
        {"exec?command=a&stdout=1", "", 426, "Upgrade: websocket"},
        {"exec?command=a&stdout=1",
         "Connection: Upgrade\r\nUpgrade: websocket\r\n", 400,
         "Sec-WebSocket-Version"},
        {"attach?stdout=1",
         "Connection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short\r\n",
         400, "Sec-WebSocket-Key"},
        {"attach?stdout=1",
         "Connection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 13\r\n"
         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
         "Sec-WebSocket-Protocol: chat, v4.channel.k8s.iox\r\n",
         400, "must name \\\"v5.channel.k8s.io\\\" or"},
        {"portforward?ports=0", RELAY_WS, 400, "ports"},
        {"portforward?ports=1,65536", RELAY_WS, 400, "ports"},
        {"portforward?ports=1,", RELAY_WS, 400, "ports"},
        {"portforward", RELAY_WS, 400, "ports"},
        {"portforward?ports=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
         RELAY_WS, 400, "1 to 16 numbers"},
        {"portforward?ports=80", RELAY_WS "Origin: http://x\r\n", 403,
         "pages of http://x"},
    };
    relay_rig_start(&rig, false);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cr_expect_eq(refused("n1-a", cases[i].what, cases[i].headers),
                     cases[i].status, "%zu: %s", i, str_text(&head));
        cr_expect(strstr(str_text(&body), cases[i].text), "%zu: %s", i,
                  str_text(&body));
    }
    relay_rig_stop(&rig);
}

Test(relay, passes_on_why_a_node_refuses)
{
    static const struct {
        const char *line;
        int status;
        const char *text;
    } cases[] = {
        {"{\"status\":404,\"error\":\"no container \\\"x\\\"\"}\n", 404,
         "node n1: no container \\\"x\\\""},
        {"{\"status\":503}\n", 503, "it says no more"},
        {"{\"status\":302}\n", 502, "must be 200 or 400 to 599"},
        {"{\"status\":\"200\"}\n", 502, "its first line: status"},
        {"hello\n", 502, "its first line"},
        {"", 502, "went without a word"},
    };
    relay_rig_start(&rig, false);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct relay_peer p = relay_rig_ask(&rig, "n1-a", "log", ""), node;
        char id[65];
        while (!relay_rig_feed(&rig, "n1", 30, &body, id))
            ;
        cr_assert_eq(relay_rig_come(&rig, "n1", id, &node), 101);
        cr_expect(relay_peer_send(&node, cases[i].line, strlen(cases[i].line)));
        if (!*cases[i].line)
            relay_peer_close(&node);
        cr_expect_eq(refusal(&p), cases[i].status, "%zu", i);
        cr_expect(strstr(str_text(&body), cases[i].text), "%zu: %s", i,
                  str_text(&body));
        relay_peer_close(&node);
    }
    cleanup_free char *endless = xmalloc(1 << 16);
    struct relay_peer p = relay_rig_ask(&rig, "n1-a", "log", ""), node;
    char id[65];
    memset(endless, ' ', 1 << 16);
    while (!relay_rig_feed(&rig, "n1", 30, &body, id))
        ;
    cr_assert_eq(relay_rig_come(&rig, "n1", id, &node), 101);
    (void)relay_peer_send(&node, endless, 1 << 16);
    cr_expect_eq(refusal(&p), 502);
    cr_expect(strstr(body.data, "too long"), "%s", body.data);
    relay_peer_close(&node);
    relay_rig_until(&rig, 0);
    relay_rig_stop(&rig);
}

Test(relay, gives_a_stream_to_its_node_alone_and_once)
{
    char id[65];
    relay_rig_start(&rig, false);
    struct relay_peer client = relay_rig_ask(&rig, "n1-a", "log", ""), node, x;
    while (!relay_rig_feed(&rig, "n1", 30, &body, id))
        ;
    cr_expect_eq(relay_rig_come(&rig, "n2", id, &x), 404);
    relay_peer_close(&x);
    cr_expect_eq(relay_rig_come(&rig, "n1", "0123", &x), 404);
    relay_peer_close(&x);
    cr_expect_eq(relay_rig_come(&rig, "n1", id, &node), 101);
    cr_expect_eq(relay_rig_come(&rig, "n1", id, &x), 409);
    relay_peer_close(&x);
    cr_expect(relay_peer_send(&node, "{\"status\":200}\nx", 16));
    cr_expect_eq(relay_peer_head(&client, &head), 200);
    relay_peer_close(&node);
    str_reset(&body);
    cr_expect(relay_peer_rest(&client, true, &body));
    cr_expect_str_eq(body.data, "x", "what came with the line");
    relay_peer_close(&client);
    relay_rig_stop(&rig);
}
