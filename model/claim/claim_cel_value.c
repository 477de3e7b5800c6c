#include "model/claim/claim_cel_value.h"

#include <string.h>

#include "model/pod/quantity.h"

/* --- making values ------------------------------------------------------- */

struct value cel_error(const struct node *n, int code, const char *text,
                       const char *word)
{
    return (struct value){.type = VALUE_ERROR,
                          .number = code,
                          .text = text,
                          .word = word,
                          .at = n->at};
}

struct value cel_bool(bool truth)
{
    return (struct value){.type = VALUE_BOOL, .number = truth};
}

struct value cel_int(int64_t number)
{
    return (struct value){.type = VALUE_INT, .number = number};
}

struct value cel_text(const char *text, size_t size)
{
    return (struct value){.type = VALUE_TEXT, .text = text, .size = size};
}

bool cel_failed(const struct value *v)
{
    return v->type == VALUE_ERROR;
}

bool cel_is(const struct value *v, enum value_type type)
{
    return v->type == type && !v->optional;
}

/* Values that the operation does not take: CEL says "no such overload"; of
 * what Biga does not know it cannot tell. */
struct value cel_no_overload(const struct node *n, const struct value *a,
                             const struct value *b)
{
    bool other = a->type == VALUE_OTHER || (b && b->type == VALUE_OTHER);
    return other ? cel_error(n, ENOTSUP,
                             "Biga does not read the attribute's value", "")
                 : cel_error(n, EDOM, "no such overload", "");
}

/* --- comparisons --------------------------------------------------------- */

static int text_compare(const struct value *a, const struct value *b)
{
    size_t size = a->size < b->size ? a->size : b->size;
    int order = memcmp(a->text, b->text, size);
    return order ? order : a->size < b->size ? -1 : a->size > b->size;
}

/* Which amounts are larger than what fits is not known. */
static bool too_large(const struct value *a, const struct value *b)
{
    return a->number == INT64_MAX && b->number == INT64_MAX;
}

/* Values of other types differ, but versions and quantities have no equality
 * with them. */
struct value cel_equal(const struct node *n, const struct value *a,
                       const struct value *b)
{
    bool map = a->type == VALUE_DOMAINS || a->type == VALUE_NAMES ||
               b->type == VALUE_DOMAINS || b->type == VALUE_NAMES;
    if (a->optional || b->optional || map)
        return cel_error(n, ENOTSUP,
                         "Biga compares no maps and no optional values", "");
    if (a->type == VALUE_OTHER || b->type == VALUE_OTHER)
        return cel_no_overload(n, a, b);
    if (a->type != b->type)
        return a->type == VALUE_VERSION || a->type == VALUE_QUANTITY
                   ? cel_no_overload(n, a, b)
                   : cel_bool(false);
    switch (a->type) {
    case VALUE_BOOL:
    case VALUE_INT:
        return cel_bool(a->number == b->number);
    case VALUE_TEXT:
        return cel_bool(text_compare(a, b) == 0);
    case VALUE_VERSION:
        return cel_bool(claim_version_compare(&a->version, &b->version) == 0);
    case VALUE_QUANTITY:
        return too_large(a, b)
                   ? cel_error(n, ENOTSUP, "is too large for Biga", "")
                   : cel_bool(a->number == b->number);
    default:
        return cel_no_overload(n, a, b);
    }
}

struct value cel_ordered(const struct node *n, const struct value *a,
                         const struct value *b)
{
    int order;
    if (a->optional || b->optional || a->type != b->type)
        return cel_no_overload(n, a, b);
    if (a->type == VALUE_BOOL || a->type == VALUE_INT)
        order = a->number < b->number ? -1 : a->number > b->number;
    else if (a->type == VALUE_TEXT)
        order = text_compare(a, b);
    else
        return cel_no_overload(n, a, b);
    return cel_bool(n->number == CEL_LT   ? order < 0
                    : n->number == CEL_LE ? order <= 0
                    : n->number == CEL_GT ? order > 0
                                          : order >= 0);
}

/* --- calls --------------------------------------------------------------- */

struct value cel_text_call(const struct claim_cel *cel, const struct node *n,
                           const struct value *of, const struct value *with)
{
    if (!cel_is(of, VALUE_TEXT) || !cel_is(with, VALUE_TEXT))
        return cel_no_overload(n, of, with);
    size_t more = of->size >= with->size ? of->size - with->size : 0;
    int found;
    switch (n->number) {
    case CEL_STARTS_WITH:
        return cel_bool(of->size >= with->size &&
                        memcmp(of->text, with->text, with->size) == 0);
    case CEL_ENDS_WITH:
        return cel_bool(of->size >= with->size &&
                        memcmp(of->text + more, with->text, with->size) == 0);
    case CEL_CONTAINS:
        return cel_bool(with->size == 0 ||
                        memmem(of->text, of->size, with->text, with->size));
    default:
        found = claim_regex_search(cel->regexes[n->size], of->text, of->size);
        return found < 0
                   ? cel_error(n, ENOTSUP, "Biga matches plain ASCII alone", "")
                   : cel_bool(found);
    }
}

/* compareTo, isGreaterThan, isLessThan */
struct value cel_order_call(const struct node *n, const struct value *of,
                            const struct value *with)
{
    int order;
    if (of->optional || with->optional || of->type != with->type)
        return cel_no_overload(n, of, with);
    if (of->type == VALUE_VERSION)
        order = claim_version_compare(&of->version, &with->version);
    else if (of->type != VALUE_QUANTITY)
        return cel_no_overload(n, of, with);
    else if (too_large(of, with))
        return cel_error(n, ENOTSUP, "is too large for Biga", "");
    else
        order = of->number < with->number ? -1 : of->number > with->number;
    return n->number == CEL_GREATER ? cel_bool(order > 0)
           : n->number == CEL_LESS  ? cel_bool(order < 0)
                                    : cel_int(order);
}

struct value cel_version_part(const struct node *n, const struct value *of)
{
    return cel_is(of, VALUE_VERSION)
               ? cel_int((int64_t)of->version.part[n->number - CEL_MAJOR])
               : cel_no_overload(n, of, NULL);
}

struct value cel_make_quantity(const struct node *n, const struct value *of)
{
    struct value v = {.type = VALUE_QUANTITY};
    if (!cel_is(of, VALUE_TEXT))
        return cel_no_overload(n, of, NULL);
    if (!quantity_parse(of->text, of->size, &v.number))
        return cel_error(n, EDOM, "no quantity: ", of->text);
    if (*of->text == '-') /* quantity_parse() counts it as none */
        return cel_error(n, ENOTSUP, "Biga reads no negative quantities", "");
    return v;
}

struct value cel_make_version(const struct node *n, const struct value *of,
                              const struct value *loose)
{
    struct value v = {.type = VALUE_VERSION};
    if (!cel_is(of, VALUE_TEXT) || (loose && !cel_is(loose, VALUE_BOOL)))
        return cel_no_overload(n, of, loose);
    bool ok = loose && loose->number
                  ? claim_version_parse_loose(of->text, of->size, &v.version)
                  : claim_version_parse(of->text, of->size, &v.version);
    return ok ? v : cel_error(n, EDOM, "no semantic version: ", of->text);
}
