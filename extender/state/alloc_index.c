/* The index of allocations: tries by pod, uid, pair, node and job. */
#include <stdlib.h>
#include <string.h>

#include "extender/state/alloc_trie.h"
#include "extender/state/allocation.h"
#include "lib/base/mem.h"
#include "lib/base/refs.h"

struct alloc_index {
    atomic_uint refs;
    size_t n;
    struct alloc_trie *roots[ALLOC_KEY_COUNT]; /* NULL when empty */
};

/* --- the index --------------------------------------------------------- */

struct alloc_index *alloc_index_create(void)
{
    struct alloc_index *x = xcalloc(1, sizeof *x);
    atomic_init(&x->refs, 1);
    return x;
}

DEFINE_REF(alloc_index_ref, struct alloc_index)

void alloc_index_unref(struct alloc_index *x)
{
    if (!x || !refs_drop(&x->refs))
        return;
    for (enum alloc_key key = 0; key < ALLOC_KEY_COUNT; key++)
        alloc_trie_unref(x->roots[key]);
    free(x);
}

size_t alloc_index_size(const struct alloc_index *x)
{
    return x->n;
}

/* A pod without a uid is not to be found by it, nor one without a job. */
static bool has_key(enum alloc_key key, const struct allocation *a)
{
    if (key == ALLOC_KEY_JOB)
        return a->demand.job[0] && a->demand.role != ROLE_SERVICE;
    return key != ALLOC_KEY_UID || a->demand.uid[0] != '\0';
}

/* The index becomes the caller's own; its parts are still shared. */
static struct alloc_index *index_own(struct alloc_index **x)
{
    struct alloc_index *old = *x;
    if (atomic_load_explicit(&old->refs, memory_order_acquire) == 1)
        return old;
    struct alloc_index *own = alloc_index_create();
    own->n = old->n;
    for (enum alloc_key key = 0; key < ALLOC_KEY_COUNT; key++)
        own->roots[key] = old->roots[key] ? alloc_trie_ref(old->roots[key])
                                          : NULL;
    alloc_index_unref(old);
    *x = own;
    return own;
}

static const struct allocation *find_same(const struct alloc_index *x,
                                          const struct allocation *a)
{
    return alloc_index_find(x, a->demand.namespace, a->demand.name);
}

void alloc_index_put(struct alloc_index **x, struct allocation *a)
{
    const struct allocation *old = find_same(*x, a);
    if (old)
        alloc_index_drop(x, old);
    struct alloc_index *own = index_own(x);
    own->n++;
    for (enum alloc_key key = 0; key < ALLOC_KEY_COUNT; key++) {
        if (!has_key(key, a))
            continue;
        struct alloc_trie *root = steal(&own->roots[key]);
        own->roots[key] = alloc_trie_with(root, key, a);
    }
}

void alloc_index_drop(struct alloc_index **x, const struct allocation *a)
{
    struct allocation *found = (struct allocation *)find_same(*x, a);
    if (!found)
        return;
    struct alloc_index *own = index_own(x);
    (void)allocation_ref(found); /* until no part needs it any more */
    own->n--;
    for (enum alloc_key key = 0; key < ALLOC_KEY_COUNT; key++) {
        struct alloc_trie *root = steal(&own->roots[key]);
        own->roots[key] = root && has_key(key, found)
                              ? alloc_trie_without(root, found)
                              : root;
    }
    allocation_unref(found);
}

const struct allocation *alloc_index_find(const struct alloc_index *x,
                                          const char *namespace,
                                          const char *name)
{
    const struct alloc_trie *leaf = alloc_trie_leaf(
        x->roots[ALLOC_KEY_POD], alloc_hash_pod(namespace, name));
    for (uint32_t i = 0; leaf && i < leaf->n; i++) {
        const struct allocation *a = leaf->slots[i];
        if (strcmp(a->demand.name, name) == 0 &&
            strcmp(a->demand.namespace, namespace) == 0)
            return a;
    }
    return NULL;
}

const struct allocation *alloc_index_find_uid(const struct alloc_index *x,
                                              const char *uid)
{
    const struct alloc_trie *leaf = alloc_trie_leaf(x->roots[ALLOC_KEY_UID],
                                                    alloc_hash_text(uid));
    for (uint32_t i = 0; leaf && i < leaf->n; i++) {
        const struct allocation *a = leaf->slots[i];
        if (strcmp(a->demand.uid, uid) == 0)
            return a;
    }
    return NULL;
}

static int compare_number(const void *a, const void *b)
{
    const struct allocation *x = *(const struct allocation *const *)a;
    const struct allocation *y = *(const struct allocation *const *)b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return allocation_compare_pod(x, y);
}

static int compare_pod(const void *a, const void *b)
{
    return allocation_compare_pod(*(const struct allocation *const *)a,
                                  *(const struct allocation *const *)b);
}

size_t alloc_index_find_pair(const struct alloc_index *x, const char *pair_key,
                             const struct allocation **ret, size_t max)
{
    const struct alloc_trie *leaf = alloc_trie_leaf(x->roots[ALLOC_KEY_PAIR],
                                                    alloc_hash_text(pair_key));
    if (!leaf)
        return 0;
    cleanup_free const struct allocation **found =
        xmalloc(leaf->n * sizeof *found);
    size_t n = 0;
    for (uint32_t i = 0; i < leaf->n; i++) {
        const struct allocation *a = leaf->slots[i];
        if (strcmp(a->pair_key, pair_key) == 0)
            found[n++] = a;
    }
    qsort(found, n, sizeof *found, compare_number);
    for (size_t i = 0; i < n && i < max; i++)
        ret[i] = found[i];
    return n;
}

static int compare_member(const void *a, const void *b)
{
    const struct allocation *x = *(const struct allocation *const *)a;
    const struct allocation *y = *(const struct allocation *const *)b;
    if (x->demand.pair != y->demand.pair)
        return x->demand.pair < y->demand.pair ? -1 : 1;
    return compare_number(a, b);
}

const struct allocation **alloc_index_find_job(const struct alloc_index *x,
                                               const char *namespace,
                                               const char *job, size_t *ret_n)
{
    const struct alloc_trie *part =
        alloc_trie_part(x->roots[ALLOC_KEY_JOB], alloc_hash_job(namespace, job),
                        ALLOC_JOB_BITS);
    const struct allocation **list =
        xmalloc((alloc_trie_count(part) + 1) * sizeof *list);
    size_t found = alloc_trie_collect(part, list, 0), n = 0;
    for (size_t i = 0; i < found; i++)
        if (strcmp(list[i]->demand.job, job) == 0 &&
            strcmp(list[i]->demand.namespace, namespace) == 0)
            list[n++] = list[i];
    qsort(list, n, sizeof *list, compare_member);
    *ret_n = n;
    return list;
}

struct collected {
    const struct allocation **list;
    size_t n, cap;
};

static void collect_large(const struct alloc_trie *t, unsigned shift,
                          uint32_t devices, struct collected *c)
{
    if (!t || t->devices < devices)
        return;
    for (uint32_t i = 0; !t->leaf && shift < ALLOC_JOB_BITS && i < t->n; i++)
        collect_large(t->slots[i], shift + ALLOC_TRIE_BITS, devices, c);
    if (!t->leaf && shift < ALLOC_JOB_BITS)
        return;
    while (c->n + alloc_trie_count(t) > c->cap)
        c->list = xgrow(c->list, c->cap, &c->cap, sizeof *c->list);
    c->n = alloc_trie_collect(t, c->list, c->n);
}

const struct allocation **alloc_index_large_jobs(const struct alloc_index *x,
                                                 uint32_t devices,
                                                 size_t *ret_n)
{
    struct collected c = {.list = NULL};
    collect_large(x->roots[ALLOC_KEY_JOB], 0, devices, &c);
    *ret_n = c.n;
    return c.list;
}

static bool is_wanted(const struct alloc_wanted *w, const struct allocation *a)
{
    return strcmp(a->demand.job, w->job) == 0 &&
           strcmp(a->demand.namespace, w->namespace) == 0 &&
           (!w->bound || !a->held) &&
           (!w->is_wanted || w->is_wanted(w->ctx, a));
}

static size_t trie_find_some(const struct alloc_trie *t,
                             const struct alloc_wanted *w,
                             const struct allocation **ret, size_t max)
{
    size_t n = 0;
    if (!t || (w->bound && t->n_bound == 0))
        return 0;
    for (uint32_t i = 0; i < t->n && n < max; i++) {
        if (!t->leaf)
            n += trie_find_some(t->slots[i], w, ret + n, max - n);
        else if (is_wanted(w, t->slots[i]))
            ret[n++] = t->slots[i];
    }
    return n;
}

size_t alloc_index_find_some(const struct alloc_index *x,
                             const struct alloc_wanted *w,
                             const struct allocation **ret, size_t max)
{
    return trie_find_some(alloc_trie_part(x->roots[ALLOC_KEY_JOB],
                                          alloc_hash_job(w->namespace, w->job),
                                          ALLOC_JOB_BITS),
                          w, ret, max);
}

bool alloc_index_has_bound(const struct alloc_index *x, const char *namespace,
                           const char *job)
{
    const struct allocation *any;
    const struct alloc_wanted w = {
        .namespace = namespace, .job = job, .bound = true};
    return alloc_index_find_some(x, &w, &any, 1) > 0;
}

const struct allocation **alloc_index_list(const struct alloc_index *x,
                                           size_t *ret_n)
{
    const struct allocation **list = xmalloc((x->n + 1) * sizeof *list);
    size_t n = alloc_trie_collect(x->roots[ALLOC_KEY_POD], list, 0);
    allocation_sort_pods(list, n);
    *ret_n = n;
    return list;
}

const struct allocation **alloc_index_on_node(const struct alloc_index *x,
                                              const char *node, size_t *ret_n)
{
    const struct alloc_trie *leaf = alloc_trie_leaf(x->roots[ALLOC_KEY_NODE],
                                                    alloc_hash_text(node));
    const struct allocation **list =
        xmalloc(((leaf ? leaf->n : 0) + 1) * sizeof *list);
    size_t n = 0;
    for (uint32_t i = 0; leaf && i < leaf->n; i++) {
        const struct allocation *a = leaf->slots[i];
        if (strcmp(a->node, node) == 0)
            list[n++] = a;
    }
    qsort(list, n, sizeof *list, compare_pod);
    *ret_n = n;
    return list;
}

/* --- differences ---------------------------------------------------------- */

/* What two versions are compared for. */
struct diff {
    alloc_change_f *visit;
    void *ctx;
};

static size_t collect_sorted(const struct alloc_trie *t,
                             const struct allocation ***ret_list)
{
    *ret_list = xmalloc((alloc_trie_count(t) + 1) * sizeof **ret_list);
    size_t n = alloc_trie_collect(t, *ret_list, 0);
    qsort(*ret_list, n, sizeof **ret_list, compare_pod);
    return n;
}

/* Parts that are not both branches; one of them is small. */
static void diff_leaves(const struct alloc_trie *before,
                        const struct alloc_trie *after, const struct diff *d)
{
    cleanup_free const struct allocation **old = NULL, **new = NULL;
    size_t n_old = collect_sorted(before, &old);
    size_t n_new = collect_sorted(after, &new);
    for (size_t i = 0, k = 0; i < n_old || k < n_new;) {
        int order = i == n_old   ? 1
                    : k == n_new ? -1
                                 : allocation_compare_pod(old[i], new[k]);
        const struct allocation *was = order <= 0 ? old[i++] : NULL;
        const struct allocation *is = order >= 0 ? new[k++] : NULL;
        if (was != is)
            d->visit(d->ctx, was, is);
    }
}

static void trie_diff(const struct alloc_trie *before,
                      const struct alloc_trie *after, const struct diff *d)
{
    if (before == after)
        return;
    if (!before || !after || before->leaf || after->leaf) {
        diff_leaves(before, after, d);
        return;
    }
    for (uint32_t map = before->map | after->map; map; map &= map - 1) {
        uint32_t bit = map & -map;
        trie_diff(alloc_trie_child(before, bit), alloc_trie_child(after, bit),
                  d);
    }
}

void alloc_index_diff(const struct alloc_index *before,
                      const struct alloc_index *after, alloc_change_f *visit,
                      void *ctx)
{
    const struct diff d = {visit, ctx};
    trie_diff(before->roots[ALLOC_KEY_POD], after->roots[ALLOC_KEY_POD], &d);
}
