#include "extender/roster/roster.h"

#include <stdlib.h>

#include "extender/roster/roster_private.h"
#include "lib/base/mem.h"
#include "lib/base/refs.h"

/* A table of up to so many is kept three quarters empty: a name that is not in
 * its first slot costs more than the cache that takes. */
enum { ROOMY_SLOTS = 128 << 10 };

/* Does it stand in a JSON text as it is? */
static bool is_plain(const char *name, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)name[i];
        if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\')
            return false;
    }
    return true;
}

/* With room for `n` names, whose records take `bytes` or fewer. */
static struct roster *roster_reserve(size_t n, size_t bytes)
{
    struct roster *r = xcalloc(1, sizeof *r);
    atomic_init(&r->refs, 1);
    size_t slots = 16;
    while (slots < n * 2 || (slots < n * 4 && slots < ROOMY_SLOTS))
        slots *= 2;
    r->mask = slots - 1;
    r->slots = xcalloc(slots, sizeof *r->slots);
    r->offsets = xmalloc((n + 1) * sizeof *r->offsets);
    r->text = xmalloc(bytes + 1);
    r->plain = true;
    return r;
}

static void roster_add(struct roster *r, const char *name, size_t size)
{
    int32_t index = (int32_t)r->n;
    r->plain = r->plain && is_plain(name, size);
    char *record = r->text + r->text_size;
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

enum { BATCH = 32 };

/* In two passes, so that the misses of slots overlap. */
static void roster_index(struct roster *r)
{
    uint64_t hashes[BATCH];
    for (size_t from = 0; from < r->n; from += BATCH) {
        size_t n = r->n - from < BATCH ? r->n - from : BATCH;
        for (size_t i = 0; i < n; i++) {
            size_t size;
            const char *name = roster_name(r, from + i, &size);
            hashes[i] = hash_bytes(name, size);
            __builtin_prefetch(&r->slots[hashes[i] & r->mask], 1);
        }
        for (size_t i = 0; i < n; i++) {
            size_t at = hashes[i] & r->mask;
            while (r->slots[at].tag)
                at = (at + 1) & r->mask;
            r->slots[at] = (struct roster_slot){hash_tag(hashes[i]),
                                                r->offsets[from + i]};
        }
    }
}

struct roster *roster_create(const char *const *names, size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += RECORD_NAME_AT + strlen(names[i]);
    struct roster *r = roster_reserve(n, bytes);
    for (size_t i = 0; i < n; i++)
        roster_add(r, names[i], strlen(names[i]));
    roster_index(r);
    return r;
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
    roster_index(next);
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

void roster_each(const struct roster *r, roster_name_f *visit, void *ctx)
{
    for (size_t i = 0; i < r->n; i++) {
        size_t size;
        const char *name = roster_name(r, i, &size);
        visit(ctx, i, name, size);
    }
}
