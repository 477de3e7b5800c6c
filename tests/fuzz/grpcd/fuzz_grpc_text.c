/* grpc-timeout, grpc-message and prefixes: what is read can be written, and
 * nothing is written that would not be read. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/h2/grpc_prefix.h"
#include "lib/h2/grpc_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_timeout(const char *data, size_t size)
{
    cleanup_free char *text = xstrndup(data, size);
    char again[GRPC_TIMEOUT_MAX];
    int64_t ms, back;
    if (!grpc_timeout_read(text, &ms))
        return;
    assert(ms >= 0 && ms <= (int64_t)99999999 * 3600000);
    grpc_timeout_write(ms, again);
    assert(grpc_timeout_read(again, &back));
    assert(back >= ms && back - ms < 3600000 && back >= 1);
}

static void check_message(const char *data, size_t size)
{
    cleanup_str struct str out = STR_INIT(3 * size + 1);
    cleanup_free char *back = xmalloc(3 * size + 1);
    grpc_text_encode(data, size, &out);
    for (size_t i = 0; i < out.size; i++)
        assert(out.data[i] >= ' ' && out.data[i] <= '~');
    assert(grpc_text_decode(str_text(&out), out.size, back, 3 * size) == size);
    assert(memcmp(back, data, size) == 0);
    assert(grpc_text_decode(data, size, back, size) <= size);
}

static void check_prefix(const uint8_t *data, size_t size)
{
    unsigned char prefix[GRPC_PREFIX];
    struct error err;
    size_t announced;
    if (size < GRPC_PREFIX ||
        grpc_prefix_read(data, 1 << 20, &announced, &err) < 0)
        return;
    assert(announced <= 1 << 20);
    grpc_prefix(announced, prefix);
    assert(memcmp(prefix, data, sizeof prefix) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_timeout((const char *)data, size);
    check_message((const char *)data, size);
    check_prefix(data, size);
    return 0;
}
