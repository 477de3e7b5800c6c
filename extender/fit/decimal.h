/* decimal - a whole number as labels and taints have it. */
#ifndef BIGA_EXTENDER_FIT_DECIMAL_H
#define BIGA_EXTENDER_FIT_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

/* Digits with or without a sign, within 64 bits; false when it is none. */
static inline bool decimal_parse(const char *text, int64_t *ret_number)
{
    bool negative = *text == '-';
    uint64_t value = 0, most = (uint64_t)INT64_MAX + negative;
    text += *text == '-' || *text == '+';
    if (!*text)
        return false;
    for (; *text; text++) {
        unsigned digit = (unsigned)(unsigned char)*text - '0';
        if (digit > 9 || value > (most - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *ret_number = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

#endif
