/* keep_private - what the files of keep share: keep.c has the making calls and
 * the end, keep_table.c the table and its views, keep_seen.c the lists.
 *
 * Two locks: who changes something has `writing`, also over the disk; the table
 * itself is changed with `lock` as well, which is never held over anything
 * slow.  So who has `writing` may read the table, and others need `lock`. */
#ifndef BIGA_ROUTER_KEEP_KEEP_PRIVATE_H
#define BIGA_ROUTER_KEEP_KEEP_PRIVATE_H

#include <pthread.h>

#include "lib/base/strmap.h"
#include "router/keep/keep.h"
#include "router/keep/keepdb.h"

enum { KEEP_FORGOTTEN = 1024 }; /* ids that are remembered, the newest */

struct keep_entry {
    struct kept *kept;
    char key[KEPT_KEY_SIZE + 2]; /* with its kind before it */
    bool busy;                   /* a caller has it */
    uint64_t changed;            /* when, as keep_mark() counts */
    int64_t unclear_ms;          /* since when nobody knows its end */
};

struct keep {
    pthread_mutex_t writing, lock;
    struct keepdb *db;
    char *pod_logs;
    struct strmap by_key, by_id; /* entries, which by_key owns */
    uint64_t mark;               /* counts changes, from 1 */
    struct keep_view *view;      /* NULL: it is to be made anew */
    struct {
        char id[KEPT_ID_MAX + 1];
        uint64_t mark;
    } forgotten[KEEP_FORGOTTEN];
    size_t n_forgotten; /* since the beginning */
};

/* --- keep_table.c: with `writing` held -------------------------------------- */

void keep_entry_key(enum kept_kind kind, const char *key,
                    char ret_key[KEPT_KEY_SIZE + 2]);
struct keep_entry *keep_entry_of(const struct keep *k, const struct kept *what);
/* In place of what that entry had; without one it is made.  Takes over. */
struct keep_entry *keep_entry_put(struct keep *k, struct kept *kept);
/* It is not there any more; frees it. */
void keep_entry_drop(struct keep *k, struct keep_entry *e);
size_t keep_count_of(const struct keep *k, const char *remote);

/* --- keep.c ------------------------------------------------------------------ */

/* Those are gone, durably, and all containers of those that are sandboxes. */
int keep_drop(struct keep *k, struct keep_entry *const *list, size_t n,
              struct error *err);

#endif
