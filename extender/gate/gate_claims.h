/* gate_claims - pinned claims of a pod, as they are written: a claim with the
 * template's spec and the devices of the pod's allocation, in place of the one
 * that Kubernetes' controller has made.  kube-scheduler allocates it.  Pure.
 *
 * In this order, so that no claim without pins is allocated to a pod: the
 * controller has made its claim and named it; the new claim is created; the
 * pod's status names it; the old one is deleted; the gate is opened.  The
 * controller names one that the pod owns already, and makes another only when
 * there is none: what it has missed is the name alone, and it finds the new one
 * as soon as it hears that the old one is gone. */
#ifndef BIGA_EXTENDER_GATE_GATE_CLAIMS_H
#define BIGA_EXTENDER_GATE_GATE_CLAIMS_H

#include "extender/claims/claim_book.h"
#include "lib/base/str.h"
#include "model/pod/demand.h"

/* Kubernetes' own, by which its controller knows the claim of a pod. */
#define GATE_CLAIM_NAME "resource.kubernetes.io/pod-claim-name"

/* The name of a pod's claim with these pins: the same pins give the same name,
 * so what was created by a call without an answer is found again. */
void gate_claim_name(const struct demand *pod, const struct claim_book_pin *pin,
                     char ret_name[DEMAND_NAME_MAX + 1]);
/* The ResourceClaim to be POSTed, owned by the pod. */
void gate_claim_write(const struct demand *pod,
                      const struct claim_book_pin *pin, const char *name,
                      struct str *out);

/* A pinned claim that the pod's status names. */
struct gate_pinned {
    char pod_claim[DEMAND_NAME_MAX + 1]; /* the pod's own name for it */
    char claim[DEMAND_NAME_MAX + 1];
    char made[DEMAND_NAME_MAX + 1]; /* which it named in its place before; ""
                                     * none, or somebody else deletes it */
};
/* The strategic merge patch of the pod's status that names these claims; others
 * are left as they are.  And it is nominated to its node, which kube-scheduler
 * tries first: the pins would have it look at the devices of every node. */
void gate_claim_write_status(const struct demand *pod, const char *node,
                             const struct gate_pinned *pinned, size_t n,
                             struct str *out);

#endif
