/* Lines of a log: no more is given than is wanted, all is given that was
 * written, and it is the same in bites that end with lines. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "advertiser/act/card/log_pick.h"
#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void pick(const struct log_want *want, uint64_t skip, const char *lines,
                 size_t size, struct str *out)
{
    struct log_pick p = {.want = want, .skip = skip};
    log_pick_lines(&p, lines, size, out);
    assert(want->limit_bytes < 0 || out->size <= (size_t)want->limit_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 1 << 16)
        return 0;
    const char *lines = (const char *)data + 2;
    size_t n = size - 2;
    struct log_want want = LOG_WANT_ALL;
    struct str whole = STR_INIT(1 << 20), bites = STR_INIT(1 << 20);
    want.timestamps = data[0] & 1;
    want.since_ns = data[0] & 2 ? 1767225602000000000 : INT64_MIN;
    want.limit_bytes = data[0] & 4 ? data[1] : -1;
    uint64_t skip = data[0] >> 4;
    pick(&want, skip, lines, n, &whole);
    assert(!whole.overflow && whole.size <= n + 1);
    struct log_pick p = {.want = &want, .skip = skip};
    for (size_t at = 0; at < n;) {
        const char *end = memchr(lines + at, '\n', n - at);
        size_t bite = end ? (size_t)(end + 1 - lines) - at : n - at;
        log_pick_lines(&p, lines + at, bite, &bites);
        at += bite;
    }
    assert(whole.size == bites.size);
    assert(memcmp(str_text(&whole), str_text(&bites), whole.size) == 0);
    str_reset(&whole);
    /* without the lines that there are nothing is left */
    want = LOG_WANT_ALL;
    pick(&want, log_pick_count(lines, n), lines, n, &whole);
    assert(whole.size == 0);
    str_fini(&whole);
    str_fini(&bites);
    return 0;
}
