/* jrow - reads a JSON object by a table of its members: a row has the key, the
 * kind of the value, its reader and its target field.
 *     static const struct jrow rows[] = {
 *         JROW("name", JROW_LAX, jrow_copy, struct thing, name),
 *         JROW_OBJECT("spec", JROW_NULLABLE, spec_rows),
 *         JROW_EACH("owners", JROW_STRICT, read_owner),
 *         JROW_END,
 *     };
 *     jrow_read(&s, JROW_LAX, rows, &thing);
 * Members without a row are checked for syntax and skipped; when a key comes
 * twice both are read.  A fault sticks to the scanner.  Allocates nothing. */
#ifndef BIGA_LIB_BASE_JROW_H
#define BIGA_LIB_BASE_JROW_H

#include "lib/base/jscan.h"

/* A value of another kind than the reader's … */
enum jrow_policy {
    JROW_STRICT,   /* … is a fault */
    JROW_NULLABLE, /* … is a fault, but null counts as absent */
    JROW_LAX,      /* … counts as absent */
};

/* A caller's function that reads the value under the cursor, which has the
 * row's kind; or any kind with JROW_STRICT, when jscan reports the fault. */
typedef void jrow_call_f(struct jscan *s, void *to);
struct jrow;
typedef void jrow_f(struct jscan *s, const struct jrow *row, void *to);

struct jrow {
    const char *key;
    size_t key_size;
    enum jrow_policy policy;
    enum jkind kind; /* the reader's; JKIND_NONE: any */
    jrow_f *read;
    size_t offset, size;     /* of the field in the structure */
    const struct jrow *rows; /* of objects */
    jrow_call_f *call;
};

#define JROW_KEY(text) .key = (text), .key_size = sizeof(text) - 1
#define JROW_FIELD(type, field) \
    .offset = offsetof(type, field), .size = sizeof(((type *)0)->field)
/* A value into a field; `reader` is one of those below. */
#define JROW(text, how, reader, type, field)                                \
    {                                                                       \
        JROW_KEY(text), .policy = (how), .kind = (enum jkind)reader##_kind, \
                        .read = (reader), JROW_FIELD(type, field)           \
    }
/* An object with rows of its own; their offsets are in the same structure. */
#define JROW_OBJECT(text, how, its_rows)                        \
    {                                                           \
        JROW_KEY(text), .policy = (how), .kind = JKIND_OBJECT,  \
                        .read = jrow_object, .rows = (its_rows) \
    }
/* A value of kind `what` (JKIND_NONE: any) for the caller's function, which
 * gets the whole structure, or with _TO the field. */
#define JROW_CALL(text, how, what, function)                                \
    {                                                                       \
        JROW_KEY(text), .policy = (how), .kind = (what), .read = jrow_call, \
                        .call = (function)                                  \
    }
#define JROW_CALL_TO(text, how, what, function, type, field)                \
    {                                                                       \
        JROW_KEY(text), .policy = (how), .kind = (what), .read = jrow_call, \
                        .call = (function), JROW_FIELD(type, field)         \
    }
/* An array of which the caller's function reads each element. */
#define JROW_EACH(text, how, function)                        \
    {                                                         \
        JROW_KEY(text), .policy = (how), .kind = JKIND_ARRAY, \
                        .read = jrow_each, .call = (function) \
    }
/* An array of objects, each read by rows as in JROW_OBJECT. */
#define JROW_OBJECTS(text, how, its_rows)                     \
    {                                                         \
        JROW_KEY(text), .policy = (how), .kind = JKIND_ARRAY, \
                        .read = jrow_each, .rows = (its_rows) \
    }
/* clang-format off */
#define JROW_END { 0 }
/* clang-format on */

/* Read the object under the cursor; `policy` is for a value of another kind.
 * True when it was an object without a fault. */
bool jrow_read(struct jscan *s, enum jrow_policy policy,
               const struct jrow *rows, void *to);
/* Read a whole text that is one object.  0, or -EINVAL with the position. */
int jrow_parse(struct jscan *s, enum jrow_policy policy,
               const struct jrow *rows, void *to, struct error *err);
/* The row with this key, NULL when there is none. */
const struct jrow *jrow_find(const struct jrow *rows, const struct jtext *key);
/* Whether to read the value under the cursor; if not, it is skipped. */
bool jrow_wants(struct jscan *s, enum jrow_policy policy, enum jkind kind);

enum {
    jrow_text_kind = JKIND_STRING,
    jrow_copy_kind = JKIND_STRING,
    jrow_fit_kind = JKIND_STRING,
    jrow_int64_kind = JKIND_NUMBER,
    jrow_raw_kind = JKIND_NONE,
};
jrow_f jrow_text;  /* struct jtext: a string, not decoded */
jrow_f jrow_copy;  /* char[]: a decoded string; unchanged if it is too long */
jrow_f jrow_fit;   /* the same, but too long is a fault */
jrow_f jrow_int64; /* int64_t */
jrow_f jrow_raw;   /* struct jtext: the bytes of a value of any kind */
jrow_f jrow_object, jrow_call, jrow_each; /* of the macros above */

#endif
