/* The heads of a streaming request and of its answer: what is written of them
 * is one head, is taken when it is read again, has no field that is not
 * streaming's, and no line that was not a line of its own before.  The first
 * byte says which of the two it is. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/stream/stream_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_fields(const struct stream_head *head, const char *data,
                         size_t size)
{
    assert(head->n_fields <= STREAM_FIELDS_MAX);
    for (size_t i = 0; i < head->n_fields; i++) {
        const struct stream_field *f = &head->fields[i];
        assert(f->name >= data && f->name + f->name_len <= data + size);
        assert(f->value >= data && f->value + f->value_len <= data + size);
        assert(!memchr(f->value, '\n', f->value_len));
    }
}

static void check_written(const struct str *out, size_t most)
{
    assert(!out->overflow);
    assert(stream_head_end(out->data, out->size, 0) == out->size);
    assert(!strcasestr(out->data, "\nAuthorization:"));
    assert(!strcasestr(out->data, "\nLocation:"));
    assert(out->size <= most);
}

static void check_request(const char *data, size_t size)
{
    static struct stream_request rq, again;
    static const struct stream_url url = {.port = 1, .target = "/exec/x"};
    cleanup_str struct str out = STR_INIT(4 * STREAM_HEAD_MAX);
    struct error err = {0};
    if (stream_request_read(data, size, &rq, &err))
        return;
    check_fields(&rq.head, data, size);
    assert(rq.token > data && rq.token + rq.token_len <= data + size);
    stream_request_write(&rq, &url, "10.0.0.2", &out);
    check_written(&out, size + 256 + 64 * STREAM_FIELDS_MAX);
    int r = stream_request_read(out.data, out.size, &again, &err);
    /* it may be one field too many: ours beside theirs */
    assert(r == 0 || r == -E2BIG);
    assert(r || strcmp(again.upgrade, rq.upgrade) == 0);
}

static void check_answer(const char *data, size_t size, const char *upgrade)
{
    static struct stream_answer a, again;
    cleanup_str struct str out = STR_INIT(4 * STREAM_HEAD_MAX);
    struct error err = {0};
    if (stream_answer_read(data, size, upgrade, &a, &err))
        return;
    check_fields(&a.head, data, size);
    stream_answer_write(&a, upgrade, &out);
    check_written(&out, size + 256);
    int r = stream_answer_read(out.data, out.size, upgrade, &again, &err);
    assert(r == 0 || strstr(err.text, "fields"));
    assert(r || (a.status == again.status && a.length == again.length &&
                 a.chunked == again.chunked &&
                 strcmp(a.protocol, again.protocol) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data + 1;
    if (size < 1 || size > STREAM_HEAD_MAX)
        return 0;
    size_t end = stream_head_end(text, size - 1, 0);
    size_t n = end ? end : size - 1;
    if (data[0] == 'r')
        check_request(text, n);
    else
        check_answer(text, n, data[0] == 'w' ? "websocket" : "SPDY/3.1");
    return 0;
}
