/* The quantities of resources, as texts. */
#include <string.h>

#include "lib/base/mem.h"
#include "model/pod/pod.h"
#include "model/pod/quantity.h"

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

/* The power of ten that a suffix of CPUs stands for; false: it is none. */
static bool parse_power(const char *data, size_t size, int *ret_power)
{
    static const struct {
        char suffix;
        int power;
    } suffixes[] = {{'n', -9}, {'u', -6}, {'m', -3}, {'k', 3}};
    *ret_power = 0;
    if (size == 0)
        return true;
    for (size_t k = 0; size == 1 && k < ARRAY_LEN(suffixes); k++)
        if (data[0] == suffixes[k].suffix) {
            *ret_power = suffixes[k].power;
            return true;
        }
    size_t i = 1;
    bool negative = size > 2 && data[1] == '-';
    if (size > 2 && (data[1] == '-' || data[1] == '+'))
        i++;
    if ((data[0] != 'e' && data[0] != 'E') || i + 1 != size || data[i] < '0' ||
        data[i] > '9')
        return false;
    *ret_power = negative ? '0' - data[i] : data[i] - '0';
    return true;
}

bool pod_parse_cpus(const char *data, size_t size, int64_t *ret_milli)
{
    enum { DIGITS_MAX = 18 };
    size_t i = 0, digits = 0;
    int64_t value = 0;
    int power = 3, suffix;
    bool point = false;
    for (; i < size &&
           ((data[i] >= '0' && data[i] <= '9') || (data[i] == '.' && !point));
         i++) {
        if (data[i] == '.') {
            point = true;
            continue;
        }
        value = value * 10 + (data[i] - '0');
        power -= point;
        if (++digits > DIGITS_MAX)
            return false;
    }
    if (digits == 0 || !parse_power(data + i, size - i, &suffix))
        return false;
    power += suffix;
    for (; power < 0; power++)
        value = value / 10 + (value % 10 != 0);
    for (; power > 0 && value <= UINT32_MAX; power--)
        value *= 10;
    if (value > UINT32_MAX)
        return false;
    *ret_milli = value;
    return true;
}

bool pod_parse_memory(const char *data, size_t size, int64_t *ret_kib)
{
    int64_t milli;
    if (size == 0 || data[0] == '-' || data[0] == '+' ||
        !quantity_parse(data, size, &milli))
        return false;
    int64_t kib = quantity_kib(milli);
    if (kib > (int64_t)UINT32_MAX << 10)
        return false;
    *ret_kib = kib;
    return true;
}
