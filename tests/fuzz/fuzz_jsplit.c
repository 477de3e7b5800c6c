/* The splitter: the first byte is the kind and the cap, the second how the
 * rest is cut into calls.  Cut otherwise, the same comes out; no more is held
 * than allowed; and a list of which all parts are JSON is JSON. */
#include "lib/kube/jsplit.h"

#include <assert.h>
#include <string.h>

#include "lib/base/jscan.h"
#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    struct str objects;
    struct error err;
    bool right; /* all objects are JSON */
    uint64_t n;
};

static bool scans(const char *data, size_t size)
{
    struct jscan s;
    jscan_init(&s, data, size);
    return jscan_skip(&s) && jscan_end(&s);
}

static int visit(void *ctx, const char *json, size_t size)
{
    struct outcome *o = ctx;
    assert(size >= 2 && json[0] == '{' && json[size - 1] == '}');
    str_add_n(&o->objects, json, size);
    str_add_c(&o->objects, '\n');
    o->right &= scans(json, size);
    o->n++;
    return 0;
}

/* Pieces of 1 … cut bytes, one after the other; 0: all at once. */
static void split(struct jsplit *s, const char *text, size_t size, unsigned cut,
                  struct outcome *o)
{
    size_t n = cut ? 1 : size;
    for (size_t at = 0; at < size; at += n) {
        if (cut)
            n = n % cut + 1;
        if (n > size - at)
            n = size - at;
        /* a copy of just that size, so that a sanitizer sees its end */
        cleanup_free char *piece = xmemdup(text + at, n);
        if (jsplit_feed(s, piece, n, &o->err) < 0)
            break;
        assert(s->object.size <= s->object_max);
        assert(s->rest.size <= JSPLIT_REST_MAX);
    }
    (void)jsplit_end(s, &o->err);
    assert(s->object.cap <= 2 * (s->object_max + 64));
    assert(s->n_objects == o->n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    enum jsplit_kind kind = data[0] & 1 ? JSPLIT_STREAM : JSPLIT_LIST;
    size_t max = data[0] & 2 ? 16 : 1 << 16;
    const char *text = (const char *)data + 2;
    struct outcome whole = {.objects = STR_INIT(1 << 24), .right = true};
    struct outcome cut = {.objects = STR_INIT(1 << 24), .right = true};
    struct jsplit a, b;
    jsplit_init(&a, kind, max, visit, &whole);
    jsplit_init(&b, kind, max, visit, &cut);
    split(&a, text, size - 2, 0, &whole);
    split(&b, text, size - 2, data[1] + 1u, &cut);
    assert(whole.n == cut.n && a.n_bytes == b.n_bytes);
    assert(whole.objects.size == cut.objects.size);
    assert(strcmp(str_text(&whole.objects), str_text(&cut.objects)) == 0 ||
           memchr(text, '\0', size - 2));
    assert(a.rest.size == b.rest.size);
    assert(a.rest.size == 0 ||
           memcmp(a.rest.data, b.rest.data, a.rest.size) == 0);
    assert(whole.err.code == cut.err.code);
    assert(strcmp(whole.err.text, cut.err.text) == 0);
    if (kind == JSPLIT_LIST && !whole.err.code && whole.right &&
        scans(str_text(&a.rest), a.rest.size))
        assert(scans(text, size - 2));
    jsplit_fini(&a);
    jsplit_fini(&b);
    str_fini(&whole.objects);
    str_fini(&cut.objects);
    return 0;
}
