#include "extender/achieved/used_book.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/strmap.h"

enum { KEY_MAX = DEMAND_UID_MAX + 8 };

struct entry {
    char key[KEY_MAX]; /* "pod/UID", "at/PLACE" */
    int64_t told_ms;
    struct used used;
};

struct used_node {
    char *name;
    struct strmap entries; /* by key */
};

struct used_book {
    pthread_mutex_t lock;
    struct strmap nodes; /* by name; each has an entry */
    size_t n_entries;
    int64_t oldest_ms; /* no entry was told before that */
    uint64_t version;
};

struct used_book *used_book_create(void)
{
    struct used_book *b = xcalloc(1, sizeof *b);
    b->oldest_ms = INT64_MAX;
    (void)pthread_mutex_init(&b->lock, NULL); /* never fails on Linux */
    return b;
}

static void node_free(void *node)
{
    struct used_node *n = node;
    strmap_fini_with(&n->entries, free);
    free(n->name);
    free(n);
}

void used_book_destroy(struct used_book *b)
{
    if (!b)
        return;
    strmap_fini_with(&b->nodes, node_free);
    (void)pthread_mutex_destroy(&b->lock);
    free(b);
}

static struct used_node *node_open(struct used_book *b, const char *name)
{
    struct used_node *n = strmap_get(&b->nodes, name);
    if (n)
        return n;
    n = xcalloc(1, sizeof *n);
    n->name = xstrdup(name);
    (void)strmap_put(&b->nodes, n->name, n);
    return n;
}

static void drop(struct used_book *b, struct used_node *n, struct entry *e)
{
    (void)strmap_remove(&n->entries, e->key);
    free(e);
    b->n_entries--;
    b->version++;
}

static void node_close(struct used_book *b, struct used_node *n)
{
    if (n->entries.n)
        return;
    (void)strmap_remove(&b->nodes, n->name);
    node_free(n);
}

/* --- old ones ------------------------------------------------------------- */

static bool is_old(int64_t told_ms, int64_t now_ms)
{
    return now_ms - told_ms > USED_BOOK_OLD_MS;
}

/* Those of pods that have ended, and of nodes that are silent. */
static void node_drop_old(struct used_book *b, struct used_node *n,
                          int64_t now_ms)
{
    cleanup_free struct entry **old = xcalloc(n->entries.n + 1, sizeof *old);
    size_t n_old = 0, pos = 0;
    for (struct entry *e; (e = strmap_next(&n->entries, &pos));) {
        if (is_old(e->told_ms, now_ms))
            old[n_old++] = e;
        else if (e->told_ms < b->oldest_ms)
            b->oldest_ms = e->told_ms;
    }
    for (size_t i = 0; i < n_old; i++)
        drop(b, n, old[i]);
}

/* All are looked at only when one may be old. */
static void drop_old(struct used_book *b, int64_t now_ms)
{
    if (b->nodes.n == 0 || !is_old(b->oldest_ms, now_ms))
        return;
    size_t n = 0, pos = 0;
    cleanup_free struct used_node **all = xcalloc(b->nodes.n, sizeof *all);
    b->oldest_ms = INT64_MAX;
    for (struct used_node *x; (x = strmap_next(&b->nodes, &pos));)
        all[n++] = x;
    for (size_t i = 0; i < n; i++) {
        node_drop_old(b, all[i], now_ms);
        node_close(b, all[i]);
    }
}

/* --- what is told --------------------------------------------------------- */

static bool is_same(const struct used *a, const struct used *b)
{
    return a->cpu_milli == b->cpu_milli && a->memory_mib == b->memory_mib &&
           strcmp(a->at, b->at) == 0;
}

static struct entry *entry_open(struct used_book *b, struct used_node *n,
                                const char *key)
{
    if (b->n_entries >= USED_BOOK_ENTRIES_MAX)
        return NULL;
    struct entry *e = xcalloc(1, sizeof *e);
    memcpy(e->key, key, sizeof e->key);
    (void)strmap_put(&n->entries, e->key, e);
    b->n_entries++;
    return e;
}

static void put(struct used_book *b, struct used_node *n,
                const char key[KEY_MAX], const struct used *used,
                int64_t now_ms)
{
    struct entry *e = strmap_get(&n->entries, key);
    if (e && !used->known)
        drop(b, n, e);
    if (!used->known || (!e && !(e = entry_open(b, n, key))))
        return;
    if (!is_same(&e->used, used) || !e->used.known)
        b->version++;
    e->used = *used;
    e->told_ms = now_ms;
    if (now_ms < b->oldest_ms)
        b->oldest_ms = now_ms;
}

void used_book_put(struct used_book *b, const char *node,
                   const struct node_report *r, int64_t now_ms)
{
    hold_lock(&b->lock);
    drop_old(b, now_ms);
    struct used_node *n = node_open(b, node);
    char key[KEY_MAX] = "";
    for (size_t i = 0; i < r->n_pods; i++) {
        (void)snprintf(key, sizeof key, "pod/%s", r->pods[i].uid);
        put(b, n, key, &r->pods[i].used, now_ms);
    }
    for (size_t i = 0; i < r->n_places; i++) {
        (void)snprintf(key, sizeof key, "at/%s", r->places[i].name);
        put(b, n, key, &r->used[i], now_ms);
    }
    node_close(b, n);
}

/* --- what is known -------------------------------------------------------- */

static bool get(struct used_book *b, const char *node, const char *kind,
                const char *name, int64_t now_ms, struct used *ret_used)
{
    char key[KEY_MAX];
    *ret_used = (struct used){.known = false};
    (void)snprintf(key, sizeof key, "%s/%s", kind, name);
    if (!b)
        return false;
    hold_lock(&b->lock);
    const struct used_node *n = strmap_get(&b->nodes, node);
    const struct entry *e = n ? strmap_get(&n->entries, key) : NULL;
    if (!e || is_old(e->told_ms, now_ms))
        return false;
    *ret_used = e->used;
    return true;
}

bool used_book_pod(struct used_book *b, const char *node, const char *uid,
                   int64_t now_ms, struct used *ret_used)
{
    return get(b, node, "pod", uid, now_ms, ret_used);
}

bool used_book_place(struct used_book *b, const char *node, const char *place,
                     int64_t now_ms, struct used *ret_used)
{
    return get(b, node, "at", place, now_ms, ret_used);
}

uint64_t used_book_version(struct used_book *b, int64_t now_ms)
{
    if (!b)
        return 0;
    hold_lock(&b->lock);
    drop_old(b, now_ms);
    return b->version;
}
