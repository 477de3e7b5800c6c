/* label_selector - a selector in Kubernetes' language, as `kubectl -l` takes
 * it: "role=host,tier in (a, b),!old".  Pure.
 *
 * Requirements with a comma between, all of which have to hold: KEY, !KEY,
 * KEY=VALUE (or ==), KEY!=VALUE, KEY in (A,B), KEY notin (A,B), KEY>N, KEY<N.
 * As there, != and notin hold for what has no such key. */
#ifndef BIGA_CLI_BASE_LABEL_SELECTOR_H
#define BIGA_CLI_BASE_LABEL_SELECTOR_H

#include <stdbool.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"

enum {
    LABEL_SELECTOR_SIZE_MAX = 4096, /* bytes of a selector */
    LABEL_SELECTOR_REQUIRES_MAX = 64,
    LABEL_SELECTOR_VALUES_MAX = 256, /* of one requirement */
};

struct label_selector;

/* 0, or -EINVAL with what is wrong where.  An empty text selects all. */
int label_selector_parse(const char *text, struct label_selector **ret_selector,
                         struct error *err);
void label_selector_destroy(struct label_selector *s); /* NULL allowed */
DEFINE_CLEANUP(label_selector, struct label_selector *, label_selector_destroy)

/* The value that something has for a key; NULL: none. Until the next call. */
typedef const char *label_value_f(void *ctx, const char *key);
bool label_selector_matches(const struct label_selector *s,
                            label_value_f *value, void *ctx);

#endif
