/* lower_bound - binary search in an array that is in order, and elements put
 * into it or taken out. */
#ifndef BIGA_LIB_BASE_LOWER_BOUND_H
#define BIGA_LIB_BASE_LOWER_BOUND_H

#include <stddef.h>
#include <string.h>

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

/* The same, not below `from`, where it is likely to be near that. */
#define lower_bound_near(from, n, i, is_below)            \
    ({                                                    \
        const size_t from_ = (from), n_ = (n);            \
        size_t end_ = from_, step_ = 1;                   \
        while (end_ < n_) {                               \
            size_t i = end_;                              \
            if (!(is_below))                              \
                break;                                    \
            end_ = n_ - end_ > step_ ? end_ + step_ : n_; \
            step_ *= 2;                                   \
        }                                                 \
        size_t low_near_ = from_, high_near_ = end_;      \
        while (low_near_ < high_near_) {                  \
            size_t i = (low_near_ + high_near_) / 2;      \
            if (is_below)                                 \
                low_near_ = i + 1;                        \
            else                                          \
                high_near_ = i;                           \
        }                                                 \
        low_near_;                                        \
    })

/* One is put in, or taken out; `n` is how many there are before, `size` that of
 * an element.  Whoever has the array sees to its room, and counts. */
static inline void ordered_insert(void *array, size_t n, size_t size, size_t at,
                                  const void *element)
{
    char *place = (char *)array + at * size;
    memmove(place + size, place, (n - at) * size);
    memcpy(place, element, size);
}

static inline void ordered_remove(void *array, size_t n, size_t size, size_t at)
{
    char *place = (char *)array + at * size;
    memmove(place, place + size, (n - at - 1) * size);
}

#endif
