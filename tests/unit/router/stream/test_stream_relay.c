#include "router/stream/stream_relay.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "router/stream/stream_token.h"
#include "tests/lib/http/streamrig.h"

enum { MIB = 1 << 20, MANY = 100 };

static struct stream_rig rig;
static struct raw_reply reply;

static void set_up(void)
{
    log_set_level((enum log_level)(LOG_ERROR + 1));
    stream_rig_start(&rig, &stream_rig_patient);
}

static void tear_down(void)
{
    stream_rig_stop(&rig);
    raw_reply_fini(&reply);
}

TestSuite(stream_relay, .init = set_up, .fini = tear_down, .timeout = 600);

static void expect_echo(int fd, const char *text)
{
    char back[64] = "";
    cr_assert(raw_send(fd, text));
    cr_assert(stream_rig_read(fd, back, strlen(text)));
    cr_expect_str_eq(back, text);
}

static void expect_refused(int status, const char *word)
{
    cr_expect_eq(reply.status, status, "%d: %s", reply.status,
                 str_text(&reply.body));
    cr_expect(strstr(str_text(&reply.body), word), "%s", str_text(&reply.body));
}

/* --- what passes ------------------------------------------------------------------ */

static void both_protocols(bool tls)
{
    static const char *const fields[] = {RIG_SPDY, RIG_WS};
    static const char *const words[] = {"SPDY/3.1", "websocket"};
    cleanup_str struct str head = STR_INIT(1 << 16), rest = STR_INIT(1 << 10);
    char value[64];
    stream_rig_serve(&rig, tls, SERVES_ECHO, NULL, NULL);
    for (unsigned i = 0; i < 2; i++) {
        int fd = stream_rig_client(&rig, fields[i], &reply);
        cr_assert_eq(reply.status, 101, "%s", str_text(&reply.body));
        cr_expect_str_eq(raw_header(&reply, "Upgrade", value, sizeof value),
                         words[i]);
        stream_server_head(rig.server, &head);
        cr_expect(strncmp(head.data, "POST /exec/x HTTP/1.1\r\n", 23) == 0);
        cr_expect_null(strstr(head.data, "node:10250"));
        expect_echo(fd, "one");
        expect_echo(fd, "two");
        (void)shutdown(fd, SHUT_WR);
        str_reset(&rest);
        stream_rig_read_all(fd, &rest);
        cr_expect_str_eq(str_text(&rest), "end");
        (void)close(fd);
        stream_server_ended(rig.server, i + 1);
    }
}

Test(stream_relay, spdy_and_websocket_plain)
{
    both_protocols(false);
}

Test(stream_relay, spdy_and_websocket_over_tls)
{
    both_protocols(true);
}

/* All goes there before its end, and comes back after it. */
static void mib_each_way(bool tls)
{
    cleanup_free unsigned char *sent = xmalloc(MIB);
    cleanup_str struct str got = STR_INIT(2 * MIB);
    stream_rig_serve(&rig, tls, SERVES_SWAP, NULL, NULL);
    for (size_t i = 0; i < MIB; i++)
        sent[i] = (unsigned char)(i * 31 + i / 256);
    int fd = stream_rig_client(&rig, RIG_SPDY, &reply);
    cr_assert_eq(reply.status, 101, "%s", str_text(&reply.body));
    cr_assert(raw_send_n(fd, sent, MIB));
    (void)shutdown(fd, SHUT_WR);
    stream_rig_read_all(fd, &got);
    cr_assert_eq(got.size, MIB);
    for (size_t i = 0; i < MIB; i++)
        cr_assert_eq((unsigned char)got.data[i], (unsigned char)~sent[i]);
    (void)close(fd);
    stream_server_ended(rig.server, 1);
}

Test(stream_relay, a_mib_each_way_plain)
{
    mib_each_way(false);
}

Test(stream_relay, a_mib_each_way_over_tls)
{
    mib_each_way(true);
}

/* What a client sends before it was answered waits for the answer. */
Test(stream_relay, early_bytes)
{
    char url[STREAM_OWN_URL_MAX], back[8] = "";
    stream_rig_serve(&rig, false, SERVES_ECHO, NULL, NULL);
    stream_rig_url(&rig, url);
    cleanup_free char *text = xasprintf(
        "GET %s HTTP/1.1\r\nHost: h\r\n" RIG_WS "\r\nearly", strrchr(url, '/'));
    int fd = raw_connect(stream_rig_port(url));
    cr_assert(raw_send(fd, text));
    cr_assert_eq(raw_read(fd, true, &reply), 101);
    cr_assert(stream_rig_read(fd, back, 5));
    cr_expect_str_eq(back, "early");
    (void)close(fd);
}

static bool has_many(const struct stream_relay_state *state)
{
    return state->streams == MANY;
}

static bool has_none(const struct stream_relay_state *state)
{
    return state->streams == 0 && state->heads == 0 && state->tickets == 0;
}

static void many_at_once(bool tls)
{
    static char urls[MANY][STREAM_OWN_URL_MAX];
    int fds[MANY];
    stream_rig_serve(&rig, tls, SERVES_ECHO, NULL, NULL);
    for (int i = 0; i < MANY; i++)
        stream_rig_url(&rig, urls[i]);
    for (int i = 0; i < MANY; i++)
        fds[i] = stream_rig_ask(urls[i], i % 2 ? RIG_SPDY : RIG_WS);
    for (int i = 0; i < MANY; i++)
        cr_assert_eq(raw_read(fds[i], true, &reply), 101);
    stream_rig_until(&rig, has_many);
    for (int i = 0; i < MANY; i++) {
        cleanup_free char *text = xasprintf("stream %d", i);
        expect_echo(fds[MANY - 1 - i], text);
    }
    for (int i = 0; i < MANY; i++)
        (void)close(fds[i]);
    stream_server_ended(rig.server, MANY);
    stream_rig_until(&rig, has_none);
}

Test(stream_relay, many_at_once_plain)
{
    many_at_once(false);
}

Test(stream_relay, many_at_once_over_tls)
{
    many_at_once(true);
}

/* --- either side goes ---------------------------------------------------------------- */

Test(stream_relay, remote_goes_away)
{
    for (int tls = 0; tls < 2; tls++) {
        stream_rig_serve(&rig, tls, SERVES_RESET,
                         "HTTP/1.1 101 x\r\nConnection: Upgrade\r\n"
                         "Upgrade: SPDY/3.1\r\n\r\nlast words",
                         NULL);
        cleanup_str struct str got = STR_INIT(1 << 10);
        int fd = stream_rig_client(&rig, RIG_SPDY, &reply);
        cr_assert_eq(reply.status, 101);
        cr_assert(raw_send(fd, "x"));
        stream_rig_read_all(fd, &got);
        cr_expect_str_eq(str_text(&got), "last words");
        (void)close(fd);
        stream_rig_until(&rig, has_none);
        stream_server_stop(rig.server);
        rig.server = NULL;
    }
}

Test(stream_relay, client_goes_away)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    stream_rig_serve(&rig, true, SERVES_ECHO, NULL, NULL);
    for (unsigned i = 0; i < 2; i++) {
        int fd = stream_rig_client(&rig, RIG_SPDY, &reply);
        expect_echo(fd, "hello");
        if (i == 1) /* without a word */
            (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once,
                             sizeof at_once);
        (void)close(fd);
        stream_server_ended(rig.server, i + 1);
    }
    stream_rig_until(&rig, has_none);
}

Test(stream_relay, client_goes_away_before_the_answer)
{
    char url[STREAM_OWN_URL_MAX];
    stream_rig_serve(&rig, false, SERVES_ANSWER, "", NULL);
    stream_rig_url(&rig, url);
    int fd = stream_rig_ask(url, RIG_SPDY);
    stream_server_asked(rig.server, 1);
    (void)close(fd);
    stream_server_ended(rig.server, 1);
    stream_rig_until(&rig, has_none);
}

/* --- tickets ----------------------------------------------------------------------------- */

Test(stream_relay, ticket_is_good_once)
{
    char url[STREAM_OWN_URL_MAX];
    stream_rig_serve(&rig, false, SERVES_ECHO, NULL, NULL);
    stream_rig_url(&rig, url);
    int first = stream_rig_ask(url, RIG_SPDY);
    cr_assert_eq(raw_read(first, true, &reply), 101);
    int second = stream_rig_ask(url, RIG_SPDY);
    (void)raw_read(second, false, &reply);
    expect_refused(404, "once");
    cr_expect(raw_closed_within(second, RAW_PATIENCE_MS));
    expect_echo(first, "still there");
    (void)close(first);
    (void)close(second);
}

Test(stream_relay, wrong_ticket)
{
    char url[STREAM_OWN_URL_MAX];
    stream_rig_serve(&rig, false, SERVES_ECHO, NULL, NULL);
    stream_rig_url(&rig, url);
    char *last = url + strlen(url) - 1;
    *last = *last == '0' ? '1' : '0';
    int fd = stream_rig_ask(url, RIG_SPDY);
    (void)raw_read(fd, false, &reply);
    expect_refused(404, "no such stream");
    (void)close(fd);
    struct stream_relay_state state;
    stream_relay_state(rig.relay, &state);
    cr_expect_eq(state.tickets, 1, "the right one is good as before");
}

/* --- what is refused at once ---------------------------------------------------------- */

static void expect_open(int code, const char *word)
{
    char url[STREAM_OWN_URL_MAX] = "unchanged";
    struct error err = {0};
    cr_expect_eq(stream_relay_open(rig.relay, &rig.open, url, &err), code, "%s",
                 err.text);
    cr_expect(strstr(err.text, word), "%s", err.text);
    cr_expect_str_eq(url, "unchanged");
}

Test(stream_relay, wrong_host_in_the_url)
{
    rig.open.url = "http://10.0.0.3:80/exec/x";
    rig.open.host = "10.0.0.2";
    expect_open(-EHOSTUNREACH, "10.0.0.3");
    rig.open.url = "http://127.0.0.1:80/exec/x";
    expect_open(-EHOSTUNREACH, "stream_server_address");
    rig.open.url = "gopher://10.0.0.2/x";
    expect_open(-EINVAL, "gopher");
    rig.open.url = "http://10.0.0.2/x\r\nX: y";
    expect_open(-EINVAL, "printable");
}

Test(stream_relay, cleartext_needs_a_plain_endpoint)
{
    rig.open.url = "http://127.0.0.1:80/exec/x";
    rig.open.plaintext = false;
    expect_open(-EKEYREJECTED, "enable_tls_streaming");
    rig.open.url = "https://127.0.0.1:443/exec/x";
    expect_open(-EKEYREJECTED, "authority");
}

Test(stream_relay, files_that_are_not_there)
{
    rig.open.url = "https://127.0.0.1:443/exec/x";
    rig.open.ca = "/nowhere/ca.crt";
    expect_open(-EKEYREJECTED, "/nowhere/ca.crt");
    rig.open.ca = rig.ca;
    rig.open.cert = rig.my_cert;
    rig.open.key = "/nowhere/key";
    expect_open(-EKEYREJECTED, "/nowhere/key");
    rig.open.key = rig.ca;
    expect_open(-EKEYREJECTED, rig.my_cert);
    rig.open.ca = rig.my_key;
    expect_open(-EKEYREJECTED, "certificate");
}

Test(stream_relay, names_are_checked)
{
    cleanup_free char *name = xcalloc(1, STREAM_NAME_MAX + 2);
    rig.open.url = "http://127.0.0.1:80/exec/x";
    rig.open.container = "";
    expect_open(-EINVAL, "container");
    memset(name, 'x', STREAM_NAME_MAX + 1);
    rig.open.container = "c1";
    rig.open.remote = name;
    expect_open(-EINVAL, "remote");
}

Test(stream_relay, tickets_have_a_cap)
{
    char url[STREAM_OWN_URL_MAX];
    rig.open.url = "http://127.0.0.1:80/exec/x";
    for (int i = 0; i < STREAM_TOKENS_MAX; i++)
        stream_rig_url(&rig, url);
    expect_open(-ENOSPC, "1024");
}

Test(stream_relay, more_streams_than_possible)
{
    const struct stream_relay_config config = {
        .streams_max = STREAM_RELAY_MOST + 1};
    struct stream_relay *relay = NULL;
    struct error err = {0};
    cr_expect_eq(stream_relay_start(&config, &relay, &err), -EINVAL);
    cr_expect_null(relay);
}
