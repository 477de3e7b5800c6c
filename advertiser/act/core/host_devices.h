/* host_devices - what a pod on the host gets of the cards, NICs and GPUs that
 * its node was told it has: their device nodes, and of a card that it shares a
 * virtual function of its own. */
#ifndef BIGA_ADVERTISER_ACT_CORE_HOST_DEVICES_H
#define BIGA_ADVERTISER_ACT_CORE_HOST_DEVICES_H

#include "advertiser/act/core/config.h"
#include "advertiser/act/core/state.h"

/* As MACHINE_PREPARE wants it: it waits while somebody may have what it would
 * get and is not written down.  The result is in `r`. */
void host_devices_await(struct place *at, struct pod_entry *e,
                        struct machine_result *r, struct error *err)
    EXCLUDES(act_state);
/* Give a container of the pod its devices and their names.  What it alone has is
 * durable then.  Nothing where the place is a card. */
int host_devices_find(struct place *at, struct pod_entry *e,
                      struct config_sandbox *within,
                      struct cri_container_config *config, struct error *err)
    EXCLUDES(act_state);

#endif
