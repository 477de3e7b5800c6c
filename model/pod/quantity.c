#include "model/pod/quantity.h"

#include <string.h>

#include "lib/base/mem.h"

/* A number with an exponent: value * 10^ten * 2^two. */
struct amount {
    uint64_t value;
    int ten, two;
    bool more; /* digits were cut off: the value is a little larger */
};

enum { EXPONENT_MAX = 99 };
#define VALUE_MAX UINT64_C(100000000000000000) /* room for one digit more */

/* Digits and at most one point; what is left to read, or NULL. */
static const char *parse_digits(const char *p, const char *end,
                                struct amount *a)
{
    bool point = false, any = false;
    for (; p < end; p++) {
        if (*p == '.' && !point) {
            point = true;
            continue;
        }
        if (*p < '0' || *p > '9')
            break;
        any = true;
        if (a->value < VALUE_MAX) {
            a->value = a->value * 10 + (uint64_t)(*p - '0');
            a->ten -= point;
        } else {
            a->more = a->more || *p != '0';
            a->ten += !point;
        }
        if (a->ten > EXPONENT_MAX)
            a->ten = EXPONENT_MAX;
    }
    return any ? p : NULL;
}

/* "e3", "E-6" */
static bool parse_exponent(const char *p, const char *end, struct amount *a)
{
    int exponent = 0;
    bool negative = ++p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    if (p == end)
        return false;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        exponent = exponent < EXPONENT_MAX ? exponent * 10 + (*p - '0')
                                           : EXPONENT_MAX;
    a->ten += negative ? -exponent : exponent;
    return p == end;
}

static bool parse_suffix(const char *p, const char *end, struct amount *a)
{
    static const struct {
        char text[3];
        int8_t ten, two;
    } suffixes[] = {{"", 0, 0},    {"n", -9, 0},  {"u", -6, 0},  {"m", -3, 0},
                    {"k", 3, 0},   {"M", 6, 0},   {"G", 9, 0},   {"T", 12, 0},
                    {"P", 15, 0},  {"E", 18, 0},  {"Ki", 0, 10}, {"Mi", 0, 20},
                    {"Gi", 0, 30}, {"Ti", 0, 40}, {"Pi", 0, 50}, {"Ei", 0, 60}};
    size_t size = (size_t)(end - p);
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
        if (strlen(suffixes[i].text) == size &&
            memcmp(p, suffixes[i].text, size) == 0) {
            a->ten += suffixes[i].ten;
            a->two += suffixes[i].two;
            return true;
        }
    return size > 1 && (*p == 'e' || *p == 'E') && parse_exponent(p, end, a);
}

/* In whole units, rounded up. */
static int64_t amount_round(const struct amount *a)
{
    unsigned __int128 limit = INT64_MAX, value = a->value;
    bool more = a->more;
    int ten = a->ten;
    /* at most 2^60 * 2^60 before the tens are looked at */
    value <<= a->two;
    for (; ten > 0 && value && value <= limit; ten--)
        value *= 10;
    for (; ten < 0 && value; ten++) {
        more = more || value % 10 != 0;
        value /= 10;
    }
    value += more;
    return value > limit ? INT64_MAX : (int64_t)value;
}

bool quantity_parse(const char *data, size_t size, int64_t *ret_milli)
{
    const char *p = data, *end = data + size;
    struct amount a = {.ten = 3};
    bool negative = size && *p == '-';
    if (size && (*p == '-' || *p == '+'))
        p++;
    p = parse_digits(p, end, &a);
    if (!p || !parse_suffix(p, end, &a))
        return false;
    *ret_milli = negative ? 0 : amount_round(&a);
    return true;
}

bool quantity_scan(struct jscan *s, int64_t *ret_milli)
{
    struct jtext text;
    bool read = jscan_peek(s) == JKIND_STRING ? jscan_string(s, &text)
                                              : jscan_raw(s, &text);
    return read && quantity_parse(text.data, text.size, ret_milli);
}

int64_t quantity_kib(int64_t milli)
{
    enum { KIB_MILLI = 1024 * 1000 };
    return milli / KIB_MILLI + (milli % KIB_MILLI != 0);
}
