#include "extender/roster/roster_private.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { NAME_MAX_BYTES = 253, BATCH = 32 };

/* A name that was sent with escapes: rare, so decoded first. */
static int32_t roster_probe_escaped(const struct roster *r,
                                    const struct jtext *name)
{
    char decoded[6 * NAME_MAX_BYTES + 1]; /* "\u0061" is six bytes for one */
    if (name->size >= sizeof decoded)
        return ROSTER_NONE;
    size_t size = jtext_decode(name, decoded);
    return roster_probe(r, hash_bytes(decoded, size), decoded, size);
}

void roster_walk_init(struct roster_walk *w, const struct roster *r)
{
    *w = (struct roster_walk){r, 0, 0};
}

/* Behind the last name that was found. */
static void walk_behind(struct roster_walk *w, const int32_t *indexes, size_t n)
{
    while (n > 0 && indexes[n - 1] == ROSTER_NONE)
        n--;
    if (n == 0)
        return;
    w->rank = (uint32_t)indexes[n - 1] + 1;
    w->next = w->roster->offsets[w->rank];
}

/* In several passes, so that the misses of one name's slot, text and rank
 * overlap with those of the others. */
static void find_batch(struct roster_walk *w, const struct jtext *names,
                       size_t n, int32_t *ret_indexes)
{
    const struct roster *r = w->roster;
    const struct roster_index *x = r->index;
    uint64_t hashes[BATCH];
    for (size_t i = 0; i < n; i++) {
        hashes[i] = hash_bytes(names[i].data, names[i].size);
        __builtin_prefetch(&x->slots[hashes[i] & x->mask]);
    }
    for (size_t i = 0; i < n; i++)
        __builtin_prefetch(x->text + (uint32_t)atomic_load_explicit(
                                         &x->slots[hashes[i] & x->mask],
                                         memory_order_relaxed));
    for (size_t i = 0; i < n; i++) {
        ret_indexes[i] = names[i].escaped
                             ? roster_probe_escaped(r, &names[i])
                             : roster_probe(r, hashes[i], names[i].data,
                                            names[i].size);
        if (r->ranks && ret_indexes[i] != ROSTER_NONE)
            __builtin_prefetch(&r->ranks[ret_indexes[i]]);
    }
    for (size_t i = 0; r->ranks && i < n; i++)
        ret_indexes[i] = roster_rank_of(r, ret_indexes[i]);
    walk_behind(w, ret_indexes, n);
}

/* --- names that are there, and names that are read ------------------------- */

void roster_find_many(const struct roster *r, const struct jtext *names,
                      size_t n, int32_t *ret_indexes)
{
    struct roster_walk w;
    roster_walk_init(&w, r);
    for (size_t i = 0; i < n;) {
        const char *record = r->text + w.next;
        if (w.next < r->text_size && !names[i].escaped &&
            record_is(record, names[i].data, names[i].size)) {
            ret_indexes[i++] = (int32_t)w.rank++;
            w.next += record_size(record);
            continue;
        }
        size_t batch = n - i < BATCH ? n - i : BATCH;
        find_batch(&w, names + i, batch, ret_indexes + i);
        i += batch;
    }
}

enum { BLOCK = 16, WINDOW = RECORD_NAME_AT + NAME_MAX_BYTES + BLOCK };

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
 * that comes next in the roster, it is read by comparing.  Not near the end of
 * either text: a window of both may be looked at. */
static size_t read_expected(struct roster_walk *w, struct jscan *s,
                            struct jtext *ret_names, int32_t *ret_indexes,
                            size_t max)
{
    const struct roster *r = w->roster;
    if (!r->plain || r->text_size < WINDOW)
        return 0;
    const char *p = s->p, *record = r->text + w->next;
    const char *const last = r->text + r->text_size - WINDOW;
    size_t n = 0;
    while (n < max && record <= last && s->end - p >= WINDOW) {
        const size_t size = record_name_size(record);
        if (p[0] != ',' || p[1] != '"' || p[size + 2] != '"' ||
            !same_blocks(record + RECORD_NAME_AT, p + 2, size))
            break;
        ret_names[n] = (struct jtext){p + 2, size, false};
        ret_indexes[n] = (int32_t)(w->rank + n);
        n++;
        record += RECORD_NAME_AT + size;
        p += size + 3;
    }
    s->p = p;
    w->rank += (uint32_t)n;
    w->next = (uint32_t)(record - r->text);
    return n;
}

size_t roster_read(struct roster_walk *w, struct jscan *s,
                   struct jtext *ret_names, int32_t *ret_indexes, size_t max)
{
    size_t n = 0, batch, got;
    do {
        if (n > 0)
            n += read_expected(w, s, ret_names + n, ret_indexes + n, max - n);
        batch = max - n < BATCH ? max - n : BATCH;
        got = jscan_strings(s, ret_names + n, batch);
        find_batch(w, ret_names + n, got, ret_indexes + n);
        n += got;
    } while (n < max && got == batch);
    return n;
}
