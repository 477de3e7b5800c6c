/* seen - what one remote lists with our labels, at one time.  Not one word of
 * it is believed by itself.  Pure. */
#ifndef BIGA_ROUTER_KEEP_SEEN_H
#define BIGA_ROUTER_KEEP_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "advertiser/act/pod/orphans.h"
#include "router/keep/kept.h"
#include "router/wire/found.h"

enum { SEEN_MAX = 2 * FROM_REMOTE_ITEMS_MAX }; /* both lists */

struct seen_item {
    bool sandbox;
    char id[KEPT_ID_MAX + 1], sandbox_id[KEPT_ID_MAX + 1];
    char uid[ORPHANS_UID_MAX + 1]; /* label biga.dev/pod-uid; "" */
    char name[KEPT_NAME_MAX + 1];  /* of its metadata; "" it is longer */
    uint32_t attempt, state;       /* the same; as in found.h */
    char *kept;                    /* the annotation; "" */
    bool stray; /* nobody knows it: filled in by keep_seen() */
    bool asked; /* with `ours` it would be written down: keep_seen() */
    bool ours;  /* the caller's: that id is nothing of the home's */
};
struct seen {
    bool partly; /* an item was left out: what is missing may be there */
    struct seen_item *list; /* by id, when seen_sort() was called */
    size_t n, cap;
};
void seen_fini(struct seen *s);
/* Copies.  False: it is full, or the id is none. */
bool seen_add(struct seen *s, const struct found *found, bool sandbox);
/* Of two with one id none is left: a runtime has no such thing. */
void seen_sort(struct seen *s);
/* After that. */
const struct seen_item *seen_find(const struct seen *s, const char *id);

#endif
