/* dra_plugin - this node's part of claims for cards: a plugin of the kubelet
 * (Dynamic Resource Allocation), by which pods get what was allocated to them.
 *
 *     KUBELET/plugins_registry/xpu.biga.dev-reg.sock   where it is found
 *     KUBELET/plugins/xpu.biga.dev/dra.sock            where it is called
 *     KUBELET/plugins/xpu.biga.dev/claims/             what is prepared
 *
 * It has threads of its own: one on which claims are prepared, one after the
 * other, and those of its two servers.  Nobody else ever waits for these.  What
 * cannot be opened is tried again, and logged once. */
#ifndef BIGA_ADVERTISER_DRA_DRA_PLUGIN_H
#define BIGA_ADVERTISER_DRA_DRA_PLUGIN_H

#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/kube/config.h"
#include "model/topo/topo.h"

enum {
    DRA_SWEEP_MS = 600000, /* between rounds through all claims, of which each
                            * costs a call: less than grace_ms in any case */
    DRA_RETRY_MS = 2000,   /* until what was not opened is tried again */
    DRA_DRAIN_MS = 2000,   /* for calls, at the end */
};

struct dra_plugin_config {
    const char *node;
    const char *kubelet_dir, *cdi_dir; /* absolute */
    const char *sysroot;   /* of the /sys of its cards, "" for /; NULL: they are
                            * described, not found */
    const char *card_file; /* NULL or "": none */
    const struct kube_config *kube;
    unsigned timeout_ms; /* of a call to the API server */
    int64_t grace_ms;    /* as in dra_claims.h */
};

struct dra_plugin;
/* `config` and all in it are borrowed, and outlive it.  It serves once it was
 * told what is there.  -EINVAL: a socket would have too long a path. */
int dra_plugin_create(const struct dra_plugin_config *config,
                      struct dra_plugin **ret_plugin, struct error *err);
/* It is no plugin any more, and what is prepared stays.  NULL allowed. */
void dra_plugin_destroy(struct dra_plugin *p);

/* What is there now, as it is published; any thread, does not wait. */
void dra_plugin_look(struct dra_plugin *p, struct topo *topo);

#endif
