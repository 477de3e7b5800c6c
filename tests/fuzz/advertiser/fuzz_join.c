/* One stream between a hostile client and a hostile runtime, in turns: it grows
 * less than twice, but for a ping that was kept, and each side gets whole
 * frames. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "advertiser/act/stream/join.h"
#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_client(const struct str *out)
{
    struct error err;
    for (size_t at = 0; at < out->size;) {
        struct ws_message m;
        ssize_t n = ws_frame_read(out->data + at, out->size - at, &m, &err);
        assert(n > 0);
        at += (size_t)n;
    }
}

static void check_runtime(const struct str *out)
{
    struct spdy_reader r = {0};
    struct spdy_piece p;
    struct error err;
    for (size_t at = 0; at < out->size;) {
        ssize_t n = spdy_read(&r, out->data + at, out->size - at, &p, &err);
        assert(n > 0);
        at += (size_t)n;
    }
    assert(r.n_head == 0);
}

/* The first byte says what it is; then a side's bytes follow, whose size stands
 * before them: odd ones are the runtime's. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int32_t ports[] = {80, 8080};
    struct join j;
    struct error err = {0};
    struct str to_runtime = STR_INIT(1 << 20), to_client = STR_INIT(1 << 20);
    if (size < 1 || size > 1 << 16)
        return 0;
    const struct join_config c = {.ports = ports,
                                  .n_ports = data[0] & 1 ? 2 : 0,
                                  .in = data[0] & 2,
                                  .out = data[0] & 4,
                                  .err = data[0] & 8,
                                  .tty = data[0] & 16};
    join_init(&j, &c, &to_runtime, &to_client);
    int r = 0;
    for (size_t at = 1; at < size && r == 0;) {
        size_t n = data[at++], before = to_runtime.size + to_client.size;
        bool runtime = n & 1;
        n = n < size - at ? n : size - at;
        cleanup_free char *copy = xmalloc(n + 1);
        memcpy(copy, data + at, n);
        r = runtime
                ? join_from_runtime(&j, copy, n, &to_runtime, &to_client, &err)
                : join_from_client(&j, copy, n, &to_runtime, &to_client, &err);
        assert(r == 0 || r == -EPROTO || r == -ECONNRESET);
        assert(to_runtime.size + to_client.size - before <=
               2 * n + 16 + WS_CONTROL_MAX);
        at += n;
    }
    join_end(&j, r < 0 ? err.text : NULL, &to_client);
    assert(!to_runtime.overflow && !to_client.overflow);
    check_client(&to_client);
    check_runtime(&to_runtime);
    str_fini(&to_runtime);
    str_fini(&to_client);
    return 0;
}
