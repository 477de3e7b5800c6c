/* ingest - the rules by which slices become nodes.  The writer's; no I/O.
 *
 * Newest (boot id, generation) wins.  A node's boot id may change to one
 * never seen before (a reboot, or a second advertiser that took over); going
 * back to one it left is refused, as is a lower generation of the same boot,
 * or other content under the same generation. A pool is complete when as many
 * slices of the newest epoch are there as each of them says.
 *
 * A node that is stale and was not heard from for INGEST_SILENCE_MS takes
 * slices of any epoch, as after a withdrawal: so a slice edited by hand, which
 * nobody repeats, cannot hold the node for ever by its high epoch. */
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

/* Offer a slice.  0: accepted, and the node's update is in `draft`; `dropped`
 * names stored slices of older epochs that it replaces, `retired_boot` is the
 * boot id that the node has just left, or NULL.  -ESTALE: older than what is
 * known, or of a boot id that the node has left; -EEXIST: the slice's name
 * belongs to another node. */
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
