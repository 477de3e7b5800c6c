/* The table of records, and views of it. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/refs.h"
#include "lib/io/clock.h"
#include "router/keep/keep_private.h"

struct keep_view {
    atomic_uint refs;
    size_t n, n_made;
    struct kept *list[];
};

/* --- entries -------------------------------------------------------------- */

void keep_entry_key(enum kept_kind kind, const char *key,
                    char ret_key[KEPT_KEY_SIZE + 2])
{
    (void)snprintf(ret_key, KEPT_KEY_SIZE + 2, "%c/%s",
                   kind == KEPT_SANDBOX ? 's' : 'c', key);
}

static void key_of(const struct kept *what, char ret_key[KEPT_KEY_SIZE + 2])
{
    char key[KEPT_KEY_SIZE];
    kept_key(what, key);
    keep_entry_key(what->kind, key, ret_key);
}

struct keep_entry *keep_entry_of(const struct keep *k, const struct kept *what)
{
    char key[KEPT_KEY_SIZE + 2];
    key_of(what, key);
    return strmap_get(&k->by_key, key);
}

static void view_is_old(struct keep *k)
{
    keep_view_unref(k->view);
    k->view = NULL;
}

struct keep_entry *keep_entry_put(struct keep *k, struct kept *kept)
{
    struct keep_entry *e = keep_entry_of(k, kept);
    hold_lock(&k->lock);
    if (!e) {
        e = xcalloc(1, sizeof *e);
        key_of(kept, e->key);
        (void)strmap_put(&k->by_key, e->key, e);
    } else if (e->kept->id[0]) {
        (void)strmap_remove(&k->by_id, e->kept->id);
    }
    kept_unref(e->kept);
    e->kept = kept;
    if (kept->id[0])
        (void)strmap_put(&k->by_id, kept->id, e);
    e->changed = ++k->mark;
    e->unclear_ms = clock_ms();
    view_is_old(k);
    return e;
}

void keep_entry_drop(struct keep *k, struct keep_entry *e)
{
    hold_lock(&k->lock);
    k->mark++;
    if (e->kept->id[0]) {
        size_t at = k->n_forgotten++ % KEEP_FORGOTTEN;
        (void)strmap_remove(&k->by_id, e->kept->id);
        memcpy(k->forgotten[at].id, e->kept->id, sizeof e->kept->id);
        k->forgotten[at].mark = k->mark;
    }
    (void)strmap_remove(&k->by_key, e->key);
    kept_unref(e->kept);
    free(e);
    view_is_old(k);
}

size_t keep_count_of(const struct keep *k, const char *remote)
{
    const struct keep_entry *e;
    size_t n = 0;
    for (size_t at = 0; (e = strmap_next(&k->by_key, &at));)
        n += strcmp(e->kept->remote, remote) == 0;
    return n;
}

/* --- views ---------------------------------------------------------------- */

/* Those that are made, by id; then the others, by key. */
static int in_order(const void *a, const void *b)
{
    const struct kept *x = *(struct kept *const *)a;
    const struct kept *y = *(struct kept *const *)b;
    char keys[2][KEPT_KEY_SIZE + 2];
    if (x->state != y->state)
        return x->state == KEPT_MADE ? -1 : 1;
    if (x->state == KEPT_MADE)
        return strcmp(x->id, y->id);
    key_of(x, keys[0]);
    key_of(y, keys[1]);
    return strcmp(keys[0], keys[1]);
}

static struct keep_view *make_view(const struct keep *k)
{
    size_t n = k->by_key.n;
    const struct keep_entry *e;
    struct keep_view *v = xcalloc(1, sizeof *v + n * sizeof v->list[0]);
    atomic_init(&v->refs, 1);
    for (size_t at = 0; (e = strmap_next(&k->by_key, &at));) {
        v->list[v->n++] = kept_ref(e->kept);
        v->n_made += e->kept->state == KEPT_MADE;
    }
    if (n)
        qsort(v->list, n, sizeof v->list[0], in_order);
    return v;
}

struct keep_view *keep_view(struct keep *k)
{
    hold_lock(&k->lock);
    if (!k->view)
        k->view = make_view(k);
    atomic_fetch_add_explicit(&k->view->refs, 1, memory_order_relaxed);
    return k->view;
}

void keep_view_unref(struct keep_view *v)
{
    if (!v || !refs_drop(&v->refs))
        return;
    for (size_t i = 0; i < v->n; i++)
        kept_unref(v->list[i]);
    free(v);
}

const struct kept *keep_view_find(const struct keep_view *v, const char *id)
{
    size_t low = 0, high = v->n_made;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(v->list[middle]->id, id);
        if (order == 0)
            return v->list[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

size_t keep_view_count(const struct keep_view *v)
{
    return v->n;
}

const struct kept *keep_view_at(const struct keep_view *v, size_t i)
{
    return v->list[i];
}

struct kept *keep_find(struct keep *k, const char *id)
{
    hold_lock(&k->lock);
    const struct keep_entry *e = strmap_get(&k->by_id, id);
    return e ? kept_ref(e->kept) : NULL;
}

size_t keep_count(struct keep *k, const char *remote, enum kept_state state)
{
    const struct keep_entry *e;
    size_t n = 0;
    hold_lock(&k->lock);
    for (size_t at = 0; (e = strmap_next(&k->by_key, &at));)
        n += e->kept->state == state && strcmp(e->kept->remote, remote) == 0;
    return n;
}
