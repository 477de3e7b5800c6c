/* cluster_rooms - the CPUs and memory that hosts have left for our pods: each
 * Node's allocatable less what all other bound pods request, kept as sums per
 * node.  Tells the writer (WRITER_ROOMS) what has changed, not more often than
 * every ROOMS_MS. */
#ifndef BIGA_EXTENDER_CLUSTER_CLUSTER_ROOMS_H
#define BIGA_EXTENDER_CLUSTER_CLUSTER_ROOMS_H

#include "extender/cluster/cluster_parts.h"

enum { ROOMS_MS = 50 };

struct cluster_rooms;
/* `feed` and `demand` outlive it. */
struct cluster_rooms *cluster_rooms_create(struct feed *feed,
                                           const struct demand_config *demand);
void cluster_rooms_destroy(struct cluster_rooms *r); /* NULL allowed */

/* ctx of all is the struct cluster_rooms; all run on the reflector's thread.
 * The collection of Nodes, handed on by cluster_nodes: */
extern const struct reflector_handler cluster_rooms_nodes;
/* pods without a role that are bound and not finished (a collection of its
 * own: spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed and label
 * !biga.dev/role): */
extern const struct reflector_handler cluster_rooms_pods;
/* and who is told of each of these; before the reflector starts. */
void cluster_rooms_listen(struct cluster_rooms *r,
                          void (*put)(void *ctx, const struct kube_pod *pod),
                          void *ctx);
/* pods with a role, from cluster_pods: */
void cluster_rooms_put_pod(void *ctx, const struct kube_pod *pod);
void cluster_rooms_gone_pod(void *ctx, const char *uid);
void cluster_rooms_listed_pods(void *ctx);

#endif
