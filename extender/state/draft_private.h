/* What draft.c and draft_settle.c share. */
#ifndef BIGA_EXTENDER_STATE_DRAFT_PRIVATE_H
#define BIGA_EXTENDER_STATE_DRAFT_PRIVATE_H

#include "extender/state/draft.h"
#include "extender/state/snapshot_private.h"
#include "lib/base/strmap.h"

struct draft {
    struct snapshot *next; /* ours alone; n_nodes counts holes, too */
    uint64_t base_news;
    size_t n_holes;
    struct strmap added;     /* struct node, by name */
    struct strmap uncounted; /* names of nodes whose allocations changed */
};

/* The node of a slot, NULL: a hole. */
static inline struct node *slot_node(const struct draft *d, int32_t slot)
{
    size_t i = (size_t)slot;
    return d->next->pages[i / SNAPSHOT_PAGE]->nodes[i % SNAPSHOT_PAGE];
}

/* Where the node hangs: by its name, else by one of its adapters. */
int32_t draft_leaf(const struct draft *d, const struct node *n);
/* node_unref(), for a map of nodes. */
void draft_drop_node(void *node);
/* Count the nodes whose allocations changed. */
void draft_count(struct draft *d);
/* No node waits aside and no slot is a hole any more. */
void draft_settle(struct draft *d);

#endif
