/* idmap - a hash table of 32 bytes a slot, from ids of 128 bits to 16 bytes of
 * the caller's.  At most two thirds of the slots are in use. */
#ifndef BIGA_LIB_BASE_IDMAP_H
#define BIGA_LIB_BASE_IDMAP_H

#include <stddef.h>
#include <stdint.h>

struct idmap_slot {
    uint64_t id[2]; /* both 0: free */
    uint64_t data[2];
};

struct idmap {
    struct idmap_slot *slots;
    size_t cap; /* 0 or a power of two */
    size_t n;
};

/* The id of a text: a UUID in its one spelling as it is, anything else by a
 * hash; never 0. */
void idmap_id(const char *text, uint64_t ret_id[2]);

void idmap_fini(struct idmap *m); /* a zeroed idmap is empty */
/* Slots are where they are until the next put or remove. */
struct idmap_slot *idmap_get(const struct idmap *m,
                             const uint64_t id[2]); /* or NULL */
/* The one with this id; a new one has data of 0. */
struct idmap_slot *idmap_put(struct idmap *m, const uint64_t id[2]);
/* Another may move up to here: who walks over m->slots looks there again. */
void idmap_remove(struct idmap *m, struct idmap_slot *slot);
/* Give back memory that is not needed any more; not while walking. */
void idmap_shrink(struct idmap *m);

#endif
