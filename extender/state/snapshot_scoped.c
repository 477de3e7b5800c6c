/* A snapshot as somebody sees it who may see some namespaces alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/state/scope.h"
#include "extender/state/snapshot_private.h"
#include "lib/base/mem.h"

/* --- others' pods and claims, without their names -------------------------- */

static void *copy_of(const void *list, size_t n, size_t size)
{
    return list ? xmemdup(list, n * size) : NULL;
}

/* It takes what the other takes, so that all counts stay. */
static struct allocation *hidden_allocation(const struct allocation *a)
{
    struct demand d = a->demand;
    (void)snprintf(d.namespace, sizeof d.namespace, SCOPE_HIDDEN_NAMESPACE);
    (void)snprintf(d.name, sizeof d.name, SCOPE_HIDDEN_NAME);
    d.job[0] = d.uid[0] = '\0';
    struct allocation *h = allocation_create(&d, a->node);
    memcpy(h->pair_key, a->pair_key, sizeof h->pair_key); /* is never shown */
    h->n_cards = a->n_cards;
    h->n_gpus = a->n_gpus;
    h->n_nics = a->n_nics;
    h->cards = copy_of(a->cards, a->n_cards, sizeof *a->cards);
    h->gpus = copy_of(a->gpus, a->n_gpus, sizeof *a->gpus);
    h->nics = copy_of(a->nics, a->n_nics, sizeof *a->nics);
    h->card_pci = copy_of(a->card_pci, a->n_cards, sizeof *a->card_pci);
    h->gpu_pci = copy_of(a->gpu_pci, a->n_gpus, sizeof *a->gpu_pci);
    h->nic_pci = copy_of(a->nic_pci, a->n_nics, sizeof *a->nic_pci);
    h->relation = a->relation;
    h->nic_relation = a->nic_relation;
    h->numa = a->numa;
    h->epoch = a->epoch;
    h->number = a->number;
    h->held = a->held;
    return h;
}

static bool sees_allocation(const struct scope *scope,
                            const struct allocation *a)
{
    return scope_sees(scope, a->demand.namespace);
}

static void hide_allocations(struct node *n, const struct scope *scope)
{
    struct allocation **list = xcalloc(n->n_allocations + 1, sizeof *list);
    for (size_t i = 0; i < n->n_allocations; i++) {
        struct allocation *a = n->allocations[i];
        list[i] = sees_allocation(scope, a) ? allocation_ref(a)
                                            : hidden_allocation(a);
    }
    node_set_allocations(n, list, n->n_allocations);
}

static void hide_claims(struct node *n, const struct scope *scope)
{
    struct claim_list *before = n->claims;
    struct claim_list *list =
        xcalloc(1, sizeof *list + before->n * sizeof(void *));
    atomic_init(&list->refs, 1);
    list->n = before->n;
    for (size_t i = 0; i < list->n; i++) {
        struct claim_use *c = before->items[i];
        list->items[i] = scope_sees_object(scope, c->key)
                             ? claim_use_ref(c)
                             : claim_use_create(SCOPE_HIDDEN_NAMESPACE,
                                                SCOPE_HIDDEN_NAME, c->node);
        for (size_t k = 0; k < n->n_rests; k++)
            if (n->rests[k].claim == c)
                n->rests[k].claim = list->items[i];
    }
    n->claims = list;
    claim_list_unref(before);
}

/* --- nodes ------------------------------------------------------------------ */

static bool sees_node(const struct scope *scope, const struct node *n)
{
    for (size_t i = 0; i < n->n_allocations; i++)
        if (!sees_allocation(scope, n->allocations[i]))
            return false;
    for (size_t i = 0; n->claims && i < n->claims->n; i++)
        if (!scope_sees_object(scope, n->claims->items[i]->key))
            return false;
    return true;
}

/* A reference: to the node itself where there is nothing to hide. */
static struct node *scoped_node(struct node *n, const struct scope *scope)
{
    if (sees_node(scope, n))
        return node_ref(n);
    struct node *seen = node_derive(n);
    seen->whole = node_ref(n);
    hide_allocations(seen, scope);
    if (seen->claims)
        hide_claims(seen, scope);
    return seen;
}

/* Finding nodes among those of another snapshot, in the order of names. */
struct cursor {
    const struct snapshot *last; /* as the scope saw it; NULL: none */
    size_t at;
};

/* What was seen of this very version of the node, or NULL; for the caller. */
static struct node *cursor_seen(struct cursor *c, const struct node *n)
{
    int order = -1;
    while (c->last && c->at < c->last->n_nodes && order < 0) {
        if (snapshot_node(c->last->whole, c->at) == n)
            return node_ref((struct node *)snapshot_node(c->last, c->at++));
        order = strcmp(snapshot_node(c->last, c->at)->name, n->name);
        c->at += order <= 0;
    }
    return NULL;
}

/* The page as it was seen, where it is the same in the same place, or NULL. */
static struct node_page *cursor_page(struct cursor *c, const struct snapshot *s,
                                     size_t page)
{
    size_t first = page * SNAPSHOT_PAGE;
    if (!c->last || c->at != first || page >= c->last->n_pages ||
        c->last->whole->pages[page] != s->pages[page])
        return NULL;
    c->at = first + SNAPSHOT_PAGE;
    return page_ref(c->last->pages[page]);
}

static struct node_page *scoped_page(const struct node_page *page,
                                     const struct scope *scope,
                                     struct cursor *c)
{
    struct node_page *seen = page_copy(page);
    for (size_t i = 0; i < SNAPSHOT_PAGE; i++) {
        struct node *n = seen->nodes[i];
        if (!n)
            continue;
        seen->nodes[i] = cursor_seen(c, n);
        if (!seen->nodes[i])
            seen->nodes[i] = scoped_node(n, scope);
    }
    seen->owns = true;
    return seen;
}

/* --- the snapshot ----------------------------------------------------------- */

struct sorting {
    const struct scope *scope;
    struct alloc_index *index;
};

static void follow(void *ctx, const struct allocation *before,
                   const struct allocation *after)
{
    struct sorting *s = ctx;
    if (!sees_allocation(s->scope, after ? after : before))
        return;
    if (after)
        alloc_index_put(&s->index, (struct allocation *)after);
    else
        alloc_index_drop(&s->index, before);
}

struct snapshot *snapshot_scoped(struct snapshot *s, struct scope *scope,
                                 const struct snapshot *last)
{
    struct snapshot *seen = snapshot_copy(s);
    struct cursor c = {.last = last};
    by_id_fini(&seen->nodes);
    for (size_t i = 0; i < s->n_pages; i++) {
        page_unref(seen->pages[i]);
        seen->pages[i] = cursor_page(&c, s, i);
        if (!seen->pages[i])
            seen->pages[i] = scoped_page(s->pages[i], scope, &c);
    }
    struct alloc_index *none = alloc_index_create();
    struct sorting sorting = {scope, last ? alloc_index_ref(last->allocations)
                                          : alloc_index_create()};
    alloc_index_diff(last ? last->whole->allocations : none, s->allocations,
                     follow, &sorting);
    alloc_index_unref(none);
    alloc_index_unref(seen->allocations);
    seen->allocations = sorting.index;
    seen->scope = scope_ref(scope);
    seen->whole = snapshot_ref(s);
    return seen;
}

const struct snapshot *snapshot_whole(const struct snapshot *s)
{
    return s->whole ? s->whole : s;
}
