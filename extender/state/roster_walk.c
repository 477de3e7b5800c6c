#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "extender/state/roster_private.h"

enum { NAME_MAX_BYTES = 253, BATCH = 32 };

/* A name that was sent with escapes: rare, so decoded first. */
static const char *roster_probe_escaped(const struct roster *r,
                                        const struct jtext *name)
{
    char decoded[6 * NAME_MAX_BYTES + 1]; /* "\u0061" is six bytes for one */
    if (name->size >= sizeof decoded)
        return NULL;
    size_t size = jtext_decode(name, decoded);
    return roster_probe(r, hash_bytes(decoded, size), decoded, size);
}

/* --- streams ------------------------------------------------------------- */

void roster_walk_init(struct roster_walk *w, const struct roster *r)
{
    memset(w, 0, sizeof *w);
    w->roster = r;
    for (size_t i = 0; i < ROSTER_STREAMS; i++)
        w->next[i] = r->text_size;
}

/* The record of the name that comes next, if all goes on as it was; NULL:
 * nobody knows. */
static inline const char *walk_expect(const struct roster_walk *w)
{
    uint32_t next = w->next[w->after[w->last]];
    return next < w->roster->text_size ? w->roster->text + next : NULL;
}

static inline void walk_advance(struct roster_walk *w, const char *record)
{
    w->last = w->after[w->last];
    w->next[w->last] += record_size(record);
}

/* The name came, expected or not. */
static void walk_note(struct roster_walk *w, const char *record)
{
    uint32_t at = (uint32_t)(record - w->roster->text);
    uint8_t stream = 0;
    while (stream < ROSTER_STREAMS && w->next[stream] != at)
        stream++;
    if (stream == ROSTER_STREAMS) {
        stream = w->spare++ % ROSTER_STREAMS;
        w->next[stream] = at;
    }
    w->after[w->last] = stream;
    walk_advance(w, record);
}

/* In three passes, so that the misses of one name's slot and text overlap
 * with those of the others. */
static void find_batch(struct roster_walk *w, const struct jtext *names,
                       size_t n, int32_t *ret_indexes)
{
    const struct roster *r = w->roster;
    uint64_t hashes[BATCH];
    for (size_t i = 0; i < n; i++) {
        hashes[i] = hash_bytes(names[i].data, names[i].size);
        __builtin_prefetch(&r->slots[hashes[i] & r->mask]);
    }
    for (size_t i = 0; i < n; i++) {
        const struct roster_slot *slot = &r->slots[hashes[i] & r->mask];
        __builtin_prefetch(r->text + slot->offset);
    }
    for (size_t i = 0; i < n; i++) {
        const char *record = names[i].escaped
                                 ? roster_probe_escaped(r, &names[i])
                                 : roster_probe(r, hashes[i], names[i].data,
                                                names[i].size);
        ret_indexes[i] = record_index(record);
        if (record)
            walk_note(w, record);
    }
}

/* --- names that are there, and names that are read ------------------------- */

void roster_find_many(const struct roster *r, const struct jtext *names,
                      size_t n, int32_t *ret_indexes)
{
    struct roster_walk w;
    roster_walk_init(&w, r);
    for (size_t i = 0; i < n;) {
        const char *record = walk_expect(&w);
        if (record && !names[i].escaped &&
            record_is(record, names[i].data, names[i].size)) {
            ret_indexes[i++] = record_index(record);
            walk_advance(&w, record);
            continue;
        }
        size_t batch = n - i < BATCH ? n - i : BATCH;
        find_batch(&w, names + i, batch, ret_indexes + i);
        i += batch;
    }
}

enum { BLOCK = 16 };

/* memcmp(a, b, size) == 0, where a block may be read behind both. */
static inline bool same_blocks(const char *a, const char *b, size_t size)
{
#ifdef __SSE2__
    for (;;) {
        const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)a);
        const __m128i y = _mm_loadu_si128((const __m128i *)(const void *)b);
        unsigned differ = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(x, y)) ^
                          0xffff;
        if (size <= BLOCK)
            return (uint16_t)(differ << (BLOCK - size)) == 0;
        if (differ)
            return false;
        a += BLOCK;
        b += BLOCK;
        size -= BLOCK;
    }
#else
    return memcmp(a, b, size) == 0;
#endif
}

/* With the cursor behind a string: as long as `,"NAME"` follows with the name
 * that is expected, it is read by comparing. */
static size_t read_expected(struct roster_walk *walk, struct jscan *s,
                            struct jtext *ret_names, int32_t *ret_indexes,
                            size_t max)
{
    struct roster_walk w = *walk; /* so that it does not change with a text */
    const char *p = s->p, *const text = w.roster->text;
    const uint32_t text_size = w.roster->text_size;
    size_t n = 0;
    while (n < max) {
        const uint8_t stream = w.after[w.last];
        const uint32_t next = w.next[stream];
        if (text_size - next < RECORD_NAME_AT)
            break;
        const char *record = text + next;
        const size_t size = (unsigned char)record[RECORD_SIZE_AT];
        if (text_size - next < RECORD_NAME_AT + size + BLOCK ||
            (size_t)(s->end - p) < size + 3 + BLOCK || p[0] != ',' ||
            p[1] != '"' || p[size + 2] != '"' ||
            !same_blocks(record + RECORD_NAME_AT, p + 2, size))
            break;
        ret_names[n] = (struct jtext){p + 2, size, false};
        ret_indexes[n++] = record_index(record);
        p += size + 3;
        w.next[stream] = next + RECORD_NAME_AT + (uint32_t)size;
        w.last = stream;
    }
    s->p = p;
    *walk = w;
    return n;
}

size_t roster_read(struct roster_walk *w, struct jscan *s,
                   struct jtext *ret_names, int32_t *ret_indexes, size_t max)
{
    size_t n = 0, batch, got;
    do {
        if (n > 0 && w->roster->plain)
            n += read_expected(w, s, ret_names + n, ret_indexes + n, max - n);
        batch = max - n < BATCH ? max - n : BATCH;
        got = jscan_strings(s, ret_names + n, batch);
        find_batch(w, ret_names + n, got, ret_indexes + n);
        n += got;
    } while (n < max && got == batch);
    return n;
}
