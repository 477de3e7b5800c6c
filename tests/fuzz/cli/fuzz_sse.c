/* Server-sent events: whole or in pieces, the same events come. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "lib/http/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool note(void *ctx, const struct sse_event *e)
{
    assert(e->event[0]);
    str_addf(ctx, "%s\n%s\n%s\n", e->event, e->id, e->data);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_str struct str whole = STR_INIT(16 << 20),
                           pieces = STR_INIT(16 << 20);
    const char *text = size ? (const char *)data : "";
    struct sse s;
    sse_init(&s, note, &whole);
    bool all = sse_feed(&s, text, size), each = true;
    sse_fini(&s);
    sse_init(&s, note, &pieces);
    for (size_t i = 0; each && i < size; i++)
        each = sse_feed(&s, text + i, 1);
    sse_fini(&s);
    assert(all == each);
    assert(strcmp(str_text(&whole), str_text(&pieces)) == 0);
    return 0;
}
