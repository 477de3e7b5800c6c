/* Settling a draft: roster and pages are made anew, once, however many nodes
 * came and went. */
#include <stdlib.h>
#include <string.h>

#include "extender/state/draft_private.h"
#include "lib/base/mem.h"

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(struct node *const *)a)->name,
                  (*(struct node *const *)b)->name);
}

/* All nodes in the order of their names, in the caller's array; borrowed. */
static struct node **draft_list(const struct draft *d, size_t *ret_n)
{
    size_t n_added = d->added.n, n = 0, from = 0, pos = 0;
    cleanup_free struct node **added = xcalloc(n_added + 1, sizeof *added);
    for (size_t i = 0; i < n_added; i++)
        added[i] = strmap_next(&d->added, &pos);
    qsort(added, n_added, sizeof *added, compare_names);

    struct node **list = xcalloc(d->next->n_nodes + n_added + 1, sizeof *list);
    for (size_t i = 0; i < d->next->n_nodes; i++) {
        struct node *old = slot_node(d, (int32_t)i);
        if (!old)
            continue;
        while (from < n_added && strcmp(added[from]->name, old->name) < 0)
            list[n++] = added[from++];
        list[n++] = old;
    }
    while (from < n_added)
        list[n++] = added[from++];
    *ret_n = n;
    return list;
}

static bool draft_knows_rooms(const struct draft *d)
{
    bool known = d->next->unplaced != NULL;
    for (size_t i = 0; i < d->next->n_pages && !known; i++)
        known = d->next->rooms[i] != NULL;
    return known;
}

/* The rooms of a list of nodes, in new pages. */
static struct room_page **draft_list_rooms(struct draft *d, struct node **list,
                                           size_t n)
{
    const struct host_room none = {INT64_MAX, INT64_MAX, INT64_MAX};
    struct room_page **rooms = xcalloc(n / SNAPSHOT_PAGE + 2, sizeof(*rooms));
    if (!draft_knows_rooms(d))
        return rooms;
    for (size_t i = 0; i < n; i++) {
        struct host_room room = draft_room(d, list[i]->name);
        room_page_set(&rooms[i / SNAPSHOT_PAGE], i % SNAPSHOT_PAGE, &room,
                      list[i]);
        room_table_set(&d->next->unplaced, list[i]->name, &none);
    }
    return rooms;
}

/* Make roster and pages anew from the list of nodes. */
static void draft_rebuild(struct draft *d, struct node **list, size_t n)
{
    cleanup_free const char **names = xcalloc(n + 1, sizeof *names);
    size_t n_pages = (n + SNAPSHOT_PAGE - 1) / SNAPSHOT_PAGE;
    struct node_page **pages = xcalloc(n_pages + 1, sizeof(*pages));
    struct room_page **rooms = draft_list_rooms(d, list, n);
    for (size_t i = 0; i < n; i++) {
        struct node_page **page = &pages[i / SNAPSHOT_PAGE];
        if (!*page)
            *page = page_create();
        (*page)->nodes[i % SNAPSHOT_PAGE] = node_ref(list[i]);
        (*page)->state[i % SNAPSHOT_PAGE] = node_state_id(list[i],
                                                          d->next->states);
        (*page)->leaf[i % SNAPSHOT_PAGE] = draft_leaf(d, list[i]);
        names[i] = list[i]->name;
    }
    struct roster *roster = roster_create(names, n);
    snapshot_drop_pages(d->next);
    strmap_fini_with(&d->added, draft_drop_node);
    roster_unref(d->next->roster);
    d->next->roster = roster;
    d->next->pages = pages;
    d->next->rooms = rooms;
    d->next->n_pages = n_pages;
    d->next->n_nodes = n;
    d->n_holes = 0;
}

void draft_settle(struct draft *d)
{
    if (d->added.n == 0 && d->n_holes == 0)
        return;
    size_t n = 0;
    cleanup_free struct node **list = draft_list(d, &n);
    draft_rebuild(d, list, n);
}
