/* proto - the fields of a message of Protocol Buffers, read and written one by
 * one, without a schema: what the caller does not know it copies as it is.
 * Pure.
 *
 * Read are varints, fixed numbers and bytes; groups, which proto3 does not
 * have, are refused as malformed. */
#ifndef BIGA_LIB_BASE_PROTO_H
#define BIGA_LIB_BASE_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

enum proto_kind {
    PROTO_VARINT = 0,
    PROTO_FIXED64 = 1,
    PROTO_BYTES = 2, /* also texts, messages, maps' entries, packed numbers */
    PROTO_FIXED32 = 5,
};

/* Borrowed from the message, not NUL-terminated. */
struct proto_bytes {
    const char *data;
    size_t size;
};

struct proto_field {
    uint32_t number; /* 1 to 2^29 - 1 */
    enum proto_kind kind;
    uint64_t value;           /* of a varint or fixed number */
    struct proto_bytes bytes; /* of PROTO_BYTES */
    struct proto_bytes raw;   /* the whole field, with its tag */
};

struct proto_reader {
    const char *begin, *p, *end;
};
void proto_reader_init(struct proto_reader *r, struct proto_bytes message);
/* 1 with the next field, 0 at the end, -EPROTO with the byte at which it is
 * malformed. */
int proto_next(struct proto_reader *r, struct proto_field *ret_field,
               struct error *err);

/* The last field of that number and kind, as readers of Protocol Buffers have
 * it: 1, 0 when there is none, or -EPROTO. */
int proto_find(struct proto_bytes message, uint32_t number,
               enum proto_kind kind, struct proto_field *ret_field,
               struct error *err);

/* An entry of a map<string, string>; "" what is not there.  0 or -EPROTO. */
int proto_read_pair(struct proto_bytes entry, struct proto_bytes *ret_key,
                    struct proto_bytes *ret_value, struct error *err);
/* The value of a key in the map of that number, the last one: as proto_find().
 */
int proto_find_pair(struct proto_bytes message, uint32_t number,
                    const char *key, struct proto_bytes *ret_value,
                    struct error *err);

/* Is it UTF-8 without NUL? */
bool proto_is_text(struct proto_bytes text);
bool proto_equals(struct proto_bytes bytes, const char *text);

/* --- writing: appended to `out`, whose overflow the caller looks at -------- */

void proto_add_varint(struct str *out, uint32_t number, uint64_t value);
void proto_add_bytes(struct str *out, uint32_t number, struct proto_bytes b);
/* Nothing when it is "" or NULL, which is the same on the wire. */
void proto_add_text(struct str *out, uint32_t number, const char *text);
void proto_add_field(struct str *out, const struct proto_field *field);
/* An entry of a map<string, string>. */
void proto_add_pair(struct str *out, uint32_t number, const char *key,
                    const char *value);
/* A message in between: what is added until proto_close(), to which goes what
 * proto_open() returned, is its fields. */
size_t proto_open(struct str *out, uint32_t number);
void proto_close(struct str *out, size_t opened);

#endif
