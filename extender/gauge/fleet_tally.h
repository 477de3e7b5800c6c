/* fleet_tally - what a fleet has at the moment, counted: the next counts are
 * made of the last ones, by what is different.  Any thread. */
#ifndef BIGA_EXTENDER_GAUGE_FLEET_TALLY_H
#define BIGA_EXTENDER_GAUGE_FLEET_TALLY_H

#include "extender/achieved/achieved.h"
#include "extender/achieved/achieved_book.h"
#include "extender/view/views.h"

struct fleet_leaf {
    int64_t nodes, ill; /* ill: not ready, or with a card that is lost */
    int64_t cards, idle, cores; /* cores: that are free */
};

struct fleet_counts {
    size_t nodes[NODE_STATUSES], cards[CARD_STATES];
    size_t gpus, free_gpus;
    size_t ill;       /* nodes */
    size_t unaligned; /* nodes with a pod that is placed worse than it prefers,
                       * or has lost what it was promised */
    size_t claims;    /* foreign ones */
    size_t relations[RELATION_COUNT]; /* of bound pods with cards */
    size_t achieved[ACHIEVED_STATES];
    size_t alignment[RELATION_COUNT][RELATION_COUNT + 1]; /* promised,
                                                           * achieved */
    struct fleet_leaf *leaves; /* at the numbers of their domains, whatever
                                * tier those are of; one more: of nodes on
                                * none */
    size_t n_leaves;
};
void fleet_counts_fini(struct fleet_counts *c);

struct fleet_tally;
struct fleet_tally *fleet_tally_create(void);
void fleet_tally_destroy(struct fleet_tally *t); /* NULL allowed */
/* Of a snapshot, with what nodes have told of it by now.  `t` may be NULL: it is
 * counted anew.  Of one that somebody sees (scope.h) `unaligned` is as they see
 * it: by pods of others only as far as these are placed worse than they prefer.
 * What all pods achieve, and how they are placed, is always of the whole. */
void fleet_tally_get(struct fleet_tally *t, struct snapshot *s,
                     struct achieved_book *book, struct fleet_counts *ret);
/* Count what has changed since, once in a while, so that nobody has to wait for
 * all of it to be counted, nor is an old snapshot kept for long. */
enum { FLEET_TALLY_KEEP_MS = 10000 };
void fleet_tally_keep(struct fleet_tally *t, struct snapshot *s,
                      struct achieved_book *book);

#endif
