/* claim_template - a ResourceClaimTemplate (resource.k8s.io/v1): what the
 * claims that are made of it look like.  Pure. */
#ifndef BIGA_MODEL_CLAIM_CLAIM_TEMPLATE_H
#define BIGA_MODEL_CLAIM_CLAIM_TEMPLATE_H

#include "model/claim/claim_spec.h"

enum { CLAIM_TEMPLATE_MAX = 2 << 20 }; /* bytes of its JSON */

struct claim_template {
    const char *namespace, *name, *uid;
    /* of spec.metadata, JSON objects that a claim made of it gets; or "" */
    const char *labels, *annotations;
    struct claim_spec *spec; /* NULL: it cannot be read, and */
    struct error bad;        /* why */
    struct arena arena;      /* holds the texts */
};

/* 0, and the caller destroys it; -EINVAL: no JSON, no name. */
int claim_template_read(const char *json, size_t size,
                        struct claim_template **ret_template,
                        struct error *err);
void claim_template_destroy(struct claim_template *t); /* NULL allowed */
DEFINE_CLEANUP(claim_template, struct claim_template *, claim_template_destroy)

#endif
