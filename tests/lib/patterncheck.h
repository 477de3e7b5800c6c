/* patterncheck - what a pattern reads of a slice beside what decoding says. */
#ifndef BIGA_TESTS_PATTERNCHECK_H
#define BIGA_TESTS_PATTERNCHECK_H

#include <stddef.h>

enum patterncheck {
    PATTERN_NONE,  /* the first slice is no pattern, or is refused itself */
    PATTERN_OTHER, /* it does not fit the second one */
    PATTERN_READ,  /* it does, and says what decoding says */
};

/* Make a pattern of one slice and read another by it; aborts when decoding
 * refuses what the pattern reads, or says something else of it, or when the
 * pattern does not fit its own slice. */
struct patterncheck_text {
    const char *json;
    size_t size;
};
enum patterncheck patterncheck(const struct patterncheck_text *of,
                               const struct patterncheck_text *other);

#endif
