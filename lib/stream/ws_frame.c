#include "lib/stream/ws_frame.h"

#include <stdint.h>

enum {
    FIN = 0x80,
    RESERVED = 0x70,
    KIND = 0x0f,
    MASKED = 0x80,
    SIZE_16 = 126, /* what says that the size follows in 2 bytes, or in 8 */
    SIZE_64 = 127,
    CONTROL_MAX = 125,
};

static uint64_t read_be(const unsigned char *at, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++)
        value = value << 8 | at[i];
    return value;
}

static int check_first(const unsigned char *at, struct error *err)
{
    unsigned kind = at[0] & KIND;
    if (!(at[0] & FIN) || kind == 0)
        return error_set(err, EPROTO, "a message comes in several frames");
    if (at[0] & RESERVED)
        return error_set(err, EPROTO, "a frame has reserved bits: 0x%02x",
                         at[0]);
    if (kind != WS_TEXT && kind != WS_BINARY && kind != WS_CLOSE &&
        kind != WS_PING && kind != WS_PONG)
        return error_set(err, EPROTO, "a frame is of kind %u", kind);
    if (at[1] & MASKED)
        return error_set(err, EPROTO, "a frame of the server is masked");
    if (kind >= WS_CLOSE && at[1] > CONTROL_MAX)
        return error_set(err, EPROTO, "a control frame is over %d bytes",
                         CONTROL_MAX);
    return 0;
}

ssize_t ws_frame_read(const char *data, size_t size,
                      struct ws_message *ret_message, struct error *err)
{
    const unsigned char *at = (const unsigned char *)data;
    size_t head = 2;
    if (size < head)
        return 0;
    int r = check_first(at, err);
    if (r < 0)
        return r;
    uint64_t n = at[1];
    size_t more = n == SIZE_16 ? 2 : n == SIZE_64 ? 8 : 0;
    head += more;
    if (size < head)
        return 0;
    if (more)
        n = read_be(at + 2, more);
    if (n > WS_MESSAGE_MAX)
        return error_set(err, EMSGSIZE, "a message is over %d bytes",
                         WS_MESSAGE_MAX);
    if (size - head < n)
        return 0;
    *ret_message = (struct ws_message){(enum ws_kind)(at[0] & KIND),
                                       data + head, (size_t)n};
    return (ssize_t)(head + n);
}

static void add_be(struct str *out, uint64_t value, size_t n)
{
    while (n--)
        str_add_c(out, (char)(value >> (8 * n) & 0xff));
}

void ws_frame_head(enum ws_kind kind, bool masked, size_t size, struct str *out)
{
    int mask = masked ? MASKED : 0;
    str_add_c(out, (char)(FIN | (int)kind));
    if (size < SIZE_16) {
        str_add_c(out, (char)(mask | (int)size));
    } else if (size <= UINT16_MAX) {
        str_add_c(out, (char)(mask | SIZE_16));
        add_be(out, size, 2);
    } else {
        str_add_c(out, (char)(mask | SIZE_64));
        add_be(out, size, 8);
    }
}

void ws_frame_write(enum ws_kind kind, const unsigned char mask[WS_MASK],
                    const char *data, size_t size, struct str *out)
{
    ws_frame_head(kind, true, size, out);
    str_add_n(out, (const char *)mask, WS_MASK);
    for (size_t i = 0; i < size; i++)
        str_add_c(out, (char)((unsigned char)data[i] ^ mask[i % WS_MASK]));
}
