/* strmap - a hash table from texts to pointers.  Keys and values are
 * borrowed: usually the key lives in the value. */
#ifndef BIGA_LIB_BASE_STRMAP_H
#define BIGA_LIB_BASE_STRMAP_H

#include <stddef.h>
#include <stdint.h>

struct strmap_slot {
    uint64_t hash;
    const char *key; /* NULL: free */
    void *value;
};

struct strmap {
    struct strmap_slot *slots;
    size_t cap; /* 0 or a power of two */
    size_t n;
};

void strmap_fini(struct strmap *m); /* a zeroed strmap is empty */
/* The same, with `destroy` called for each value first. */
void strmap_fini_with(struct strmap *m, void (*destroy)(void *value));
void *strmap_get(const struct strmap *m, const char *key); /* or NULL */
/* Adds or replaces; returns the value that was there, or NULL. */
void *strmap_put(struct strmap *m, const char *key, void *value);
/* Returns the value that was there, or NULL. */
void *strmap_remove(struct strmap *m, const char *key);
/* The next value at or after `*pos` (start with 0), NULL at the end.  No
 * order; no change while walking. */
void *strmap_next(const struct strmap *m, size_t *pos);

#endif
