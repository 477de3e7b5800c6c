/* demand - what one pod asks, read from its labels, annotations and
 * resources by the pod contract (schema/pod.md).
 *
 * Read in place from the pod's JSON, without a DOM.  Names live in the
 * demand itself, so that it may be kept after the request.  Pure. */
#ifndef BIGA_MODEL_POD_DEMAND_H
#define BIGA_MODEL_POD_DEMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/jscan.h"
#include "model/pod/gpu_resource.h"
#include "model/topo/device_set.h"
#include "model/topo/topo.h"

enum {
    DEMAND_NAME_MAX = 253,
    DEMAND_NAMESPACE_MAX = 63,
    DEMAND_UID_MAX = 63,
    DEMAND_ARCH_MAX = 15,
    DEMAND_PAIR_MAX = 999999, /* highest index of a pair */
    DEMAND_SIZE_MAX = 65536,
    DEMAND_SHAPES_MAX = 8,
    DEMAND_ANYWHERE = -1, /* no fabric tier is asked for */
};

/* What the pairs first … last of a job ask, when they differ (annotation
 * biga.dev/shapes).  A pod whose own pair is listed agrees with its entry,
 * which also says what the pod leaves open. */
struct pair_shape {
    int32_t first, last;
    uint8_t cards, gpus, nics;
    uint8_t align; /* enum relation */
    bool has_card_need;
    uint32_t card_cores, card_memory_mib;
    uint32_t cpu_milli;
    uint32_t memory_mib; /* of the host pod; 0: not counted */
};

/* What the node's own advertiser has to run of an applied pod and those that
 * belong to it. */
enum { RUNS_HOST = 1 << 0, RUNS_CARDS = 1 << 1 };

enum pod_role { ROLE_NONE, ROLE_HOST, ROLE_XPU, ROLE_SERVICE };
const char *pod_role_name(enum pod_role role); /* "host" …, "" for none */

struct demand {
    char name[DEMAND_NAME_MAX + 1];
    char namespace[DEMAND_NAMESPACE_MAX + 1];
    char uid[DEMAND_UID_MAX + 1]; /* "" when the pod has none yet */
    enum pod_role role;           /* ROLE_NONE: not ours; nothing below set */

    char job[DEMAND_NAME_MAX + 1]; /* "" : the pod alone */
    int32_t pair;                  /* index of the pair in its job */
    int32_t size;                  /* pairs in the job, all or none */
    bool grouped; /* in a PodGroup: the scheduler tries all of its pods before
                   * the first is bound */

    /* the part a decision depends on (with role) */
    uint8_t cards;        /* this pod is decided on, 1…TOPO_CARDS_MAX: all of
                          * its pair for a host pod, its own otherwise */
    uint8_t pair_cards;   /* of the whole pair, >= cards; decides nothing by
                          * itself. Equal to cards but for an xPU pod that
                          * takes a part of its pair's cards */
    uint8_t gpus;         /* of the host pod, else 0; UINT8_MAX: that or more */
    uint8_t pair_gpus;    /* of the pair's host pod: equal to gpus there; an
                          * xPU pod's annotation biga.dev/gpus */
    uint8_t nics;         /* compute NICs of the host pod, else 0 */
    uint8_t pair_nics;    /* of the pair's host pod, as pair_gpus */
    uint32_t cpu_milli;   /* CPUs of the pair's host pod, in thousandths. An
                          * xPU pod's are what annotation biga.dev/cpus says
                          * of its pair and decide nothing before
                          * demand_pair(); 0 for services */
    uint32_t memory_mib;  /* the host pod's memory, in the same way; it only
                           * matters to plans */
    uint8_t align;        /* enum relation: the worst acceptable */
    uint8_t prefer_align; /* enum relation: a pair that is worse counts as
                           * unaligned; RELATION_PIX: worse than the best
                           * that the node's hardware offers */
    int8_t within;        /* fabric tier that must hold the job, or */
    int8_t prefer_within; /* should; DEMAND_ANYWHERE: not asked */
    bool exclusive;       /* its cards are not shared */
    bool every_gpu; /* align is to hold whichever GPUs of the node it gets */
    bool gpus_by_plugin; /* a device plugin chooses which GPUs it gets; decides
                          * nothing by itself */
    bool by_claim;       /* its cards come by a ResourceClaim; not read from the
                         * pod itself */
    uint8_t runs;       /* RUNS_… bits; 0: others run it, as a kubelet does */
    bool has_card_need; /* card_cores or card_memory_mib were stated */
    uint32_t card_cores; /* of each card; 0 none stated. A host pod's are
                          * what each card must hold for its xPU pods */
    uint32_t card_memory_mib;
    char arch[DEMAND_ARCH_MAX + 1]; /* the cards' architecture, "" any */
    struct device_sets devices;     /* that the cards have to have */
    uint64_t rights; /* on its cards, beyond what every pod has: bits of
                      * card_rights.h.  Only those who run pods that were
                      * applied are known to give them */
    int64_t priority;

    uint8_t n_shapes; /* of the pairs that annotation biga.dev/shapes lists */
    struct pair_shape shapes[DEMAND_SHAPES_MAX]; /* by first, disjoint */
};

/* What the reader needs to know beside the pod. */
struct demand_config {
    /* extended resources that stand for devices of kind gpu */
    char gpu_resources[GPU_RESOURCES_MAX][GPU_RESOURCE_NAME_MAX + 1];
    uint8_t n_gpu_resources;
    bool device_plugins; /* of kubelets choose which GPU a pod gets of these */
    bool every_gpu;      /* then align holds for whichever it chooses */
};
void demand_config_default(struct demand_config *config); /* NVIDIA, AMD */

/* Read the pod that comes next under the cursor.
 *
 * Returns 0; -EDOM when the pod breaks our contract, with the path and the
 * value (`metadata.annotations["biga.dev/cards"]: is "x", must be …`); or
 * -EINVAL when the request is at fault: malformed JSON (the error then has
 * the position), a duplicate key among the members it reads, a member of the
 * wrong JSON type.  `err` is always filled; after -EINVAL the cursor may be
 * anywhere.
 * A pod without a role is no error, whatever else of the contract it
 * carries; absent and null are the same.  After 0 and -EDOM the cursor is
 * behind the pod; after -EDOM `*ret_demand` says which pod it is (as far as
 * that is sound) and nothing else. */
int demand_read(struct jscan *s, const struct demand_config *config,
                struct demand *ret_demand, struct error *err);

/* The key of its pair, "NS/JOB/INDEX" (or "NS/NAME" of a pod alone), which a
 * host pod and its xPU pods share; a service is alone.  Names hold no '/', so
 * keys of different pairs differ. */
enum { DEMAND_PAIR_KEY_MAX = DEMAND_NAME_MAX + DEMAND_NAMESPACE_MAX + 16 };
void demand_pair_key(const struct demand *demand,
                     char ret_key[DEMAND_PAIR_KEY_MAX]);

/* What the whole pair of a host or xPU pod asks, as a host pod's demand:
 * all its cards, its GPUs, NICs, CPUs, memory and need.  `rank` is the pair of
 * the job that is meant: the pod's own, or another; they ask the same unless
 * `shapes` says otherwise (of the pod's own pair too: its entry has what all
 * its xPU pods take together).  Name and uid are those of the pod. */
void demand_pair(const struct demand *pod, int32_t rank,
                 struct demand *ret_pair);
/* The same but for names, uid and shapes, of which it has none: `pod` lies
 * anywhere in memory, and most of it is those. */
void demand_pair_nameless(const struct demand *pod, int32_t rank,
                          struct demand *ret_pair);
/* Is the pod placed by planning its whole job (or whole pair)?  Else it is
 * decided by itself. */
bool demand_is_planned(const struct demand *pod);

#endif
