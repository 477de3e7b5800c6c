/* jscan - a strict JSON scanner that builds nothing.
 *
 * A cursor over the request's own bytes: the caller asks for what it reads
 * and skips the rest; what is skipped is checked as strictly as what is
 * read.  Accepted is RFC 8259 in valid UTF-8, and less: no NUL in strings
 * (neither raw nor \u0000), no lone surrogates, no number beyond a double's
 * range, no nesting beyond JSCAN_DEPTH_MAX.
 *
 * The first fault sticks: every later call returns false, so a caller may
 * check once at the end, with jscan_end().  Nothing here allocates. */
#ifndef BIGA_LIB_BASE_JSCAN_H
#define BIGA_LIB_BASE_JSCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"

#define JSCAN_DEPTH_MAX 64
#define JSCAN_NUMBER_MAX 63 /* bytes in one number, cJSON's limit */

/* A string as it stands between its quotes: not NUL-terminated, escapes
 * not yet decoded. */
struct jtext {
    const char *data;
    size_t size;
    bool escaped; /* contains at least one backslash */
};

struct jscan {
    const char *begin, *p, *end;
    uint64_t started;   /* bit d: the container at depth d has a member */
    uint64_t in_object; /* bit d: the container at depth d is an object */
    unsigned depth;
    bool takes_nul;    /* of jscan_init_kube() */
    const char *fault; /* NULL, or what is wrong (a constant text) */
    size_t fault_at;   /* byte offset of the fault */
};

enum jkind {
    JKIND_NONE, /* a fault, or the end of the text */
    JKIND_OBJECT,
    JKIND_ARRAY,
    JKIND_STRING,
    JKIND_NUMBER,
    JKIND_TRUE,
    JKIND_FALSE,
    JKIND_NULL,
};

void jscan_init(struct jscan *s, const char *data, size_t size);
/* For what an API server says of its objects, where anybody may have written
 * \u0000 into an annotation or an argument: it is let through, and decodes to
 * U+FFFD. */
void jscan_init_kube(struct jscan *s, const char *data, size_t size);

/* What kind of value comes next; consumes white space only. */
enum jkind jscan_peek(struct jscan *s);

/* Enter an object; then jscan_member() until it returns false. */
bool jscan_object(struct jscan *s);
/* The next key, with the cursor before its value (which the caller must
 * read or skip).  False at the closing brace (consumed) or on a fault. */
bool jscan_member(struct jscan *s, struct jtext *ret_key);

/* Enter an array; then jscan_element() until it returns false. */
bool jscan_array(struct jscan *s);
/* True when another element follows, with the cursor before it. */
bool jscan_element(struct jscan *s);

/* Read the strings of the array just entered, at most `max`, into `ret`.
 * Returns how many; with fewer than `max` the array has ended (its bracket is
 * consumed) or there was a fault. */
size_t jscan_strings(struct jscan *s, struct jtext *ret, size_t max);

bool jscan_string(struct jscan *s, struct jtext *ret_text);
bool jscan_int64(struct jscan *s, int64_t *ret_value); /* integers only */
bool jscan_bool(struct jscan *s, bool *ret_value);
bool jscan_null(struct jscan *s); /* consumes `null` if it comes next; a
                                   * false return is no fault */
bool jscan_skip(struct jscan *s); /* one value of any kind */

/* As jscan_skip, and says where the value's bytes stand. */
bool jscan_raw(struct jscan *s, struct jtext *ret_bytes);

/* True when only white space is left and nothing was wrong. */
bool jscan_end(struct jscan *s);

/* Record a fault of the caller's own (a constant text) at byte `at`. */
void jscan_fail(struct jscan *s, const char *fault, size_t at);
/* The offset of the cursor in bytes. */
size_t jscan_offset(const struct jscan *s);

/* Fill `err` with EINVAL, the fault and its position:
 * "leading zero in number at line 1 column 17 (byte 16)". */
int jscan_error(const struct jscan *s, struct error *err);

/* Compare with a plain ASCII `name`; _nocase as Go's decoder folds keys. */
bool jtext_is(const struct jtext *t, const char *name);
bool jtext_is_nocase(const struct jtext *t, const char *name);

/* Decode the escapes into `dst`, which has room for t->size + 1 bytes (the
 * decoded text is never longer).  Returns its size; NUL-terminated. */
size_t jtext_decode(const struct jtext *t, char *dst);

#endif
