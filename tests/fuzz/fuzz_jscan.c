/* The scanner: skipping a text and reading it member by member agree on
 * whether it is right and where it is wrong. */
#include "lib/base/jscan.h"

#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_string(struct jscan *s)
{
    struct jtext text;
    if (!jscan_string(s, &text))
        return;
    cleanup_free char *decoded = xmalloc(text.size + 1);
    size_t n = jtext_decode(&text, decoded);
    assert(n <= text.size && decoded[n] == '\0');
    assert(!memchr(decoded, '\0', n));
    for (size_t i = 0; i < n;) {
        size_t len = utf8_sequence(decoded + i, n - i);
        assert(len > 0);
        i += len;
    }
}

/* Depth is bounded by the scanner. */
static void read_value(struct jscan *s)
{
    struct jtext text;
    bool flag;
    switch (jscan_peek(s)) {
    case JKIND_OBJECT:
        if (jscan_object(s))
            while (jscan_member(s, &text))
                read_value(s);
        return;
    case JKIND_ARRAY:
        if (jscan_array(s))
            while (jscan_element(s))
                read_value(s);
        return;
    case JKIND_STRING:
        read_string(s);
        return;
    case JKIND_TRUE:
    case JKIND_FALSE:
        (void)jscan_bool(s, &flag);
        return;
    case JKIND_NULL:
        (void)jscan_null(s);
        return;
    case JKIND_NUMBER:
        (void)jscan_raw(s, &text);
        return;
    case JKIND_NONE:
        return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct jscan skip, read;
    struct error err = {0};
    const char *text = (const char *)data;

    jscan_init(&skip, text, size);
    jscan_init(&read, text, size);
    bool skipped = jscan_skip(&skip) && jscan_end(&skip);
    read_value(&read);
    bool was_read = jscan_end(&read);
    assert(skipped == was_read);
    if (!skipped) {
        assert(skip.fault && read.fault);
        assert(strcmp(skip.fault, read.fault) == 0);
        assert(skip.fault_at == read.fault_at && skip.fault_at <= size);
        (void)jscan_error(&skip, &err);
        assert(strstr(err.text, " at line "));
    }
    return 0;
}
