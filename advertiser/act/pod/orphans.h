/* orphans - what is on a place with our labels, and nobody wrote down: since
 * when this process has seen it, and what is due to be removed.  Pure.
 *
 * A card may list as much as it likes: ORPHANS_MAX are kept, those that were
 * kept before and then the first in order; the others are seen, with a grace
 * of their own, once these are gone. */
#ifndef BIGA_ADVERTISER_ACT_POD_ORPHANS_H
#define BIGA_ADVERTISER_ACT_POD_ORPHANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "advertiser/cri/cri.h"

enum {
    ORPHANS_MAX = 256,
    ORPHANS_RETRY_MS = 10000, /* after one that could not be removed */
    ORPHANS_UID_MAX = 287,    /* a helper's is the longest of ours */
};

/* Of a list of what has our labels. */
struct orphan_seen {
    const char *uid; /* at most ORPHANS_UID_MAX bytes */
    const char *id;
    bool sandbox, running;
    bool known; /* of a pod that is to be there */
    bool over;  /* of one that has ended: it is due at once */
    size_t at;  /* the caller's */
};
/* By UID, sandboxes first, by id. */
int orphan_order(const struct orphan_seen *a, const struct orphan_seen *b);

struct orphan {
    char id[CRI_ID_MAX + 1];
    char uid[ORPHANS_UID_MAX + 1];
    bool sandbox, running, over;
    int64_t due_ms; /* of its removal */
};
struct orphans {
    struct orphan *list; /* in order */
    size_t n;
    size_t n_more; /* that were in the list as well */
};
void orphans_fini(struct orphans *o);

/* A whole list, in order.  What is not in it any more, or known, is
 * forgotten.  Takes time linear in both. */
void orphans_update(struct orphans *o, const struct orphan_seen *seen, size_t n,
                    int64_t now_ms, int64_t grace_ms);

/* One that is due, sandboxes first, and put off by ORPHANS_RETRY_MS; false
 * when there is none. */
bool orphans_take(struct orphans *o, int64_t now_ms, struct orphan *ret_orphan);
void orphans_removed(struct orphans *o, const char *id);
/* When the next is due; INT64_MAX never. */
int64_t orphans_due(const struct orphans *o);
/* May anything be left of a pod? */
bool orphans_have(const struct orphans *o, const char *uid);
/* May anything run? */
bool orphans_run(const struct orphans *o);

#endif
