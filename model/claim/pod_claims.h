/* pod_claims - which claims a pod has, by its own JSON.  Pure. */
#ifndef BIGA_MODEL_CLAIM_POD_CLAIMS_H
#define BIGA_MODEL_CLAIM_POD_CLAIMS_H

#include "model/claim/claim_device.h"

enum {
    POD_CLAIMS_MAX = 32,          /* of a pod; Kubernetes names no limit */
    POD_CLAIMS_POD_MAX = 8 << 20, /* bytes of its JSON */
};

struct pod_claim {
    const char *name;     /* the pod's own for it */
    const char *claim;    /* spec: a ResourceClaim that is there, or "" */
    const char *template; /* spec: the ResourceClaimTemplate, or "" */
    const char *made;     /* status: the claim made of the template; "": none
                           * yet, or none is needed (made_known) */
    bool made_known;      /* the status has an entry */
    bool used;            /* a container of the pod uses it */
};

struct pod_claims {
    size_t n;
    struct pod_claim items[POD_CLAIMS_MAX];
    const char *extended; /* status: the claim that kube-scheduler made for
                           * extended resources, or "" */
    struct arena arena;
};

/* Read a Pod.  0, and the caller calls pod_claims_fini(); -EINVAL with the
 * path: no JSON, too many, a claim without a name. */
int pod_claims_read(const char *json, size_t size, struct pod_claims *ret,
                    struct error *err);
void pod_claims_fini(struct pod_claims *claims); /* zeroed: allowed */
#define cleanup_pod_claims __attribute__((__cleanup__(pod_claims_fini)))

/* By the pod's name for it, or NULL. */
const struct pod_claim *pod_claims_find(const struct pod_claims *claims,
                                        const char *name);

#endif
