#include "extender/state/namespace_use.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/base/refs.h"

/* --- counting pairs ----------------------------------------------------- */

enum { FEW = 16 }; /* members of a pair, and their cards, as a rule */

/* One card of one member. */
struct piece {
    const char *node, *card;
    const struct demand *demand;
};

static int compare_pieces(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    int order = strcmp(x->node, y->node);
    return order ? order : strcmp(x->card, y->card);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What the members on one card have of it. */
static void count_card(const struct piece *pieces, size_t n,
                       struct namespace_use *use)
{
    struct namespace_use host = {0}, xpus = {0};
    for (size_t i = 0; i < n; i++) {
        const struct demand *d = pieces[i].demand;
        if (d->role == ROLE_HOST) {
            host.cores = larger(host.cores, d->card_cores);
            host.memory_mib = larger(host.memory_mib, d->card_memory_mib);
        } else {
            xpus.cores += d->card_cores;
            xpus.memory_mib += d->card_memory_mib;
        }
    }
    use->cards++;
    use->cores += larger(host.cores, xpus.cores);
    use->memory_mib += larger(host.memory_mib, xpus.memory_mib);
}

void namespace_use_count_pair(const struct allocation *const *members, size_t n,
                              struct namespace_use *ret_use)
{
    struct namespace_use use = {0};
    size_t n_pieces = 0;
    for (size_t i = 0; i < n; i++)
        n_pieces += members[i]->n_cards;
    struct piece few[FEW];
    cleanup_free struct piece *many = n_pieces > FEW
                                          ? xcalloc(n_pieces, sizeof *many)
                                          : NULL;
    struct piece *pieces = many ? many : few;
    n_pieces = 0;
    for (size_t i = 0; i < n; i++)
        for (unsigned c = 0; c < members[i]->n_cards; c++)
            pieces[n_pieces++] = (struct piece){
                members[i]->node, members[i]->cards[c], &members[i]->demand};
    if (n_pieces > 1)
        qsort(pieces, n_pieces, sizeof *pieces, compare_pieces);
    for (size_t i = 0, end; i < n_pieces; i = end) {
        end = i + 1;
        while (end < n_pieces && compare_pieces(&pieces[i], &pieces[end]) == 0)
            end++;
        count_card(&pieces[i], end - i, &use);
    }
    *ret_use = use;
}

/* The members of a pair but `without` (or NULL), and `with` (or NULL). */
void namespace_use_count(const struct alloc_index *x, const char *pair_key,
                         const struct allocation *without,
                         const struct allocation *with,
                         struct namespace_use *ret_use)
{
    const struct allocation *few[FEW + 1];
    size_t n = alloc_index_find_pair(x, pair_key, few, FEW), kept = 0;
    cleanup_free const struct allocation **many =
        n > FEW ? xcalloc(n + 1, sizeof *many) : NULL;
    const struct allocation **list = many ? many : few;
    if (many)
        (void)alloc_index_find_pair(x, pair_key, many, n);
    for (size_t i = 0; i < n; i++)
        if (list[i] != without)
            list[kept++] = list[i];
    if (with)
        list[kept++] = with;
    namespace_use_count_pair(list, kept, ret_use);
}

void namespace_use_add(struct namespace_use *to,
                       const struct namespace_use *use)
{
    to->cards += use->cards;
    to->cores += use->cores;
    to->memory_mib += use->memory_mib;
}

static void use_take(struct namespace_use *from,
                     const struct namespace_use *use)
{
    from->cards -= use->cards;
    from->cores -= use->cores;
    from->memory_mib -= use->memory_mib;
}

/* --- the sums ----------------------------------------------------------- */

/* Namespaces by hash in a fixed number of short lists, each shared between
 * versions until it changes. */
enum { LISTS = 256 };

struct sum {
    char namespace[DEMAND_NAMESPACE_MAX + 1];
    struct namespace_use use;
};

struct sum_list {
    atomic_uint refs;
    size_t n;
    struct sum sums[];
};

struct namespace_sums {
    atomic_uint refs;
    struct sum_list *lists[LISTS]; /* NULL: empty */
};

static struct sum_list *list_create(size_t n)
{
    struct sum_list *list = xcalloc(1, sizeof *list + n * sizeof list->sums[0]);
    atomic_init(&list->refs, 1);
    list->n = n;
    return list;
}

static void list_unref(struct sum_list *list)
{
    if (list && refs_drop(&list->refs))
        free(list);
}

struct namespace_sums *namespace_sums_create(void)
{
    struct namespace_sums *q = xcalloc(1, sizeof *q);
    atomic_init(&q->refs, 1);
    return q;
}

DEFINE_REF(namespace_sums_ref, struct namespace_sums)

void namespace_sums_unref(struct namespace_sums *q)
{
    if (!q || !refs_drop(&q->refs))
        return;
    for (size_t i = 0; i < LISTS; i++)
        list_unref(q->lists[i]);
    free(q);
}

static size_t list_of(const char *namespace)
{
    return hash_bytes(namespace, strlen(namespace)) % LISTS;
}

static const struct sum *sum_find(const struct sum_list *list,
                                  const char *namespace)
{
    for (size_t i = 0; list && i < list->n; i++)
        if (strcmp(list->sums[i].namespace, namespace) == 0)
            return &list->sums[i];
    return NULL;
}

void namespace_sums_get(const struct namespace_sums *q, const char *namespace,
                        struct namespace_use *ret_use)
{
    const struct sum *sum = sum_find(q->lists[list_of(namespace)], namespace);
    *ret_use = sum ? sum->use : (struct namespace_use){0};
}

/* The list with another sum of the namespace; one of nothing is left out. */
static struct sum_list *list_with(const struct sum_list *old,
                                  const char *namespace,
                                  const struct namespace_use *use)
{
    size_t n = 0;
    struct sum_list *list = list_create((old ? old->n : 0) + 1);
    for (size_t i = 0; old && i < old->n; i++)
        if (strcmp(old->sums[i].namespace, namespace) != 0)
            list->sums[n++] = old->sums[i];
    if (use->cards) {
        struct sum *sum = &list->sums[n++];
        memcpy(sum->namespace, namespace, strlen(namespace) + 1);
        sum->use = *use;
    }
    list->n = n;
    return list;
}

static void sums_own(struct namespace_sums **sums)
{
    struct namespace_sums *old = *sums;
    if (atomic_load_explicit(&old->refs, memory_order_acquire) == 1)
        return;
    struct namespace_sums *own = namespace_sums_create();
    for (size_t i = 0; i < LISTS; i++) {
        own->lists[i] = old->lists[i];
        if (own->lists[i])
            atomic_fetch_add_explicit(&own->lists[i]->refs, 1,
                                      memory_order_relaxed);
    }
    namespace_sums_unref(old);
    *sums = own;
}

void namespace_sums_follow(struct namespace_sums **sums, const char *namespace,
                           const struct namespace_use *before,
                           const struct namespace_use *after)
{
    struct namespace_use use;
    if (memcmp(before, after, sizeof use) == 0)
        return;
    sums_own(sums);
    namespace_sums_get(*sums, namespace, &use);
    namespace_use_add(&use, after);
    use_take(&use, before);
    struct sum_list **list = &(*sums)->lists[list_of(namespace)];
    struct sum_list *old = *list;
    *list = list_with(old, namespace, &use);
    list_unref(old);
}
