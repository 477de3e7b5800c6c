#include "advertiser/act/stream/join.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"

static struct join join;
static struct str to_runtime, to_client;
static struct error err;

static void set_up(void)
{
    str_init(&to_runtime, 1 << 20);
    str_init(&to_client, 1 << 20);
}

static void tear_down(void)
{
    str_fini(&to_runtime);
    str_fini(&to_client);
}

TestSuite(join, .init = set_up, .fini = tear_down);

/* --- what a side got, as text ---------------------------------------------- */

/* The messages of the client's, as "CHANNEL:TEXT|". */
static const char *client_got(void)
{
    static char shown[4096];
    struct str out = STR_INIT(sizeof shown);
    for (size_t at = 0; at < to_client.size;) {
        struct ws_message m;
        ssize_t n = ws_frame_read(to_client.data + at, to_client.size - at, &m,
                                  &err);
        cr_assert_gt(n, 0, "%s", err.text);
        at += (size_t)n;
        if (m.kind == WS_BINARY)
            str_addf(&out, "%d:%.*s|", m.data[0], (int)m.size - 1, m.data + 1);
        else
            str_addf(&out, "(%d)", (int)m.kind);
    }
    (void)snprintf(shown, sizeof shown, "%s", str_text(&out));
    str_fini(&out);
    str_reset(&to_client);
    return shown;
}

/* The data of the runtime's, as "STREAM:TEXT|", "!" behind the last. */
static const char *runtime_got(void)
{
    static char shown[4096];
    struct str out = STR_INIT(sizeof shown);
    struct spdy_reader r = {0};
    for (size_t at = 0; at < to_runtime.size;) {
        struct spdy_piece p;
        ssize_t n = spdy_read(&r, to_runtime.data + at, to_runtime.size - at,
                              &p, &err);
        cr_assert_gt(n, 0, "%s", err.text);
        at += (size_t)n;
        if (p.kind == SPDY_DATA)
            str_addf(&out, "%u:%.*s|%s", p.stream, (int)p.size, p.data,
                     p.last ? "!" : "");
        else if (p.kind == SPDY_PING)
            str_addf(&out, "(ping %u)", p.stream);
    }
    (void)snprintf(shown, sizeof shown, "%s", str_text(&out));
    str_fini(&out);
    str_reset(&to_runtime);
    return shown;
}

/* --- what a side sends ------------------------------------------------------ */

static int runtime_sends(const char *data, size_t size)
{
    return join_from_runtime(&join, data, size, &to_runtime, &to_client, &err);
}

static void runtime_replies(uint32_t id)
{
    const char reply[] = {(char)0x80, 3, 0, 2, 0, 0, 0, 4, 0, 0, 0, (char)id};
    cr_assert_eq(runtime_sends(reply, sizeof reply), 0, "%s", err.text);
}

static void runtime_writes(uint32_t id, const char *text, bool last)
{
    cleanup_str struct str frame = STR_INIT(1 << 20);
    spdy_data(id, text, strlen(text), last, &frame);
    cr_assert_eq(runtime_sends(frame.data, frame.size), 0, "%s", err.text);
}

static int client_sends(enum ws_kind kind, const char *data, size_t size)
{
    static const unsigned char mask[WS_MASK] = {9, 8, 7, 6};
    cleanup_str struct str frame = STR_INIT(1 << 20);
    ws_frame_write(kind, mask, data, size, &frame);
    return join_from_client(&join, frame.data, frame.size, &to_runtime,
                            &to_client, &err);
}

static void client_writes(const char *data, size_t size)
{
    cr_assert_eq(client_sends(WS_BINARY, data, size), 0, "%s", err.text);
}

static void begin(const struct join_config *config)
{
    join_init(&join, config, &to_runtime, &to_client);
    str_reset(&to_runtime);
}

/* --- exec ------------------------------------------------------------------ */

Test(join, opens_the_streams_of_a_command_and_waits_for_them)
{
    const struct join_config c = {.in = true, .out = true, .err = true};
    join_init(&join, &c, &to_runtime, &to_client);
    static const char *const types[] = {"error", "stdin", "stdout", "stderr"};
    size_t at = 0;
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        cr_assert_not(join_reads_client(&join));
        const char *found = memmem(to_runtime.data + at, to_runtime.size - at,
                                   types[i], strlen(types[i]));
        cr_assert_not_null(found, "%s", types[i]);
        at = (size_t)(found - to_runtime.data);
        runtime_replies(2 * (uint32_t)i + 1);
        runtime_replies(2 * (uint32_t)i + 1); /* once more is nothing */
    }
    cr_expect(join_reads_client(&join));
    cr_expect_null(memmem(to_runtime.data, to_runtime.size, "resize", 6));
    cr_expect_str_eq(join_protocol(&c), "v4.channel.k8s.io");
}

Test(join, carries_input_and_output_of_a_command)
{
    begin(&(struct join_config){.in = true, .out = true, .err = true});
    runtime_writes(5, "out", false);
    runtime_writes(7, "err", true);
    cr_expect_str_eq(client_got(), "1:out|2:err|");
    client_writes("\0hello", 6);
    client_writes("\0", 1);
    client_writes("\1what", 5); /* not the client's */
    client_writes("\4{}", 3);   /* there is no terminal */
    client_writes("\11x", 2);   /* nor such a channel */
    cr_expect_str_eq(runtime_got(), "3:hello|");
    client_writes("\377\0", 2); /* v5: the input has ended */
    client_writes("\377\0", 2);
    client_writes("\0late", 5);
    cr_expect_str_eq(runtime_got(), "3:|!");
    runtime_writes(1, "{\"status\":\"Success\"}", true);
    cr_expect_not(join.over);
    join_end(&join, "the pod has ended", &to_client);
    cr_expect_str_eq(client_got(), "3:{\"status\":\"Success\"}|(8)");
}

Test(join, a_terminal_has_a_size_and_one_output)
{
    begin(&(struct join_config){
        .in = true, .out = true, .err = true, .tty = true});
    client_writes("\4{\"Width\":80}", 12);
    cr_expect_str_eq(runtime_got(), "7:{\"Width\":80|");
    runtime_writes(5, "$ ", false);
    cr_expect_str_eq(client_got(), "1:$ |");
}

Test(join, says_how_it_ended_where_the_runtime_did_not)
{
    begin(&(struct join_config){.out = true});
    join_end(&join, "card-0 does not answer", &to_client);
    const char *got = client_got();
    cr_expect(strstr(got, "\"message\":\"card-0 does not answer\""), "%s", got);
    cr_expect(strncmp(got, "3:{", 3) == 0 && strstr(got, "}|(8)"), "%s", got);
}

Test(join, answers_pings_of_both_sides)
{
    static const char ping[] = "\x80\x03\x00\x06\x00\x00\x00\x04\0\0\0\x02";
    begin(&(struct join_config){.out = true});
    cr_assert_eq(runtime_sends(ping, sizeof ping - 1), 0);
    cr_expect_str_eq(runtime_got(), "(ping 2)");
    cr_assert_eq(client_sends(WS_PING, "x", 1), 0);
    cr_expect_str_eq(client_got(), "(10)");
}

Test(join, ends_with_what_it_cannot_read)
{
    static const char reset[] = "\x80\x03\0\3\0\0\0\x08\0\0\0\x03\0\0\0\x03";
    char bad[] = "\x82\x01x";
    begin(&(struct join_config){.in = true});
    cr_expect_eq(client_sends(WS_CLOSE, "", 0), -ECONNRESET);
    cr_expect_eq(join_from_client(&join, bad, 3, &to_runtime, &to_client, &err),
                 -EPROTO);
    cr_expect_eq(runtime_sends("HTTP/1.1", 8), 0); /* data of no stream */
    begin(&(struct join_config){.in = true});
    cr_expect_eq(runtime_sends("\x80\x02\0\1\0\0\0\0", 8), -EPROTO);
    begin(&(struct join_config){.in = true});
    cr_expect_eq(runtime_sends(reset, 16), -EPROTO); /* before it was taken */
    cr_expect(strstr(err.text, "refused a stream"), "%s", err.text);
}

/* --- port-forward ----------------------------------------------------------- */

Test(join, forwards_ports)
{
    static const int32_t ports[] = {80, 8080};
    static const char both[] = "\x82\x03\1\x50\0\x82\x03\0\x50\0"
                               "\x82\x03\3\x90\x1f\x82\x03\2\x90\x1f";
    const struct join_config c = {.ports = ports, .n_ports = 2};
    join_init(&join, &c, &to_runtime, &to_client);
    cr_expect_str_eq(join_protocol(&c), "portforward.k8s.io");
    cr_assert_eq(to_client.size, sizeof both - 1);
    cr_expect_not_null(
        memmem(to_client.data, to_client.size, "\x82\x03\2\x90\x1f", 5));
    cr_expect_not_null(
        memmem(to_client.data, to_client.size, "\x82\x03\1\x50\0", 5));
    cr_expect_not_null(memmem(to_runtime.data, to_runtime.size, "8080", 4));
    str_reset(&to_client);
    str_reset(&to_runtime);
    client_writes("\0GET", 4);
    client_writes("\1no", 3); /* errors are not the client's */
    client_writes("\2PUT", 4);
    cr_expect_str_eq(runtime_got(), "3:GET|7:PUT|");
    runtime_writes(3, "200", true);
    runtime_writes(1, "", true);
    cr_expect_not(join.over);
    runtime_writes(5, "refused", true);
    runtime_writes(7, "", true);
    cr_expect(join.over);
    join_end(&join, NULL, &to_client);
    cr_expect_str_eq(client_got(), "0:200|3:refused|(8)");
}
