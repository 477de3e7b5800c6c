/* given_facts - what the pods of a kubelet really have, of what it was asked
 * and what was seen on the host. */
#ifndef BIGA_ADVERTISER_ACHIEVED_GIVEN_FACTS_H
#define BIGA_ADVERTISER_ACHIEVED_GIVEN_FACTS_H

#include <stdbool.h>

#include "advertiser/achieved/cgroups.h"
#include "advertiser/achieved/device_places.h"
#include "advertiser/achieved/facts.h"
#include "advertiser/achieved/pod_resources.h"
#include "advertiser/achieved/pod_uids.h"

/* Borrowed, all of it. */
struct host_seen {
    struct device_places places;
    const struct cgroups *groups; /* NULL: they cannot be read */
    const struct pod_uids *uids;
    /* Where a device of another driver is; false when that is not known. NULL:
     * of none. */
    bool (*claimed)(void *ctx, const struct given_claim *claim,
                    struct pci_addr *ret_addr);
    void *ctx;
};

/* Adds those of each pod.
 *
 * Cards and NICs are known of a pod that was given some: it may have others by
 * its host's network.  That it was given no GPU is known once it runs, as the
 * devices of a claim are given last. */
void given_facts_add(const struct given_pods *given,
                     const struct host_seen *seen, struct facts *facts);

#endif
