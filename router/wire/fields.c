#include "router/wire/fields.h"

#include <errno.h>

#include "lib/base/mem.h"

/* Where the rows of each message begin: FIRST_x is the number of the next row,
 * and takes none. */
enum {
#define MESSAGE(message) \
    FIRST_##message, BEFORE_##message = FIRST_##message - 1,
#define FIELD(message, field, number, kind, within) ROW_##message##_##field,
#include "router/wire/fields.inc"
#undef FIELD
#undef MESSAGE
    N_ROWS
};

static const struct {
    const char *name;
    uint32_t first;
} messages[] = {
#define MESSAGE(message) [CRI_##message] = {#message, FIRST_##message},
#define FIELD(message, field, number, kind, within)
#include "router/wire/fields.inc"
#undef FIELD
#undef MESSAGE
    [CRI_Nothing] = {"Nothing", N_ROWS},
};

static const struct fields_row rows[] = {
#define MESSAGE(message)
#define FIELD(message, field, number, kind, within) \
    {CRI_##message, #field, (number), FIELDS_##kind, CRI_##within},
#include "router/wire/fields.inc"
#undef FIELD
#undef MESSAGE
};

const char *fields_message_name(enum fields_message m)
{
    return messages[m].name;
}

const struct fields_row *fields_find(enum fields_message m, uint32_t number)
{
    if (m == CRI_Nothing)
        return NULL;
    for (uint32_t i = messages[m].first; i < messages[m + 1].first; i++)
        if (rows[i].number == number)
            return &rows[i];
    return NULL;
}

static int bad(const struct fields_row *row, const char *why, struct error *err)
{
    return error_set(err, EPROTO, "%s.%s: %s", messages[row->message].name,
                     row->name, why);
}

static enum proto_kind wire_kind(enum fields_kind kind)
{
    switch (kind) {
    case FIELDS_NUMBER:
    case FIELDS_NUMBERS:
        return PROTO_VARINT;
    case FIELDS_DOUBLE:
        return PROTO_FIXED64;
    default:
        return PROTO_BYTES;
    }
}

/* Varints one behind the other, as many as the bytes have ends. */
static bool is_packed(struct proto_bytes b)
{
    size_t n = 0;
    for (size_t i = 0; i < b.size; i++) {
        bool more = (unsigned char)b.data[i] & 0x80;
        n = more ? n + 1 : 0;
        if (n >= 10)
            return false;
    }
    return n == 0;
}

static int check_pair(const struct fields_row *row, struct proto_bytes pair,
                      struct error *err)
{
    struct proto_reader r;
    struct proto_field f;
    int e;
    proto_reader_init(&r, pair);
    while ((e = proto_next(&r, &f, err)) > 0)
        if (f.number <= 2 && (f.kind != PROTO_BYTES || !proto_is_text(f.bytes)))
            return bad(row, "has a key or value that is no text", err);
    return e < 0 ? error_wrap(err, "%s.%s", messages[row->message].name,
                              row->name)
                 : 0;
}

static int check_value(const struct fields_row *row,
                       const struct proto_field *f, struct error *err)
{
    switch (row->kind) {
    case FIELDS_TEXT:
    case FIELDS_TEXTS:
        return proto_is_text(f->bytes) ? 0
                                       : bad(row, "is no text in UTF-8", err);
    case FIELDS_PAIRS:
        return check_pair(row, f->bytes, err);
    case FIELDS_ONE:
    case FIELDS_MANY:
        return fields_check(row->within, f->bytes, err);
    default:
        return 0;
    }
}

static int check_field(const struct fields_row *row,
                       const struct proto_field *f, struct error *err)
{
    if (row->kind == FIELDS_NUMBERS && f->kind == PROTO_BYTES)
        return is_packed(f->bytes) ? 0 : bad(row, "is not packed", err);
    if (f->kind != wire_kind(row->kind))
        return bad(row, "is of another type", err);
    return check_value(row, f, err);
}

/* The table has no circle, so this ends.  Of a message that comes twice the
 * parts would count together, and what we look at would not be what the
 * reader sees. */
int fields_check(enum fields_message m, struct proto_bytes message,
                 struct error *err)
{
    struct proto_reader r;
    struct proto_field f;
    uint64_t seen = 0;
    int e;
    proto_reader_init(&r, message);
    while ((e = proto_next(&r, &f, err)) > 0) {
        const struct fields_row *row = fields_find(m, f.number);
        if (!row)
            continue;
        if (row->kind == FIELDS_ONE && seen >> row->number & 1)
            return bad(row, "comes twice", err);
        if (row->kind == FIELDS_ONE)
            seen |= UINT64_C(1) << row->number;
        int bad_field = check_field(row, &f, err);
        if (bad_field < 0)
            return bad_field;
    }
    return e < 0 ? error_wrap(err, "%s", messages[m].name) : 0;
}

void fields_copy_known(enum fields_message m, struct proto_bytes message,
                       struct str *out)
{
    struct proto_reader r;
    struct proto_field f;
    proto_reader_init(&r, message);
    while (proto_next(&r, &f, NULL) > 0) {
        const struct fields_row *row = fields_find(m, f.number);
        if (!row && f.kind == PROTO_BYTES)
            continue;
        if (row && (row->kind == FIELDS_ONE || row->kind == FIELDS_MANY)) {
            size_t opened = proto_open(out, f.number);
            fields_copy_known(row->within, f.bytes, out);
            proto_close(out, opened);
        } else {
            proto_add_field(out, &f);
        }
    }
}
