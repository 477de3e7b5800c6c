/* kube_pod - a Pod as the API server has it: what the pod contract says of it
 * (model/pod/demand.h) and what has become of it.  Read without a DOM; lenient
 * about all that is Kubernetes' own. */
#ifndef BIGA_EXTENDER_PODS_KUBE_POD_H
#define BIGA_EXTENDER_PODS_KUBE_POD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/state/allocation.h"
#include "lib/base/error.h"
#include "lib/base/jscan.h"
#include "model/pod/demand.h"
#include "model/pod/pod_keys.h"

/* Conditions that pair_rules.h writes: on a host pod, whether its xPU pods are all
 * there; on an xPU pod, with the uid of its host pod as message. */
#define KUBE_POD_XPU_READY WORD_XPU_READY
#define KUBE_POD_PAIRED WORD_PAIRED
/* One that card_losses.h writes: on a pod on a card, whether that is lost. */
#define KUBE_POD_CARD_LOST "biga.dev/CardLost"
/* One that waker.h writes: on a pod that was refused, that there is room. */
#define KUBE_POD_ROOM "biga.dev/Room"
#define KUBE_POD_NO_BUDDY "BuddyFailed" /* a reason of the first */
/* The scheduling gate of pods that Biga plans before kube-scheduler sees them
 * (extender/gate). */
#define KUBE_POD_GATE WORD_PLACE

enum pod_phase {
    POD_PENDING,
    POD_RUNNING,
    POD_SUCCEEDED,
    POD_FAILED,
    POD_PHASE_UNKNOWN
};

struct kube_pod {
    struct jtext json;    /* the whole of it; borrowed */
    struct demand demand; /* names and uid are always set */
    bool broken;          /* breaks the contract; `why` says how */
    struct error why;
    struct error odd; /* how a key of it is none of the contract's (pod_keys.h);
                       * code 0: all are */
    char node[DEMAND_NAME_MAX + 1]; /* "" not bound */
    enum pod_phase phase;
    bool deleting;   /* metadata.deletionTimestamp is set */
    bool gated;      /* spec.schedulingGates is not empty */
    bool place_gate; /* KUBE_POD_GATE is among them */
    char other_gate[DEMAND_NAME_MAX + 1]; /* another one of them; "" none */
    bool controlled; /* it has a controller, which makes it anew */
    char controller_uid[DEMAND_UID_MAX + 1]; /* of that; "" none */
    bool never_preempts;     /* spec.preemptionPolicy is Never */
    bool unschedulable;      /* PodScheduled is False, Unschedulable: the
                              * scheduler has put it aside */
    struct jtext allocation; /* the annotation as it stands (escaped), data
                              * NULL: none; borrowed from the JSON */
    char nominated[DEMAND_NAME_MAX + 1]; /* status.nominatedNodeName; "" */
    char buddy[DEMAND_NAME_MAX + 1];     /* annotation biga.dev/buddy */
    char owner_uid[DEMAND_UID_MAX + 1];  /* of an owner of kind Pod; "" */
    char owner_name[DEMAND_NAME_MAX + 1];
    char scheduler[DEMAND_NAME_MAX + 1]; /* spec.schedulerName */
    uint32_t restarts;                   /* of its containers together */
    /* What the first container that waits waits for, else how one ended, else
     * what the pod itself says; data NULL: nothing; borrowed from the JSON. */
    struct jtext reason, message;
    struct jtext address; /* status.podIP, in the same way */
    bool ready;           /* condition Ready is True */
    /* our own conditions (pair_rules.h): the host pod's uid that
     * biga.dev/Paired names, "" none; and biga.dev/XpuReady: 1 True, 0 False,
     * -1 absent, and if its reason is KUBE_POD_NO_BUDDY the hash of its message,
     * else 0 */
    char paired_uid[DEMAND_UID_MAX + 1];
    int8_t xpu_ready;
    uint64_t no_buddy;
    int8_t card_lost;       /* condition biga.dev/CardLost, in the same way */
    char card_since[32];    /* its lastTransitionTime; "" none */
    struct jtext card_text; /* its message; borrowed */
    /* metadata.creationTimestamp, status.startTime, and the latest finishedAt of
     * its containers; "" none */
    char created[32], started[32], finished[32];
    int64_t patience_s; /* annotation biga.dev/card-lost (patience.h); -1:
                          * it says nothing */
    /* what kube-scheduler charges its node: the larger of all containers
     * (with sidecars) and each init container, plus overhead */
    int64_t cpu_milli, memory_kib;
};

/* -EINVAL when it is no sound JSON or has no name, namespace or uid. */
int kube_pod_read(const char *json, size_t size,
                  const struct demand_config *config, struct kube_pod *ret_pod,
                  struct error *err);
/* Succeeded or Failed: its allocation is free, its node charges nothing. */
bool kube_pod_is_finished(const struct kube_pod *pod);
/* Not bound yet, but Biga has opened its gate: it has its allocation. */
bool kube_pod_is_opened(const struct kube_pod *pod);
/* The allocation that its annotation has; -ENOENT: it has no annotation. */
int kube_pod_allocation(const struct kube_pod *pod,
                        struct allocation **ret_allocation, struct error *err);

#endif
