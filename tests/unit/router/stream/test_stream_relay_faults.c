/* What goes wrong on either side of a relay, and what its client hears. */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/stream/stream_head.h"
#include "tests/lib/http/streamrig.h"

static struct stream_rig rig;
static struct raw_reply reply;
static int64_t now;

static void set_up(void)
{
    log_set_level((enum log_level)(LOG_ERROR + 1));
    stream_rig_start(&rig, NULL);
}

static void tear_down(void)
{
    stream_rig_stop(&rig);
    raw_reply_fini(&reply);
    clock_set_fake(-1);
}

TestSuite(stream_relay_faults, .init = set_up, .fini = tear_down,
          .timeout = 600);

static void expect_refused(int status, const char *word)
{
    cr_expect_eq(reply.status, status, "%d: %s", reply.status,
                 str_text(&reply.body));
    cr_expect(strstr(str_text(&reply.body), word), "%s", str_text(&reply.body));
}

/* A URL of ours for a stream that nobody serves. */
static void nowhere(char url[STREAM_OWN_URL_MAX])
{
    struct stream_rig other = rig;
    other.open.url = "http://127.0.0.1:9/x";
    other.open.plaintext = true;
    stream_rig_url(&other, url);
}

/* Time goes on by this alone, and the relay looks at it for the new URL. */
static void pass_ms(int64_t ms)
{
    char url[STREAM_OWN_URL_MAX];
    clock_set_fake(now += ms);
    nowhere(url);
}

static uint16_t port(void)
{
    char url[STREAM_OWN_URL_MAX];
    nowhere(url);
    return stream_rig_port(url);
}

/* --- the client's head ------------------------------------------------------------- */

static void send_head(const char *text)
{
    int fd = raw_connect(port());
    cr_assert(raw_send(fd, text));
    (void)raw_read(fd, false, &reply);
    cr_expect(raw_closed_within(fd, RAW_PATIENCE_MS));
    (void)close(fd);
}

Test(stream_relay_faults, heads_that_are_none)
{
    send_head("hello\r\n\r\n");
    expect_refused(400, "HTTP/1.1");
    send_head("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    expect_refused(426, "SPDY/3.1");
    send_head("PUT /x HTTP/1.1\r\nHost: h\r\n" RIG_SPDY "\r\n");
    expect_refused(405, "POST");
    send_head("GET /x HTTP/1.1\r\nHost: h\r\n" RIG_SPDY
              "Content-Length: 3\r\n\r\nabc");
    expect_refused(413, "body");
}

Test(stream_relay_faults, oversized_head)
{
    cleanup_str struct str text = STR_INIT(1 << 20);
    str_add(&text, "GET /x HTTP/1.1\r\nHost: h\r\nA: ");
    while (text.size < 2 * STREAM_HEAD_MAX)
        str_add(&text, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    send_head(text.data);
    expect_refused(431, "16384");
    str_reset(&text);
    str_add(&text, "GET /x HTTP/1.1\r\nHost: h\r\n");
    for (int i = 0; i < STREAM_FIELDS_MAX; i++)
        str_add(&text, "A: b\r\n");
    str_add(&text, "\r\n");
    send_head(text.data);
    expect_refused(431, "fields");
}

static bool has_head(const struct stream_relay_state *state)
{
    return state->heads == 1;
}

static bool has_heads(const struct stream_relay_state *state)
{
    return state->heads == STREAM_HEADS_MAX;
}

static bool has_stream(const struct stream_relay_state *state)
{
    return state->streams == 1;
}

static bool has_none(const struct stream_relay_state *state)
{
    return state->streams == 0 && state->heads == 0;
}

Test(stream_relay_faults, slow_head)
{
    clock_set_fake(now = 1000);
    int fd = raw_connect(port());
    cr_assert(raw_send(fd, "GET /x HTT"));
    stream_rig_until(&rig, has_head);
    pass_ms(STREAM_HEAD_MS - 1);
    cr_assert(raw_send(fd, "P/1.1\r\n"));
    pass_ms(1);
    (void)raw_read(fd, false, &reply);
    expect_refused(408, "in time");
    cr_expect(raw_closed_within(fd, RAW_PATIENCE_MS));
    (void)close(fd);
}

/* It is told, does not close, and is closed. */
Test(stream_relay_faults, client_that_does_not_close)
{
    clock_set_fake(now = 1000);
    int fd = raw_connect(port());
    cr_assert(raw_send(fd, "x\r\n\r\n"));
    (void)raw_read(fd, false, &reply);
    expect_refused(400, "HTTP/1.1");
    stream_rig_until(&rig, has_head);
    pass_ms(STREAM_HEAD_MS);
    stream_rig_until(&rig, has_none);
    (void)close(fd);
}

Test(stream_relay_faults, ticket_gets_too_old)
{
    char url[STREAM_OWN_URL_MAX];
    clock_set_fake(now = 1000);
    nowhere(url);
    pass_ms(60000);
    int fd = stream_rig_ask(url, RIG_SPDY);
    (void)raw_read(fd, false, &reply);
    expect_refused(404, "minute");
    (void)close(fd);
}

/* Clients who show no ticket do not keep others out. */
Test(stream_relay_faults, oldest_head_makes_room)
{
    int fds[STREAM_HEADS_MAX];
    stream_rig_stop(&rig);
    stream_rig_start(&rig, &stream_rig_patient); /* no head is too old */
    uint16_t at = port();
    fds[0] = raw_connect(at);
    stream_rig_until(&rig, has_head);
    for (int i = 1; i < STREAM_HEADS_MAX; i++)
        fds[i] = raw_connect(at);
    stream_rig_until(&rig, has_heads);
    stream_rig_serve(&rig, false, SERVES_ECHO, NULL, NULL);
    int fd = stream_rig_client(&rig, RIG_SPDY, &reply);
    cr_expect_eq(reply.status, 101);
    cr_expect(raw_closed_within(fds[0], RAW_PATIENCE_MS));
    (void)close(fd);
    for (int i = 0; i < STREAM_HEADS_MAX; i++)
        (void)close(fds[i]);
}

Test(stream_relay_faults, too_many_streams)
{
    const struct stream_relay_config config = {.streams_max = 1};
    stream_rig_stop(&rig);
    stream_rig_start(&rig, &config);
    stream_rig_serve(&rig, false, SERVES_ECHO, NULL, NULL);
    int first = stream_rig_client(&rig, RIG_SPDY, &reply);
    cr_assert_eq(reply.status, 101);
    int second = stream_rig_client(&rig, RIG_SPDY, &reply);
    expect_refused(503, "1 streams");
    (void)close(first);
    (void)close(second);
}

/* Nobody can be accepted; who comes is turned away, and the relay does not
 * spin, nor is it deaf when there are some again. */
Test(stream_relay_faults, no_descriptors_left)
{
    enum { MOST = 128 };
    const struct rlimit few = {.rlim_cur = MOST, .rlim_max = MOST};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int held[MOST], n = 0, fd = socket(AF_INET, SOCK_STREAM, 0);
    to.sin_port = htons(port());
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    while ((held[n] = dup(0)) >= 0)
        n++;
    cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    cr_expect(raw_closed_within(fd, RAW_PATIENCE_MS));
    while (n > 0)
        (void)close(held[--n]);
    (void)close(fd);
    stream_rig_serve(&rig, false, SERVES_ECHO, NULL, NULL);
    fd = stream_rig_client(&rig, RIG_SPDY, &reply);
    cr_expect_eq(reply.status, 101);
    (void)close(fd);
}

/* --- the remote -------------------------------------------------------------------- */

/* One stream to a server of that manner, and what its client hears. */
static void try(bool tls, enum stream_server_manner manner, const char *answer,
                const struct cert_spec *spec)
{
    stream_rig_serve(&rig, tls, manner, answer, spec);
    int fd = stream_rig_client(&rig, RIG_SPDY, &reply);
    cr_expect(raw_closed_within(fd, RAW_PATIENCE_MS));
    (void)close(fd);
    stream_rig_until(&rig, has_none);
    stream_server_stop(rig.server);
    rig.server = NULL;
}

Test(stream_relay_faults, nobody_serves_there)
{
    uint16_t free_port;
    cleanup_fd int nobody = raw_nowhere(&free_port);
    rig.open.url = rig.url;
    (void)snprintf(rig.url, sizeof rig.url, "http://127.0.0.1:%u/x", free_port);
    int fd = stream_rig_client(&rig, RIG_SPDY, &reply);
    expect_refused(502, "refused");
    cr_expect(strstr(str_text(&reply.body), "card-0000-17-00"));
    (void)close(fd);
}

Test(stream_relay_faults, answers_of_the_remote)
{
    cleanup_str struct str large = STR_INIT(1 << 20);
    try(false, SERVES_CLOSE,
        "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n"
        "Content-Length: 9\r\n\r\nno such x and more",
        NULL);
    expect_refused(404, "no such x");
    cr_expect_eq(reply.body.size, 9);
    try(true, SERVES_ANSWER, "HTTP/1.1 500 x\r\nContent-Length: 4\r\n\r\nfour",
        NULL);
    expect_refused(500, "four");
    try(false, SERVES_ANSWER,
        "HTTP/1.1 302 Found\r\nLocation: http://10.0.0.9/\r\n\r\n", NULL);
    expect_refused(502, "302");
    try(false, SERVES_ANSWER,
        "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", NULL);
    expect_refused(502, "h2c");
    try(true, SERVES_ANSWER, "SSH-2.0-x\r\n\r\n", NULL);
    expect_refused(502, "SSH-2.0");
    try(false, SERVES_CLOSE, "HTTP/1.1 101 x\r\nConn", NULL);
    expect_refused(502, "broke off");
    while (large.size < 2 * STREAM_HEAD_MAX)
        str_add(&large, "X: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n");
    try(false, SERVES_ANSWER, large.data, NULL);
    expect_refused(502, "too long");
}

Test(stream_relay_faults, remote_does_not_answer)
{
    char url[STREAM_OWN_URL_MAX];
    clock_set_fake(now = 1000);
    stream_rig_serve(&rig, true, SERVES_ANSWER, "", NULL);
    stream_rig_url(&rig, url);
    int fd = stream_rig_ask(url, RIG_SPDY);
    stream_server_asked(rig.server, 1);
    pass_ms(STREAM_ANSWER_MS);
    (void)raw_read(fd, false, &reply);
    expect_refused(504, "30000 ms");
    stream_server_ended(rig.server, 1);
    (void)close(fd);
}

/* --- TLS --------------------------------------------------------------------------- */

Test(stream_relay_faults, wrong_certificate)
{
    static const struct cert_spec for_another = {
        .name = "card1", .dns = {"card1"}, .purposes = CERT_SERVER};
    static const struct cert_spec no_server = {
        .name = "card0", .local = true, .purposes = CERT_CLIENT};
    static const struct cert_spec expired = {.name = "card0",
                                             .local = true,
                                             .purposes = CERT_SERVER,
                                             .from_s = -7200,
                                             .until_s = -3600};
    try(true, SERVES_ECHO, NULL, &for_another);
    expect_refused(502, "certificate");
    try(true, SERVES_ECHO, NULL, &no_server);
    expect_refused(502, "certificate");
    try(true, SERVES_ECHO, NULL, &expired);
    expect_refused(502, "expired");
}

Test(stream_relay_faults, certificate_of_another_authority)
{
    stream_rig_serve(&rig, true, SERVES_ECHO, NULL, NULL);
    rig.open.ca = rig.other_ca;
    int fd = stream_rig_client(&rig, RIG_SPDY, &reply);
    expect_refused(502, "certificate");
    (void)close(fd);
}

Test(stream_relay_faults, remote_refuses_us)
{
    stream_rig_serve(&rig, true, SERVES_ECHO, NULL, NULL);
    rig.open.cert = rig.open.key = NULL;
    int fd = stream_rig_client(&rig, RIG_SPDY, &reply);
    cr_expect_eq(reply.status, 502);
    (void)close(fd);
}

Test(stream_relay_faults, remote_is_plain_and_should_not)
{
    stream_rig_serve(&rig, false, SERVES_ECHO, NULL, NULL);
    (void)snprintf(rig.url, sizeof rig.url, "https://127.0.0.1:%u/x",
                   stream_server_port(rig.server));
    rig.open.ca = rig.ca;
    char url[STREAM_OWN_URL_MAX];
    clock_set_fake(now = 1000);
    stream_rig_url(&rig, url);
    int fd = stream_rig_ask(url, RIG_SPDY);
    /* what it takes the ClientHello for has no end */
    stream_rig_until(&rig, has_stream);
    pass_ms(STREAM_ANSWER_MS);
    (void)raw_read(fd, false, &reply);
    expect_refused(504, "did not answer");
    (void)close(fd);
}

/* --- time --------------------------------------------------------------------------- */

Test(stream_relay_faults, idle_stream)
{
    clock_set_fake(now = 1000);
    stream_rig_serve(&rig, false, SERVES_ECHO, NULL, NULL);
    int fd = stream_rig_client(&rig, RIG_SPDY, &reply);
    char c;
    cr_assert_eq(reply.status, 101);
    stream_rig_until(&rig, has_stream);
    pass_ms(STREAM_IDLE_MS - 1);
    cr_assert(raw_send(fd, "x") && stream_rig_read(fd, &c, 1));
    pass_ms(STREAM_IDLE_MS - 1);
    cr_assert(raw_send(fd, "y") && stream_rig_read(fd, &c, 1));
    pass_ms(STREAM_IDLE_MS);
    stream_rig_until(&rig, has_none);
    (void)close(fd);
}

/* A remote that does not heed that its client has ended. */
Test(stream_relay_faults, half_closed_stream)
{
    char url[STREAM_OWN_URL_MAX], head[4096];
    uint16_t where = 0;
    int deaf = raw_listen(&where);
    clock_set_fake(now = 1000);
    (void)snprintf(rig.url, sizeof rig.url, "http://127.0.0.1:%u/x", where);
    stream_rig_url(&rig, url);
    int fd = stream_rig_ask(url, RIG_SPDY);
    int far = accept(deaf, NULL, NULL);
    cr_assert_gt(recv(far, head, sizeof head, 0), 0);
    cr_assert(raw_send(far, "HTTP/1.1 101 x\r\nConnection: Upgrade\r\n"
                            "Upgrade: SPDY/3.1\r\n\r\n"));
    cr_assert_eq(raw_read(fd, true, &reply), 101);
    (void)shutdown(fd, SHUT_WR);
    cr_assert_eq(recv(far, head, sizeof head, 0), 0);
    pass_ms(STREAM_LINGER_MS - 1);
    cr_assert(raw_send(far, "x")); /* that counts */
    cr_assert(stream_rig_read(fd, head, 1));
    pass_ms(STREAM_LINGER_MS);
    stream_rig_until(&rig, has_none);
    (void)close(far);
    (void)close(deaf);
    (void)close(fd);
}
