/* pod - the texts and quantities of a pod that the pod contract names
 * (schema/pod.md), found in the pod's JSON but not yet understood: what they
 * mean, and whether a wrong one matters, depends on the role.
 *
 * For demand.c, and pod_keys.c, which checks the keys.  Pure; allocates
 * nothing. */
#ifndef BIGA_MODEL_POD_POD_H
#define BIGA_MODEL_POD_POD_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/jscan.h"
#include "model/pod/gpu_resource.h"

enum pod_text {
    /* metadata */
    POD_NAME,
    POD_NAMESPACE,
    POD_UID,
    /* labels */
    POD_ROLE,
    POD_JOB,
    POD_PAIR,
    POD_JOB_NAME,
    POD_INDEX_LABEL,
    POD_JOBSET,
    POD_JOBSET_JOBS,  /* Jobs of the replicated Job */
    POD_JOBSET_INDEX, /* which of them */
    POD_REPLICA_JOB,  /* of Kubeflow's operators */
    POD_REPLICA_TYPE,
    POD_REPLICA_INDEX,
    /* annotations */
    POD_SIZE,
    POD_CARDS,
    POD_ALIGN,
    POD_EXCLUSIVE,
    POD_ARCH,
    POD_DEVICES,
    POD_PAIR_GPUS,
    POD_PAIR_NICS,
    POD_PAIR_CPUS,
    POD_PAIR_MEMORY,
    POD_WITHIN,
    POD_PREFER_WITHIN,
    POD_PREFER_ALIGN,
    POD_SHAPES,
    POD_BUDDY,
    POD_CARD_LOST,
    POD_OWN_CARDS, /* in place of the resources of these names */
    POD_OWN_CORES,
    POD_OWN_MEMORY,
    POD_INDEX_ANNOTATION,
    /* spec */
    POD_GROUP,
    POD_TEXT_COUNT
};

/* Resources: ours, then those that stand for GPUs in the caller's order. */
enum pod_resource {
    POD_CARD,
    POD_CORES,
    POD_MEMORY,
    POD_CPU,         /* in thousandths */
    POD_HOST_MEMORY, /* in KiB */
    POD_GPUS,
    POD_RESOURCE_COUNT = POD_GPUS + GPU_RESOURCES_MAX
};

struct pod {
    struct jtext text[POD_TEXT_COUNT]; /* data NULL: absent; borrowed from
                                        * the JSON */
    int64_t priority;
    uint64_t rights; /* beyond what every pod has: bits of card_rights.h */
    int64_t take[POD_RESOURCE_COUNT]; /* effective requests; each quantity
                                       * is at most UINT32_MAX, of memory so
                                       * many MiB */
    struct error bad; /* of the first quantity that is none; code 0: none */
};

/* Read the pod under the cursor, with the names of the resources that stand
 * for GPUs.  0, or -EINVAL as demand_read() has it. */
int pod_read(struct jscan *s,
             const char (*gpu_resources)[GPU_RESOURCE_NAME_MAX + 1],
             unsigned n_gpu_resources, struct pod *ret_pod, struct error *err);

/* What errors call a text: `metadata.labels["biga.dev/role"]`. */
const char *pod_text_path(enum pod_text text);
/* The key alone, "biga.dev/role"; of a resource that is no GPU, its name. */
const char *pod_text_key(enum pod_text text);
const char *pod_resource_key(enum pod_resource resource);

/* Digits, then nothing or one of k M G Ki Mi Gi; false when it is none, or
 * more than UINT32_MAX. */
bool pod_parse_quantity(const char *data, size_t size, int64_t *ret_value);
/* CPUs as Kubernetes writes them ("2", "1.5", "500m", "1e3"), in thousandths;
 * finer ones count up. False when it is none, or more than UINT32_MAX. */
bool pod_parse_cpus(const char *data, size_t size, int64_t *ret_milli);
/* Memory as Kubernetes writes it ("16Gi", "1.5G", "1e9", bytes without a
 * suffix), in KiB; finer ones count up.  False when it is none, or more than
 * UINT32_MAX MiB. */
bool pod_parse_memory(const char *data, size_t size, int64_t *ret_kib);

#endif
