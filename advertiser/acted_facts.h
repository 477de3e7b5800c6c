/* acted_facts - what pods really have that no kubelet but this node's actuator
 * runs: the card that a pod runs on, and the CPUs that the control groups of a
 * host pod allow. */
#ifndef BIGA_ADVERTISER_ACTED_FACTS_H
#define BIGA_ADVERTISER_ACTED_FACTS_H

#include "advertiser/achieved/given_facts.h"
#include "advertiser/act/core/actuator.h"
#include "lib/base/mem.h"

enum {
    ACTED_LIST_MS = 10000
}; /* between lists of containers while nothing
                                 * has changed */

struct acted_facts; /* use from one thread */
struct acted_facts *acted_facts_create(struct actuator *actuator);
void acted_facts_destroy(struct acted_facts *f); /* NULL allowed */
DEFINE_CLEANUP(acted_facts, struct acted_facts *, acted_facts_destroy)

/* Adds those of the pods that run for this owner.  May ask the host's runtime,
 * within a deadline; while that does not answer, which CPUs its pods have is
 * not known. */
void acted_facts_add(struct acted_facts *f, const char *owner,
                     const struct host_seen *seen, struct facts *facts);

/* The CPUs and NUMA nodes of a pod on the host, by its containers there. */
void acted_facts_of_host_pod(const struct act_object *objects, size_t n,
                             const struct cgroups *groups,
                             struct pod_facts *pod);

#endif
