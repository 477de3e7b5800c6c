/* reconcile - what is written down against what a remote lists: who is right,
 * item by item.  Pure.
 *
 * The list is right about what is there, unless something happened since it was
 * begun; what is written down is right about what it is.  A remote speaks for
 * itself alone: an id or a name that is another's changes nothing. */
#ifndef BIGA_ROUTER_KEEP_RECONCILE_H
#define BIGA_ROUTER_KEEP_RECONCILE_H

#include <stdbool.h>
#include <stdint.h>

#include "router/keep/kept.h"
#include "router/keep/kept_text.h"
#include "router/keep/seen.h"

/* A record, as the table has it. */
struct reconcile_have {
    const struct kept *kept;
    bool busy;  /* a caller has it */
    bool late;  /* announced, and its end is not known for KEEP_LATE_MS */
    bool fresh; /* it was made or changed since the list was begun */
};

struct reconcile {
    const char *remote; /* whose list it is */
    const struct kept_secret *secret;
    bool trust; /* the secret is new: what is sealed otherwise is of before */
    const char *pod_logs; /* what is trusted so has its logs below it */
    /* The record of that key or id, of any remote; NULL: none. */
    const struct reconcile_have *(*by_key)(void *ctx, enum kept_kind kind,
                                           const char *key);
    const struct reconcile_have *(*by_id)(void *ctx, const char *id);
    /* It was forgotten since the list was begun. */
    bool (*forgotten)(void *ctx, const char *id);
    void *ctx;
};

enum reconcile_verdict {
    RECONCILE_KNOWN,
    RECONCILE_ADOPT,   /* it was announced: `*ret_kept` has its id */
    RECONCILE_REBUILD, /* it is ours, and was not written down: the same */
    RECONCILE_WAIT,    /* the next list will tell */
    RECONCILE_STRAY,   /* nobody's */
};
/* Sandboxes are to be judged before containers, of a sorted list. */
enum reconcile_verdict reconcile_item(const struct reconcile *r,
                                      const struct seen *seen,
                                      const struct seen_item *item,
                                      struct kept **ret_kept);
/* Is a record of that remote to be forgotten? */
bool reconcile_is_gone(const struct seen *seen,
                       const struct reconcile_have *have);

#endif
