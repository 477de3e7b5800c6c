/* Drafts: how the next snapshot comes out of the present one.
 *
 * A page that only the draft refers to is changed in place, any other is
 * copied first.  Nodes that are new wait aside and nodes that are gone leave
 * a hole, until the draft is settled (draft_settle.c). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "extender/state/draft_private.h"
#include "lib/base/mem.h"

struct draft *draft_create(struct snapshot *base)
{
    assert(!base->whole); /* whose pages own their nodes */
    struct draft *d = xcalloc(1, sizeof *d);
    d->next = snapshot_copy(base);
    d->base_news = base->news;
    d->next->news = ++d->next->number;
    return d;
}

void draft_keep_news(struct draft *d)
{
    d->next->news = d->base_news;
}

void draft_drop_node(void *node)
{
    node_unref(node);
}

void draft_destroy(struct draft *d)
{
    if (!d)
        return;
    strmap_fini_with(&d->added, draft_drop_node);
    strmap_fini_with(&d->uncounted, free);
    snapshot_unref(d->next);
    free(d);
}

/* --- nodes ------------------------------------------------------------- */

/* The slot of a name in the pages, with its node or a hole; or NODE_NONE. */
static int32_t draft_slot(const struct draft *d, const char *name)
{
    return roster_find(d->next->roster, name, strlen(name));
}

/* Its allocations may have changed since it was counted. */
static const struct node *draft_peek_node(const struct draft *d,
                                          const char *name)
{
    int32_t slot = draft_slot(d, name);
    if (slot != NODE_NONE && slot_node(d, slot))
        return slot_node(d, slot);
    return strmap_get(&d->added, name);
}

/* A page that may be written: ours alone.  Nobody can take a reference to
 * a page that only we refer to, so the count cannot grow meanwhile. */
static struct node_page *draft_page(struct draft *d, size_t slot)
{
    struct node_page **page = &d->next->pages[slot / SNAPSHOT_PAGE];
    if (atomic_load_explicit(&(*page)->refs, memory_order_acquire) != 1) {
        struct node_page *copy = page_copy(*page);
        page_unref(*page);
        *page = copy;
    }
    return *page;
}

int32_t draft_leaf(const struct draft *d, const struct node *n)
{
    if (!d->next->fabric)
        return FABRIC_NONE;
    const struct fabric_host *host = fabric_find(d->next->fabric, n->name,
                                                 strlen(n->name));
    size_t n_devices = n->topo ? topo_n_devices(n->topo) : 0;
    for (size_t i = 0; !host && i < n_devices; i++) {
        const struct device *device = topo_device(n->topo, i);
        const char *guid = topo_identity(n->topo, device).guid;
        if (*guid)
            host = fabric_find_guid(d->next->fabric, guid);
    }
    return host ? host->leaf : FABRIC_NONE;
}

/* The room of a node that comes into its slot, goes, or stays: what is known
 * of a hole's is among those without a node. */
static void draft_move_room(struct draft *d, size_t i, const struct node *old,
                            const struct node *node)
{
    const struct host_room none = {INT64_MAX, INT64_MAX, INT64_MAX};
    struct room_page **page = &d->next->rooms[i / SNAPSHOT_PAGE];
    size_t at = i % SNAPSHOT_PAGE;
    struct host_room room = room_page_get(*page, at);
    if (!old && node) {
        room = room_table_get(d->next->unplaced, node->name);
        room_table_set(&d->next->unplaced, node->name, &none);
    } else if (old && !node) {
        room_table_set(&d->next->unplaced, old->name, &room);
    }
    room_page_set(page, at, node ? &room : &none, node);
}

/* Put a version in its place; takes over the reference.  NULL: a hole. */
static void draft_set_slot(struct draft *d, int32_t slot, struct node *node)
{
    size_t i = (size_t)slot, at = i % SNAPSHOT_PAGE;
    struct node_page *page = draft_page(d, i);
    if (d->next->rooms[i / SNAPSHOT_PAGE] || d->next->unplaced)
        draft_move_room(d, i, page->nodes[at], node);
    if (page->nodes[at] && !node)
        d->n_holes++;
    else if (!page->nodes[at] && node)
        d->n_holes--;
    by_id_set(&d->next->nodes, roster_id(d->next->roster, i), node);
    page->nodes[at] = node;
    page->state[at] = node ? node_state_id(node, d->next->states)
                           : STATE_UNUSABLE;
    page->leaf[at] = node ? draft_leaf(d, node) : FABRIC_NONE;
}

static void draft_set_node(struct draft *d, struct node *node)
{
    int32_t slot = draft_slot(d, node->name);
    if (slot != NODE_NONE) {
        draft_set_slot(d, slot, node);
        return;
    }
    node_unref(strmap_put(&d->added, node->name, node));
}

/* The allocations of a node that comes (back), from the index. */
static void node_find_allocations(struct node *n, const struct alloc_index *x)
{
    size_t n_list = 0;
    const struct allocation **list = alloc_index_on_node(x, n->name, &n_list);
    struct allocation **own = (struct allocation **)list;
    for (size_t i = 0; i < n_list; i++)
        (void)allocation_ref(own[i]);
    node_set_allocations(n, own, n_list);
}

/* The node is to be counted anew, once, however many of its allocations
 * change. */
static void draft_uncount(struct draft *d, const char *name)
{
    if (!draft_peek_node(d, name) || strmap_get(&d->uncounted, name))
        return;
    char *key = xstrdup(name);
    (void)strmap_put(&d->uncounted, key, key);
}

/* Its next version, with its allocations read from the index. */
static void draft_recount(struct draft *d, const char *name)
{
    const struct node *old = draft_peek_node(d, name);
    if (!old)
        return;
    struct node *n = node_derive(old);
    node_find_allocations(n, d->next->allocations);
    node_recount(n, d->next->policy);
    draft_set_node(d, n);
}

void draft_count(struct draft *d)
{
    size_t pos = 0;
    for (const char *name; (name = strmap_next(&d->uncounted, &pos));)
        draft_recount(d, name);
    strmap_fini_with(&d->uncounted, free);
}

const struct node *draft_node(struct draft *d, const char *name)
{
    if (d->uncounted.n > 0)
        draft_count(d);
    return draft_peek_node(d, name);
}

void draft_put_node(struct draft *d, const struct node_update *update)
{
    const struct node *old = draft_node(d, update->name);
    struct node *n = old ? node_derive(old)
                         : node_create(update->name, update->heard_ms);
    if (!old) {
        node_find_allocations(n, d->next->allocations);
        node_set_claims(n, claim_table_get(d->next->claims, update->name));
        claim_table_set(&d->next->claims, update->name, NULL);
    }
    n->status = update->status;
    n->epoch = update->epoch;
    size_t size = strnlen(update->hash, sizeof n->hash - 1);
    memcpy(n->hash, update->hash, size);
    n->hash[size] = '\0';
    n->n_slices = update->n_slices;
    n->pool_count = update->pool_count;
    atomic_store_explicit(&n->liveness->heard_ms, update->heard_ms,
                          memory_order_relaxed);
    if (update->topo) {
        node_publish(n, update->topo);
        node_set_shape(n, state_intern_shape(d->next->states, n->topo));
        node_recount(n, d->next->policy);
    }
    draft_set_node(d, n);
}

void draft_set_status(struct draft *d, const char *name,
                      enum node_status status)
{
    const struct node *old = draft_node(d, name);
    if (!old || old->status == status)
        return;
    struct node *n = node_derive(old);
    n->status = status;
    draft_set_node(d, n);
}

void draft_set_bars(struct draft *d, const char *name, struct card_bars *bars)
{
    const struct node *old = draft_node(d, name);
    if (!old || card_bars_are_same(old->bars, bars))
        return;
    struct node *n = node_derive(old);
    node_set_bars(n, bars);
    node_recount(n, d->next->policy);
    draft_set_node(d, n);
}

void draft_remove_node(struct draft *d, const char *name)
{
    int32_t slot = draft_slot(d, name);
    const struct node *old = draft_node(d, name);
    if (old && old->claims)
        claim_table_set(&d->next->claims, name, old->claims);
    if (slot != NODE_NONE && slot_node(d, slot))
        draft_set_slot(d, slot, NULL);
    node_unref(strmap_remove(&d->added, name));
}

size_t draft_n_coming(const struct draft *d)
{
    return d->added.n;
}

struct host_room draft_room(const struct draft *d, const char *name)
{
    int32_t slot = draft_slot(d, name);
    if (slot == NODE_NONE || !slot_node(d, slot))
        return room_table_get(d->next->unplaced, name);
    return room_page_get(d->next->rooms[(size_t)slot / SNAPSHOT_PAGE],
                         (size_t)slot % SNAPSHOT_PAGE);
}

void draft_set_room(struct draft *d, const char *name,
                    const struct host_room *room)
{
    int32_t slot = draft_slot(d, name);
    const struct node *node = slot == NODE_NONE ? NULL : slot_node(d, slot);
    if (node)
        room_page_set(&d->next->rooms[(size_t)slot / SNAPSHOT_PAGE],
                      (size_t)slot % SNAPSHOT_PAGE, room, node);
    else
        room_table_set(&d->next->unplaced, name, room);
}

void draft_set_fabric(struct draft *d, struct fabric *fabric)
{
    struct fabric *old = d->next->fabric;
    d->next->fabric = fabric ? fabric_ref(fabric) : NULL;
    fabric_unref(old);
    for (size_t i = 0; i < d->next->n_nodes; i++) {
        const struct node *n = slot_node(d, (int32_t)i);
        if (n)
            draft_page(d, i)->leaf[i % SNAPSHOT_PAGE] = draft_leaf(d, n);
    }
}

/* --- allocations ------------------------------------------------------- */

/* Put an allocation into the index (`add`), or take it out of there. */
static void draft_index(struct draft *d, struct allocation *a, bool add)
{
    struct alloc_index **x = &d->next->allocations;
    struct namespace_use before, after;
    namespace_use_count(*x, a->pair_key, NULL, NULL, &before);
    if (add)
        alloc_index_put(x, a);
    else
        alloc_index_drop(x, a);
    namespace_use_count(*x, a->pair_key, NULL, NULL, &after);
    namespace_sums_follow(&d->next->quotas, a->demand.namespace, &before,
                          &after);
    draft_uncount(d, a->node);
}

void draft_allocate(struct draft *d, struct allocation *allocation)
{
    const struct demand *pod = &allocation->demand;
    (void)draft_release(d, pod->namespace, pod->name);
    draft_index(d, allocation, true);
    allocation_unref(allocation);
}

bool draft_release(struct draft *d, const char *namespace, const char *name)
{
    const struct allocation *old = alloc_index_find(d->next->allocations,
                                                    namespace, name);
    if (!old)
        return false;
    cleanup_with(allocation) struct allocation *a =
        allocation_ref((struct allocation *)old);
    draft_index(d, a, false);
    return true;
}

const struct alloc_index *draft_allocations(const struct draft *d)
{
    return d->next->allocations;
}

const struct allocation *draft_find_allocation(const struct draft *d,
                                               const char *namespace,
                                               const char *name)
{
    return alloc_index_find(d->next->allocations, namespace, name);
}

/* --- claims ------------------------------------------------------------ */

static struct claim_list *draft_claims(const struct draft *d, const char *name)
{
    const struct node *n = draft_peek_node(d, name);
    return n ? n->claims : claim_table_get(d->next->claims, name);
}

/* Takes over the reference. */
static void draft_set_claims(struct draft *d, const char *name,
                             struct claim_list *claims)
{
    const struct node *old = draft_node(d, name);
    if (old) {
        struct node *n = node_derive(old);
        node_set_claims(n, claims);
        node_recount(n, d->next->policy);
        draft_set_node(d, n);
    } else {
        claim_table_set(&d->next->claims, name, claims);
    }
    claim_list_unref(claims);
}

void draft_put_claim(struct draft *d, struct claim_use *claim)
{
    const struct claim_list *old = draft_claims(d, claim->node);
    draft_set_claims(d, claim->node, claim_list_with(old, claim));
}

void draft_drop_claim(struct draft *d, const struct claim_use *claim)
{
    const struct claim_list *old = draft_claims(d, claim->node);
    draft_set_claims(d, claim->node, claim_list_without(old, claim->key));
}

void draft_evict(struct draft *d, const struct allocation *allocation)
{
    const struct demand *pod = &allocation->demand;
    struct claim_list *claims = draft_claims(d, allocation->node);
    if (claims)
        (void)claim_list_ref(claims);
    for (size_t i = 0; claims && i < claims->n; i++)
        if (claims->items[i]->n_pods == 1 &&
            claim_use_is_of(claims->items[i], pod->uid))
            draft_drop_claim(d, claims->items[i]);
    claim_list_unref(claims);
    (void)draft_release(d, pod->namespace, pod->name);
}

/* --- becoming a snapshot ----------------------------------------------- */

/* Which shape of the new states an old one became. */
struct renewed {
    const struct shape *from, *to;
};
enum { RENEWED_MAX = 64 }; /* shapes that are remembered */

static const struct shape *renew_shape(struct state_intern *states,
                                       const struct node *n,
                                       struct renewed known[RENEWED_MAX])
{
    for (size_t i = 0; i < RENEWED_MAX && n->shape; i++) {
        if (!known[i].from)
            known[i] = (struct renewed){n->shape,
                                        state_intern_shape(states, n->topo)};
        if (known[i].from == n->shape)
            return known[i].to;
    }
    return n->shape ? state_intern_shape(states, n->topo) : NULL;
}

void draft_renew(struct draft *d)
{
    struct renewed known[RENEWED_MAX] = {0};
    draft_settle(d);
    state_intern_unref(d->next->states);
    d->next->states = state_intern_create();
    for (size_t i = 0; i < d->next->n_nodes; i++) {
        struct node *n = node_derive(slot_node(d, (int32_t)i));
        node_set_shape(n, renew_shape(d->next->states, n, known));
        draft_set_slot(d, (int32_t)i, n);
    }
    state_intern_all_live(d->next->states);
}

void draft_set_policy(struct draft *d, struct policy *policy)
{
    struct policy *old = d->next->policy;
    d->next->policy = policy ? policy_ref(policy) : NULL;
    bool shares = (old && old->n_services) || (policy && policy->n_services);
    bool same = old && policy && old->hash == policy->hash;
    policy_unref(old);
    if (!shares || same)
        return;
    draft_settle(d);
    for (size_t i = 0; i < d->next->n_nodes; i++) {
        struct node *n = node_derive(slot_node(d, (int32_t)i));
        node_recount(n, d->next->policy);
        draft_set_slot(d, (int32_t)i, n);
    }
}

void draft_move(struct draft *d, const struct demand *pod, const char *node,
                bool leaving)
{
    struct moving_pods *old = d->next->moves;
    d->next->moves = moving_pods_with(old, pod, node, leaving);
    moving_pods_unref(old);
}

void draft_offer(struct draft *d, const struct demand *pod, const char *node,
                 int64_t until_ms)
{
    struct moving_pods *old = d->next->moves;
    d->next->moves = moving_pods_offer(old, pod, node, until_ms);
    moving_pods_unref(old);
}

void draft_end_offers(struct draft *d, const char *uid, int64_t now_ms)
{
    struct moving_pods *old = d->next->moves;
    if (!moving_pods_offer_ends(old, uid, now_ms))
        return;
    d->next->moves = moving_pods_end_offers(old, uid, now_ms);
    moving_pods_unref(old);
}

void draft_forget_moves(struct draft *d)
{
    moving_pods_unref(d->next->moves);
    d->next->moves = NULL;
}

struct snapshot *draft_peek(struct draft *d)
{
    draft_settle(d);
    return snapshot_copy(d->next);
}

struct snapshot *draft_commit(struct draft *d)
{
    draft_settle(d);
    if (state_intern_outgrown(d->next->states, d->next->n_nodes))
        draft_renew(d);
    struct snapshot *s = steal(&d->next);
    draft_destroy(d);
    return s;
}
