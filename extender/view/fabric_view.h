/* fabric_view - the fabric of a snapshot as JSON and as a tree.  Pure: equal
 * snapshots give equal bytes. */
#ifndef BIGA_EXTENDER_VIEW_FABRIC_VIEW_H
#define BIGA_EXTENDER_VIEW_FABRIC_VIEW_H

#include "extender/state/snapshot.h"
#include "lib/base/str.h"

/* What a domain has among the nodes that published. */
struct fabric_count {
    uint32_t nodes, cards, idle;
};
/* One per domain, the caller frees; `*ret_unknown` is of the nodes whose
 * place nobody knows. */
struct fabric_count *fabric_counts(const struct snapshot *s,
                                   struct fabric_count *ret_unknown);

/* Hosts and nodes in one sequence, by name: a host that published is both. */
struct fabric_walk {
    const struct snapshot *snapshot;
    size_t next_host, next_node;
};
struct fabric_entry {
    const char *name;
    const struct fabric_host *host; /* NULL: the fabric does not know it by
                                     * this name */
    const struct node *node;        /* NULL: it has not published */
    int32_t leaf;                   /* FABRIC_NONE: unknown */
};
/* Begins behind `after` (NULL: at the first). */
void fabric_walk_init(struct fabric_walk *w, const struct snapshot *s,
                      const char *after);
bool fabric_walk_next(struct fabric_walk *w, struct fabric_entry *ret_entry);

/* {"id","name","tier","parent","switches","hosts","nodes","cards":{"total",
 * "idle"}} */
void fabric_view_domain(const struct fabric *f, int32_t id,
                        const struct fabric_count *count, struct str *out);
/* {"name","leaf","published","cards":{"total","idle"},"ports":[{"rail",
 * "device","port","guid","leaf","speedGbitS"}]}; what is not known is left
 * out, but "leaf" is then null. */
void fabric_view_entry(const struct fabric_entry *e, struct str *out);

/* The tree for a terminal, with at most `limit` lines of hosts. */
void fabric_view_text(const struct snapshot *s, size_t limit, struct str *out);

#endif
