#include "model/claim/claim_version.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits as a number; false when there are none, too many, or, unless it is
 * `loose`, a zero before others. */
static bool read_number(const char **p, const char *end, bool loose,
                        uint64_t *ret)
{
    const char *from = *p;
    uint64_t value = 0;
    for (; *p < end && is_digit(**p); ++*p)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(**p - '0'), &value))
            return false;
    *ret = value;
    return *p > from && (loose || *p == from + 1 || *from != '0');
}

/* Identifiers with dots between them up to `stop` or the end.  Those of a
 * pre-release that are numbers have no leading zero. */
static const char *read_identifiers(const char *p, const char *end, char stop,
                                    bool pre)
{
    for (;;) {
        const char *from = p;
        bool number = true;
        while (p < end && *p != '.' && *p != stop) {
            bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
            if (!letter && *p != '-' && !is_digit(*p))
                return NULL;
            number = number && is_digit(*p);
            p++;
        }
        if (p == from || (pre && number && p > from + 1 && *from == '0'))
            return NULL;
        if (p == end || *p == stop)
            return p;
        p++;
    }
}

/* What follows the numbers. */
static bool read_rest(const char *p, const char *end, struct claim_version *v)
{
    if (p < end && *p == '-') {
        v->pre = ++p;
        p = read_identifiers(p, end, '+', true);
        if (!p)
            return false;
        v->pre_size = (size_t)(p - v->pre);
    }
    if (p < end && *p == '+')
        p = read_identifiers(p + 1, end, '+', false);
    return p == end;
}

static bool parse(const char *text, size_t size, bool loose,
                  struct claim_version *ret_version)
{
    struct claim_version v = {.pre = ""};
    const char *p = text, *end = text + size;
    if (loose && p < end && *p == 'v')
        p++;
    for (unsigned i = 0; i < 3; i++) {
        if (i > 0 && loose && p == end)
            break; /* a short version has nothing else */
        if (i > 0 && (p == end || *p++ != '.'))
            return false;
        if (!read_number(&p, end, loose, &v.part[i]))
            return false;
    }
    if (!read_rest(p, end, &v))
        return false;
    *ret_version = v;
    return true;
}

bool claim_version_parse(const char *text, size_t size,
                         struct claim_version *ret_version)
{
    return parse(text, size, false, ret_version);
}

bool claim_version_parse_loose(const char *text, size_t size,
                               struct claim_version *ret_version)
{
    return parse(text, size, true, ret_version);
}

/* One identifier against another: numbers by value and below texts. */
static int compare_identifiers(const char *a, size_t a_size, const char *b,
                               size_t b_size)
{
    bool a_number = true, b_number = true;
    for (size_t i = 0; i < a_size; i++)
        a_number = a_number && is_digit(a[i]);
    for (size_t i = 0; i < b_size; i++)
        b_number = b_number && is_digit(b[i]);
    if (a_number != b_number)
        return a_number ? -1 : 1;
    if (a_number && a_size != b_size) /* none begins with a zero */
        return a_size < b_size ? -1 : 1;
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    if (order == 0)
        return a_size < b_size ? -1 : a_size > b_size;
    return order < 0 ? -1 : 1;
}

static size_t identifier_size(const char *text, size_t size)
{
    const char *dot = memchr(text, '.', size);
    return dot ? (size_t)(dot - text) : size;
}

static int compare_pre(const char *a, size_t a_size, const char *b,
                       size_t b_size)
{
    while (a_size && b_size) {
        size_t na = identifier_size(a, a_size), nb = identifier_size(b, b_size);
        int order = compare_identifiers(a, na, b, nb);
        if (order)
            return order;
        na += na < a_size; /* the dot */
        nb += nb < b_size;
        a += na, a_size -= na;
        b += nb, b_size -= nb;
    }
    return a_size ? 1 : b_size ? -1 : 0;
}

int claim_version_compare(const struct claim_version *a,
                          const struct claim_version *b)
{
    for (unsigned i = 0; i < 3; i++)
        if (a->part[i] != b->part[i])
            return a->part[i] < b->part[i] ? -1 : 1;
    if (!a->pre_size != !b->pre_size) /* a release is above all before it */
        return a->pre_size ? -1 : 1;
    return compare_pre(a->pre, a->pre_size, b->pre, b->pre_size);
}
