#include "extender/roster/roster.h"

#include <stdlib.h>

#include "extender/roster/roster_private.h"
#include "lib/base/mem.h"
#include "lib/base/refs.h"
#include "lib/base/str.h"

/* A table of up to so many is kept three quarters empty: a name that is not in
 * its first slot costs more than the cache that takes. */
enum { ROOMY_SLOTS = 128 << 10 };
/* A new index has room for a 64th more names, and as many of a roster's ids may
 * be of names that are gone as are not, and these. */
enum { SPARE_PART = 64, SPARE_TEXT = 4096, SPARE_IDS = 1024, BATCH = 32 };

/* --- the hash index -------------------------------------------------------- */

/* For `n` names and some more, whose entries take `bytes`. */
static struct roster_index *index_create(size_t n, size_t bytes)
{
    struct roster_index *x = xcalloc(1, sizeof *x);
    size_t slots = 16, most = n + n / SPARE_PART;
    while (slots < most * 2 || (slots < most * 4 && slots < ROOMY_SLOTS))
        slots *= 2;
    size_t ids = slots / (slots < ROOMY_SLOTS ? 4 : 2);
    size_t text = (n ? bytes / n + 1 : 0) * ids + SPARE_TEXT;
    atomic_init(&x->refs, 1);
    x->mask = slots - 1;
    x->slots = xcalloc(slots, sizeof *x->slots);
    x->ids_max = (uint32_t)ids;
    x->text_max = (uint32_t)text;
    x->text = xmalloc(text);
    return x;
}

static void index_unref(struct roster_index *x)
{
    if (!x || !refs_drop(&x->refs))
        return;
    free(x->slots);
    free(x->text);
    free(x);
}

static void index_add(struct roster_index *x, uint32_t id, uint64_t hash,
                      const char *record)
{
    char *entry = x->text + x->text_size;
    size_t at = hash & x->mask;
    memcpy(entry, &id, sizeof id);
    memcpy(entry + ENTRY_RECORD_AT, record, record_size(record));
    while (atomic_load_explicit(&x->slots[at], memory_order_relaxed))
        at = (at + 1) & x->mask;
    atomic_store_explicit(&x->slots[at],
                          (uint64_t)hash_tag(hash) << 32 | x->text_size,
                          memory_order_relaxed);
    x->text_size += ENTRY_RECORD_AT + record_size(record);
}

/* --- names in their order -------------------------------------------------- */

/* With room for `n` names, whose records take `bytes` or fewer. */
static struct roster *roster_reserve(size_t n, size_t bytes)
{
    struct roster *r = xcalloc(1, sizeof *r);
    atomic_init(&r->refs, 1);
    r->ids = xmalloc((n + 1) * sizeof *r->ids);
    r->offsets = xcalloc(n + 1, sizeof *r->offsets);
    r->text = xmalloc(bytes + 1);
    r->plain = true;
    return r;
}

static void roster_add(struct roster *r, const char *name)
{
    size_t size = strlen(name);
    char *record = r->text + r->text_size;
    r->plain = r->plain && str_is_plain_json(name, size);
    record[0] = (char)size;
    memcpy(record + RECORD_NAME_AT, name, size);
    r->text_size += record_size(record);
    r->offsets[++r->n] = r->text_size;
}

/* Names of another one, with their ids. */
static void roster_take(struct roster *r, const struct roster *from, size_t at,
                        size_t n)
{
    const uint32_t *offsets = from->offsets + at;
    uint32_t size = offsets[n] - offsets[0], on = r->text_size - offsets[0];
    memcpy(r->text + r->text_size, from->text + offsets[0], size);
    memcpy(r->ids + r->n, from->ids + at, n * sizeof *r->ids);
    for (size_t i = 1; i <= n; i++)
        r->offsets[r->n + i] = offsets[i] + on;
    r->n += n;
    r->text_size += size;
}

static const char *roster_record(const struct roster *r, size_t rank)
{
    return r->text + r->offsets[rank];
}

static const char *roster_name(const struct roster *r, size_t rank,
                               size_t *ret_size)
{
    const char *record = roster_record(r, rank);
    *ret_size = record_name_size(record);
    return record + RECORD_NAME_AT;
}

static uint64_t roster_hash(const struct roster *r, size_t rank)
{
    size_t size;
    const char *name = roster_name(r, rank, &size);
    return hash_bytes(name, size);
}

/* --- ids ------------------------------------------------------------------- */

/* An index of its own.  In two passes, so that the misses of slots overlap. */
static void roster_index(struct roster *r)
{
    uint64_t hashes[BATCH];
    size_t n;
    r->index = index_create(r->n, r->text_size + r->n * ENTRY_RECORD_AT);
    for (size_t from = 0; from < r->n; from += n) {
        n = r->n - from < BATCH ? r->n - from : BATCH;
        for (size_t i = 0; i < n; i++) {
            hashes[i] = roster_hash(r, from + i);
            __builtin_prefetch(&r->index->slots[hashes[i] & r->index->mask], 1);
        }
        for (size_t i = 0; i < n; i++) {
            r->ids[from + i] = (uint32_t)(from + i);
            index_add(r->index, (uint32_t)(from + i), hashes[i],
                      roster_record(r, from + i));
        }
    }
    r->n_ids = (uint32_t)r->n;
    r->known = r->index->text_size;
    atomic_init(&r->index->n, r->n_ids);
}

/* Names that come, by their ranks; `bytes` is what their entries take. */
struct comers {
    size_t *ranks, n, bytes;
};

/* One that comes back has its id. */
static void comers_add(struct comers *c, struct roster *next,
                       const struct roster *r, size_t rank)
{
    size_t size;
    const char *name = roster_name(next, rank, &size);
    int32_t id = roster_probe(r, hash_bytes(name, size), name, size);
    if (id != ROSTER_NONE) {
        next->ids[rank] = (uint32_t)id;
        return;
    }
    c->ranks[c->n++] = rank;
    c->bytes += ENTRY_RECORD_AT + RECORD_NAME_AT + size;
}

/* Go on with the other's index.  False: it has no room, or too much of it is
 * gone, or another roster was derived and has added to it. */
static bool roster_share(struct roster *next, const struct roster *r,
                         const struct comers *c)
{
    struct roster_index *x = r->index;
    uint32_t newest = r->n_ids;
    if (newest + c->n > x->ids_max || newest > 2 * next->n + SPARE_IDS)
        return false;
    if (c->n > 0 && !atomic_compare_exchange_strong(&x->n, &newest,
                                                    newest + (uint32_t)c->n))
        return false;
    if (c->n > 0 && c->bytes > x->text_max - x->text_size)
        return false;
    next->n_ids = r->n_ids;
    next->known = r->known;
    for (size_t i = 0; i < c->n; i++) {
        size_t rank = c->ranks[i];
        next->ids[rank] = next->n_ids++;
        index_add(x, next->ids[rank], roster_hash(next, rank),
                  roster_record(next, rank));
        next->known = x->text_size;
    }
    next->index = x;
    atomic_fetch_add_explicit(&x->refs, 1, memory_order_relaxed);
    return true;
}

static void roster_rank_ids(struct roster *r)
{
    size_t size = r->n_ids * sizeof *r->ranks;
    r->ranks = xmalloc(size + 1);
    memset(r->ranks, 0xff, size); /* ROSTER_NONE */
    for (size_t i = 0; i < r->n; i++)
        r->ranks[r->ids[i]] = (int32_t)i;
}

struct roster *roster_create(const char *const *names, size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += RECORD_NAME_AT + strlen(names[i]);
    struct roster *r = roster_reserve(n, bytes);
    for (size_t i = 0; i < n; i++)
        roster_add(r, names[i]);
    roster_index(r);
    return r;
}

struct roster *roster_derive(const struct roster *r,
                             const struct roster_run *runs, size_t n_runs)
{
    size_t n = 0, bytes = r->text_size;
    for (size_t i = 0; i < n_runs; i++) {
        n += runs[i].name ? 1 : runs[i].n;
        bytes += runs[i].name ? RECORD_NAME_AT + strlen(runs[i].name) : 0;
    }
    struct roster *next = roster_reserve(n, bytes);
    struct comers comers = {.ranks = xcalloc(n_runs + 1, sizeof(size_t))};
    next->plain = r->plain;
    for (size_t i = 0; i < n_runs; i++) {
        if (!runs[i].name) {
            roster_take(next, r, runs[i].from, runs[i].n);
            continue;
        }
        roster_add(next, runs[i].name);
        comers_add(&comers, next, r, next->n - 1);
    }
    if (roster_share(next, r, &comers))
        roster_rank_ids(next);
    else
        roster_index(next);
    free(comers.ranks);
    return next;
}

uint32_t roster_id(const struct roster *r, size_t rank)
{
    return r->ids[rank];
}

int32_t roster_find_id(const struct roster *r, uint32_t id)
{
    return id < r->n_ids ? roster_rank_of(r, (int32_t)id) : ROSTER_NONE;
}

bool roster_has_ids_of(const struct roster *r, const struct roster *other)
{
    return r->index == other->index;
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
    index_unref(r->index);
    free(r->ranks);
    free(r->ids);
    free(r->offsets);
    free(r->text);
    free(r);
}

int32_t roster_find(const struct roster *r, const char *name, size_t size)
{
    return roster_rank_of(r,
                          roster_probe(r, hash_bytes(name, size), name, size));
}

void roster_each(const struct roster *r, roster_name_f *visit, void *ctx)
{
    for (size_t i = 0; i < r->n; i++) {
        size_t size;
        const char *name = roster_name(r, i, &size);
        visit(ctx, i, name, size);
    }
}
