#include "lib/base/jrow.h"

#include <string.h>

bool jrow_wants(struct jscan *s, enum jrow_policy policy, enum jkind kind)
{
    bool wants = policy == JROW_STRICT || kind == JKIND_NONE ||
                 (policy == JROW_NULLABLE ? jscan_peek(s) != JKIND_NULL
                                          : jscan_peek(s) == kind);
    if (!wants)
        (void)jscan_skip(s); /* a fault sticks */
    return wants;
}

const struct jrow *jrow_find(const struct jrow *rows, const struct jtext *key)
{
    for (const struct jrow *row = rows; row->key; row++)
        if (key->escaped ? jtext_is(key, row->key)
                         : key->size == row->key_size &&
                               memcmp(key->data, row->key, key->size) == 0)
            return row;
    return NULL;
}

bool jrow_read(struct jscan *s, enum jrow_policy policy,
               const struct jrow *rows, void *to)
{
    struct jtext key;
    if (!jrow_wants(s, policy, JKIND_OBJECT) || !jscan_object(s))
        return false;
    while (jscan_member(s, &key)) {
        const struct jrow *row = jrow_find(rows, &key);
        if (!row)
            (void)jscan_skip(s); /* a fault ends the loop */
        else if (jrow_wants(s, row->policy, row->kind))
            row->read(s, row, (char *)to + row->offset);
    }
    return !s->fault;
}

int jrow_parse(struct jscan *s, enum jrow_policy policy,
               const struct jrow *rows, void *to, struct error *err)
{
    (void)jrow_read(s, policy, rows, to); /* a fault sticks */
    return jscan_end(s) ? 0 : jscan_error(s, err);
}

/* --- readers, which leave a fault with the scanner ----------------------- */

void jrow_text(struct jscan *s, const struct jrow *row, void *to)
{
    (void)row;
    (void)jscan_string(s, to);
}

void jrow_copy(struct jscan *s, const struct jrow *row, void *to)
{
    struct jtext text;
    if (jscan_string(s, &text) && text.size < row->size)
        (void)jtext_decode(&text, to);
}

void jrow_fit(struct jscan *s, const struct jrow *row, void *to)
{
    struct jtext text;
    size_t at = jscan_offset(s);
    if (!jscan_string(s, &text))
        return;
    if (text.size < row->size)
        (void)jtext_decode(&text, to);
    else
        jscan_fail(s, "text too long", at);
}

void jrow_int64(struct jscan *s, const struct jrow *row, void *to)
{
    (void)row;
    (void)jscan_int64(s, to);
}

void jrow_raw(struct jscan *s, const struct jrow *row, void *to)
{
    (void)row;
    (void)jscan_raw(s, to);
}

void jrow_object(struct jscan *s, const struct jrow *row, void *to)
{
    (void)jrow_read(s, row->policy, row->rows, to);
}

void jrow_call(struct jscan *s, const struct jrow *row, void *to)
{
    row->call(s, to);
}

void jrow_each(struct jscan *s, const struct jrow *row, void *to)
{
    if (!jscan_array(s))
        return;
    while (jscan_element(s))
        if (row->call)
            row->call(s, to);
        else
            jrow_object(s, row, to);
}
