#include "lib/stream/ws_input.h"

enum {
    FIN = 0x80,
    RESERVED = 0x70,
    KIND = 0x0f,
    MASKED = 0x80,
    SIZE = 0x7f,
    SIZE_16 = 126, /* what says that the size follows in 2 bytes, or in 8 */
    SIZE_64 = 127,
    CONTINUES = 0,
    CONTROL = 8, /* kinds from there on */
};

static int check_start(const struct ws_input *in, struct error *err)
{
    unsigned kind = in->head[0] & KIND, size = in->head[1] & SIZE;
    bool control = kind >= CONTROL;
    if (in->head[0] & RESERVED)
        return error_set(err, EPROTO, "a frame has reserved bits: 0x%02x",
                         in->head[0]);
    if (!(in->head[1] & MASKED))
        return error_set(err, EPROTO, "a frame of the client is not masked");
    if (kind != CONTINUES && kind != WS_TEXT && kind != WS_BINARY &&
        kind != WS_CLOSE && kind != WS_PING && kind != WS_PONG)
        return error_set(err, EPROTO, "a frame is of kind %u", kind);
    if (control && (size > WS_CONTROL_MAX || !(in->head[0] & FIN)))
        return error_set(err, EPROTO,
                         "a control frame is in parts, or over %d bytes",
                         WS_CONTROL_MAX);
    if (!control && in->message != (kind == CONTINUES))
        return error_set(err, EPROTO,
                         in->message ? "a message begins within another"
                                     : "a frame continues no message");
    return 0;
}

/* The head is whole. */
static int take_head(struct ws_input *in, struct error *err)
{
    unsigned more = in->need - 2 - WS_MASK;
    in->left = in->head[1] & SIZE;
    if (more > 0)
        in->left = 0;
    for (unsigned i = 0; i < more; i++)
        in->left = in->left << 8 | in->head[2 + i];
    if (in->left > INT64_MAX)
        return error_set(err, EPROTO, "a frame is over 2^63 bytes");
    in->masked = 0;
    in->n_control = 0;
    in->whole = in->head[0] & FIN;
    return 0;
}

/* Head bytes as far as they are there; how many. */
static ssize_t read_head(struct ws_input *in, const char *data, size_t size,
                         struct error *err)
{
    size_t at = 0;
    if (in->n_head < 2)
        in->need = 2;
    while (at < size && in->n_head < in->need) {
        in->head[in->n_head++] = (unsigned char)data[at++];
        if (in->n_head != 2)
            continue;
        unsigned n = in->head[1] & SIZE;
        in->need = 2 + WS_MASK + (n == SIZE_16 ? 2 : n == SIZE_64 ? 8 : 0);
        int r = check_start(in, err);
        if (r < 0)
            return r;
    }
    int r = in->n_head == in->need ? take_head(in, err) : 0;
    return r < 0 ? r : (ssize_t)at;
}

static void unmask(struct ws_input *in, char *data, size_t size)
{
    const unsigned char *mask = in->head + in->need - WS_MASK;
    for (size_t i = 0; i < size; i++)
        data[i] = (char)((unsigned char)data[i] ^ mask[in->masked++ % WS_MASK]);
}

static void say_control(struct ws_input *in, const char *data, size_t size,
                        struct ws_piece *piece)
{
    for (size_t i = 0; i < size; i++)
        in->control[in->n_control++] = data[i];
    if (in->left > 0)
        return;
    *piece = (struct ws_piece){.kind = (enum ws_kind)(in->head[0] & KIND),
                               .data = in->control,
                               .size = in->n_control,
                               .first = true,
                               .last = true};
}

ssize_t ws_input_read(struct ws_input *in, char *data, size_t size,
                      struct ws_piece *ret_piece, struct error *err)
{
    size_t at = 0;
    *ret_piece = (struct ws_piece){0};
    if (in->n_head < 2 || in->n_head < in->need) {
        ssize_t n = read_head(in, data, size, err);
        if (n < 0 || in->n_head < in->need || in->left > 0)
            return n;
        at = (size_t)n;
    }
    size_t n = size - at < in->left ? size - at : (size_t)in->left;
    unmask(in, data + at, n);
    in->left -= n;
    if ((in->head[0] & KIND) >= CONTROL) {
        say_control(in, data + at, n, ret_piece);
    } else {
        bool last = in->left == 0 && in->whole;
        *ret_piece = (struct ws_piece){.kind = WS_BINARY,
                                       .data = data + at,
                                       .size = n,
                                       .first = !in->message,
                                       .last = last};
        in->message = !last;
    }
    if (in->left == 0)
        in->n_head = in->need = 0;
    return (ssize_t)(at + n);
}
