#include "cli/base/ws_status.h"
#include "lib/stream/ws_frame.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"

static ssize_t read_frame(const char *data, size_t size, struct ws_message *m,
                          const char *text)
{
    struct error err = {0};
    ssize_t n = ws_frame_read(data, size, m, &err);
    if (text)
        cr_expect(strstr(err.text, text), "not \"%s\" in: %s", text, err.text);
    return n;
}

Test(ws_frame, is_read_once_it_is_whole)
{
    static const char data[] = "\x82\x03\x01"
                               "ab\x88\x00";
    struct ws_message m;
    for (size_t n = 0; n < 5; n++)
        cr_expect_eq(read_frame(data, n, &m, NULL), 0, "%zu", n);
    cr_assert_eq(read_frame(data, 7, &m, NULL), 5);
    cr_expect_eq(m.kind, WS_BINARY);
    cr_expect_eq(m.size, 3);
    cr_expect_arr_eq(m.data,
                     "\x01"
                     "ab",
                     3);
    cr_assert_eq(read_frame(data + 5, 2, &m, NULL), 2);
    cr_expect_eq(m.kind, WS_CLOSE);
}

Test(ws_frame, has_sizes_of_three_forms)
{
    static const size_t sizes[] = {0,     1,     125,           126,
                                   65535, 65536, WS_MESSAGE_MAX};
    static const unsigned char mask[WS_MASK] = {1, 0, 0xff, 7};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        size_t n = sizes[i], head = n < 126 ? 2 : n < 65536 ? 4 : 10;
        cleanup_free char *data = xcalloc(1, n + 1);
        cleanup_str struct str out = STR_INIT(WS_MESSAGE_MAX + WS_HEAD_MAX);
        struct ws_message m;
        for (size_t k = 0; k < n; k++)
            data[k] = (char)(k * 7);
        ws_frame_write(WS_BINARY, mask, data, n, &out);
        cr_assert_eq(out.size, head + WS_MASK + n);
        for (size_t k = 0; k < n; k++)
            out.data[head + WS_MASK + k] = (char)(out.data[head + WS_MASK + k] ^
                                                  (char)mask[k % WS_MASK]);
        cr_expect_arr_eq(out.data + head + WS_MASK, data, n);
        /* as a server would send it */
        memmove(out.data + head, out.data + head + WS_MASK, n);
        out.data[1] = (char)(out.data[1] & 0x7f);
        cr_expect_eq(read_frame(out.data, head + n, &m, NULL),
                     (ssize_t)(head + n));
        cr_expect_eq(m.size, n);
    }
}

Test(ws_frame, that_is_wrong_is_refused)
{
    static const struct {
        const char *data, *text;
        ssize_t result;
    } bad[] = {
        {"\x02\x01", "several frames", -EPROTO},
        {"\x80\x01", "several frames", -EPROTO},
        {"\xc2\x01", "reserved bits", -EPROTO},
        {"\x83\x01", "kind 3", -EPROTO},
        {"\x82\x81", "masked", -EPROTO},
        {"\x88\x7e\x01\x01", "control frame", -EPROTO},
        {"\x82\x7f\x01\x01\x01\x01\x01\x01\x01\x01", "over 1048576 bytes",
         -EMSGSIZE},
    };
    struct ws_message m;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        cr_expect_eq(
            read_frame(bad[i].data, strlen(bad[i].data), &m, bad[i].text),
            bad[i].result);
}

static void expect_status(const char *json, int result, int code,
                          const char *text)
{
    struct error err = {0};
    int got = -1;
    cr_expect_eq(ws_status_read(json, strlen(json), &got, &err), result, "%s",
                 json);
    cr_expect_eq(got, code, "%s: %d", json, got);
    cr_expect(strstr(err.text, text), "%s: %s", json, err.text);
}

#define CAUSE(code)                                                 \
    "{\"status\":\"Failure\",\"details\":{\"causes\":[{\"reason\":" \
    "\"ExitCode\",\"message\":\"" code "\"}]}}"

Test(ws_frame, a_status_has_the_exit_code)
{
    expect_status("{\"metadata\":{},\"status\":\"Success\"}", 0, 0, "");
    expect_status(CAUSE("3"), 0, 3, "");
    expect_status(CAUSE("255"), 0, 255, "");
    expect_status(CAUSE("256"), -EPROTO, -1, "exit code \"256\"");
    expect_status(CAUSE("3x"), -EPROTO, -1, "exit code \"3x\"");
    expect_status("{\"status\":\"Failure\",\"message\":\"no \\u0007sh\"}", -EIO,
                  -1, "did not run it: no ?sh");
    expect_status("{\"status\":\"Maybe\"}", -EPROTO, -1, "status \"Maybe\"");
    expect_status("{", -EPROTO, -1, "no JSON");
}
