#include "extender/state/roster.h"

#include <stdlib.h>

#include "extender/state/roster_private.h"
#include "lib/base/mem.h"
#include "lib/base/refs.h"

enum { NAME_MAX_BYTES = 253, BATCH = 32 };

/* With room for `n` names, whose records take `bytes` or fewer. */
static struct roster *roster_reserve(size_t n, size_t bytes)
{
    struct roster *r = xcalloc(1, sizeof *r);
    atomic_init(&r->refs, 1);
    size_t slots = 16;
    while (slots < n * 2)
        slots *= 2;
    r->mask = slots - 1;
    r->slots = xcalloc(slots, sizeof *r->slots);
    r->offsets = xmalloc((n + 1) * sizeof *r->offsets);
    r->text = xmalloc(bytes + 1);
    return r;
}

struct roster *roster_create(void)
{
    return roster_reserve(0, 0);
}

static void roster_add(struct roster *r, const char *name, size_t size)
{
    int32_t index = (int32_t)r->n;
    uint64_t hash = hash_bytes(name, size);
    char *record = r->text + r->text_size;
    size_t at = hash & r->mask;
    while (r->slots[at].tag)
        at = (at + 1) & r->mask;
    r->slots[at] = (struct roster_slot){hash_tag(hash), r->text_size};
    memcpy(record, &index, sizeof index);
    record[RECORD_SIZE_AT] = (char)size;
    memcpy(record + RECORD_NAME_AT, name, size);
    r->offsets[r->n++] = r->text_size;
    r->text_size += RECORD_NAME_AT + (uint32_t)size;
}

static const char *roster_name(const struct roster *r, size_t index,
                               size_t *ret_size)
{
    const char *record = r->text + r->offsets[index];
    *ret_size = (unsigned char)record[RECORD_SIZE_AT];
    return record + RECORD_NAME_AT;
}

struct roster *roster_derive(const struct roster *r,
                             const struct roster_run *runs, size_t n_runs)
{
    size_t n = 0, bytes = r->text_size, size;
    for (size_t i = 0; i < n_runs; i++) {
        n += runs[i].name ? 1 : runs[i].n;
        bytes += runs[i].name ? RECORD_NAME_AT + strlen(runs[i].name) : 0;
    }
    struct roster *next = roster_reserve(n, bytes);
    for (size_t i = 0; i < n_runs; i++) {
        if (runs[i].name)
            roster_add(next, runs[i].name, strlen(runs[i].name));
        for (size_t k = 0; !runs[i].name && k < runs[i].n; k++) {
            const char *name = roster_name(r, runs[i].from + k, &size);
            roster_add(next, name, size);
        }
    }
    return next;
}

size_t roster_rank(const struct roster *r, const char *name)
{
    size_t low = 0, high = r->n, size = strlen(name);
    while (low < high) {
        size_t middle = low + (high - low) / 2, size_there;
        const char *there = roster_name(r, middle, &size_there);
        int order = memcmp(there, name, size < size_there ? size : size_there);
        if (order < 0 || (order == 0 && size_there < size))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

DEFINE_REF(roster_ref, struct roster)

void roster_unref(struct roster *r)
{
    if (!r || !refs_drop(&r->refs))
        return;
    free(r->slots);
    free(r->offsets);
    free(r->text);
    free(r);
}

int32_t roster_find(const struct roster *r, const char *name, size_t size)
{
    return record_index(roster_probe(r, hash_bytes(name, size), name, size));
}

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

/* As long as the names come in the order that they have here, from `*next`
 * on: how many do. */
static size_t roster_follow(const struct roster *r, const struct jtext *names,
                            size_t n, uint32_t *next, int32_t *ret_indexes)
{
    size_t i = 0;
    for (; i < n && *next < r->text_size && !names[i].escaped; i++) {
        const char *record = r->text + *next;
        if (!record_is(record, names[i].data, names[i].size))
            break;
        ret_indexes[i] = record_index(record);
        *next += RECORD_NAME_AT + (uint32_t)names[i].size;
    }
    return i;
}

/* In three passes, so that the misses of one name's slot and text overlap
 * with those of the others.  Sets `*next` behind the last that is found. */
static void roster_find_batch(const struct roster *r, const struct jtext *names,
                              size_t n, uint32_t *next, int32_t *ret_indexes)
{
    uint64_t hashes[BATCH];
    const char *last = NULL;
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
        last = record ? record : last;
    }
    if (last)
        *next = (uint32_t)(last - r->text) + RECORD_NAME_AT +
                (unsigned char)last[RECORD_SIZE_AT];
}

void roster_find_many(const struct roster *r, const struct jtext *names,
                      size_t n, int32_t *ret_indexes)
{
    uint32_t next = 0;
    for (size_t i = 0; i < n;) {
        i += roster_follow(r, names + i, n - i, &next, ret_indexes + i);
        size_t batch = n - i < BATCH ? n - i : BATCH;
        roster_find_batch(r, names + i, batch, &next, ret_indexes + i);
        i += batch;
    }
}

void roster_each(const struct roster *r, roster_name_f *visit, void *ctx)
{
    for (size_t i = 0; i < r->n; i++) {
        size_t size;
        const char *name = roster_name(r, i, &size);
        visit(ctx, i, name, size);
    }
}
