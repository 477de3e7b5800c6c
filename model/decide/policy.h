/* policy - what the operator grants: quotas and devices per namespace, and the
 * shares of cards that services hold before jobs see them.
 *
 * Read from one file (schema/policy.md); immutable and ref-counted.  Pure. */
#ifndef BIGA_MODEL_DECIDE_POLICY_H
#define BIGA_MODEL_DECIDE_POLICY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "model/pod/demand.h"
#include "model/topo/topo.h"

enum {
    POLICY_TEXT_MAX = 1 << 20,
    POLICY_QUOTAS_MAX = 4096,
    POLICY_SERVICES_MAX = 64,
    POLICY_DEVICES_MAX = 4096,
    POLICY_PATTERN_MAX = 253,
    POLICY_CORES_MAX = 65535,
    POLICY_MEMORY_MIB_MAX = 1 << 30,
    POLICY_PRIORITY_MAX = 1000000000, /* and its negative the least */
};
#define POLICY_UNLIMITED UINT64_MAX

/* What a namespace may have at one time; POLICY_UNLIMITED: as it likes. */
struct policy_quota {
    char namespace[DEMAND_NAMESPACE_MAX + 1];
    uint64_t cards;      /* sum over pods of the cards they have */
    uint64_t cores;      /* sum over pods and cards */
    uint64_t memory_mib; /* the same */
};

/* A service's share of every card that it selects.  Patterns are globs (see
 * policy_glob); "" selects all. */
struct policy_service {
    char namespace[DEMAND_NAMESPACE_MAX + 1];
    char name[DEMAND_NAME_MAX + 1]; /* what its pods' job is called: label
                                     * biga.dev/job */
    char nodes[POLICY_PATTERN_MAX + 1];
    char models[POLICY_PATTERN_MAX + 1]; /* of the cards */
    char pci[POLICY_PATTERN_MAX + 1];
    uint32_t cores, memory_mib;
    int32_t priority; /* the higher is served first on a card that cannot
                       * hold all */
};

/* Which sets of devices of cards the pods of a namespace may have. */
struct policy_devices {
    char namespace[DEMAND_NAMESPACE_MAX + 1];
    struct device_sets sets;
};

struct policy {
    atomic_uint refs;
    struct policy_quota *quotas; /* by namespace */
    size_t n_quotas;
    struct policy_service *services; /* by descending priority, then
                                      * namespace, name, patterns. Several
                                      * of one service: on a card that more
                                      * than one selects, the first counts */
    size_t n_services;
    struct policy_devices *devices; /* by namespace */
    size_t n_devices;
    uint64_t hash; /* of the content */
};
struct policy *policy_ref(struct policy *p);
void policy_unref(struct policy *p); /* NULL allowed */
DEFINE_CLEANUP(policy, struct policy *, policy_unref)

/* Does all of `text` match?  '*' is any run of characters, '?' any one,
 * "[a-f3]" one of a set, "[!a-f3]" one that is not. */
bool policy_glob(const char *pattern, const char *text);
/* Does the service's entry select this card of this node? */
bool policy_selects(const struct policy_service *service, const char *node,
                    const struct device *card);
/* Is the pod one of a service that has a share of some cards?  `p` may be
 * NULL. */
bool policy_has_share(const struct policy *p, const struct demand *pod);
/* The first entry of this service that selects the card, or NULL; `p` may be
 * NULL. */
const struct policy_service *policy_find_share(const struct policy *p,
                                               const struct demand *service,
                                               const char *node,
                                               const struct device *card);

/* The sets of devices that a namespace may have, as in struct device_sets: ""
 * none, as without a policy (`p` NULL) or an entry. */
const char *policy_find_devices(const struct policy *p, const char *namespace);

/* Strict: an unknown member, a duplicate, a value out of range is an error
 * that names member and value. */
int policy_read(const char *text, size_t size, struct policy **ret_policy,
                struct error *err);

/* NULL when the namespace has none (or `p` is NULL). */
const struct policy_quota *policy_find_quota(const struct policy *p,
                                             const char *namespace);

#endif
