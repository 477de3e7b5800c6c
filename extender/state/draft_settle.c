/* Settling a draft: roster and pages are made anew, once, however many nodes
 * came and went.  What was there is copied in runs, and pages before the first
 * change are shared: only those that come are looked at.  The references to
 * nodes stay where they are. */
#include <stdlib.h>
#include <string.h>

#include "extender/state/draft_private.h"
#include "lib/base/mem.h"

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of those that come, in their order, in the caller's array. */
static const char **list_added(const struct draft *d)
{
    const char **names = xcalloc(d->added.n + 1, sizeof(*names));
    size_t pos = 0, n = 0;
    for (const struct node *node; (node = strmap_next(&d->added, &pos));)
        names[n++] = node->name;
    qsort(names, n, sizeof(*names), compare_names);
    return names;
}

/* What the new order is made of. */
struct order {
    struct roster_run *runs;
    size_t n_runs, cap;
};

/* Slots from `from` to `to` stay, but for holes. */
static void order_keep(struct order *o, const struct draft *d, size_t from,
                       size_t to)
{
    while (from < to) {
        size_t n = d->n_holes ? 0 : to - from;
        while (from + n < to && slot_node(d, (int32_t)(from + n)))
            n++;
        if (n > 0) {
            o->runs = xgrow(o->runs, o->n_runs, &o->cap, sizeof *o->runs);
            o->runs[o->n_runs++] = (struct roster_run){.from = from, .n = n};
        }
        from += n + 1;
    }
}

static void order_make(struct order *o, const struct draft *d)
{
    cleanup_free const char **added = list_added(d);
    size_t from = 0;
    for (size_t i = 0; i < d->added.n; i++) {
        size_t to = roster_rank(d->next->roster, added[i]);
        order_keep(o, d, from, to);
        from = to;
        o->runs = xgrow(o->runs, o->n_runs, &o->cap, sizeof *o->runs);
        o->runs[o->n_runs++] = (struct roster_run){.name = added[i], .n = 1};
    }
    order_keep(o, d, from, d->next->n_nodes);
}

/* The snapshot's pages as they are to be. */
struct pages {
    struct node_page **nodes;
    struct room_page **rooms;
    size_t n; /* nodes so far */
};

static struct node_page *pages_last(struct pages *p)
{
    struct node_page **page = &p->nodes[p->n / SNAPSHOT_PAGE];
    if (!*page)
        *page = page_create();
    return *page;
}

/* As many of `n` slots as lie on one page on both sides. */
static size_t pages_take(struct pages *p, const struct snapshot *old,
                         size_t from, size_t n)
{
    size_t to = p->n / SNAPSHOT_PAGE, at = p->n % SNAPSHOT_PAGE;
    size_t page = from / SNAPSHOT_PAGE, from_at = from % SNAPSHOT_PAGE;
    size_t room = SNAPSHOT_PAGE - (at > from_at ? at : from_at);
    if (n > room)
        n = room;
    if (n == SNAPSHOT_PAGE) { /* all of it */
        p->nodes[to] = page_ref(old->pages[page]);
        p->rooms[to] = old->rooms[page] ? room_page_ref(old->rooms[page])
                                        : NULL;
    } else {
        page_take(pages_last(p), at, old->pages[page], from_at, n);
        room_page_take(&p->rooms[to], at, old->rooms[page], from_at, n);
    }
    p->n += n;
    return n;
}

static void pages_add(struct pages *p, struct draft *d, struct node *node)
{
    const struct host_room none = {INT64_MAX, INT64_MAX, INT64_MAX};
    struct node_page *page = pages_last(p);
    size_t at = p->n % SNAPSHOT_PAGE;
    struct host_room room = room_table_get(d->next->unplaced, node->name);
    page->nodes[at] = node;
    page->state[at] = node_state_id(node, d->next->states);
    page->leaf[at] = draft_leaf(d, node);
    room_page_set(&p->rooms[p->n / SNAPSHOT_PAGE], at, &room, node);
    room_table_set(&d->next->unplaced, node->name, &none);
    p->n++;
}

/* Take references: to nodes that come; to all where ids begin anew. */
static void hold_nodes(struct draft *d, const struct pages *p,
                       const struct roster *roster)
{
    struct by_id *held = &d->next->nodes, all = {.kind = &node_kind};
    size_t pos = 0;
    struct node *node;
    if (roster_has_ids_of(roster, d->next->roster)) {
        while ((node = strmap_next(&d->added, &pos))) {
            int32_t at = roster_find(roster, node->name, strlen(node->name));
            by_id_set(held, roster_id(roster, (size_t)at), node_ref(node));
        }
        return;
    }
    for (size_t i = 0; i < p->n; i++) {
        node = p->nodes[i / SNAPSHOT_PAGE]->nodes[i % SNAPSHOT_PAGE];
        by_id_set(&all, roster_id(roster, i), node_ref(node));
    }
    by_id_fini(held);
    *held = all;
}

/* Takes over what was made. */
static void draft_swap(struct draft *d, struct pages *p, struct roster *roster)
{
    hold_nodes(d, p, roster);
    snapshot_drop_pages(d->next);
    strmap_fini_with(&d->added, draft_drop_node);
    roster_unref(d->next->roster);
    d->next->roster = roster;
    d->next->pages = p->nodes;
    d->next->rooms = p->rooms;
    d->next->n_pages = (p->n + SNAPSHOT_PAGE - 1) / SNAPSHOT_PAGE;
    d->next->n_nodes = p->n;
    d->n_holes = 0;
}

void draft_settle(struct draft *d)
{
    struct order o = {0};
    draft_count(d);
    if (d->added.n == 0 && d->n_holes == 0)
        return;
    order_make(&o, d);
    size_t most = (d->next->n_nodes + d->added.n) / SNAPSHOT_PAGE + 2;
    struct pages p = {.nodes = xcalloc(most, sizeof(*p.nodes)),
                      .rooms = xcalloc(most, sizeof(*p.rooms))};
    for (size_t i = 0; i < o.n_runs; i++) {
        const struct roster_run *run = &o.runs[i];
        if (run->name)
            pages_add(&p, d, strmap_get(&d->added, run->name));
        for (size_t k = 0; !run->name && k < run->n;)
            k += pages_take(&p, d->next, run->from + k, run->n - k);
    }
    draft_swap(d, &p, roster_derive(d->next->roster, o.runs, o.n_runs));
    free(o.runs);
}
