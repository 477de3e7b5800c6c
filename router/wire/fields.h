/* fields - the fields of CRI's messages (fields.inc): their numbers, as
 * CRI_PodSandbox_id, and what is to be in them.  Pure. */
#ifndef BIGA_ROUTER_WIRE_FIELDS_H
#define BIGA_ROUTER_WIRE_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/proto.h"
#include "lib/base/str.h"

/* The names are upstream's. */
enum fields_number {
#define MESSAGE(message)
#define FIELD(message, field, number, kind, within) \
    CRI_##message##_##field = (number),
#include "router/wire/fields.inc"
#undef FIELD
#undef MESSAGE
};

enum fields_message {
#define MESSAGE(message) CRI_##message,
#define FIELD(message, field, number, kind, within)
#include "router/wire/fields.inc"
#undef FIELD
#undef MESSAGE
    CRI_Nothing, /* has no field; also how many there are */
};
const char *fields_message_name(enum fields_message m);

enum fields_kind {
    FIELDS_TEXT,
    FIELDS_TEXTS,
    FIELDS_BYTES,
    FIELDS_NUMBER,  /* also of booleans and enumerators */
    FIELDS_NUMBERS, /* packed or one by one */
    FIELDS_DOUBLE,
    FIELDS_ONE, /* message */
    FIELDS_MANY,
    FIELDS_PAIRS, /* map<string, string> */
};
struct fields_row {
    enum fields_message message;
    const char *name;
    uint32_t number;
    enum fields_kind kind;
    enum fields_message within; /* of ONE and MANY */
};
/* NULL: it is newer than Biga, or of Windows. */
const struct fields_row *fields_find(enum fields_message m, uint32_t number);

/* Are all fields of their kinds, at any depth, texts UTF-8 without NUL, and
 * those that can be one message no more than that?  -EPROTO names the field:
 * "ContainerStatus.image: …".  Readers of Protocol Buffers refuse a message
 * for less. */
int fields_check(enum fields_message m, struct proto_bytes message,
                 struct error *err);

/* Append a message that passed with no bytes in it, at any depth, that are
 * not known: a newer reader may refuse those. */
void fields_copy_known(enum fields_message m, struct proto_bytes message,
                       struct str *out);

#endif
