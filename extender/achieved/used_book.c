#include "extender/achieved/used_book.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "extender/pods/node_reports.h"
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
    struct strmap nodes; /* by name */
    uint64_t version;
};

struct used_book *used_book_create(void)
{
    struct used_book *b = xcalloc(1, sizeof *b);
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
    if (n || b->nodes.n >= NODE_REPORTS_NODES_MAX)
        return n;
    n = xcalloc(1, sizeof *n);
    n->name = xstrdup(name);
    (void)strmap_put(&b->nodes, n->name, n);
    return n;
}

static void put(struct used_node *n, const char *kind, const char *name,
                const struct used *used, int64_t now_ms)
{
    char key[KEY_MAX];
    (void)snprintf(key, sizeof key, "%s/%s", kind, name);
    struct entry *e = strmap_get(&n->entries, key);
    if (!e && n->entries.n >= NODE_REPORT_PODS_MAX + NODE_REPORT_PLACES_MAX)
        return;
    if (!e) {
        e = xcalloc(1, sizeof *e);
        memcpy(e->key, key, sizeof key);
        (void)strmap_put(&n->entries, e->key, e);
    }
    e->used = *used;
    e->told_ms = now_ms;
}

/* Those of pods that have ended. */
static void drop_old(struct used_node *n, int64_t now_ms)
{
    size_t pos = 0;
    for (struct entry *e; (e = strmap_next(&n->entries, &pos));) {
        if (now_ms - e->told_ms <= USED_BOOK_OLD_MS)
            continue;
        (void)strmap_remove(&n->entries, e->key);
        free(e);
        pos = 0; /* others have moved */
    }
}

static bool says_any(const struct node_report *r)
{
    bool any = false;
    for (size_t i = 0; i < r->n_pods; i++)
        any |= r->pods[i].used.known;
    for (size_t i = 0; i < r->n_places; i++)
        any |= r->used[i].known;
    return any;
}

void used_book_put(struct used_book *b, const char *node,
                   const struct node_report *r, int64_t now_ms)
{
    if (!says_any(r))
        return;
    hold_lock(&b->lock);
    struct used_node *n = node_open(b, node);
    if (!n)
        return;
    b->version++;
    drop_old(n, now_ms);
    for (size_t i = 0; i < r->n_pods; i++)
        if (r->pods[i].used.known)
            put(n, "pod", r->pods[i].uid, &r->pods[i].used, now_ms);
    for (size_t i = 0; i < r->n_places; i++)
        if (r->used[i].known)
            put(n, "at", r->places[i].name, &r->used[i], now_ms);
}

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
    if (!e || now_ms - e->told_ms > USED_BOOK_OLD_MS)
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

uint64_t used_book_version(struct used_book *b)
{
    if (!b)
        return 0;
    hold_lock(&b->lock);
    return b->version;
}
