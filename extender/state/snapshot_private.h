/* What snapshot*.c and draft.c share; for them and their tests. */
#ifndef BIGA_EXTENDER_STATE_SNAPSHOT_PRIVATE_H
#define BIGA_EXTENDER_STATE_SNAPSHOT_PRIVATE_H

#include "extender/roster/roster.h"
#include "extender/state/snapshot.h"

_Static_assert((int)NODE_NONE == (int)ROSTER_NONE, "one index for no node");

/* --- rooms: snapshot_capacity.c ---------------------------------------------- */

static inline bool room_is_known(const struct host_room *room)
{
    return room->cpu_milli != INT64_MAX || room->memory_mib != INT64_MAX ||
           room->pods != INT64_MAX;
}

struct room_page *room_page_ref(struct room_page *p);
void room_page_unref(struct room_page *p); /* NULL allowed */
struct host_room room_page_get(const struct room_page *p, size_t at);
/* Set what node (NULL: none) `at` has; the page is made or copied first when
 * it is not the caller's alone. */
void room_page_set(struct room_page **page, size_t at,
                   const struct host_room *room, const struct node *node);

/* Copy `n` items, as page_take() does, if the page `from` (NULL: of nothing
 * known) is one. */
void room_page_take(struct room_page **page, size_t at,
                    const struct room_page *from, size_t from_at, size_t n);

struct room_table *room_table_ref(struct room_table *t);
void room_table_unref(struct room_table *t); /* NULL allowed */
struct host_room room_table_get(const struct room_table *t, const char *name);
/* A room that is not known is forgotten. */
void room_table_set(struct room_table **table, const char *name,
                    const struct host_room *room);

/* --- nodes and pages ---------------------------------------------------- */

/* A new version: everything of `old` (a reference to each part), to be
 * changed before anyone else sees it. */
struct node *node_derive(const struct node *old);
/* A node of this name about which nothing is known. */
struct node *node_create(const char *name, int64_t heard_ms);
struct node *node_ref(struct node *n);
void node_unref(struct node *n); /* NULL allowed */
/* Set the allocations: takes over the array, and references to its items. */
void node_set_allocations(struct node *n, struct allocation **list,
                          size_t n_list);
/* Set what its advertiser publishes, or its bars (NULL: none); a reference is
 * taken. */
void node_publish(struct node *n, struct topo *topo);
void node_set_bars(struct node *n, struct card_bars *bars);
/* The same shape, as interned elsewhere. */
void node_set_shape(struct node *n, const struct shape *shape);
/* Set the claims (a reference is taken; NULL: none). */
void node_set_claims(struct node *n, struct claim_list *claims);
/* Bring the state, and what is foreign, up to date with topology, shape,
 * allocations and claims; `policy` may be NULL. */
void node_recount(struct node *n, const struct policy *policy);
/* The state id that a page shows for the node. */
uint32_t node_state_id(const struct node *n, struct state_intern *states);

extern const struct by_id_kind node_kind;
struct node_page *page_create(void);
struct node_page *page_copy(const struct node_page *page);
/* Copy `n` items from one page into another that is the caller's alone, and
 * does not own its nodes. */
void page_take(struct node_page *page, size_t at, const struct node_page *from,
               size_t from_at, size_t n);
struct node_page *page_ref(struct node_page *page);
void page_unref(struct node_page *page); /* NULL allowed */

/* --- snapshots ---------------------------------------------------------- */

/* Another one, of the same number, with a reference to each part. */
struct snapshot *snapshot_copy(const struct snapshot *s);
/* Free the pages of one that nobody else sees; others are to be set. */
void snapshot_drop_pages(struct snapshot *s);

#endif
