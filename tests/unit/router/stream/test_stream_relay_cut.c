/* Streams that are ended by others, and what their clients are told. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "tests/lib/http/streamrig.h"

#define SPDY_REPLY "\x80\x03\0\2\0\0\0\4\0\0\0\1"
#define AWAY "card-0000-17-00 does not answer"

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

TestSuite(stream_relay_cut, .init = set_up, .fini = tear_down, .timeout = 600);

static int join(const char *remote, const char *container, const char *fields)
{
    rig.open.remote = remote;
    rig.open.container = container;
    int fd = stream_rig_client(&rig, fields, &reply);
    cr_assert_eq(reply.status, 101, "%s", str_text(&reply.body));
    return fd;
}

/* The frames come from the remote, which echoes them. */
static void exchange(int fd, const char *frames, size_t size)
{
    char back[64];
    cr_assert(raw_send_n(fd, frames, size));
    cr_assert(stream_rig_read(fd, back, size));
    cr_assert_eq(memcmp(frames, back, size), 0);
}

static bool has(const struct str *got, const char *text, size_t size)
{
    return got->size >= size && memmem(got->data, got->size, text, size);
}

static void expect_spdy(int fd, const char *why)
{
    cleanup_str struct str got = STR_INIT(1 << 16);
    stream_rig_read_all(fd, &got);
    cr_expect(has(&got, "\0\0\0\1\1", 5), "no data on the error stream");
    cr_expect(has(&got, why, strlen(why)));
    cr_expect(has(&got, "\x80\x03\0\7\0\0\0\x8", 8), "no GOAWAY");
    (void)close(fd);
}

static void expect_websocket(int fd, const char *why)
{
    cleanup_str struct str got = STR_INIT(1 << 16), end = STR_INIT(256);
    stream_rig_read_all(fd, &got);
    cr_expect(has(&got, "\"status\":\"Failure\"", 18));
    str_add_c(&end, (char)0x88);
    str_add_c(&end, (char)(strlen(why) + 2));
    str_add_n(&end, "\x03\xe9", 2);
    str_add(&end, why);
    cr_expect(has(&got, end.data, end.size), "no close frame");
    (void)close(fd);
}

static bool has_one(const struct stream_relay_state *state)
{
    return state->streams == 1;
}

static void one_remote_of_two(bool tls)
{
    char url[STREAM_OWN_URL_MAX];
    struct stream_relay_state state;
    stream_rig_serve(&rig, tls, SERVES_ECHO, NULL, NULL);
    int a = join("card-a", "c1", RIG_SPDY), b = join("card-a", "c2", RIG_WS);
    int c = join("card-b", "c3", RIG_WS);
    exchange(a, SPDY_REPLY, sizeof SPDY_REPLY - 1);
    exchange(b, "\x82\x01x", 3);
    rig.open.remote = "card-a";
    stream_rig_url(&rig, url);
    stream_relay_cut_remote(rig.relay, "card-a", AWAY);
    expect_spdy(a, AWAY);
    expect_websocket(b, AWAY);
    stream_server_ended(rig.server, 2);
    stream_rig_until(&rig, has_one);
    exchange(c, "\x82\x01y", 3);
    stream_relay_state(rig.relay, &state);
    cr_expect_eq(state.tickets, 0, "what was announced is good no more");
    cr_expect_eq(state.cut, 2);
    cr_expect_eq(state.opened, 3);
    int again = join("card-a", "c1", RIG_SPDY);
    (void)close(again);
    (void)close(c);
}

Test(stream_relay_cut, one_remote_of_two_plain)
{
    one_remote_of_two(false);
}

Test(stream_relay_cut, one_remote_of_two_over_tls)
{
    one_remote_of_two(true);
}

Test(stream_relay_cut, one_container_of_two)
{
    stream_rig_serve(&rig, false, SERVES_ECHO, NULL, NULL);
    int a = join("card-a", "c1", RIG_WS), b = join("card-a", "c2", RIG_WS);
    stream_relay_cut_container(rig.relay, "c1", "container c1 is removed");
    stream_relay_cut_container(rig.relay, "c1", "container c1 is removed");
    expect_websocket(a, "container c1 is removed");
    exchange(b, "\x82\x01y", 3);
    (void)close(b);
}

/* In the middle of a frame nothing can be said that would be understood. */
Test(stream_relay_cut, within_a_frame)
{
    cleanup_str struct str got = STR_INIT(1 << 16);
    stream_rig_serve(&rig, false, SERVES_ECHO, NULL, NULL);
    int fd = join("card-a", "c1", RIG_WS);
    exchange(fd,
             "\x82\x05"
             "ab",
             4);
    stream_relay_cut_remote(rig.relay, "card-a", AWAY);
    stream_rig_read_all(fd, &got);
    cr_expect_eq(got.size, 0);
    (void)close(fd);
}

Test(stream_relay_cut, before_the_answer)
{
    char url[STREAM_OWN_URL_MAX];
    stream_rig_serve(&rig, false, SERVES_ANSWER, "", NULL);
    stream_rig_url(&rig, url);
    int fd = stream_rig_ask(url, RIG_SPDY);
    stream_server_asked(rig.server, 1);
    stream_relay_cut_remote(rig.relay, rig.open.remote, AWAY);
    cr_expect_eq(raw_read(fd, false, &reply), 503);
    cr_expect(strstr(str_text(&reply.body), AWAY));
    (void)close(fd);
    stream_server_ended(rig.server, 1);
}

/* A runtime that is killed ends its streams without a word of its own. */
Test(stream_relay_cut, remote_ends_in_the_middle)
{
    static const enum stream_server_manner manners[] = {SERVES_CLOSE,
                                                        SERVES_RESET};
    for (size_t i = 0; i < ARRAY_LEN(manners); i++) {
        stream_rig_serve(&rig, i == 1, manners[i],
                         "HTTP/1.1 101 x\r\nConnection: Upgrade\r\n"
                         "Upgrade: websocket\r\n"
                         "Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n"
                         "\r\n\x82\x02\x01x",
                         NULL);
        int fd = join("card-a", "c1", RIG_WS);
        cr_assert(manners[i] == SERVES_CLOSE || raw_send(fd, "x"));
        expect_websocket(fd, "card-a ended the stream, not the program there");
        stream_server_stop(rig.server);
        rig.server = NULL;
    }
}

Test(stream_relay_cut, stop_tells_all)
{
    static const struct stream_relay_config config;
    char url[STREAM_OWN_URL_MAX];
    struct error err = {0};
    stream_rig_serve(&rig, true, SERVES_ECHO, NULL, NULL);
    int a = join("card-a", "c1", RIG_SPDY), b = join("card-b", "c2", RIG_WS);
    exchange(a, SPDY_REPLY, sizeof SPDY_REPLY - 1);
    stream_rig_url(&rig, url);
    stream_relay_stop(rig.relay);
    expect_spdy(a, "biga-cri is stopping");
    expect_websocket(b, "biga-cri is stopping");
    stream_server_ended(rig.server, 2);
    cr_assert_eq(stream_relay_start(&config, &rig.relay, &err), 0);
}

/* A client that reads nothing cannot keep it. */
Test(stream_relay_cut, stop_does_not_wait_for_a_reader)
{
    static const struct stream_relay_config config;
    struct error err = {0};
    cleanup_free char *bytes = xcalloc(1, 1 << 20);
    stream_rig_serve(&rig, false, SERVES_SWAP, NULL, NULL);
    int fd = join("card-a", "c1", RIG_SPDY);
    for (int i = 0; i < 32; i++)
        cr_assert(raw_send_n(fd, bytes, 1 << 20));
    (void)shutdown(fd, SHUT_WR);
    stream_relay_stop(rig.relay);
    (void)close(fd);
    cr_assert_eq(stream_relay_start(&config, &rig.relay, &err), 0);
}

Test(stream_relay_cut, files_are_counted)
{
    const struct stream_relay_config config = {.streams_max = 100};
    cr_expect_geq(stream_relay_files(&config), 2 * 100 + STREAM_HEADS_MAX);
    cr_expect_leq(stream_relay_files(&config), 300);
}
