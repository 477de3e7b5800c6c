/* roster_private - how a roster lies in memory: of roster.c, which makes it and
 * finds one name, and roster_walk.c, which reads many. */
#ifndef BIGA_EXTENDER_ROSTER_ROSTER_PRIVATE_H
#define BIGA_EXTENDER_ROSTER_ROSTER_PRIVATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "extender/roster/roster.h"
#include "lib/base/hash.h"

/* The hash index.  All rosters that are derived of one another share it while
 * it has room: names are added to it and never taken out, each with an id that
 * stays.
 *
 * A slot carries half of the hash, so that a name is compared when it is all
 * but certain to be the one, and is small, so that more of them stay in the
 * cache. */
struct roster_index {
    atomic_uint refs;
    atomic_uint n; /* ids that are given; who adds one is the only one */
    uint32_t ids_max, text_max;
    size_t mask; /* slots - 1; at most half of them are in use, mostly less */
    _Atomic uint64_t *slots; /* upper half of the name's hash, 0: free; offset
                              * of its entry */
    char *text;              /* entries by id: the id, the record */
    uint32_t text_size;
};

/* A record: the size of a name, the name. */
enum { RECORD_NAME_AT = 1, ENTRY_RECORD_AT = sizeof(uint32_t) };

struct roster {
    atomic_uint refs;
    size_t n;
    struct roster_index *index;
    uint32_t n_ids;    /* that this one knows */
    uint32_t known;    /* bytes of the index' entries that are theirs */
    int32_t *ranks;    /* by id, ROSTER_NONE: it is gone; NULL: ids are ranks */
    uint32_t *ids;     /* by rank */
    uint32_t *offsets; /* of the records, by rank, and where the last ends */
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

static inline size_t record_name_size(const char *record)
{
    return (unsigned char)record[0];
}

static inline uint32_t record_size(const char *record)
{
    return RECORD_NAME_AT + (uint32_t)record_name_size(record);
}

static inline bool record_is(const char *record, const char *name, size_t size)
{
    return record_name_size(record) == size &&
           same_bytes(record + RECORD_NAME_AT, name, size);
}

/* The name's id, ROSTER_NONE: there was none when this roster was made.  What
 * others may add to the index meanwhile is not looked at. */
static inline int32_t roster_probe(const struct roster *r, uint64_t hash,
                                   const char *name, size_t size)
{
    const struct roster_index *x = r->index;
    uint64_t slot;
    int32_t id;
    for (size_t at = hash & x->mask;
         (slot = atomic_load_explicit(&x->slots[at], memory_order_relaxed));
         at = (at + 1) & x->mask) {
        const char *entry = x->text + (uint32_t)slot;
        if (slot >> 32 != hash_tag(hash) || (uint32_t)slot >= r->known ||
            !record_is(entry + ENTRY_RECORD_AT, name, size))
            continue;
        memcpy(&id, entry, sizeof id);
        return id;
    }
    return ROSTER_NONE;
}

static inline int32_t roster_rank_of(const struct roster *r, int32_t id)
{
    return id == ROSTER_NONE || !r->ranks ? id : r->ranks[id];
}

#endif
