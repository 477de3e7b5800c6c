/* card_bars - cards of one node that whoever manages them has take no new pod:
 * a DPU operator, in its own objects, of which the node knows nothing; or an
 * operator of Biga, who has drained a card or the whole node.  Such a card is
 * as one that is withdrawn, and what runs there stays.
 *
 * Immutable once they are shared; ref-counted.  Pure. */
#ifndef BIGA_EXTENDER_STATE_CARD_BARS_H
#define BIGA_EXTENDER_STATE_CARD_BARS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "model/topo/topo.h"

enum {
    CARD_BARS_MAX = 64, /* of a node; the first ones count */
    CARD_DRAIN_REASON_MAX = 256,
    CARD_DRAIN_BY_MAX = 253, /* of who drains */
    CARD_DRAIN_SINCE_MAX = 31,
};

/* One card, as its manager tells it. */
struct card_bar {
    bool has_pci;
    struct pci_addr pci;            /* of the card; its function is ignored */
    char serial[TOPO_TEXT_MAX + 1]; /* "": not told */
    char why[TOPO_BARRED_MAX + 1];  /* for people; not "" */

    /* of a drain: which card is meant by this, and nothing else */
    bool drains;
    char card[TOPO_ID_MAX + 1]; /* its id; "": every card of the node */
    bool evict;                 /* the pods there are to end */
    char since[CARD_DRAIN_SINCE_MAX + 1]; /* RFC 3339 */
    char by[CARD_DRAIN_BY_MAX + 1];       /* "": not known */
    char reason[CARD_DRAIN_REASON_MAX + 1];
};

/* Of a drain: sets `why`, once all else is set. */
void card_drain_explain(struct card_bar *bar);
/* -EINVAL says what a reason, or who drains, may be. */
int card_drain_check(const char *reason, const char *by, struct error *err);

bool card_bar_is_same(const struct card_bar *a, const struct card_bar *b);

struct card_bars {
    atomic_uint refs;
    size_t n;
    struct card_bar items[];
};

/* With the reference of the caller; all of `n` zeroed.  n <= CARD_BARS_MAX */
struct card_bars *card_bars_create(size_t n);
struct card_bars *card_bars_ref(struct card_bars *b);
void card_bars_unref(struct card_bars *b); /* NULL allowed */
DEFINE_CLEANUP(card_bars, struct card_bars *, card_bars_unref)
bool card_bars_are_same(const struct card_bars *a, const struct card_bars *b);

/* Which card is meant: by its PCI address, by its serial number, else the only
 * one of the node, if nothing speaks against it. */
enum card_bar_match {
    CARD_BAR_FOUND,
    CARD_BAR_NONE,    /* the node has no such card */
    CARD_BAR_UNCLEAR, /* it has several, and nothing tells which */
    CARD_BAR_DIVIDED, /* the address is of one, the serial of another */
};
/* `ret_card`: the index of the device in the topology, when it is found. */
enum card_bar_match card_bar_find(const struct card_bar *bar,
                                  const struct topo *topo, size_t *ret_card);
/* For people: "the node has no such card" … */
const char *card_bar_match_text(enum card_bar_match match);

/* The drain of the card of this id, else of its whole node ("": that alone);
 * NULL when there is none. */
const struct card_bar *card_bars_drain(const struct card_bars *b,
                                       const char *card);
/* The drain that has the pods on a card end: its own or that of its node,
 * whichever says so; NULL: none. */
const struct card_bar *card_bars_eviction(const struct card_bars *b,
                                          const char *card);
/* The same list with this drain, in place of one of the same card; `gone`:
 * without it.  NULL when it is empty; -ENOENT: there is none to be gone. */
int card_bars_edit(const struct card_bars *b, const struct card_bar *drain,
                   bool gone, struct card_bars **ret_bars);
/* Drains first, then what else is barred; NULL when there is neither. */
struct card_bars *card_bars_join(const struct card_bars *drains,
                                 const struct card_bars *others);
/* Only the drains of a list; NULL: none. */
struct card_bars *card_bars_drains(const struct card_bars *b);

/* The topology with these cards withdrawn, and why; the same one when `b` (or
 * NULL) has none of it.  The caller owns the reference. */
struct topo *card_bars_apply(const struct card_bars *b, struct topo *topo);

#endif
