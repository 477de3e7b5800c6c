/* moves - pods on their way: nominated to a node where kube-scheduler makes room
 * for them (status.nominatedNodeName), or about to leave theirs
 * (metadata.deletionTimestamp).  Immutable; ref-counted; part of the snapshot.
 * An empty one is NULL. */
#ifndef BIGA_EXTENDER_STATE_MOVES_H
#define BIGA_EXTENDER_STATE_MOVES_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/mem.h"
#include "model/pod/demand.h"

enum { MOVES_MAX = 4096 }; /* of each; of others nothing is known */

struct moves;
struct moves *moves_ref(struct moves *m); /* NULL allowed */
void moves_unref(struct moves *m);        /* the same */
DEFINE_CLEANUP(moves, struct moves *, moves_unref)

/* `old` with the pod (by its uid) coming to `node`, leaving, or, with neither,
 * staying where it is; the caller's to release. */
struct moves *moves_with(const struct moves *old, const struct demand *pod,
                         const char *node, bool leaving);

size_t moves_count(const struct moves *m); /* that come */
/* The node that another pod of the pair with that key comes to, the host pod
 * before others, then by uid; NULL: none does.  Borrowed. */
const char *moves_pair_node(const struct moves *m, const char *pair_key,
                            const char *uid);
/* Does any pod of that pod's job come to `node` (NULL: any node)? */
bool moves_has_job(const struct moves *m, const struct demand *pod,
                   const char *node);
/* The pairs of that pod's job that come to nodes, one after the other: begin
 * with *pos 0; NULL at the end.  Borrowed. */
const char *moves_next_of_job(const struct moves *m, const struct demand *pod,
                              size_t *pos, int32_t *ret_pair);
bool moves_is_leaving(const struct moves *m, const char *uid);

#endif
