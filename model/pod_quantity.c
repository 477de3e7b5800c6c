/* The quantities of resources, as texts. */
#include <string.h>

#include "model/base/mem.h"
#include "model/pod.h"

bool pod_parse_quantity(const char *data, size_t size, int64_t *ret_value)
{
    static const struct {
        char suffix[3];
        int64_t factor;
    } suffixes[] = {{"k", 1000},     {"M", 1000000},  {"G", 1000000000},
                    {"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}};
    size_t i = 0;
    int64_t value = 0, factor = 0;
    while (i < size && data[i] >= '0' && data[i] <= '9') {
        value = value * 10 + (data[i++] - '0');
        if (value > UINT32_MAX)
            return false;
    }
    if (i == 0)
        return false;
    if (i == size)
        factor = 1;
    for (size_t k = 0; k < ARRAY_LEN(suffixes); k++)
        if (size - i == strlen(suffixes[k].suffix) &&
            memcmp(data + i, suffixes[k].suffix, size - i) == 0)
            factor = suffixes[k].factor;
    if (factor == 0 || value * factor > UINT32_MAX)
        return false;
    *ret_value = value * factor;
    return true;
}

/* An exponent, "e3", "E-9"; false when it is none. */
static bool parse_exponent(const char *data, size_t size, int *ret_power)
{
    size_t i = 1;
    bool negative = size > 2 && data[1] == '-';
    if (size > 2 && (data[1] == '-' || data[1] == '+'))
        i++;
    if ((data[0] != 'e' && data[0] != 'E') || i >= size || size > i + 2)
        return false;
    *ret_power = 0;
    for (; i < size; i++) {
        if (data[i] < '0' || data[i] > '9')
            return false;
        *ret_power = *ret_power * 10 + (data[i] - '0');
    }
    if (negative)
        *ret_power = -*ret_power;
    return true;
}

/* What a suffix stands for: ten or two to a power; false: it is none. */
static bool parse_suffix(const char *data, size_t size, int *ret_ten,
                         int *ret_two)
{
    static const struct {
        char suffix[3];
        int ten, two;
    } suffixes[] = {{"", 0, 0},    {"n", -9, 0},  {"u", -6, 0},  {"m", -3, 0},
                    {"k", 3, 0},   {"M", 6, 0},   {"G", 9, 0},   {"T", 12, 0},
                    {"P", 15, 0},  {"E", 18, 0},  {"Ki", 0, 10}, {"Mi", 0, 20},
                    {"Gi", 0, 30}, {"Ti", 0, 40}, {"Pi", 0, 50}, {"Ei", 0, 60}};
    *ret_ten = *ret_two = 0;
    for (size_t k = 0; k < ARRAY_LEN(suffixes); k++)
        if (size == strlen(suffixes[k].suffix) &&
            memcmp(data, suffixes[k].suffix, size) == 0) {
            *ret_ten = suffixes[k].ten;
            *ret_two = suffixes[k].two;
            return true;
        }
    return parse_exponent(data, size, ret_ten);
}

/* A number as Kubernetes writes it. */
struct quantity {
    unsigned __int128 value; /* its digits */
    int ten, two;            /* times these powers */
};

static bool parse_decimal(const char *data, size_t size,
                          struct quantity *ret_quantity)
{
    enum { DIGITS_MAX = 18 };
    size_t i = 0, digits = 0;
    struct quantity q = {0, 0, 0};
    int after = 0, ten;
    bool point = false;
    for (; i < size &&
           ((data[i] >= '0' && data[i] <= '9') || (data[i] == '.' && !point));
         i++) {
        if (data[i] == '.') {
            point = true;
            continue;
        }
        q.value = q.value * 10 + (unsigned)(data[i] - '0');
        after += point;
        if (++digits > DIGITS_MAX)
            return false;
    }
    if (digits == 0 || !parse_suffix(data + i, size - i, &ten, &q.two))
        return false;
    q.ten = ten - after;
    *ret_quantity = q;
    return true;
}

/* Its value, fractions counted up; false when it is more than `max`. */
static bool quantity_round(struct quantity q, int64_t max, int64_t *ret_value)
{
    const unsigned __int128 most = (unsigned __int128)UINT64_MAX << 32;
    if (q.value == 0)
        q.ten = q.two = 0;
    for (; q.ten > 0 && q.value <= most; q.ten--)
        q.value *= 10;
    for (; q.two > 0 && q.value <= most; q.two--)
        q.value *= 2;
    if (q.ten > 0 || q.two > 0)
        return false;
    bool rest = false; /* something was cut off */
    for (; q.ten < 0 && q.value; q.ten++) {
        rest |= q.value % 10 != 0;
        q.value /= 10;
    }
    for (; q.two < 0 && q.value; q.two++) {
        rest |= q.value % 2 != 0;
        q.value /= 2;
    }
    q.value += rest;
    if (q.value > (uint64_t)max)
        return false;
    *ret_value = (int64_t)q.value;
    return true;
}

bool pod_parse_memory(const char *data, size_t size, int64_t *ret_kib)
{
    struct quantity q;
    if (!parse_decimal(data, size, &q))
        return false;
    q.two -= 10;
    return quantity_round(q, (int64_t)UINT32_MAX << 10, ret_kib);
}

bool pod_parse_cpus(const char *data, size_t size, int64_t *ret_milli)
{
    struct quantity q;
    if (!parse_decimal(data, size, &q) || q.two)
        return false;
    q.ten += 3;
    return quantity_round(q, UINT32_MAX, ret_milli);
}
