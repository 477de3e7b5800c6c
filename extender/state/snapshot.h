/* snapshot - an immutable, numbered view of all nodes and allocations.
 *
 * One writer derives the next snapshot from the current one through a draft
 * and swaps it in; readers take a reference and see one consistent state for
 * as long as they hold it.  Pages of nodes and buckets of allocations are
 * shared between snapshots, so a change copies only what it touches.
 *
 * States of nodes are interned: nodes with equal hardware and equal use
 * share a state id, and the cost of a demand on a state is remembered
 * (state_intern.h), which makes the decision one look-up per node. */
#ifndef BIGA_EXTENDER_STATE_SNAPSHOT_H
#define BIGA_EXTENDER_STATE_SNAPSHOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/roster/by_id.h"
#include "extender/state/allocation.h"
#include "extender/state/card_bars.h"
#include "extender/state/claim_use.h"
#include "extender/state/moving_pods.h"
#include "extender/state/namespace_use.h"
#include "extender/state/state_intern.h"
#include "lib/base/text.h"
#include "model/decide/decide.h"
#include "model/decide/policy.h"
#include "model/fabric/fabric.h"
#include "model/plan/plan.h"
#include "model/slice/slice.h"
#include "model/topo/topo.h"

enum { SNAPSHOT_PAGE = 256, NODE_NONE = -1 };

enum node_status {
    NODE_READY,
    NODE_STALE,      /* no heartbeat within the window */
    NODE_INCOMPLETE, /* slices of the newest generation are missing */
    NODE_LOST,       /* the cluster says it is deleted or not ready */
    NODE_DOUBTFUL,   /* what was given there may have been forgotten */
    NODE_STATUSES
};
const char *node_status_name(enum node_status status);
/* Nobody speaks for it: what is on it is as it was last known. */
bool node_status_is_silent(enum node_status status);

/* Shared by all versions of a node; written by whoever hears from it. */
struct liveness {
    atomic_uint refs;
    _Atomic int64_t heard_ms; /* monotonic clock of the last heartbeat */
};
struct liveness *liveness_ref(struct liveness *l);
void liveness_unref(struct liveness *l); /* NULL allowed */

/* One version of one node.  Immutable; ref-counted. */
struct node {
    /* what each sweep looks at, in one line of the cache */
    atomic_uint refs;
    enum node_status status;
    char *name;
    struct liveness *liveness;
    struct topo *topo; /* `published` with what is barred; NULL with it */
    const struct hardware *hardware; /* of that */
    struct text_sketch serials;      /* of its cards */

    size_t n_slices;   /* present, of the newest generation */
    size_t pool_count; /* that the pool should have */
    struct slice_epoch epoch;
    char hash[17];
    struct topo *published;    /* NULL while no complete pool was ever seen */
    struct card_bars *bars;    /* NULL: nothing is */
    const struct shape *shape; /* interned by states; NULL without topo */
    struct node_state state;   /* what is left, all allocations taken off */
    struct allocation **allocations; /* on this node, by pod key */
    size_t n_allocations;
    size_t n_held;             /* of them: places that are only held */
    struct claim_list *claims; /* on this node; NULL: none */
    struct claim_rest *rests;  /* those of them that are foreign */
    size_t n_rests;
    struct node *whole; /* it is as somebody sees it: of that; NULL: it is */
};
/* What that was made of, or itself; its allocations are in the same order. */
static inline const struct node *node_whole(const struct node *n)
{
    return n->whole ? n->whole : n;
}

/* Its nodes are those that the snapshot has by their ids, so that many can move
 * without being touched. */
struct node_page {
    atomic_uint refs;
    bool owns;                     /* it has references to its nodes itself */
    uint32_t state[SNAPSHOT_PAGE]; /* state ids; STATE_UNUSABLE when not
                                    * ready */
    int32_t leaf[SNAPSHOT_PAGE];   /* domain of tier 0 of the snapshot's
                                    * fabric, or FABRIC_NONE */
    struct node *nodes[SNAPSHOT_PAGE];
};

struct scope;
struct room_page;  /* what hosts have for pods, for as many nodes */
struct room_table; /* the same of names that no node has */

struct roster; /* the sorted names of all nodes and their hash index */

struct snapshot {
    atomic_uint refs;
    uint64_t number; /* grows by one with each snapshot */
    uint64_t news;   /* the number of the last that said something new */
    size_t n_nodes;
    size_t n_pages;
    struct node_page **pages;
    struct by_id nodes;          /* references to them, by the roster's ids */
    struct room_page **rooms;    /* NULL items: of none of these nodes known */
    struct room_table *unplaced; /* NULL: none */
    struct claim_table *claims;  /* of nodes that are not here; NULL: none */
    struct roster *roster;
    struct state_intern *states;
    struct alloc_index *allocations;
    struct fabric *fabric;         /* NULL: nothing is known of it */
    struct policy *policy;         /* NULL: none */
    struct namespace_sums *quotas; /* of namespaces, whatever their quota */
    struct moving_pods *moves;     /* pods that come and go; NULL: none */
    struct scope *scope;    /* it is as somebody sees it (scope.h); NULL: all */
    struct snapshot *whole; /* of that; NULL: it is */
};

/* Node indexes are ranks in the byte order of names. */
static inline const struct node *snapshot_node(const struct snapshot *s,
                                               size_t index)
{
    return s->pages[index / SNAPSHOT_PAGE]->nodes[index % SNAPSHOT_PAGE];
}
static inline uint32_t snapshot_state(const struct snapshot *s, size_t index)
{
    return s->pages[index / SNAPSHOT_PAGE]->state[index % SNAPSHOT_PAGE];
}
/* Begin to fetch what a walk over all nodes comes to soon: they lie anywhere in
 * memory. */
static inline void snapshot_fetch(const struct snapshot *s, size_t index)
{
    enum { NODE_AHEAD = 16, LIVENESS_AHEAD = 8 };
    if (index + NODE_AHEAD >= s->n_nodes)
        return;
    __builtin_prefetch(snapshot_node(s, index + NODE_AHEAD));
    __builtin_prefetch(snapshot_node(s, index + LIVENESS_AHEAD)->liveness);
}
/* The same where it asks for held places alone. */
static inline void snapshot_fetch_held(const struct snapshot *s, size_t index)
{
    enum { AHEAD = 16 };
    if (index + AHEAD < s->n_nodes)
        __builtin_prefetch(&snapshot_node(s, index + AHEAD)->n_held);
}
/* The leaf that a node hangs on, or FABRIC_NONE. */
static inline int32_t snapshot_leaf(const struct snapshot *s, size_t index)
{
    return s->pages[index / SNAPSHOT_PAGE]->leaf[index % SNAPSHOT_PAGE];
}

/* What is left of what the cluster says that a host has for pods of ours, once
 * its allocations of host pods and held places are taken off; all INT64_MAX
 * when it does not say. */
struct host_room snapshot_room_left(const struct snapshot *s, size_t index);
bool snapshot_knows_room(const struct snapshot *s, size_t index);
/* What is left on every node, in the caller's array; NULL: of none known. */
struct host_room *snapshot_rooms_left(const struct snapshot *s);
/* Take what an allocation takes of its host off, or give it back. */
void room_take(struct host_room *room, const struct allocation *a);
void room_give(struct host_room *room, const struct allocation *a);

/* A node (with a topo) and all who are on it, also those whom somebody does not
 * see, to be counted (usage.h); borrowed from both. */
struct usage;
void node_usage(const struct node *n, const struct policy *policy,
                struct usage *ret_usage);
/* How many shares of services are in each state (enum share_state), over all
 * nodes. */
void snapshot_count_shares(const struct snapshot *s, size_t *ret_counts);
/* What the node would have left without some of its allocations; false when
 * it has none of those. */
typedef bool gone_f(const void *ctx, const struct allocation *a);
bool node_state_without(const struct node *n, const struct policy *policy,
                        gone_f *is_gone, const void *ctx,
                        struct node_state *ret_state);

/* What a namespace has now, held places included. */
void snapshot_quota_use(const struct snapshot *s, const char *namespace,
                        struct namespace_use *ret_use);

/* The index of a name, or NODE_NONE. */
int32_t snapshot_find(const struct snapshot *s, const char *name, size_t size);
/* The same for a batch of names as they stand in a request (escapes are
 * decoded), with the cache misses overlapped. */
void snapshot_find_many(const struct snapshot *s, const struct jtext *names,
                        size_t n, int32_t *ret_indexes);

/* What nodes are different between two, in the order of names: each with its
 * index in the one before, and in the one after; NODE_NONE: it is not there.
 * Where one was derived of the other, what is the same is hardly looked at. */
typedef void node_change_f(void *ctx, int32_t before, int32_t after);
void snapshot_diff_nodes(const struct snapshot *before,
                         const struct snapshot *after, node_change_f *visit,
                         void *ctx);

struct snapshot *snapshot_ref(struct snapshot *s);
void snapshot_unref(struct snapshot *s); /* NULL allowed */
DEFINE_CLEANUP(snapshot, struct snapshot *, snapshot_unref)

struct snapshot *snapshot_create_empty(void);

/* What is seen of it by whoever may see some namespaces (scope.h): the index
 * has their allocations alone, and on nodes others' pods and claims are there
 * without their names, job and uid.  Nothing is to be decided on it.  `last`:
 * what the same scope saw of another one, whose parts are taken where they are
 * the same; NULL: nothing. */
struct snapshot *snapshot_scoped(struct snapshot *s, struct scope *scope,
                                 const struct snapshot *last);
/* What that was made of, or itself; the indexes of nodes are the same.
 * Borrowed. */
const struct snapshot *snapshot_whole(const struct snapshot *s);

#endif
