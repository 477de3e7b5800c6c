/* Frames of either side of a stream: what is taken lies within the bytes, and
 * is the same however they are cut. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/stream/spdy_frame.h"
#include "lib/stream/ws_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_spdy(const char *data, size_t size, size_t step,
                      struct str *out)
{
    struct spdy_reader r = {0};
    struct spdy_piece p;
    struct error err = {0};
    for (size_t at = 0; at < size;) {
        size_t n = size - at < step ? size - at : step;
        ssize_t taken = spdy_read(&r, data + at, n, &p, &err);
        if (taken < 0) {
            assert(taken == -EPROTO && err.text[0]);
            str_add(out, "bad");
            return;
        }
        assert(taken > 0 && (size_t)taken <= n);
        assert(p.size == 0 ||
               (p.data >= data + at && p.data + p.size <= data + at + n));
        at += (size_t)taken;
        str_add_n(out, p.data, p.size);
        if (p.kind != SPDY_NOTHING && (p.kind != SPDY_DATA || p.last))
            str_addf(out, "<%d %u %d>", (int)p.kind, p.stream, p.last);
    }
}

static void read_ws(const char *data, size_t size, size_t step, struct str *out)
{
    cleanup_free char *copy = xmemdup(data, size);
    struct ws_input in = {0};
    struct ws_piece p;
    struct error err = {0};
    for (size_t at = 0; at < size;) {
        size_t n = size - at < step ? size - at : step;
        ssize_t taken = ws_input_read(&in, copy + at, n, &p, &err);
        if (taken < 0) {
            assert(taken == -EPROTO && err.text[0]);
            str_add(out, "bad");
            return;
        }
        assert(taken > 0 && (size_t)taken <= n);
        at += (size_t)taken;
        str_add_n(out, p.data, p.size);
        if (p.kind && p.last)
            str_addf(out, "<%d>", (int)p.kind);
    }
}

/* The first byte chooses. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const all[])(const char *, size_t, size_t,
                               struct str *) = {read_spdy, read_ws};
    if (size < 2)
        return 0;
    const char *bytes = (const char *)data + 1;
    struct str whole = STR_INIT(64 << 20), cut = STR_INIT(64 << 20);
    all[data[0] % 2](bytes, size - 1, size, &whole);
    all[data[0] % 2](bytes, size - 1, 1 + data[0] / 2 % 7, &cut);
    assert(whole.size == cut.size);
    assert(memcmp(str_text(&whole), str_text(&cut), whole.size) == 0);
    str_fini(&whole);
    str_fini(&cut);
    return 0;
}
