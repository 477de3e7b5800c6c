/* What hosts have left for pods, beside the nodes: it changes by itself and
 * often, so neither copies the other.  Where nothing is known there is
 * nothing. */
#include <stdlib.h>
#include <string.h>

#include "extender/state/snapshot_private.h"
#include "lib/base/mem.h"
#include "lib/base/refs.h"
#include "lib/base/strmap.h"

static const struct host_room unknown = {INT64_MAX, INT64_MAX, INT64_MAX};

static bool is_same(const struct host_room *a, const struct host_room *b)
{
    return a->cpu_milli == b->cpu_milli && a->memory_mib == b->memory_mib &&
           a->pods == b->pods;
}

/* --- what allocations take ---------------------------------------------- */

static void change(int64_t *left, int64_t by)
{
    if (*left != INT64_MAX)
        *left += by;
}

/* xPU pods and services are charged as pods, where the cluster tells of
 * them. */
static void charge(struct host_room *room, const struct allocation *a, int sign)
{
    if (a->demand.role != ROLE_HOST)
        return;
    change(&room->cpu_milli, sign * (int64_t)a->demand.cpu_milli);
    change(&room->memory_mib, sign * (int64_t)a->demand.memory_mib);
    change(&room->pods, sign);
}

void room_take(struct host_room *room, const struct allocation *a)
{
    charge(room, a, -1);
}

void room_give(struct host_room *room, const struct allocation *a)
{
    charge(room, a, 1);
}

/* --- pages -------------------------------------------------------------- */

struct room_page {
    atomic_uint refs;
    struct host_room given[SNAPSHOT_PAGE]; /* as the cluster says */
    struct host_room left[SNAPSHOT_PAGE];  /* less what is allocated */
};

DEFINE_REF(room_page_ref, struct room_page)

void room_page_unref(struct room_page *p)
{
    if (p && refs_drop(&p->refs))
        free(p);
}

struct host_room room_page_get(const struct room_page *p, size_t at)
{
    return p ? p->given[at] : unknown;
}

/* The page as the caller's own: nobody can take a reference to one that only
 * he refers to. */
static struct room_page *own_page(struct room_page **page)
{
    struct room_page *old = *page;
    if (old && atomic_load_explicit(&old->refs, memory_order_acquire) == 1)
        return old;
    struct room_page *p = xmalloc(sizeof *p);
    atomic_init(&p->refs, 1);
    if (old) {
        memcpy(p->given, old->given, sizeof p->given);
        memcpy(p->left, old->left, sizeof p->left);
    } else {
        for (size_t i = 0; i < SNAPSHOT_PAGE; i++)
            p->given[i] = p->left[i] = unknown;
    }
    room_page_unref(old);
    *page = p;
    return p;
}

void room_page_set(struct room_page **page, size_t at,
                   const struct host_room *room, const struct node *node)
{
    struct host_room given = *room, left = *room;
    if (!*page && !room_is_known(&given))
        return;
    for (size_t i = 0; node && i < node->n_allocations; i++)
        room_take(&left, node->allocations[i]);
    if (*page && is_same(&(*page)->given[at], &given) &&
        is_same(&(*page)->left[at], &left))
        return;
    struct room_page *p = own_page(page);
    p->given[at] = given;
    p->left[at] = left;
}

void room_page_take(struct room_page **page, size_t at,
                    const struct room_page *from, size_t from_at, size_t n)
{
    if (!from)
        return;
    struct room_page *p = own_page(page);
    memcpy(p->given + at, from->given + from_at, n * sizeof *p->given);
    memcpy(p->left + at, from->left + from_at, n * sizeof *p->left);
}

/* --- names without a node ----------------------------------------------- */

struct room_table {
    atomic_uint refs;
    struct strmap map; /* struct named_room, by name */
};

struct named_room {
    struct host_room room;
    char name[];
};

DEFINE_REF(room_table_ref, struct room_table)

void room_table_unref(struct room_table *t)
{
    if (!t || !refs_drop(&t->refs))
        return;
    strmap_fini_with(&t->map, free);
    free(t);
}

struct host_room room_table_get(const struct room_table *t, const char *name)
{
    const struct named_room *r = t ? strmap_get(&t->map, name) : NULL;
    return r ? r->room : unknown;
}

static void table_put(struct room_table *t, const char *name,
                      const struct host_room *room)
{
    size_t size = strlen(name) + 1;
    struct named_room *r = xmalloc(sizeof *r + size);
    r->room = *room;
    memcpy(r->name, name, size);
    free(strmap_put(&t->map, r->name, r));
}

static struct room_table *own_table(struct room_table **table)
{
    struct room_table *old = *table;
    size_t pos = 0;
    const struct named_room *r;
    if (old && atomic_load_explicit(&old->refs, memory_order_acquire) == 1)
        return old;
    struct room_table *t = xcalloc(1, sizeof *t);
    atomic_init(&t->refs, 1);
    while (old && (r = strmap_next(&old->map, &pos)))
        table_put(t, r->name, &r->room);
    room_table_unref(old);
    *table = t;
    return t;
}

void room_table_set(struct room_table **table, const char *name,
                    const struct host_room *room)
{
    struct host_room old = room_table_get(*table, name);
    if (is_same(&old, room))
        return;
    struct room_table *t = own_table(table);
    if (room_is_known(room)) {
        table_put(t, name, room);
        return;
    }
    free(strmap_remove(&t->map, name));
    if (t->map.n == 0) {
        room_table_unref(t);
        *table = NULL;
    }
}

/* --- reading ------------------------------------------------------------ */

struct host_room snapshot_room_left(const struct snapshot *s, size_t index)
{
    const struct room_page *p = s->rooms[index / SNAPSHOT_PAGE];
    return p ? p->left[index % SNAPSHOT_PAGE] : unknown;
}

bool snapshot_knows_room(const struct snapshot *s, size_t index)
{
    const struct room_page *p = s->rooms[index / SNAPSHOT_PAGE];
    return p && room_is_known(&p->given[index % SNAPSHOT_PAGE]);
}

struct host_room *snapshot_rooms_left(const struct snapshot *s)
{
    bool known = false;
    for (size_t i = 0; i < s->n_pages && !known; i++)
        known = s->rooms[i] != NULL;
    if (!known)
        return NULL;
    struct host_room *rooms =
        xmalloc(s->n_pages * SNAPSHOT_PAGE * sizeof *rooms);
    for (size_t i = 0; i < s->n_pages; i++) {
        struct host_room *to = rooms + i * SNAPSHOT_PAGE;
        if (s->rooms[i])
            memcpy(to, s->rooms[i]->left, sizeof s->rooms[i]->left);
        for (size_t k = 0; !s->rooms[i] && k < SNAPSHOT_PAGE; k++)
            to[k] = unknown;
    }
    return rooms;
}
