/* claim_status - a ResourceClaim (resource.k8s.io/v1) as it is now: whose it
 * is, what it asks for, and what it was given.  Pure. */
#ifndef BIGA_MODEL_CLAIM_CLAIM_STATUS_H
#define BIGA_MODEL_CLAIM_CLAIM_STATUS_H

#include "model/claim/claim_spec.h"

enum {
    CLAIM_RESULTS_MAX = 256,    /* devices; Kubernetes allows 32 */
    CLAIM_RESERVED_MAX = 1024,  /* consumers; Kubernetes allows 256 */
    CLAIM_OBJECT_MAX = 4 << 20, /* bytes of its JSON */
};

/* The annotation that the resourceclaim controller puts on a claim that it
 * makes of a pod's template: the pod's name for it. */
#define CLAIM_POD_CLAIM_KEY "resource.kubernetes.io/pod-claim-name"
/* The annotation of a claim that Biga made: whose planning it follows. */
#define CLAIM_PINNED_KEY "biga.dev/pinned"

/* A device that the claim was given. */
struct claim_result {
    const char *request, *driver, *pool, *device;
    bool admin;        /* it takes nothing from others */
    const char *share; /* shareID of a device in several claims, or "" */
    const struct claim_capacity *consumed;
    size_t n_consumed;
};

struct claim_pod {
    const char *name, *uid;
};

struct claim_status {
    const char *namespace, *name, *uid, *version;
    bool deleting;
    struct claim_pod owner;  /* the pod that is its controller; uid "" none */
    const char *pod_claim;   /* CLAIM_POD_CLAIM_KEY, "" none */
    const char *pinned;      /* CLAIM_PINNED_KEY, "" none */
    bool is_pinned;          /* it has that annotation, also when it is empty */
    struct claim_spec *spec; /* NULL: it cannot be read, and */
    struct error bad;        /* why; what was given is read all the same */
    bool allocated;
    const char *node; /* that the allocation names alone, else "" */
    const struct claim_result *results;
    size_t n_results;
    const struct claim_pod *reserved; /* pods; of other consumers the number */
    size_t n_reserved, n_other_reserved;
    struct arena arena;
};

/* Read a ResourceClaim.  0, and the caller destroys it; -EINVAL with the path
 * and what is wrong: no JSON, a name that is missing, a cap that is passed. */
int claim_status_read(const char *json, size_t size,
                      struct claim_status **ret_status, struct error *err);
void claim_status_destroy(struct claim_status *status); /* NULL allowed */
DEFINE_CLEANUP(claim_status, struct claim_status *, claim_status_destroy)

#endif
