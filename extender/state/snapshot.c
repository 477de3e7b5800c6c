#include "extender/state/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "extender/state/scope.h"
#include "extender/state/snapshot_private.h"
#include "extender/state/usage.h"
#include "lib/base/mem.h"
#include "lib/base/refs.h"
#include "model/topo/topo_hardware.h"

const char *node_status_name(enum node_status status)
{
    static const char *const texts[NODE_STATUSES] = {
        [NODE_READY] = "ready",           [NODE_STALE] = "stale",
        [NODE_INCOMPLETE] = "incomplete", [NODE_LOST] = "lost",
        [NODE_DOUBTFUL] = "doubtful",
    };
    return (unsigned)status < NODE_STATUSES ? texts[status] : "unknown";
}

bool node_status_is_silent(enum node_status status)
{
    return status == NODE_STALE || status == NODE_LOST;
}

/* --- liveness ---------------------------------------------------------- */

DEFINE_REF(liveness_ref, struct liveness)

void liveness_unref(struct liveness *l)
{
    if (l && refs_drop(&l->refs))
        free(l);
}

static struct liveness *liveness_create(int64_t heard_ms)
{
    struct liveness *l = xcalloc(1, sizeof *l);
    atomic_init(&l->refs, 1);
    atomic_init(&l->heard_ms, heard_ms);
    return l;
}

/* --- nodes ------------------------------------------------------------- */

struct node *node_create(const char *name, int64_t heard_ms)
{
    struct node *n = xcalloc(1, sizeof *n);
    atomic_init(&n->refs, 1);
    n->name = xstrdup(name);
    n->status = NODE_INCOMPLETE;
    n->liveness = liveness_create(heard_ms);
    return n;
}

struct node *node_derive(const struct node *old)
{
    struct node *n = xcalloc(1, sizeof *n);
    atomic_init(&n->refs, 1);
    n->name = xstrdup(old->name);
    n->status = old->status;
    n->epoch = old->epoch;
    memcpy(n->hash, old->hash, sizeof n->hash);
    n->n_slices = old->n_slices;
    n->pool_count = old->pool_count;
    n->published = old->published ? topo_ref(old->published) : NULL;
    n->topo = old->topo ? topo_ref(old->topo) : NULL;
    n->hardware = old->hardware;
    n->serials = old->serials;
    n->bars = old->bars ? card_bars_ref(old->bars) : NULL;
    n->shape = old->shape;
    n->state = old->state;
    n->liveness = liveness_ref(old->liveness);
    n->n_allocations = old->n_allocations;
    n->n_held = old->n_held;
    if (old->n_allocations)
        n->allocations = xmemdup(old->allocations,
                                 old->n_allocations * sizeof(void *));
    for (size_t i = 0; i < n->n_allocations; i++)
        (void)allocation_ref(n->allocations[i]);
    n->claims = old->claims ? claim_list_ref(old->claims) : NULL;
    n->n_rests = old->n_rests;
    if (old->n_rests)
        n->rests = xmemdup(old->rests, old->n_rests * sizeof *n->rests);
    return n;
}

DEFINE_REF(node_ref, struct node)

static void node_drop_allocations(struct node *n)
{
    for (size_t i = 0; i < n->n_allocations; i++)
        allocation_unref(n->allocations[i]);
    free(n->allocations);
}

void node_unref(struct node *n)
{
    if (!n || !refs_drop(&n->refs))
        return;
    node_drop_allocations(n);
    claim_list_unref(n->claims);
    free(n->rests);
    topo_unref(n->published);
    topo_unref(n->topo);
    card_bars_unref(n->bars);
    liveness_unref(n->liveness);
    node_unref(n->whole);
    free(n->name);
    free(n);
}

static void kind_ref(void *node)
{
    (void)node_ref(node);
}

static void kind_unref(void *node)
{
    node_unref(node);
}

const struct by_id_kind node_kind = {kind_ref, kind_unref};

void node_set_allocations(struct node *n, struct allocation **list,
                          size_t n_list)
{
    node_drop_allocations(n);
    n->allocations = list;
    n->n_allocations = n_list;
    n->n_held = 0;
    for (size_t i = 0; i < n_list; i++)
        n->n_held += list[i]->held;
}

void node_set_claims(struct node *n, struct claim_list *claims)
{
    struct claim_list *old = n->claims;
    n->claims = claims ? claim_list_ref(claims) : NULL;
    free(n->rests); /* they borrow from the old ones */
    n->rests = NULL;
    n->n_rests = 0;
    claim_list_unref(old);
}

/* What is barred of what is published. */
static void node_apply_bars(struct node *n)
{
    topo_unref(n->topo);
    n->topo = n->published ? card_bars_apply(n->bars, n->published) : NULL;
    n->hardware = n->topo ? topo_hardware(n->topo) : NULL;
}

static void node_sketch(struct node *n)
{
    size_t first, n_cards = topo_count(n->published, DEVICE_CARD, &first);
    n->serials = (struct text_sketch){0};
    for (size_t i = 0; i < n_cards; i++)
        text_sketch_add(
            &n->serials,
            topo_serial(n->published, topo_device(n->published, first + i)));
}

void node_publish(struct node *n, struct topo *topo)
{
    topo_unref(n->published);
    n->published = topo_ref(topo);
    node_sketch(n);
    node_apply_bars(n);
}

void node_set_bars(struct node *n, struct card_bars *bars)
{
    card_bars_unref(n->bars);
    n->bars = bars ? card_bars_ref(bars) : NULL;
    node_apply_bars(n);
}

void node_set_shape(struct node *n, const struct shape *shape)
{
    n->shape = shape;
    n->state.shape = shape;
}

void node_usage(const struct node *n, const struct policy *policy,
                struct usage *ret_usage)
{
    n = node_whole(n); /* shares are of services by their names */
    *ret_usage = (struct usage){
        .topo = n->topo,
        .shape = n->shape,
        .node = n->name,
        .policy = policy,
        .allocations = (const struct allocation *const *)n->allocations,
        .n = n->n_allocations,
        .claims = n->rests,
        .n_claims = n->n_rests,
    };
}

static void count_share(void *ctx, const struct usage_share *share)
{
    size_t *counts = ctx;
    counts[share->state]++;
}

void snapshot_count_shares(const struct snapshot *s, size_t *ret_counts)
{
    for (size_t state = 0; state < SHARE_STATES; state++)
        ret_counts[state] = 0;
    if (!s->policy || s->policy->n_services == 0)
        return;
    for (size_t i = 0; i < s->n_nodes; i++) {
        const struct node *node = snapshot_node(s, i);
        struct usage usage;
        if (!node->topo)
            continue;
        node_usage(node, s->policy, &usage);
        usage_each_share(&usage, count_share, ret_counts);
    }
}

bool node_state_without(const struct node *n, const struct policy *policy,
                        gone_f *is_gone, const void *ctx,
                        struct node_state *ret_state)
{
    cleanup_free const struct allocation **list = xcalloc(n->n_allocations + 1,
                                                          sizeof *list);
    struct usage usage;
    node_usage(n, policy, &usage);
    usage.allocations = list;
    usage.n = 0;
    for (size_t i = 0; i < n->n_allocations; i++)
        if (!is_gone(ctx, n->allocations[i]))
            list[usage.n++] = n->allocations[i];
    if (usage.n == n->n_allocations)
        return false;
    usage_state(&usage, NULL, ret_state);
    return true;
}

void node_recount(struct node *n, const struct policy *policy)
{
    struct usage usage;
    if (!n->topo)
        return;
    free(n->rests);
    n->rests = claim_rests(n->claims, n->topo,
                           (const struct allocation *const *)n->allocations,
                           n->n_allocations, &n->n_rests);
    node_usage(n, policy, &usage);
    usage_state(&usage, NULL, &n->state);
}

uint32_t node_state_id(const struct node *n, struct state_intern *states)
{
    if (n->status != NODE_READY || !n->shape)
        return STATE_UNUSABLE;
    return state_intern_intern(states, &n->state);
}

/* --- pages ------------------------------------------------------------- */

struct node_page *page_create(void)
{
    struct node_page *page = xcalloc(1, sizeof *page);
    atomic_init(&page->refs, 1);
    for (size_t i = 0; i < SNAPSHOT_PAGE; i++)
        page->leaf[i] = FABRIC_NONE;
    return page;
}

DEFINE_REF(page_ref, struct node_page)

void page_take(struct node_page *page, size_t at, const struct node_page *from,
               size_t from_at, size_t n)
{
    memcpy(page->state + at, from->state + from_at, n * sizeof *page->state);
    memcpy(page->leaf + at, from->leaf + from_at, n * sizeof *page->leaf);
    memcpy(page->nodes + at, from->nodes + from_at, n * sizeof(*page->nodes));
}

struct node_page *page_copy(const struct node_page *page)
{
    struct node_page *copy = page_create();
    page_take(copy, 0, page, 0, SNAPSHOT_PAGE);
    return copy;
}

void page_unref(struct node_page *page)
{
    if (!page || !refs_drop(&page->refs))
        return;
    for (size_t i = 0; i < SNAPSHOT_PAGE && page->owns; i++)
        node_unref(page->nodes[i]);
    free(page);
}

/* --- snapshots --------------------------------------------------------- */

struct snapshot *snapshot_create_empty(void)
{
    struct snapshot *s = xcalloc(1, sizeof *s);
    atomic_init(&s->refs, 1);
    s->rooms = xcalloc(1, sizeof(*s->rooms));
    s->nodes.kind = &node_kind;
    s->roster = roster_create(NULL, 0);
    s->states = state_intern_create();
    s->allocations = alloc_index_create();
    s->quotas = namespace_sums_create();
    return s;
}

DEFINE_REF(snapshot_ref, struct snapshot)

struct snapshot *snapshot_copy(const struct snapshot *s)
{
    struct snapshot *copy = xcalloc(1, sizeof *copy);
    atomic_init(&copy->refs, 1);
    copy->number = s->number;
    copy->news = s->news;
    copy->n_nodes = s->n_nodes;
    copy->n_pages = s->n_pages;
    copy->pages = xcalloc(s->n_pages + 1, sizeof(*copy->pages));
    copy->rooms = xcalloc(s->n_pages + 1, sizeof(*copy->rooms));
    for (size_t i = 0; i < s->n_pages; i++) {
        copy->pages[i] = page_ref(s->pages[i]);
        copy->rooms[i] = s->rooms[i] ? room_page_ref(s->rooms[i]) : NULL;
    }
    copy->nodes = by_id_ref(&s->nodes);
    copy->unplaced = s->unplaced ? room_table_ref(s->unplaced) : NULL;
    copy->claims = s->claims ? claim_table_ref(s->claims) : NULL;
    copy->roster = roster_ref(s->roster);
    copy->states = state_intern_ref(s->states);
    copy->allocations = alloc_index_ref(s->allocations);
    copy->fabric = s->fabric ? fabric_ref(s->fabric) : NULL;
    copy->policy = s->policy ? policy_ref(s->policy) : NULL;
    copy->quotas = namespace_sums_ref(s->quotas);
    copy->moves = moving_pods_ref(s->moves);
    return copy;
}

void snapshot_drop_pages(struct snapshot *s)
{
    for (size_t i = 0; i < s->n_pages; i++) {
        page_unref(s->pages[i]);
        room_page_unref(s->rooms[i]);
    }
    free(s->pages);
    free(s->rooms);
}

void snapshot_unref(struct snapshot *s)
{
    if (!s || !refs_drop(&s->refs))
        return;
    snapshot_drop_pages(s);
    by_id_fini(&s->nodes);
    room_table_unref(s->unplaced);
    claim_table_unref(s->claims);
    roster_unref(s->roster);
    alloc_index_unref(s->allocations);
    state_intern_unref(s->states);
    fabric_unref(s->fabric);
    policy_unref(s->policy);
    namespace_sums_unref(s->quotas);
    moving_pods_unref(s->moves);
    scope_unref(s->scope);
    snapshot_unref(s->whole);
    free(s);
}

/* --- what is different ---------------------------------------------------- */

enum { DIFF_PART = 16 }; /* more than each so many: a walk sorts them */

/* A walk over both. */
static void diff_all(const struct snapshot *before,
                     const struct snapshot *after, node_change_f *visit,
                     void *ctx)
{
    size_t i = 0, k = 0;
    while (i < before->n_nodes || k < after->n_nodes) {
        const struct node *old = i < before->n_nodes ? snapshot_node(before, i)
                                                     : NULL;
        const struct node *new = k < after->n_nodes ? snapshot_node(after, k)
                                                    : NULL;
        int order = old == new ? 0
                    : !old     ? 1
                    : !new     ? -1
                               : strcmp(old->name, new->name);
        if (old != new)
            visit(ctx, order <= 0 ? (int32_t)i : NODE_NONE,
                  order >= 0 ? (int32_t)k : NODE_NONE);
        i += order <= 0;
        k += order >= 0;
    }
}

struct change {
    const char *name;
    int32_t before, after;
};

struct changes {
    const struct snapshot *before, *after;
    struct change *list;
    size_t n, cap;
};

static void changes_add(void *ctx, uint32_t id, void *before, void *after)
{
    struct changes *c = ctx;
    const struct node *n = before ? before : after;
    c->list = xgrow(c->list, c->n, &c->cap, sizeof *c->list);
    c->list[c->n++] = (struct change){
        .name = n->name,
        .before = before ? roster_find_id(c->before->roster, id) : NODE_NONE,
        .after = after ? roster_find_id(c->after->roster, id) : NODE_NONE};
}

static int compare_changes(const void *a, const void *b)
{
    return strcmp(((const struct change *)a)->name,
                  ((const struct change *)b)->name);
}

void snapshot_diff_nodes(const struct snapshot *before,
                         const struct snapshot *after, node_change_f *visit,
                         void *ctx)
{
    struct changes c = {.before = before, .after = after};
    if (before->whole || after->whole ||
        !roster_has_ids_of(before->roster, after->roster)) {
        diff_all(before, after, visit, ctx);
        return;
    }
    by_id_diff(&before->nodes, &after->nodes, changes_add, &c);
    if (c.n > after->n_nodes / DIFF_PART) {
        diff_all(before, after, visit, ctx);
        c.n = 0;
    }
    if (c.n > 1)
        qsort(c.list, c.n, sizeof *c.list, compare_changes);
    for (size_t i = 0; i < c.n; i++)
        visit(ctx, c.list[i].before, c.list[i].after);
    free(c.list);
}

void snapshot_quota_use(const struct snapshot *s, const char *namespace,
                        struct namespace_use *ret_use)
{
    namespace_sums_get(s->quotas, namespace, ret_use);
}

int32_t snapshot_find(const struct snapshot *s, const char *name, size_t size)
{
    return roster_find(s->roster, name, size);
}

void snapshot_find_many(const struct snapshot *s, const struct jtext *names,
                        size_t n, int32_t *ret_indexes)
{
    roster_find_many(s->roster, names, n, ret_indexes);
}
