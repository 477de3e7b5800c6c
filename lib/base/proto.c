#include "lib/base/proto.h"

#include <string.h>

#include "lib/base/utf8.h"

enum {
    VARINT_MAX = 10, /* bytes */
    NUMBER_MAX = (1 << 29) - 1,
    TAG_BITS = 3, /* of a tag, that say the kind */
};

void proto_reader_init(struct proto_reader *r, struct proto_bytes message)
{
    static const char nothing[1];
    r->begin = message.data ? message.data : nothing;
    r->p = r->begin;
    r->end = r->begin + message.size;
}

static bool take_varint(struct proto_reader *r, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < VARINT_MAX && r->p < r->end; i++) {
        unsigned char c = (unsigned char)*r->p++;
        if (i == VARINT_MAX - 1 && c > 1)
            return false; /* of more than 64 bits */
        value |= (uint64_t)(c & 0x7f) << (7 * i);
        if (c < 0x80) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool take_fixed(struct proto_reader *r, size_t size, uint64_t *ret_value)
{
    uint64_t value = 0;
    if ((size_t)(r->end - r->p) < size)
        return false;
    for (size_t i = size; i-- > 0;)
        value = value << 8 | (unsigned char)r->p[i];
    r->p += size;
    *ret_value = value;
    return true;
}

static bool take_bytes(struct proto_reader *r, struct proto_bytes *ret_bytes)
{
    uint64_t size;
    if (!take_varint(r, &size) || size > (uint64_t)(r->end - r->p))
        return false;
    *ret_bytes = (struct proto_bytes){r->p, (size_t)size};
    r->p += size;
    return true;
}

static bool take_value(struct proto_reader *r, struct proto_field *f)
{
    switch (f->kind) {
    case PROTO_VARINT:
        return take_varint(r, &f->value);
    case PROTO_FIXED64:
        return take_fixed(r, 8, &f->value);
    case PROTO_FIXED32:
        return take_fixed(r, 4, &f->value);
    case PROTO_BYTES:
        return take_bytes(r, &f->bytes);
    }
    return false;
}

int proto_next(struct proto_reader *r, struct proto_field *ret_field,
               struct error *err)
{
    struct proto_field f = {0};
    const char *begin = r->p;
    uint64_t tag;
    if (r->p == r->end)
        return 0;
    bool ok = take_varint(r, &tag) && tag >> TAG_BITS >= 1 &&
              tag >> TAG_BITS <= NUMBER_MAX;
    if (ok) {
        f.number = (uint32_t)(tag >> TAG_BITS);
        f.kind = (enum proto_kind)(tag & ((1 << TAG_BITS) - 1));
        ok = take_value(r, &f);
    }
    if (!ok)
        return error_set(err, EPROTO, "byte %zu begins no field",
                         (size_t)(begin - r->begin));
    f.raw = (struct proto_bytes){begin, (size_t)(r->p - begin)};
    *ret_field = f;
    return 1;
}

int proto_find(struct proto_bytes message, uint32_t number,
               enum proto_kind kind, struct proto_field *ret_field,
               struct error *err)
{
    struct proto_reader r;
    struct proto_field f;
    int found = 0, e;
    proto_reader_init(&r, message);
    while ((e = proto_next(&r, &f, err)) > 0) {
        if (f.number != number || f.kind != kind)
            continue;
        *ret_field = f;
        found = 1;
    }
    return e < 0 ? e : found;
}

int proto_read_pair(struct proto_bytes entry, struct proto_bytes *ret_key,
                    struct proto_bytes *ret_value, struct error *err)
{
    struct proto_bytes parts[2] = {{"", 0}, {"", 0}};
    struct proto_reader r;
    struct proto_field f;
    int e;
    proto_reader_init(&r, entry);
    while ((e = proto_next(&r, &f, err)) > 0)
        if (f.kind == PROTO_BYTES && f.number <= 2)
            parts[f.number - 1] = f.bytes;
    if (e < 0)
        return e;
    *ret_key = parts[0];
    *ret_value = parts[1];
    return 0;
}

int proto_find_pair(struct proto_bytes message, uint32_t number,
                    const char *key, struct proto_bytes *ret_value,
                    struct error *err)
{
    struct proto_bytes found_key, value;
    struct proto_reader r;
    struct proto_field f;
    int found = 0, e;
    proto_reader_init(&r, message);
    while ((e = proto_next(&r, &f, err)) > 0) {
        if (f.number != number || f.kind != PROTO_BYTES)
            continue;
        if ((e = proto_read_pair(f.bytes, &found_key, &value, err)) < 0)
            return e;
        if (!proto_equals(found_key, key))
            continue;
        *ret_value = value;
        found = 1;
    }
    return e < 0 ? e : found;
}

bool proto_is_text(struct proto_bytes text)
{
    for (size_t i = 0, n; i < text.size; i += n) {
        n = utf8_sequence(text.data + i, text.size - i);
        if (n == 0 || text.data[i] == '\0')
            return false;
    }
    return true;
}

bool proto_equals(struct proto_bytes bytes, const char *text)
{
    size_t size = strlen(text);
    return bytes.size == size &&
           (size == 0 || memcmp(bytes.data, text, size) == 0);
}

/* --- writing -------------------------------------------------------------- */

static size_t encode_varint(char to[VARINT_MAX], uint64_t value)
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        to[n++] = (char)(value | 0x80);
    to[n++] = (char)value;
    return n;
}

static void add_varint(struct str *out, uint64_t value)
{
    char bytes[VARINT_MAX];
    str_add_n(out, bytes, encode_varint(bytes, value));
}

static void add_tag(struct str *out, uint32_t number, enum proto_kind kind)
{
    add_varint(out, (uint64_t)number << TAG_BITS | kind);
}

void proto_add_varint(struct str *out, uint32_t number, uint64_t value)
{
    add_tag(out, number, PROTO_VARINT);
    add_varint(out, value);
}

void proto_add_bytes(struct str *out, uint32_t number, struct proto_bytes b)
{
    add_tag(out, number, PROTO_BYTES);
    add_varint(out, b.size);
    str_add_n(out, b.data, b.size);
}

void proto_add_text(struct str *out, uint32_t number, const char *text)
{
    if (text && *text)
        proto_add_bytes(out, number, (struct proto_bytes){text, strlen(text)});
}

void proto_add_field(struct str *out, const struct proto_field *field)
{
    str_add_n(out, field->raw.data, field->raw.size);
}

void proto_add_pair(struct str *out, uint32_t number, const char *key,
                    const char *value)
{
    size_t opened = proto_open(out, number);
    proto_add_text(out, 1, key);
    proto_add_text(out, 2, value);
    proto_close(out, opened);
}

size_t proto_open(struct str *out, uint32_t number)
{
    add_tag(out, number, PROTO_BYTES);
    return out->size;
}

/* The size stands before what it is of, so that moves. */
void proto_close(struct str *out, size_t opened)
{
    char bytes[VARINT_MAX];
    if (out->overflow)
        return;
    size_t size = out->size - opened;
    size_t n = encode_varint(bytes, size);
    str_add_n(out, bytes, n);
    if (out->overflow)
        return;
    memmove(out->data + opened + n, out->data + opened, size);
    memcpy(out->data + opened, bytes, n);
}
