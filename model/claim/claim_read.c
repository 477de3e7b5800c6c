#include "model/claim/claim_read.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/pod/quantity.h"

int claim_read_object(const char *json, size_t size, size_t max,
                      const struct jrow *rows, struct claim_reading *r)
{
    struct jscan s;
    if (size > max)
        return error_set(r->err, EINVAL,
                         "the object has %zu bytes, allowed are %zu", size,
                         max);
    jscan_init_kube(&s, json, size);
    (void)jrow_read(&s, JROW_STRICT, rows, r); /* a fault sticks */
    if (r->code)
        return r->code;
    return jscan_end(&s) ? 0 : jscan_error(&s, r->err);
}

void claim_refuse(struct claim_reading *r, struct jscan *s, int code,
                  const char *fmt, ...)
{
    char text[ERROR_TEXT_MAX];
    va_list args;
    if (r->code || s->fault)
        return;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args); /* what is long is cut */
    va_end(args);
    r->code = error_set(r->err, code, "%s", text);
    jscan_fail(s, "refused", jscan_offset(s));
}

const char *claim_keep(struct claim_reading *r, struct jscan *s,
                       const struct jtext *text, size_t max, const char *path)
{
    if (!text->data)
        return "";
    char *copy = arena_alloc(r->arena, text->size + 1);
    size_t size = jtext_decode(text, copy);
    if (size <= max)
        return copy;
    claim_refuse(r, s, EINVAL, "%s: has %zu bytes, allowed are %zu", path, size,
                 max);
    return NULL;
}

const char *claim_need(struct claim_reading *r, struct jscan *s,
                       const struct jtext *text, size_t max, const char *path)
{
    const char *kept = claim_keep(r, s, text, max, path);
    if (kept && !*kept)
        claim_refuse(r, s, EINVAL, "%s: must not be empty", path);
    return kept && *kept ? kept : NULL;
}

void *claim_keep_array(struct claim_reading *r, const void *array, size_t n,
                       size_t size)
{
    void *copy = arena_alloc(r->arena, n ? n * size : 1);
    if (n)
        memcpy(copy, array, n * size);
    return copy;
}

int64_t claim_read_amount(struct claim_reading *r, struct jscan *s,
                          const char *path)
{
    struct jtext text;
    int64_t milli = -1;
    if (!(jscan_peek(s) == JKIND_STRING ? jscan_string(s, &text)
                                        : jscan_raw(s, &text)))
        return -1;
    if (!quantity_parse(text.data, text.size, &milli))
        claim_refuse(r, s, EINVAL, "%s: is \"%.*s\", must be a quantity", path,
                     (int)(text.size < 64 ? text.size : 64), text.data);
    return milli;
}
