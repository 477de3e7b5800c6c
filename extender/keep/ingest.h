/* ingest - the rules by which slices become nodes.  The writer's; no I/O.
 *
 * Newest (boot id, generation) wins.  A node's boot id may change to one
 * never seen before (a reboot, or a second advertiser that took over); going
 * back to one it left is refused, as is a lower generation of the same boot,
 * or other content under the same generation. A pool is complete when as many
 * slices of the newest epoch are there as each of them says.
 *
 * Nobody holds a node for ever by being newest alone: when it is stale and was
 * not heard of for INGEST_SILENCE_MS, whoever speaks for it is believed, as after
 * a withdrawal. A slice that was edited by hand has nobody who repeats it. */
#ifndef BIGA_EXTENDER_KEEP_INGEST_H
#define BIGA_EXTENDER_KEEP_INGEST_H

#include <stddef.h>
#include <stdint.h>

#include "extender/state/draft.h"
#include "extender/state/snapshot.h"
#include "lib/base/error.h"
#include "model/slice/slice.h"

enum { INGEST_SILENCE_MS = 60000 };

struct ingest;
struct ingest *ingest_create(void);
void ingest_destroy(struct ingest *x); /* NULL allowed */

/* Offer a slice.  0: accepted, and `*ret_dropped` names stored slices that it
 * replaces (older epochs of the pool; caller frees the array and each name).
 * -ESTALE: older than what is known, or a boot id left behind; -EEXIST: the
 * slice name belongs to another node. On success the node's update is put
 * into `draft`. `*ret_retired` is a boot id newly left behind, or NULL. */
struct ingest_result {
    char **dropped;
    size_t n_dropped;
    char *retired_boot; /* or NULL */
};
void ingest_result_fini(struct ingest_result *r);
int ingest_put(struct ingest *x, struct slice *slice, int64_t now_ms,
               struct draft *draft, struct ingest_result *ret_result,
               struct error *err);
/* -ENOENT when there is no such slice. The last slice of a node takes the
 * node with it. */
int ingest_delete(struct ingest *x, const char *name, struct draft *draft,
                  struct error *err);
/* The node that a stored slice belongs to, or NULL; borrowed. */
const char *ingest_owner(const struct ingest *x, const char *name);
/* While loading: a boot id that a node has left. */
void ingest_retired(struct ingest *x, const char *node, const char *boot_id);
/* Undo everything since the last ingest_mark(), as when a commit failed. */
void ingest_mark(struct ingest *x);
void ingest_undo(struct ingest *x);

#endif
