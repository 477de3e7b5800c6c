/* claim_cel_value - values of CEL, and what is done with them that needs no
 * device. */
#ifndef BIGA_MODEL_CLAIM_CLAIM_CEL_VALUE_H
#define BIGA_MODEL_CLAIM_CLAIM_CEL_VALUE_H

#include "model/claim/claim_cel_private.h"
#include "model/claim/claim_version.h"

enum value_type {
    VALUE_ERROR, /* number: errno; text: what; word: of what */
    VALUE_BOOL,
    VALUE_INT,
    VALUE_TEXT,
    VALUE_VERSION,
    VALUE_QUANTITY, /* number: thousandths */
    VALUE_DEVICE,
    VALUE_DOMAINS, /* number: of capacities, not of attributes */
    VALUE_NAMES,   /* the same, of one domain: text */
    VALUE_OTHER,
};

struct value {
    enum value_type type;
    bool optional, none; /* optional: of that, or of nothing */
    int64_t number;
    const char *text;
    size_t size;
    const char *word; /* of an error */
    uint32_t at;      /* of an error */
    struct claim_version version;
};

struct value cel_error(const struct node *n, int code, const char *text,
                       const char *word);
struct value cel_bool(bool truth);
struct value cel_int(int64_t number);
struct value cel_text(const char *text, size_t size);
bool cel_failed(const struct value *v);
/* Is it of that type, and no optional one? */
bool cel_is(const struct value *v, enum value_type type);

/* Values that the operation does not take: CEL says "no such overload"; of
 * what Biga does not know it cannot tell.  `b` may be NULL. */
struct value cel_no_overload(const struct node *n, const struct value *a,
                             const struct value *b);

struct value cel_equal(const struct node *n, const struct value *a,
                       const struct value *b);
struct value cel_ordered(const struct node *n, const struct value *a,
                         const struct value *b); /* < <= > >= */

/* compareTo, isGreaterThan, isLessThan */
struct value cel_order_call(const struct node *n, const struct value *of,
                            const struct value *with);
/* startsWith, endsWith, contains, matches */
struct value cel_text_call(const struct claim_cel *cel, const struct node *n,
                           const struct value *of, const struct value *with);
struct value cel_version_part(const struct node *n, const struct value *of);
struct value cel_make_quantity(const struct node *n, const struct value *of);
struct value cel_make_version(const struct node *n, const struct value *of,
                              const struct value *loose); /* or NULL */

#endif
