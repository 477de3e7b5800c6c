/* kubelet_pods - what this host's kubelet says its pods were given, asked again
 * and again by the socket of its PodResources API. */
#ifndef BIGA_ADVERTISER_ACHIEVED_KUBELET_PODS_H
#define BIGA_ADVERTISER_ACHIEVED_KUBELET_PODS_H

#include "advertiser/achieved/pod_resources.h"
#include "lib/base/error.h"

enum { KUBELET_PODS_MS = 2000 }; /* what an answer may take */

struct kubelet_pods; /* use from one thread, but for cancel() */
/* `socket` is a path, of which a copy is kept.  -EINVAL: it is too long. */
int kubelet_pods_create(const char *socket, const char *node,
                        struct kubelet_pods **ret_kubelet, struct error *err);
void kubelet_pods_destroy(struct kubelet_pods *k); /* NULL allowed */
/* Any thread: a call ends at once, that of now and all that come. */
void kubelet_pods_cancel(struct kubelet_pods *k);

/* Asks; blocks for KUBELET_PODS_MS at most.  While it does not answer, what it
 * said last stands, as its pods go on; that is logged once. NULL: it has never
 * answered. */
const struct given_pods *kubelet_pods_ask(struct kubelet_pods *k);

#endif
