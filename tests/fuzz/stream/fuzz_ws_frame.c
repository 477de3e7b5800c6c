/* What a runtime streams: a message lies within the bytes and its cap, and
 * what is written reads as a client's; an exit status is one. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "cli/base/ws_status.h"
#include "lib/base/mem.h"
#include "lib/stream/ws_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_frames(const char *data, size_t size)
{
    while (size > 0) {
        struct ws_message m;
        struct error err = {0};
        ssize_t n = ws_frame_read(data, size, &m, &err);
        assert(n >= 0 || n == -EPROTO || n == -EMSGSIZE);
        assert(n >= 0 || err.text[0]);
        if (n <= 0)
            break;
        assert((size_t)n <= size && m.size <= WS_MESSAGE_MAX);
        assert(m.data > data && m.data + m.size == data + n);
        data += n;
        size -= (size_t)n;
    }
}

/* Without its mask it is what the other side would send. */
static void try_written(const char *data, size_t size)
{
    static const unsigned char mask[WS_MASK] = {0, 0, 0, 0};
    cleanup_str struct str out = STR_INIT(WS_MESSAGE_MAX + WS_HEAD_MAX);
    struct ws_message m;
    struct error err = {0};
    ws_frame_write(WS_BINARY, mask, data, size, &out);
    assert(!out.overflow && ws_frame_read(out.data, out.size, &m, &err) < 0);
    out.data[1] = (char)(out.data[1] & 0x7f);
    size_t head = out.size - size - WS_MASK;
    memmove(out.data + head, out.data + head + WS_MASK, size);
    out.size -= WS_MASK;
    assert(ws_frame_read(out.data, out.size, &m, &err) == (ssize_t)out.size);
    assert(m.kind == WS_BINARY && m.size == size);
    assert(size == 0 || memcmp(m.data, data, size) == 0);
}

static void try_status(const char *data, size_t size)
{
    struct error err = {0};
    int code = -1, r = ws_status_read(data, size, &code, &err);
    assert(r == 0 || r == -EPROTO || r == -EIO);
    assert(r == 0 ? code >= 0 && code <= 255 : code == -1 && err.text[0]);
}

/* The first byte chooses. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const all[])(const char *, size_t) = {try_frames, try_written,
                                                        try_status};
    if (size > 0 && size <= WS_MESSAGE_MAX)
        all[data[0] % ARRAY_LEN(all)]((const char *)data + 1, size - 1);
    return 0;
}
