/* cluster_fit - feeds fit_nodes with the Nodes and pods of a cluster. */
#ifndef BIGA_EXTENDER_CLUSTER_CLUSTER_FIT_H
#define BIGA_EXTENDER_CLUSTER_CLUSTER_FIT_H

#include "extender/cluster/cluster_parts.h"
#include "extender/cluster/host_capacity.h"
#include "extender/fit/fit_nodes.h"

/* Before the reflector starts; `fit` outlives all. */
void cluster_fit_follow(struct fit_nodes *fit, struct cluster_nodes *nodes,
                        struct cluster_pods *pods,
                        struct host_capacity *others);

#endif
