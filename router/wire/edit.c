#include "router/wire/edit.h"

#include <errno.h>
#include <string.h>

int edit_fields(struct proto_bytes message, edit_f *edit, void *ctx,
                struct str *out, struct error *err)
{
    struct proto_reader r;
    struct proto_field f;
    int e;
    proto_reader_init(&r, message);
    while ((e = proto_next(&r, &f, err)) > 0) {
        int what = edit(ctx, &f, out, err);
        if (what < 0)
            return what;
        if (what == EDIT_COPY)
            proto_add_field(out, &f);
    }
    return e;
}

int edit_within(const struct proto_field *field, edit_f *edit,
                void (*finish)(void *ctx, struct str *out), void *ctx,
                struct str *out, struct error *err)
{
    size_t opened = proto_open(out, field->number);
    int e = edit_fields(field->bytes, edit, ctx, out, err);
    if (e == 0 && finish)
        finish(ctx, out);
    proto_close(out, opened);
    return e;
}

int edit_end(const struct str *out, struct error *err)
{
    if (out->starved)
        return error_set(err, ENOMEM, "no memory for a message of %zu bytes",
                         out->size);
    if (out->overflow)
        return error_set(err, EMSGSIZE, "the message has over %zu bytes",
                         out->max);
    return 0;
}

bool edit_is_key(const struct proto_field *entry, const char *key)
{
    struct proto_bytes found, value;
    return proto_read_pair(entry->bytes, &found, &value, NULL) == 0 &&
           proto_equals(found, key);
}

bool edit_is_key_of(const struct proto_field *entry, struct cri_pairs pairs)
{
    for (size_t i = 0; i < pairs.n; i++)
        if (edit_is_key(entry, pairs.list[i].key))
            return true;
    return false;
}

void edit_add_pairs(struct str *out, uint32_t number, struct cri_pairs pairs)
{
    for (size_t i = 0; i < pairs.n; i++)
        proto_add_pair(out, number, pairs.list[i].key, pairs.list[i].value);
}

struct proto_bytes edit_bytes(struct proto_bytes message, uint32_t number)
{
    struct proto_field f;
    return proto_find(message, number, PROTO_BYTES, &f, NULL) > 0
               ? f.bytes
               : (struct proto_bytes){"", 0};
}

uint64_t edit_number(struct proto_bytes message, uint32_t number)
{
    struct proto_field f;
    return proto_find(message, number, PROTO_VARINT, &f, NULL) > 0 ? f.value
                                                                   : 0;
}
