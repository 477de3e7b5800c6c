#include "extender/fit/fit_nodes_private.h"

#include <string.h>

enum { NODE_NONE = UINT32_MAX };

/* --- nodes that are known, or have pods ----------------------------------- */

static uint32_t number_of(const struct fit_nodes *r, const char *name)
{
    uintptr_t number = (uintptr_t)strmap_get(&r->by_name, name);
    return number ? (uint32_t)(number - 1) : NODE_NONE;
}

struct fit_node *fit_nodes_find(const struct fit_nodes *r, const char *name)
{
    uint32_t number = number_of(r, name);
    return number == NODE_NONE ? NULL : &r->nodes[number];
}

uint32_t fit_nodes_need(struct fit_nodes *r, const char *name)
{
    uint32_t number = number_of(r, name);
    if (number != NODE_NONE)
        return number;
    if (r->n_free) {
        number = r->free_nodes[--r->n_free];
    } else {
        r->nodes = xgrow(r->nodes, r->n_nodes, &r->nodes_cap, sizeof *r->nodes);
        number = (uint32_t)r->n_nodes++;
    }
    struct fit_node *n = &r->nodes[number];
    *n = (struct fit_node){.name = xstrdup(name)};
    (void)strmap_put(&r->by_name, n->name, (void *)((uintptr_t)number + 1));
    return number;
}

static void node_fini(struct fit_nodes *r, struct fit_node *n)
{
    fit_kinds_drop(&r->kinds, n->kind);
    free(n->rooms);
    free(n->ports);
    free(n->name);
    *n = (struct fit_node){0};
}

void fit_nodes_drop(struct fit_nodes *r, uint32_t number)
{
    struct fit_node *n = &r->nodes[number];
    if (n->kind || n->pods)
        return;
    (void)strmap_remove(&r->by_name, n->name);
    node_fini(r, n);
    r->free_nodes = xgrow(r->free_nodes, r->n_free, &r->free_cap,
                          sizeof *r->free_nodes);
    r->free_nodes[r->n_free++] = number;
}

struct fit_room *fit_nodes_find_room(const struct fit_node *n,
                                     uint32_t resource)
{
    for (size_t i = 0; i < n->n_rooms; i++)
        if (n->rooms[i].resource == resource)
            return &n->rooms[i];
    return NULL;
}

struct fit_room *fit_nodes_need_room(struct fit_node *n, uint32_t resource)
{
    struct fit_room *room = fit_nodes_find_room(n, resource);
    if (room)
        return room;
    n->rooms = xgrow(n->rooms, n->n_rooms, &n->rooms_cap, sizeof *n->rooms);
    n->rooms[n->n_rooms] = (struct fit_room){.resource = resource};
    return &n->rooms[n->n_rooms++];
}

/* Sets what it has; true when that is not what it was. */
static bool set_rooms(struct fit_nodes *r, struct fit_node *n,
                      const struct node_facts *facts)
{
    size_t n_old = n->n_rooms;
    cleanup_free struct fit_room *old =
        n_old ? xmemdup(n->rooms, n_old * sizeof *old) : NULL;
    int64_t pods = n->pods_has;
    n->pods_has = 0;
    for (size_t i = 0; i < n->n_rooms; i++)
        n->rooms[i].has = 0;
    for (size_t i = 0; i < facts->n_amounts; i++) {
        const struct node_amount *a = &facts->amounts[i];
        if (strcmp(a->resource, "pods") == 0) {
            n->pods_has = a->amount;
            continue;
        }
        uint32_t resource = fit_takes_resource(&r->takes, a->resource);
        if (resource != FIT_RESOURCE_NONE)
            fit_nodes_need_room(n, resource)->has = a->amount;
    }
    bool same = pods == n->pods_has && n_old == n->n_rooms;
    for (size_t i = 0; i < n_old && same; i++)
        same = old[i].has == n->rooms[i].has;
    return !same;
}

static void put_facts(struct fit_nodes *r, const struct node_facts *facts)
{
    uint32_t number = fit_nodes_need(r, facts->name); /* it may move them all */
    struct fit_node *n = &r->nodes[number];
    struct fit_kind *kind = fit_kinds_take(&r->kinds, facts);
    bool changed = set_rooms(r, n, facts) || kind != n->kind;
    fit_kinds_drop(&r->kinds, n->kind);
    n->kind = kind;
    n->lap = r->nodes_lap;
    r->version += changed;
}

static void forget_node(struct fit_nodes *r, uint32_t number)
{
    struct fit_node *n = &r->nodes[number];
    fit_kinds_drop(&r->kinds, n->kind);
    n->kind = NULL;
    fit_nodes_drop(r, number);
}

int fit_nodes_put(struct fit_nodes *r, const char *json, size_t size,
                  struct error *err)
{
    struct node_facts facts;
    int rc = node_facts_read(json, size, &facts, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&r->lock);
    put_facts(r, &facts);
    pthread_mutex_unlock(&r->lock);
    node_facts_fini(&facts);
    return 0;
}

void fit_nodes_gone(struct fit_nodes *r, const char *name)
{
    hold_lock(&r->lock);
    uint32_t number = number_of(r, name);
    if (number != NODE_NONE)
        forget_node(r, number);
}

void fit_nodes_list(struct fit_nodes *r)
{
    hold_lock(&r->lock);
    r->nodes_lap = !r->nodes_lap;
    /* a list that was begun and not ended may have left some behind */
    for (size_t i = 0; i < r->n_nodes; i++)
        r->nodes[i].lap = !r->nodes_lap;
}

void fit_nodes_listed(struct fit_nodes *r)
{
    hold_lock(&r->lock);
    for (size_t i = 0; i < r->n_nodes; i++)
        if (r->nodes[i].kind && r->nodes[i].lap != r->nodes_lap)
            forget_node(r, (uint32_t)i);
}

uint64_t fit_nodes_version(struct fit_nodes *r)
{
    hold_lock(&r->lock);
    return r->version;
}

void fit_nodes_set_by_class(struct fit_nodes *r, const char *const *resources,
                            size_t n)
{
    hold_lock(&r->lock);
    memset(r->by_class, 0, sizeof r->by_class);
    for (size_t i = 0; i < n; i++) {
        uint32_t resource = fit_takes_resource(&r->takes, resources[i]);
        r->by_class[resource] = resource != FIT_RESOURCE_NONE;
    }
    r->version++;
}

/* --- begin and end ------------------------------------------------------ */

struct fit_nodes *fit_nodes_create(void)
{
    struct fit_nodes *r = xcalloc(1, sizeof *r);
    (void)pthread_mutex_init(&r->lock, NULL); /* cannot fail on Linux */
    return r;
}

void fit_nodes_destroy(struct fit_nodes *r)
{
    if (!r)
        return;
    fit_nodes_drop_pods(r);
    for (size_t i = 0; i < r->n_nodes; i++)
        node_fini(r, &r->nodes[i]);
    fit_kinds_fini(&r->kinds);
    fit_takes_fini(&r->takes);
    strmap_fini(&r->by_name);
    free(r->nodes);
    free(r->free_nodes);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}
