/* The reader of messages and of headers: whatever comes and however it is cut
 * up, there is one verdict, and no message is over its cap. */
#include "lib/grpc/grpc_frame.h"

#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MESSAGE_MAX = 1000, HASH_START = 5381 };

struct pending_demands {
    size_t n;
    size_t bytes;
    unsigned hash;
};

static int take(void *ctx, const void *message, size_t size)
{
    struct pending_demands *seen = ctx;
    const unsigned char *at = message;
    assert(size <= MESSAGE_MAX);
    for (size_t i = 0; i < size; i++)
        seen->hash = seen->hash * 33 + at[i];
    seen->n++;
    seen->bytes += size;
    return 0;
}

/* In pieces of `step` bytes. */
static int feed(const char *data, size_t size, size_t step, bool stream,
                struct pending_demands *ret_seen)
{
    cleanup_str struct str message = STR_INIT(MESSAGE_MAX);
    struct pending_demands seen = {.hash = HASH_START};
    struct error err = {0};
    struct grpc_frames frames = {.message = &message,
                                 .message_max = MESSAGE_MAX,
                                 .visit = stream ? take : NULL,
                                 .ctx = &seen};
    int r = 0;
    for (size_t i = 0; r == 0 && i < size; i += step)
        r = grpc_frames_feed(&frames, data + i,
                             size - i < step ? size - i : step, &err);
    if (r == 0)
        r = grpc_frames_end(&frames, &err);
    assert(r == 0 || (err.code == -r && err.text[0]));
    assert(r == 0 || r == -EPROTO || r == -EMSGSIZE);
    assert(message.cap <= 4 * MESSAGE_MAX);
    if (!stream && r == 0)
        (void)take(&seen, str_text(&message), message.size);
    *ret_seen = seen;
    return r;
}

static void check_frames(const char *data, size_t size)
{
    static const size_t steps[] = {1, 3, 7, 1 << 20};
    for (int stream = 0; stream < 2; stream++) {
        struct pending_demands first, other;
        int r = feed(data, size, size ? size : 1, stream, &first);
        for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
            assert(feed(data, size, steps[i], stream, &other) == r);
            assert(memcmp(&first, &other, sizeof first) == 0);
        }
    }
}

static void check_head(const char *data, size_t size)
{
    struct grpc_head head;
    struct error err = {0};
    int r = 0;
    grpc_head_init(&head);
    for (size_t i = 0; r == 0 && i < size;) {
        const char *end = memchr(data + i, '\n', size - i);
        size_t n = end ? (size_t)(end - data) - i + 1 : size - i;
        r = grpc_head_line(&head, data + i, n, &err);
        i += n;
    }
    assert(r == 0 || r == -EPROTO);
    assert(head.size <= GRPC_HEADERS_MAX);
    assert(head.code >= -1 && head.code <= 999);
    size_t text = strlen(head.message);
    assert(text < sizeof head.message);
    for (size_t i = 0, n; i < text; i += n) {
        n = utf8_sequence(head.message + i, text - i);
        assert(n > 0 && (unsigned char)head.message[i] >= ' ');
    }
    if (r == 0)
        r = grpc_head_end(&head, &err);
    assert(r == 0 || (err.code == -r && err.text[0]));
}

/* The first byte chooses. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    if (data[0] & 1)
        check_head((const char *)data + 1, size - 1);
    else
        check_frames((const char *)data + 1, size - 1);
    return 0;
}
