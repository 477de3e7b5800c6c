/* The scanner: skipping a text, reading it member by member, and by rows that
 * let any kind pass, agree on whether it is right and where it is wrong. */
#include "lib/base/jscan.h"

#include <assert.h>
#include <string.h>

#include "lib/base/jrow.h"
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

struct found {
    struct jtext text, raw;
    char copy[4];
    unsigned n;
};

static void count(struct jscan *s, void *to)
{
    ((struct found *)to)->n++;
    (void)jscan_skip(s);
}

static void read_rows(struct jscan *s)
{
    static const struct jrow inner[] = {
        JROW("name", JROW_LAX, jrow_copy, struct found, copy),
        JROW("labels", JROW_LAX, jrow_raw, struct found, raw),
        JROW_END,
    };
    static const struct jrow rows[] = {
        JROW("a", JROW_LAX, jrow_text, struct found, text),
        JROW_OBJECT("metadata", JROW_LAX, inner),
        JROW_EACH("b", JROW_LAX, count),
        JROW_END,
    };
    struct found found = {0};
    (void)jrow_read(s, JROW_LAX, rows, &found);
    assert(memchr(found.copy, '\0', sizeof found.copy));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct jscan skip, read, by_rows;
    struct error err = {0};
    const char *text = (const char *)data;

    jscan_init(&skip, text, size);
    jscan_init(&read, text, size);
    bool skipped = jscan_skip(&skip) && jscan_end(&skip);
    read_value(&read);
    bool was_read = jscan_end(&read);
    jscan_init(&by_rows, text, size);
    read_rows(&by_rows);
    bool rows_read = jscan_end(&by_rows);
    assert(skipped == was_read && skipped == rows_read);
    if (!skipped) {
        assert(skip.fault && read.fault);
        assert(strcmp(skip.fault, read.fault) == 0);
        assert(strcmp(skip.fault, by_rows.fault) == 0);
        assert(skip.fault_at == read.fault_at && skip.fault_at <= size);
        assert(skip.fault_at == by_rows.fault_at);
        (void)jscan_error(&skip, &err);
        assert(strstr(err.text, " at line "));
    }
    return 0;
}
