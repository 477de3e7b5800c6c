/* orphans - what is on a place with our labels, and nobody wrote down: since
 * when this process has seen it, and what is due to be removed.  Pure. */
#ifndef BIGA_ADVERTISER_ACT_ORPHANS_H
#define BIGA_ADVERTISER_ACT_ORPHANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "advertiser/cri/cri.h"

enum {
    ORPHANS_MAX = 256,
    ORPHANS_RETRY_MS = 10000, /* after one that could not be removed */
};

struct orphan {
    char id[CRI_ID_MAX + 1];
    bool sandbox, running;
    bool marked;    /* in the list that is being read */
    int64_t due_ms; /* of its removal */
};
struct orphans {
    struct orphan *list;
    size_t n, cap;
};
void orphans_fini(struct orphans *o);

/* A list: begin, what is in it that is ours and not known, end.  What is not
 * in it any more is forgotten. */
void orphans_begin(struct orphans *o);
void orphans_saw(struct orphans *o, const struct orphan *found, int64_t now_ms,
                 int64_t grace_ms);
void orphans_end(struct orphans *o);

/* One that is due, sandboxes first, and put off by ORPHANS_RETRY_MS; false
 * when there is none. */
bool orphans_take(struct orphans *o, int64_t now_ms, struct orphan *ret_orphan);
void orphans_removed(struct orphans *o, const char *id);
/* When the next is due; INT64_MAX never. */
int64_t orphans_due(const struct orphans *o);

#endif
