/* draft - a snapshot that is being made, for the one writer and for simulations.
 * It starts as its base; committing gives a new snapshot with the next number,
 * destroying it leaves no trace. */
#ifndef BIGA_EXTENDER_STATE_DRAFT_H
#define BIGA_EXTENDER_STATE_DRAFT_H

#include "extender/state/snapshot.h"

struct draft;
struct draft *draft_create(struct snapshot *base);
/* It says what its base says: whoever found no place need not try again. */
void draft_keep_news(struct draft *d);
void draft_destroy(struct draft *d); /* NULL allowed */
DEFINE_CLEANUP(draft, struct draft *, draft_destroy)

/* The node as the draft has it now, NULL when unknown; valid until the next
 * change of that node. */
const struct node *draft_node(struct draft *d, const char *name);

/* Set what is known of a node's hardware: a NULL topo keeps the last one
 * (a node that went stale or incomplete).  Creates the node when new. */
struct node_update {
    const char *name;
    enum node_status status;
    struct slice_epoch epoch;
    const char *hash;
    size_t n_slices, pool_count;
    struct topo *topo; /* a reference is taken */
    int64_t heard_ms;
};
void draft_put_node(struct draft *d, const struct node_update *update);
/* A pod comes to `node`, or leaves, or (NULL, false) stays. */
void draft_move(struct draft *d, const struct demand *pod, const char *node,
                bool leaving);
/* moving_pods_offer() and moving_pods_end_offers(). */
void draft_offer(struct draft *d, const struct demand *pod, const char *node,
                 int64_t until_ms);
void draft_end_offers(struct draft *d, const char *uid, int64_t now_ms);
/* For simulations: nobody does. */
void draft_forget_moves(struct draft *d);
void draft_set_status(struct draft *d, const char *name,
                      enum node_status status);
/* Set which cards of a node are barred (a reference is taken; NULL: none).  It
 * keeps them until it is removed; nothing is kept of one that is not there. */
void draft_set_bars(struct draft *d, const char *name, struct card_bars *bars);
/* Forget a node's hardware.  Its allocations are kept in the index and
 * counted again should the node come back. */
void draft_remove_node(struct draft *d, const char *name);

/* How many are new since the last draft_peek(): each snapshot with some of
 * these costs as much as all nodes are. */
size_t draft_n_coming(const struct draft *d);

/* Set what a host has for pods of ours; all INT64_MAX: that is not known any
 * more.  Of a node that is not there it is remembered until it comes. */
void draft_set_room(struct draft *d, const char *name,
                    const struct host_room *room);
struct host_room draft_room(const struct draft *d, const char *name);

/* Set fabric or policy (a reference is taken; NULL: none).  All nodes are
 * looked at again. */
void draft_set_fabric(struct draft *d, struct fabric *fabric);
void draft_set_policy(struct draft *d, struct policy *policy);

/* Add (taking over the caller's reference) or remove an allocation; the
 * node's state follows, once for all that change before it is looked at. */
void draft_allocate(struct draft *d, struct allocation *allocation);
bool draft_release(struct draft *d, const char *namespace, const char *name);
/* For simulations: the same, and the claims that only this pod has go with
 * it. */
void draft_evict(struct draft *d, const struct allocation *allocation);
/* Borrowed until the next change. */
const struct alloc_index *draft_allocations(const struct draft *d);
const struct allocation *draft_find_allocation(const struct draft *d,
                                               const char *namespace,
                                               const char *name);

/* What a claim has of its node, or (by its key and node) has no longer; the
 * node's state follows.  Of a node that is not there it is remembered until it
 * comes. */
void draft_put_claim(struct draft *d, struct claim_use *claim);
void draft_drop_claim(struct draft *d, const struct claim_use *claim);

/* Leave the states of the past behind: start with fresh ones, which hold what
 * is alive and have room for demand classes.  Touches every node. */
void draft_renew(struct draft *d);

/* The snapshot that the draft became; the draft is destroyed.  The caller
 * owns the reference.  States that are outgrown are renewed. */
struct snapshot *draft_commit(struct draft *d);
/* A snapshot of the draft's present content, for reading; the draft goes
 * on. */
struct snapshot *draft_peek(struct draft *d);

#endif
