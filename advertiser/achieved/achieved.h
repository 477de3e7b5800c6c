/* achieved - what the containers of this node's pods really have, looked at
 * again and again on a thread of its own and told to whoever joins it with what
 * was promised (schema/achieved.md).  Nobody waits for it: a kubelet, a file
 * system or a server that does not answer keeps nothing else. */
#ifndef BIGA_ADVERTISER_ACHIEVED_ACHIEVED_H
#define BIGA_ADVERTISER_ACHIEVED_ACHIEVED_H

#include <stdbool.h>
#include <stdint.h>

#include "advertiser/achieved/given_facts.h"
#include "advertiser/publish/sender.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "model/topo/topo.h"

struct achieved_config {
    const char *node;
    const char *kubelet; /* the socket of its PodResources API; NULL: none */
    const char *sysroot; /* where /sys, /proc and /var/log are; "" for / */
    /* Pods that no kubelet runs, and 0; -errno: it is not known which there
     * are.  NULL: none.  On the thread. */
    int (*more)(void *ctx, const struct host_seen *seen, struct facts *facts);
    void *ctx;
    const struct sender_config *sending;
    const char *namespace; /* of the ConfigMap; NULL: to the extender */
    int64_t look_ms;       /* from one look to the next */
    int64_t again_ms;      /* as in carrier.h */
    int64_t backoff_min_ms, backoff_max_ms;
    bool withdraw; /* at the end */
};

struct achieved;
/* `config` and all in it outlive it.  `topo` is what the node has. */
int achieved_start(const struct achieved_config *config, struct topo *topo,
                   struct achieved **ret_achieved, struct error *err);
/* What the node has now; any thread, does not wait. */
void achieved_look(struct achieved *a, struct topo *topo);
/* Ends within the time of one request, or two when it withdraws. NULL
 * allowed. */
void achieved_stop(struct achieved *a);
DEFINE_CLEANUP(achieved, struct achieved *, achieved_stop)

#endif
