/* roster_private - how a roster lies in memory: of roster.c, which makes it and
 * finds one name, and roster_walk.c, which reads many. */
#ifndef BIGA_EXTENDER_ROSTER_ROSTER_PRIVATE_H
#define BIGA_EXTENDER_ROSTER_ROSTER_PRIVATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "extender/roster/roster.h"
#include "lib/base/hash.h"

/* A slot carries half of the hash, so that a name is compared when it is all
 * but certain to be the one, and is small, so that more of them stay in the
 * cache. */
struct roster_slot {
    uint32_t tag;    /* upper half of the name's hash; 0: free */
    uint32_t offset; /* of its record in `text` */
};

/* A record: the node's index, the size of its name, the name. */
enum { RECORD_SIZE_AT = 4, RECORD_NAME_AT = 5 };

struct roster {
    atomic_uint refs;
    size_t n;
    size_t mask; /* slots - 1; at most half of them are in use, mostly less */
    struct roster_slot *slots;
    uint32_t *offsets; /* of the records, by index */
    char *text;        /* the records in their order */
    uint32_t text_size;
    bool plain; /* no name would be written otherwise in JSON */
};

static inline uint32_t hash_tag(uint64_t hash)
{
    return (uint32_t)(hash >> 32) | 1;
}

/* memcmp(a, b, size) == 0 without a call: names are short. */
static inline bool same_bytes(const char *a, const char *b, size_t size)
{
    if (size < 8)
        return memcmp(a, b, size) == 0;
    uint64_t differ = 0;
    for (size_t i = 0; i + 8 < size; i += 8)
        differ |= hash_load(a + i, 8) ^ hash_load(b + i, 8);
    return (differ |
            (hash_load(a + size - 8, 8) ^ hash_load(b + size - 8, 8))) == 0;
}

static inline bool record_is(const char *record, const char *name, size_t size)
{
    return (unsigned char)record[RECORD_SIZE_AT] == size &&
           same_bytes(record + RECORD_NAME_AT, name, size);
}

static inline uint32_t record_size(const char *record)
{
    return RECORD_NAME_AT + (unsigned char)record[RECORD_SIZE_AT];
}

static inline int32_t record_index(const char *record)
{
    int32_t index;
    if (!record)
        return ROSTER_NONE;
    memcpy(&index, record, sizeof index);
    return index;
}

/* The name's record, NULL: none. */
static inline const char *roster_probe(const struct roster *r, uint64_t hash,
                                       const char *name, size_t size)
{
    uint32_t tag = hash_tag(hash);
    for (size_t at = hash & r->mask; r->slots[at].tag;
         at = (at + 1) & r->mask) {
        const char *record = r->text + r->slots[at].offset;
        if (r->slots[at].tag == tag && record_is(record, name, size))
            return record;
    }
    return NULL;
}

#endif
