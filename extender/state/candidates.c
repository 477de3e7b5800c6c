#include "extender/state/candidates.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "extender/state/snapshot_private.h"
#include "lib/base/refs.h"

struct candidates {
    atomic_uint refs;
    struct roster *roster; /* whose indexes the bits are */
    size_t n_words;
    uint64_t bits[];
};

struct candidates *candidates_ref(struct candidates *c)
{
    if (c)
        atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

void candidates_unref(struct candidates *c)
{
    if (!c || !refs_drop(&c->refs))
        return;
    roster_unref(c->roster);
    free(c);
}

struct candidates *candidates_create(const struct snapshot *s,
                                     const int32_t *indexes, size_t n,
                                     struct candidates *like)
{
    size_t words = s->n_nodes / 64 + 1, count = 0;
    size_t size = words * sizeof(uint64_t);
    cleanup_with(candidates) struct candidates *c = xcalloc(1,
                                                            sizeof *c + size);
    atomic_init(&c->refs, 1);
    c->roster = roster_ref(s->roster);
    c->n_words = words;
    for (size_t i = 0; i < n; i++)
        if (indexes[i] >= 0)
            c->bits[indexes[i] / 64] |= UINT64_C(1) << indexes[i] % 64;
    for (size_t i = 0; i < words; i++)
        count += (size_t)__builtin_popcountll(c->bits[i]);
    if (count == s->n_nodes)
        return NULL;
    if (like && like->roster == c->roster &&
        memcmp(like->bits, c->bits, size) == 0)
        return candidates_ref(like);
    return steal(&c);
}

/* The names of the candidates in another snapshot. */
struct search {
    const struct candidates *c;
    const struct snapshot *s;
    int32_t *found;
    size_t n;
};

static void search_name(void *ctx, size_t index, const char *name, size_t size)
{
    struct search *x = ctx;
    if (!(x->c->bits[index / 64] >> index % 64 & 1))
        return;
    int32_t at = x->c->roster == x->s->roster ? (int32_t)index
                                              : snapshot_find(x->s, name, size);
    if (at != NODE_NONE)
        x->found[x->n++] = at;
}

int32_t *candidates_indexes(const struct candidates *c,
                            const struct snapshot *s, size_t *ret_n)
{
    *ret_n = 0;
    if (!c)
        return NULL;
    struct search x = {
        .c = c, .s = s, .found = xcalloc(c->n_words * 64 + 1, sizeof *x.found)};
    roster_each(c->roster, search_name, &x);
    *ret_n = x.n;
    return x.found;
}
