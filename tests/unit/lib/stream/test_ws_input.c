#include "lib/stream/ws_input.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"

static const unsigned char mask[WS_MASK] = {1, 2, 3, 250};
static struct error err;

/* What is read of `data`, so many bytes at once: messages between <>, other
 * frames between []. */
static int collect(const char *data, size_t size, size_t step, struct str *out)
{
    cleanup_free char *copy = xmemdup(data, size);
    struct ws_input in = {0};
    err = (struct error){0};
    for (size_t at = 0; at < size;) {
        struct ws_piece p;
        size_t n = size - at < step ? size - at : step;
        ssize_t taken = ws_input_read(&in, copy + at, n, &p, &err);
        if (taken < 0)
            return (int)taken;
        cr_assert(taken > 0 && (size_t)taken <= n);
        at += (size_t)taken;
        bool message = p.kind == WS_BINARY;
        if (!p.kind)
            continue;
        if (p.first)
            str_add_c(out, message ? '<' : '[');
        str_add_n(out, p.data, p.size);
        if (p.last)
            str_add_c(out, message ? '>' : ']');
    }
    return 0;
}

Test(ws_input, messages_come_as_they_were_sent_however_they_are_cut)
{
    cleanup_str struct str sent = STR_INIT(1 << 20);
    cleanup_free char *much = xmalloc(70000);
    memset(much, 'm', 70000);
    ws_frame_write(WS_BINARY, mask, "hello", 5, &sent);
    ws_frame_write(WS_TEXT, mask, "", 0, &sent);
    ws_frame_write(WS_PING, mask, "are you there", 13, &sent);
    ws_frame_write(WS_BINARY, mask, much, 300, &sent);
    ws_frame_write(WS_BINARY, mask, much, 70000, &sent);
    ws_frame_write(WS_CLOSE, mask, "", 0, &sent);
    for (size_t step = 1; step < 100; step += 7) {
        cleanup_str struct str got = STR_INIT(1 << 20);
        cr_assert_eq(collect(sent.data, sent.size, step, &got), 0, "%s",
                     err.text);
        cr_assert_eq(got.size, 7 + 2 + 15 + 302 + 70002 + 2);
        cr_expect_eq(memcmp(got.data, "<hello><>[are you there]<mmm", 28), 0);
        cr_expect_str_eq(got.data + got.size - 4, "m>[]");
    }
}

Test(ws_input, a_message_may_come_in_parts_with_others_between)
{
    static const char sent[] = "\x02\x82\0\0\0\0ab" /* not the last */
                               "\x89\x81\0\0\0\0p"
                               "\x00\x81\0\0\0\0c"
                               "\x80\x80\0\0\0\0";
    cleanup_str struct str got = STR_INIT(64);
    cr_assert_eq(collect(sent, sizeof sent - 1, 99, &got), 0, "%s", err.text);
    cr_expect_str_eq(str_text(&got), "<ab[p]c>");
}

Test(ws_input, what_no_client_may_send_is_refused)
{
    static const struct {
        const char *sent, *why;
        size_t size;
    } bad[] = {
        {"\x82\x01x", "not masked", 3},
        {"\xc2\x81\0\0\0\0x", "reserved bits: 0xc2", 7},
        {"\x83\x81\0\0\0\0x", "of kind 3", 7},
        {"\x80\x81\0\0\0\0x", "continues no message", 7},
        {"\x02\x81\0\0\0\0x\x82\x81\0\0\0\0x", "within another", 14},
        {"\x09\x81\0\0\0\0x", "control frame", 7},
        {"\x89\xfe\0\x80\0\0\0\0", "control frame", 8},
        {"\x82\xff\x80\0\0\0\0\0\0\0\0\0\0\0", "2^63", 14},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cleanup_str struct str got = STR_INIT(64);
        cr_expect_eq(collect(bad[i].sent, bad[i].size, 99, &got), -EPROTO, "%s",
                     bad[i].why);
        cr_expect(strstr(err.text, bad[i].why), "%s", err.text);
    }
}
