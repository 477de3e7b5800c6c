/* pod_resources - what the kubelet says its pods were given: the answer of
 * /v1.PodResourcesLister/List, as in k8s.io/kubelet/pkg/apis/podresources/v1.
 * Pure.
 *
 * What it does not know it passes over; what is malformed is -EPROTO, more
 * than a cap allows -E2BIG. */
#ifndef BIGA_ADVERTISER_ACHIEVED_POD_RESOURCES_H
#define BIGA_ADVERTISER_ACHIEVED_POD_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>

#include "advertiser/achieved/index_set.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/proto.h"

#define POD_RESOURCES_LIST "/v1.PodResourcesLister/List"

enum {
    POD_RESOURCES_PODS_MAX = 4096,
    POD_RESOURCES_DEVICES_MAX = 1024, /* of a pod; of claims as many more */
    POD_RESOURCES_TEXT_MAX = 253,
    POD_RESOURCES_REPLY_MAX = 16 << 20, /* bytes */
};

/* Of a device plugin. */
struct given_device {
    const char *resource, *id; /* "nvidia.com/gpu", "GPU-6b0c…" */
};

/* Of a claim. */
struct given_claim {
    const char *driver, *pool, *device;
};

/* All containers of a pod together; what several of them have stands there as
 * often.  Texts are in the arena of the list. */
struct given_pod {
    const char *namespace, *name;
    struct given_device *devices;
    size_t n_devices, cap_devices;
    struct given_claim *claims;
    size_t n_claims, cap_claims;
    struct index_set cpus;   /* for its containers alone */
    struct index_set memory; /* NUMA nodes, by the memory manager */
    bool strange;            /* has a CPU or node beyond what a set holds */
};

struct given_pods {
    struct given_pod *pods;
    size_t n, cap;
    struct arena arena;
};

int pod_resources_read(struct proto_bytes message, struct given_pods **ret_pods,
                       struct error *err);
void given_pods_destroy(struct given_pods *p); /* NULL allowed */
DEFINE_CLEANUP(given_pods, struct given_pods *, given_pods_destroy)

#endif
