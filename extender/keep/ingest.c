#include "extender/keep/ingest.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "lib/base/strmap.h"
#include "model/topo/topo_hardware.h"

enum {
    BOOTS_MAX = 16,     /* earlier boot ids that are remembered of a node */
    POOLS_MAX = 262144, /* nodes */
};

/* What changes in a pool.  ingest_undo() restores it from a copy. */
struct content {
    struct slice_epoch epoch; /* of all slices; zero when there are none */
    size_t count;             /* of slices that the pool should have */
    /* without their devices where there is one: what is to be joined to
     * others once more is kept whole */
    struct slice **slices;
    size_t n_slices;
    char hash[17]; /* of all slices of the epoch; "": not computed yet */
    char (*boots)[SLICE_BOOT_ID_MAX + 1]; /* oldest first */
    size_t n_boots;
};

struct pool {
    char *node;
    struct content now;
    struct content *before; /* at the mark; NULL: unchanged since */
};

struct ingest {
    struct strmap pools;             /* by node */
    struct strmap owners;            /* pools by the names of their slices */
    struct hardware_table *hardware; /* of all nodes */
    struct pool **touched;
    size_t n_touched, touched_cap;
};

struct ingest *ingest_create(void)
{
    struct ingest *x = xcalloc(1, sizeof *x);
    x->hardware = hardware_table_create();
    return x;
}

/* Takes over the array and the references in it. */
static void set_slices(struct content *c, struct slice **slices, size_t n)
{
    for (size_t i = 0; i < c->n_slices; i++)
        slice_unref(c->slices[i]);
    free(c->slices);
    c->slices = slices;
    c->n_slices = n;
}

static void content_fini(struct content *c)
{
    set_slices(c, NULL, 0);
    free(c->boots);
}

/* What is in memory of its own becomes so again. */
static struct content *content_copy(const struct content *c)
{
    struct content *copy = xmemdup(c, sizeof *c);
    copy->slices = xmemdup(c->slices, c->n_slices * sizeof(*c->slices));
    for (size_t i = 0; i < c->n_slices; i++)
        (void)slice_ref(copy->slices[i]);
    copy->boots = xmemdup(c->boots, c->n_boots * sizeof *c->boots);
    return copy;
}

static void content_destroy(struct content *c)
{
    if (c)
        content_fini(c);
    free(c);
}

static void pool_destroy(void *pool)
{
    struct pool *p = pool;
    content_destroy(p->before);
    content_fini(&p->now);
    free(p->node);
    free(p);
}

void ingest_destroy(struct ingest *x)
{
    if (!x)
        return;
    strmap_fini_with(&x->pools, pool_destroy);
    strmap_fini(&x->owners);
    hardware_table_destroy(x->hardware);
    free(x->touched);
    free(x);
}

void ingest_result_fini(struct ingest_result *r)
{
    for (size_t i = 0; i < r->n_dropped; i++)
        free(r->dropped[i]);
    free(r->dropped);
    free(r->retired_boot);
    *r = (struct ingest_result){0};
}

/* --- mark and undo ----------------------------------------------------- */

static struct pool *pool_get(struct ingest *x, const char *node)
{
    struct pool *p = strmap_get(&x->pools, node);
    if (p)
        return p;
    p = xcalloc(1, sizeof *p);
    p->node = xstrdup(node);
    (void)strmap_put(&x->pools, p->node, p);
    return p;
}

/* Copy the pool's content, for ingest_undo(). */
static void pool_touch(struct ingest *x, struct pool *p)
{
    if (p->before)
        return;
    p->before = content_copy(&p->now);
    x->touched = xgrow(x->touched, x->n_touched, &x->touched_cap,
                       sizeof(*x->touched));
    x->touched[x->n_touched++] = p;
}

static void pool_disown(struct ingest *x, const struct pool *p)
{
    for (size_t i = 0; i < p->now.n_slices; i++)
        (void)strmap_remove(&x->owners, slice_get_name(p->now.slices[i]));
}

static void pool_own(struct ingest *x, struct pool *p)
{
    for (size_t i = 0; i < p->now.n_slices; i++)
        (void)strmap_put(&x->owners, slice_get_name(p->now.slices[i]), p);
}

static void forget_empty(struct ingest *x)
{
    for (size_t i = 0; i < x->n_touched; i++) {
        struct pool *p = x->touched[i];
        if (p->now.n_slices > 0 || p->now.n_boots > 0)
            continue;
        (void)strmap_remove(&x->pools, p->node);
        pool_destroy(p);
    }
    x->n_touched = 0;
}

void ingest_mark(struct ingest *x)
{
    for (size_t i = 0; i < x->n_touched; i++) {
        content_destroy(x->touched[i]->before);
        x->touched[i]->before = NULL;
    }
    forget_empty(x);
}

void ingest_undo(struct ingest *x)
{
    /* first remove the names of all pools, then add them: a slice's name may
     * have moved from one node to another */
    for (size_t i = 0; i < x->n_touched; i++)
        pool_disown(x, x->touched[i]);
    for (size_t i = 0; i < x->n_touched; i++) {
        struct pool *p = x->touched[i];
        content_fini(&p->now);
        p->now = *p->before;
        free(p->before);
        p->before = NULL;
        pool_own(x, p);
    }
    forget_empty(x);
}

/* --- the rules --------------------------------------------------------- */

static bool was_left(const struct content *c, const char *boot_id)
{
    for (size_t i = 0; i < c->n_boots; i++)
        if (strcmp(c->boots[i], boot_id) == 0)
            return true;
    return false;
}

static void leave_boot(struct content *c, const char *boot_id)
{
    if (was_left(c, boot_id))
        return;
    if (c->n_boots == BOOTS_MAX) {
        memmove(c->boots[0], c->boots[1], (BOOTS_MAX - 1) * sizeof c->boots[0]);
        c->n_boots--;
    }
    c->boots = xrealloc(c->boots, c->n_boots + 1, sizeof *c->boots);
    size_t size = strnlen(boot_id, SLICE_BOOT_ID_MAX);
    memcpy(c->boots[c->n_boots], boot_id, size);
    c->boots[c->n_boots][size] = '\0';
    c->n_boots++;
}

static bool same_epoch(const struct slice_epoch *a, const struct slice_epoch *b)
{
    return a->generation == b->generation &&
           strcmp(a->boot_id, b->boot_id) == 0;
}

static bool is_silent(struct draft *draft, const char *name, int64_t now_ms)
{
    const struct node *n = draft_node(draft, name);
    return n && node_status_is_silent(n->status) &&
           now_ms - atomic_load_explicit(&n->liveness->heard_ms,
                                         memory_order_relaxed) >
               INGEST_SILENCE_MS;
}

/* 0 when the slice is of the pool's epoch or a newer one. */
static int check_epoch(const struct content *c, const struct slice *slice,
                       struct error *err)
{
    const struct slice_epoch *epoch = slice_get_epoch(slice);
    const char *name = slice_get_name(slice);
    /* a node that was withdrawn takes slices of any epoch */
    if (c->n_slices == 0)
        return 0;
    bool same_boot = strcmp(c->epoch.boot_id, epoch->boot_id) == 0;
    if (!same_boot && was_left(c, epoch->boot_id))
        return error_set(err, ESTALE,
                         "slice %s: boot id \"%s\" was left behind by node "
                         "%s, which now has \"%s\"",
                         name, epoch->boot_id, slice_get_node(slice),
                         c->epoch.boot_id);
    if (!same_boot)
        return 0;
    if (epoch->generation < c->epoch.generation)
        return error_set(
            err, ESTALE, "slice %s: generation %lld is older than %lld", name,
            (long long)epoch->generation, (long long)c->epoch.generation);
    if (epoch->generation == c->epoch.generation &&
        slice_get_pool_count(slice) != c->count)
        return error_set(err, ESTALE,
                         "slice %s: generation %lld has %zu slices, not %zu: "
                         "other content needs a higher generation",
                         name, (long long)epoch->generation, c->count,
                         slice_get_pool_count(slice));
    return 0;
}

/* The pool's slices of this slice's epoch with this slice among them.
 * Borrowed. */
static int list_slices(const struct content *c, struct slice *slice,
                       struct slice **ret_list, size_t *ret_n,
                       struct error *err)
{
    size_t n = 0, count = slice_get_pool_count(slice);
    ret_list[n++] = slice;
    if (same_epoch(&c->epoch, slice_get_epoch(slice))) {
        for (size_t i = 0; i < c->n_slices; i++) {
            const char *name = slice_get_name(c->slices[i]);
            if (strcmp(name, slice_get_name(slice)) == 0)
                continue;
            if (n == count || n == SLICE_POOL_SLICES_MAX)
                return error_set(err, EINVAL,
                                 "slice %s: its pool is said to have %zu "
                                 "slices, and has them already",
                                 slice_get_name(slice), count);
            ret_list[n++] = c->slices[i];
        }
    }
    *ret_n = n;
    return 0;
}

/* Compute the hash of the pool's content while the pool is complete: then it
 * is what was published last. */
static void remember_hash(struct content *c, const struct topo *published)
{
    if (c->n_slices > 0 && c->n_slices == c->count && !c->hash[0] && published)
        slice_content_hash(published, c->hash);
}

static const struct topo *published(struct draft *draft, const struct pool *p)
{
    const struct node *node = draft_node(draft, p->node);
    return node ? node->published : NULL;
}

/* Join a complete pool.  -ESTALE when its content differs from an earlier one
 * of the same epoch. */
static int join_slices(const struct content *c, struct slice *const *list,
                       size_t n, struct topo **ret_topo, struct error *err)
{
    cleanup_with(topo) struct topo *topo = NULL;
    const struct slice_epoch *epoch = slice_get_epoch(list[0]);
    int e = slice_join(list, n, &topo, err);
    if (e < 0)
        return e;
    if (c->hash[0] && same_epoch(&c->epoch, epoch)) {
        char hash[17];
        slice_content_hash(topo, hash);
        if (strcmp(c->hash, hash) != 0)
            return error_set(err, ESTALE,
                             "slice %s: generation %lld had other content: a "
                             "change needs a higher generation",
                             slice_get_name(list[0]),
                             (long long)epoch->generation);
    }
    *ret_topo = steal(&topo);
    return 0;
}

static void drop_name(struct ingest_result *r, size_t *cap, const char *name)
{
    r->dropped = xgrow(r->dropped, r->n_dropped, cap, sizeof(*r->dropped));
    r->dropped[r->n_dropped++] = xstrdup(name);
}

/* Make `list` the pool's slices; their epoch may be a new one. */
static void pool_set(struct pool *p, struct slice *const *list, size_t n,
                     struct ingest_result *result)
{
    struct content *c = &p->now;
    const struct slice_epoch *epoch = slice_get_epoch(list[0]);
    bool same = same_epoch(&c->epoch, epoch);
    size_t cap = 0;
    struct slice **slices = xmemdup(list, n * sizeof(*list));
    for (size_t i = 0; i < n; i++)
        slices[i] = slice_get_pool_count(list[i]) == 1 ? slice_brief(list[i])
                                                       : slice_ref(list[i]);
    for (size_t i = 0; i < c->n_slices; i++) {
        const char *name = slice_get_name(c->slices[i]);
        if (!same && strcmp(name, slice_get_name(list[0])) != 0)
            drop_name(result, &cap, name);
    }
    if (c->n_slices && strcmp(c->epoch.boot_id, epoch->boot_id) != 0) {
        leave_boot(c, c->epoch.boot_id);
        result->retired_boot = xstrdup(c->epoch.boot_id);
    }
    if (!same)
        c->hash[0] = '\0';
    c->epoch = *epoch;
    c->count = slice_get_pool_count(list[0]);
    set_slices(c, slices, n);
}

static void update_node(struct pool *p, struct topo *topo, int64_t now_ms,
                        struct draft *draft)
{
    struct content *c = &p->now;
    const char *said = slice_get_hash(c->slices[0]);
    if (!said[0])
        remember_hash(c, topo);
    draft_put_node(draft, &(struct node_update){
                              .name = p->node,
                              .status = topo ? NODE_READY : NODE_INCOMPLETE,
                              .epoch = c->epoch,
                              .hash = said[0] ? said : c->hash,
                              .n_slices = c->n_slices,
                              .pool_count = c->count,
                              .topo = topo,
                              .heard_ms = now_ms,
                          });
}

int ingest_put(struct ingest *x, struct slice *slice, int64_t now_ms,
               struct draft *draft, struct ingest_result *ret_result,
               struct error *err)
{
    static const struct content nothing;
    const char *name = slice_get_name(slice), *node = slice_get_node(slice);
    struct slice *list[SLICE_POOL_SLICES_MAX];
    size_t n = 0;
    cleanup_with(topo) struct topo *topo = NULL;
    struct pool *p = strmap_get(&x->pools, node);
    const struct pool *owner = strmap_get(&x->owners, name);
    const struct content *now = p ? &p->now : &nothing;
    if (p && same_epoch(&now->epoch, slice_get_epoch(slice)))
        remember_hash(&p->now, published(draft, p));
    if (owner && owner != p)
        return error_set(err, EEXIST, "slice %s: belongs to node %s", name,
                         owner->node);
    if (!p && x->pools.n >= POOLS_MAX)
        return error_set(err, ENOSPC, "node %s: there are %d nodes already",
                         node, POOLS_MAX);
    int e = is_silent(draft, node, now_ms) ? 0 : check_epoch(now, slice, err);
    if (e == 0)
        e = list_slices(now, slice, list, &n, err);
    if (e == 0 && n == slice_get_pool_count(slice))
        e = join_slices(now, list, n, &topo, err);
    if (e < 0)
        return e;
    if (topo)
        hardware_table_share(x->hardware, topo);

    struct ingest_result result = {0};
    p = pool_get(x, node);
    pool_touch(x, p);
    pool_disown(x, p);
    pool_set(p, list, n, &result);
    pool_own(x, p);
    update_node(p, topo, now_ms, draft);
    *ret_result = result;
    return 0;
}

int ingest_delete(struct ingest *x, const char *name, struct draft *draft,
                  struct error *err)
{
    struct pool *p = strmap_get(&x->owners, name);
    if (!p)
        return error_set(err, ENOENT, "slice %s: not there", name);
    pool_touch(x, p);
    struct content *c = &p->now;
    remember_hash(c, published(draft, p));
    size_t at = 0;
    while (strcmp(slice_get_name(c->slices[at]), name) != 0)
        at++;
    (void)strmap_remove(&x->owners, name);
    slice_unref(c->slices[at]);
    c->slices[at] = c->slices[--c->n_slices];
    if (c->n_slices > 0) {
        const struct node *node = draft_node(draft, p->node);
        update_node(p, NULL, node ? node->liveness->heard_ms : 0, draft);
        return 0;
    }
    c->epoch = (struct slice_epoch){0};
    c->hash[0] = '\0';
    draft_remove_node(draft, p->node);
    return 0;
}

void ingest_retired(struct ingest *x, const char *node, const char *boot_id)
{
    leave_boot(&pool_get(x, node)->now, boot_id);
}

const char *ingest_owner(const struct ingest *x, const char *name)
{
    const struct pool *p = strmap_get(&x->owners, name);
    return p ? p->node : NULL;
}
