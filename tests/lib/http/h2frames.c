#include "tests/lib/http/h2frames.h"

#include "lib/base/mem.h"

void h2_add_frame(struct str *out, enum frame type, int flags, int32_t stream,
                  const void *data, size_t size)
{
    const unsigned char head[9] = {
        (unsigned char)(size >> 16),   (unsigned char)(size >> 8),
        (unsigned char)size,           (unsigned char)type,
        (unsigned char)flags,          (unsigned char)(stream >> 24),
        (unsigned char)(stream >> 16), (unsigned char)(stream >> 8),
        (unsigned char)stream,
    };
    str_add_n(out, (const char *)head, sizeof head);
    str_add_n(out, data, size);
}

void h2_add_field(struct str *out, const char *name, const char *value)
{
    size_t n = strlen(value);
    if (strlen(name) >= 127 || n >= 127 + 128)
        abort();
    str_add_c(out, 0);
    str_add_c(out, (char)strlen(name));
    str_add(out, name);
    str_add_c(out, (char)(n < 127 ? n : 127));
    if (n >= 127)
        str_add_c(out, (char)(n - 127));
    str_add(out, value);
}

void h2_add_headers(struct str *out, int32_t stream, const char *status,
                    const char *type)
{
    struct str block = STR_INIT(4096);
    h2_add_field(&block, ":status", status);
    h2_add_field(&block, "content-type", type);
    h2_add_frame(out, FRAME_HEADERS, END_HEADERS, stream, block.data,
                 block.size);
    str_fini(&block);
}

void h2_add_trailers(struct str *out, int32_t stream, const char *code,
                     const char *text)
{
    struct str block = STR_INIT(4096);
    if (code)
        h2_add_field(&block, "grpc-status", code);
    if (text && *text)
        h2_add_field(&block, "grpc-message", text);
    if (!code)
        h2_add_field(&block, "x-nothing", "1");
    h2_add_frame(out, FRAME_HEADERS, END_HEADERS | END_STREAM, stream,
                 block.data, block.size);
    str_fini(&block);
}

void h2_add_prefix(struct str *out, int flag, size_t size)
{
    str_add_c(out, (char)flag);
    for (int shift = 24; shift >= 0; shift -= 8)
        str_add_c(out, (char)(size >> shift));
}

void h2_add_data(struct str *out, int32_t stream, const struct str *data,
                 int flags)
{
    for (size_t i = 0; i < data->size; i += H2_FRAME_MAX) {
        size_t n = data->size - i < H2_FRAME_MAX ? data->size - i
                                                 : H2_FRAME_MAX;
        h2_add_frame(out, FRAME_DATA, i + n == data->size ? flags : 0, stream,
                     data->data + i, n);
    }
}

void h2_add_message(struct str *out, int32_t stream, const char *message,
                    size_t size)
{
    struct str data = STR_INIT(64 << 20);
    h2_add_prefix(&data, 0, size);
    str_add_n(&data, message, size);
    h2_add_data(out, stream, &data, 0);
    str_fini(&data);
}

void h2_add_code(struct str *out, enum frame type, int32_t stream, int code)
{
    const char number[4] = {0, 0, 0, (char)code};
    h2_add_frame(out, type, 0, stream, number, sizeof number);
}

void h2_add_goaway(struct str *out, int32_t last)
{
    const char body[8] = {0, 0, 0, (char)last};
    h2_add_frame(out, FRAME_GOAWAY, 0, 0, body, sizeof body);
}

void h2_add_big_block(struct str *out, int32_t stream, bool trailers)
{
    struct str block = STR_INIT(1 << 20);
    char value[201];
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    if (trailers)
        h2_add_field(&block, "grpc-status", "0");
    else
        h2_add_field(&block, ":status", "200");
    while (block.size < 64 << 10)
        h2_add_field(&block, "x-much", value);
    for (size_t i = 0; i < block.size; i += H2_FRAME_MAX) {
        size_t n = block.size - i < H2_FRAME_MAX ? block.size - i
                                                 : H2_FRAME_MAX;
        int flags = (i + n == block.size ? END_HEADERS : 0) |
                    (i == 0 && trailers ? END_STREAM : 0);
        h2_add_frame(out, i == 0 ? FRAME_HEADERS : FRAME_CONTINUATION, flags,
                     stream, block.data + i, n);
    }
    str_fini(&block);
}

/* One entry of nearly 4 KiB in the table, then one byte for each time that it
 * is named again. */
void h2_add_bomb(struct str *out, int32_t stream)
{
    struct str block = STR_INIT(H2_FRAME_MAX);
    h2_add_field(&block, ":status", "200");
    str_add_c(&block, 0x40);
    str_add_c(&block, 1);
    str_add_c(&block, 'b');
    str_add_c(&block, 127); /* 4000, as HPACK writes it with seven bits */
    str_add_c(&block, (char)(((4000 - 127) & 127) | 128));
    str_add_c(&block, (char)((4000 - 127) >> 7));
    while (block.size < 4100)
        str_add_c(&block, 'b');
    while (block.size < H2_FRAME_MAX - 100)
        str_add_c(&block, (char)(128 | 62));
    h2_add_frame(out, FRAME_HEADERS, END_HEADERS, stream, block.data,
                 block.size);
    str_fini(&block);
}

void h2_add_table(struct str *out, int32_t stream)
{
    /* a size of 2^30, as HPACK writes it with five bits; then status 200 */
    const char block[] = {0x3f,       (char)0xe1, (char)0xff, (char)0xff,
                          (char)0xff, 0x03,       (char)0x88};
    h2_add_frame(out, FRAME_HEADERS, END_HEADERS, stream, block, sizeof block);
}
