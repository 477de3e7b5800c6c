/* store - what survives a restart: slices and allocations.  Used by the
 * writer thread alone.
 *
 * The store is the only noun with SQL.  One connection: WAL,
 * locking_mode=EXCLUSIVE, synchronous=FULL, DEFENSIVE, trusted_schema OFF,
 * cell_size_check ON, file mode 0600, quick_check at open, and a mark beside
 * it (dbmark.h) of the version that was committed last.  A damaged database,
 * and one that is older than its mark, is moved aside (its new name is logged)
 * and a new one begun with what can be saved: the advertisers publish again.
 * A database of a newer schema is refused. */
#ifndef BIGA_EXTENDER_KEEP_STORE_H
#define BIGA_EXTENDER_KEEP_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/state/allocation.h"
#include "extender/state/card_bars.h"
#include "lib/base/error.h"

struct store;

/* Where the state is kept.  STORE_KUBERNETES: in the API server, which gives it
 * back by list and watch; this store only counts versions then, reads nothing
 * back, and cannot fail. */
enum store_kind { STORE_SQLITE, STORE_KUBERNETES };

/* `dir` is created (mode 0700) when missing; NULL: in memory only. A second
 * process on the same directory is refused.  STORE_KUBERNETES takes no
 * `dir`: -EINVAL. */
int store_open(enum store_kind kind, const char *dir, struct store **ret_store,
               struct error *err);
void store_close(struct store *s); /* NULL allowed */
enum store_kind store_get_kind(const struct store *s);

/* One transaction around a batch of changes.  Commit is durable when it
 * returns 0.  A failed commit rolls back; -ENOSPC when the disk is full; an
 * fsync error is fatal (the process ends: what is on disk is unknown). */
int store_begin(struct store *s, struct error *err);
int store_commit(struct store *s, struct error *err);
void store_rollback(struct store *s);

/* Slices: the JSON as it was sent, under its name, with a resource version
 * that grows with every change. */
int store_put_slice(struct store *s, const char *name, const char *node,
                    const char *json, size_t size,
                    uint64_t *ret_resource_version, struct error *err);
int store_delete_slice(struct store *s, const char *name, struct error *err);
/* Boot ids that a node has left behind, so that a replayed publish of an
 * earlier boot is known for what it is; the newest 16 are kept. */
int store_retire_boot(struct store *s, const char *node, const char *boot_id,
                      struct error *err);

/* Whether a node was silent last, so that a restart does not count it as heard
 * from. */
int store_set_silent(struct store *s, const char *node, bool silent,
                     struct error *err);

/* When it was opened the database had commits newer than its mark (dbmark.h):
 * made by an older release, or the mark was lost in a power cut. */
bool store_past_mark(const struct store *s);

/* After damage to the database all nodes are in doubt: allocations there may be
 * lost.  store_trust() ends that for a node; NULL: for all. */
bool store_in_doubt(const struct store *s);
int store_trust(struct store *s, const char *node, struct error *err);

/* A node has been told of its allocations up to this number (feed_progress.h);
 * "": any node may have been. */
int store_put_fed(struct store *s, const char *node, uint64_t number,
                  struct error *err);

int store_put_allocation(struct store *s, const struct allocation *a,
                         struct error *err);
int store_delete_allocation(struct store *s, const char *namespace,
                            const char *name, struct error *err);

/* What was applied in embedded mode.  STORE_KUBERNETES: -ENOTSUP. */
struct store_pod {
    const char *namespace, *name, *uid, *json;
    size_t size;
    uint64_t number;
    bool deleting;
    uint32_t grace_s;
    uint32_t ended; /* 0: no; enum pod_state otherwise, with: */
    const char *reason, *message;
    const char *next; /* UID and JSON of what comes next, "" nothing */
};
int store_put_pod(struct store *s, const struct store_pod *pod,
                  struct error *err);
int store_delete_pod(struct store *s, const char *namespace, const char *name,
                     struct error *err);
struct store_config {
    bool secret;
    const char *namespace, *name, *json;
    size_t size;
};
int store_put_config(struct store *s, const struct store_config *config,
                     struct error *err);
int store_delete_config(struct store *s, bool secret, const char *namespace,
                        const char *name, struct error *err);

/* A drain of a card, or of a node's all (card_bars.h).  STORE_KUBERNETES: it is
 * kept there already. */
int store_put_drain(struct store *s, const char *node,
                    const struct card_bar *drain, struct error *err);
int store_delete_drain(struct store *s, const char *node, const char *card,
                       struct error *err);

/* Reading, all in the order of their keys; a callback that returns nonzero
 * ends the walk.  Texts are borrowed for the call. */
typedef int store_slice_f(void *ctx, const char *name, const char *json,
                          size_t size, uint64_t resource_version);
int store_each_slice(struct store *s, const char *after_name,
                     store_slice_f *visit, void *ctx, struct error *err);
/* 0 found and visited, -ENOENT not there (or not kept here). */
int store_get_slice(struct store *s, const char *name, store_slice_f *visit,
                    void *ctx, struct error *err);
typedef int store_boot_f(void *ctx, const char *node, const char *boot_id);
int store_each_retired_boot(struct store *s, store_boot_f *visit, void *ctx,
                            struct error *err);
/* `number`: of each_fed() the one in store_put_fed(). */
typedef int store_node_f(void *ctx, const char *node, uint64_t number);
int store_each_silent(struct store *s, store_node_f *visit, void *ctx,
                      struct error *err);
/* Those that are no longer in doubt, while others are. */
int store_each_trusted(struct store *s, store_node_f *visit, void *ctx,
                       struct error *err);
int store_each_fed(struct store *s, store_node_f *visit, void *ctx,
                   struct error *err);
typedef int store_allocation_f(void *ctx, struct allocation *a);
int store_each_allocation(struct store *s, store_allocation_f *visit, void *ctx,
                          struct error *err);
typedef int store_drain_f(void *ctx, const char *node,
                          const struct card_bar *drain);
int store_each_drain(struct store *s, store_drain_f *visit, void *ctx,
                     struct error *err);
typedef int store_pod_f(void *ctx, const struct store_pod *pod);
int store_each_pod(struct store *s, store_pod_f *visit, void *ctx,
                   struct error *err);
typedef int store_config_f(void *ctx, const struct store_config *config);
int store_each_config(struct store *s, store_config_f *visit, void *ctx,
                      struct error *err);

/* The newest resource version given out. */
uint64_t store_resource_version(const struct store *s);
/* The next one, for something that this transaction writes. */
uint64_t store_take_version(struct store *s);
/* Give out only versions above `version`: another replica or run used it. */
void store_raise_version(struct store *s, uint64_t version);

/* To be called when no operation waits: checkpoints the write-ahead log once it
 * is large enough. */
void store_tidy(struct store *s);

#endif
