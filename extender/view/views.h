/* views - what a snapshot shows of nodes, cards, topology and allocations,
 * as JSON and as tables: equal snapshots (and reports) give equal bytes. */
#ifndef BIGA_EXTENDER_VIEW_VIEWS_H
#define BIGA_EXTENDER_VIEW_VIEWS_H

#include <stddef.h>
#include <stdint.h>

#include "extender/achieved/achieved_book.h"
#include "extender/state/snapshot.h"
#include "lib/base/str.h"
#include "lib/base/table.h"

/* What can be said of a card in one word. */
enum card_state {
    CARD_IDLE,        /* no pair is on it */
    CARD_USED,        /* some pair is on it, others may join */
    CARD_HELD,        /* held whole: exclusive, or its need is not known */
    CARD_UNHEALTHY,   /* withdrawn by its node: lost */
    CARD_DRAINED,     /* withdrawn by the operator */
    CARD_UNAVAILABLE, /* its node is not ready, or its size is not known */
    CARD_STATES
};
const char *card_state_name(enum card_state state); /* "idle" … */
/* `card` counts the cards of the node, in the order of its topology. */
enum card_state card_state(const struct node *node, size_t card);

/* {"name","status","cards":{"total","idle","used","held","unhealthy",
 * "drained","unavailable"},"gpus":{"total","free"},"nics",
 * "computeNics":{"total","free"},"numas","allocations","generation","bootId",
 * "contentHash","slices":{"present","expected"}} */
void view_node(const struct node *node, struct str *out);
/* The same and "heardMs" (ago), "room" as far as it is known (what is left on
 * the host for pods: "cpuMilli", "memoryMiB", "pods"), "cardList",
 * "allocationList", "claimList":
 * [{"namespace","name","cards","gpus","nics"}] (foreign claims, claim_use.h;
 * absent when there are none), "overfull": [{"namespace","name","text"}]
 * (overcommit.h). */
void view_node_whole(const struct snapshot *s, size_t index, int64_t now_ms,
                     struct str *out);
/* With "reserved": the shares that services have of it by the policy (NULL:
 * none), see policy_view.h; and "claims" when foreign ones have some of it. */
void view_card(const struct node *node, const struct policy *policy,
               size_t card, struct str *out);
/* {"node","devices","relations":{"A":{"B":"PIX"}}} */
void view_topology(const struct node *node, struct str *out);

/* Tables: NULL-terminated heads, and a row each. */
extern const char *const view_node_heads[];
extern const char *const view_card_heads[];
extern const char *const view_allocation_heads[];
void view_node_row(const struct node *node, struct table *t);
void view_card_row(const struct node *node, size_t card, struct table *t);
/* One allocation beside what was achieved of it; `book`: what nodes tell. */
void view_allocation(const struct snapshot *s, struct achieved_book *book,
                     const struct allocation *a, struct str *out);
void view_allocation_row(const struct snapshot *s, struct achieved_book *book,
                         const struct allocation *a, struct table *t);
/* A cell: the relation that was achieved, and whether that is less than
 * promised. */
void view_achieved_cell(const struct snapshot *s, struct achieved_book *book,
                        const struct allocation *a, struct table *t);
/* A cell with the ids of cards, GPUs or NICs. */
void view_ids(char (*ids)[TOPO_ID_MAX + 1], size_t n, struct table *t);

/* How many devices of a kind a node is known to have. */
size_t view_count(const struct node *node, enum device_kind kind,
                  size_t *ret_first);

#endif
