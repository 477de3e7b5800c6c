/* badjson - documents that no strict JSON reader may take, one or more for
 * every class of fault that the public parser test suites know, and some
 * that every reader must take. */
#ifndef BIGA_TESTS_BADJSON_H
#define BIGA_TESTS_BADJSON_H

#include <stdbool.h>
#include <stddef.h>

struct badjson {
    const char *name; /* what is wrong (or right) with it */
    const char *data; /* may hold NUL bytes; not NUL-terminated */
    size_t size;
};

/* Texts that are not JSON, or use what we refuse: NUL in strings, lone
 * surrogates, numbers beyond a double, nesting beyond 64. */
const struct badjson *badjson_syntax(size_t *ret_n);

/* Well-formed texts with a key that appears twice in one object. */
const struct badjson *badjson_duplicates(size_t *ret_n);

/* Texts that must be taken. */
const struct badjson *badjson_good(size_t *ret_n);

#endif
