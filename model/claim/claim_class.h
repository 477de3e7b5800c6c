/* claim_class - a DeviceClass (resource.k8s.io/v1): which devices requests
 * that name it may get.  Pure. */
#ifndef BIGA_MODEL_CLAIM_CLAIM_CLASS_H
#define BIGA_MODEL_CLAIM_CLAIM_CLASS_H

#include "model/claim/claim_selectors.h"

enum { CLAIM_CLASS_MAX = 1 << 20 }; /* bytes of its JSON */

struct claim_class {
    char name[CLAIM_NAME_MAX + 1];
    char extended_resource[CLAIM_NAME_MAX + 1]; /* "" none */
    size_t n_selectors;
    struct claim_cel *selectors[CLAIM_SELECTORS_MAX];
    /* code 0, or which selector cannot be read and why: nothing can be told
     * of its devices then */
    struct error bad;
};

/* Read a DeviceClass.  0, and the caller destroys it; a selector that cannot
 * be read leaves `bad` set.  -EINVAL: no JSON, no name. */
int claim_class_read(const char *json, size_t size,
                     struct claim_class **ret_class, struct error *err);
void claim_class_destroy(struct claim_class *class); /* NULL allowed */
DEFINE_CLEANUP(claim_class, struct claim_class *, claim_class_destroy)

#endif
