/* index_set - a set of CPUs or of NUMA nodes, by their os indexes, as the
 * kernel writes them: "0-3,8".  Pure. */
#ifndef BIGA_ADVERTISER_ACHIEVED_INDEX_SET_H
#define BIGA_ADVERTISER_ACHIEVED_INDEX_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

enum {
    INDEX_SET_MAX = 8192, /* indexes below; as many CPUs as Linux has */
    INDEX_SET_TEXT_MAX = 32 << 10,
};

struct index_set {
    uint64_t words[INDEX_SET_MAX / 64];
};

/* False: it is none that a set can hold. */
bool index_set_add(struct index_set *s, uint64_t index);
bool index_set_has(const struct index_set *s, size_t index);
void index_set_unite(struct index_set *s, const struct index_set *more);
bool index_set_is_empty(const struct index_set *s);
size_t index_set_count(const struct index_set *s);
/* Does `s` hold all of `part`? */
bool index_set_holds(const struct index_set *s, const struct index_set *part);
bool index_set_equal(const struct index_set *a, const struct index_set *b);
/* The first index at or after `from`; INDEX_SET_MAX when there is none. */
size_t index_set_next(const struct index_set *s, size_t from);

/* A file of a cpuset, with or without its newline; nothing is the empty set.
 * -EINVAL names what it is and what is allowed. */
int index_set_parse(const char *text, size_t size, struct index_set *ret_set,
                    struct error *err);
/* "0-3,8", "" when empty. */
void index_set_format(const struct index_set *s, struct str *out);

#endif
