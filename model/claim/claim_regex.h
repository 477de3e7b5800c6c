/* claim_regex - regular expressions of CEL's matches() as far as RE2, which
 * Kubernetes uses, and POSIX mean the same by them.  Pure. */
#ifndef BIGA_MODEL_CLAIM_CLAIM_REGEX_H
#define BIGA_MODEL_CLAIM_CLAIM_REGEX_H

#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"

enum {
    CLAIM_REGEX_MAX = 255,   /* bytes */
    CLAIM_REGEX_REPEAT = 32, /* highest number within {} */
};

struct claim_regex;

/* Taken are plain ASCII, . ^ $ | () [] * + ?, {n} and {n,m} of one character
 * or set, \d \w \s, and \ before what is no letter and no digit.  -ENOTSUP for
 * all else that RE2 takes, -EINVAL for what is no expression. */
int claim_regex_compile(const char *text, size_t size,
                        struct claim_regex **ret_regex, struct error *err);
void claim_regex_destroy(struct claim_regex *regex); /* NULL allowed */
DEFINE_CLEANUP(claim_regex, struct claim_regex *, claim_regex_destroy)

/* Is it anywhere in the text?  1, 0; -ENOTSUP for a text that is not plain
 * ASCII, where bytes are no characters. */
int claim_regex_search(const struct claim_regex *regex, const char *text,
                       size_t size);

#endif
