/* host_capacity - the CPUs and memory that hosts have left for our pods: each
 * Node's allocatable less what all other bound pods request, kept as sums per
 * node.  Tells the writer (WRITER_ROOMS) what has changed, not more often than
 * every ROOMS_MS. */
#ifndef BIGA_EXTENDER_CLUSTER_HOST_CAPACITY_H
#define BIGA_EXTENDER_CLUSTER_HOST_CAPACITY_H

#include "extender/cluster/feed.h"
#include "extender/pods/kube_pod.h"
#include "lib/kube/reflector.h"

enum { ROOMS_MS = 50 };

struct host_capacity;
/* `feed` and `demand` outlive it. */
struct host_capacity *host_capacity_create(struct feed *feed,
                                           const struct demand_config *demand);
void host_capacity_destroy(struct host_capacity *r); /* NULL allowed */

/* ctx of all is the struct host_capacity; all run on the reflector's thread.
 * The collection of Nodes, handed on by cluster_nodes: */
extern const struct reflector_handler host_capacity_nodes;
/* pods without a role that are bound and not finished (a collection of its
 * own: spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed and label
 * !biga.dev/role): */
extern const struct reflector_handler host_capacity_pods;
/* and who is told of these, up to HOST_CAPACITY_LISTENERS_MAX; before the
 * reflector starts.  As reflector_handler; members may be NULL. */
enum { HOST_CAPACITY_LISTENERS_MAX = 4 };
struct host_capacity_listener {
    void (*list)(void *ctx);
    void (*put)(void *ctx, const struct kube_pod *pod);
    void (*gone)(void *ctx, const char *uid);
    void (*listed)(void *ctx);
    void *ctx;
};
void host_capacity_listen(struct host_capacity *r,
                          const struct host_capacity_listener *listener);
/* pods with a role, from cluster_pods: */
void host_capacity_put_pod(void *ctx, const struct kube_pod *pod);
void host_capacity_gone_pod(void *ctx, const char *uid);
void host_capacity_listed_pods(void *ctx);

#endif
