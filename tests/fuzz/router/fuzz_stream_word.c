/* What a remote sends over a stream, followed frame by frame: it is the same
 * in whatever pieces it comes, and what we add is whole frames. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/stream/stream_word.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const protocols[] = {
        "v5.channel.k8s.io", "portforward.k8s.io", "base64.channel.k8s.io", ""};
    if (size < 2)
        return 0;
    const char *upgrade = data[0] & 1 ? "websocket" : "SPDY/3.1";
    const char *protocol = protocols[data[0] >> 1 & 3];
    size_t piece = data[1] % 16 + 1u;
    struct stream_word whole, parts;
    cleanup_str struct str a = STR_INIT(STREAM_WORD_MAX),
                           b = STR_INIT(STREAM_WORD_MAX);
    stream_word_init(&whole, upgrade, protocol);
    stream_word_init(&parts, upgrade, protocol);
    stream_word_pass(&whole, data + 2, size - 2);
    for (size_t at = 2; at < size; at += piece)
        stream_word_pass(&parts, data + at,
                         size - at < piece ? size - at : piece);
    stream_word_say(&whole, "gone", &a);
    stream_word_say(&parts, "gone", &b);
    assert(a.size == b.size && !a.overflow);
    assert(memcmp(str_text(&a), str_text(&b), a.size) == 0);
    if (a.size > 0) {
        struct stream_word after = whole;
        stream_word_pass(&after, a.data, a.size);
        assert(after.left == 0 && after.n_start == 0);
        assert(after.ended == (data[0] & 1));
    }
    return 0;
}
