/* lower_bound - binary search in what is in order. */
#ifndef BIGA_LIB_BASE_LOWER_BOUND_H
#define BIGA_LIB_BASE_LOWER_BOUND_H

#include <stddef.h>

/* The first index `i` of 0 … n - 1 that is not below what is looked for, or n.
 * `is_below` is an expression with `i` in it, true for none after the first for
 * which it is false: lower_bound(n, i, strcmp(names[i], name) < 0) */
#define lower_bound(n, i, is_below)        \
    ({                                     \
        size_t low_ = 0, high_ = (n);      \
        while (low_ < high_) {             \
            size_t i = (low_ + high_) / 2; \
            if (is_below)                  \
                low_ = i + 1;              \
            else                           \
                high_ = i;                 \
        }                                  \
        low_;                              \
    })

#endif
