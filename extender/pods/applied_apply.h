/* applied_apply - the body of a request to apply as changes to be made: Pods,
 * Jobs (job_object.h), ConfigMaps, Secrets and Lists of them, as JSON documents one after the
 * other.  Pure but for the uids of new pods. */
#ifndef BIGA_EXTENDER_PODS_APPLIED_APPLY_H
#define BIGA_EXTENDER_PODS_APPLIED_APPLY_H

#include "extender/pods/applied.h"

/* What is to be applied; each change is of kind APPLIED_APPLY or CONFIG_APPLY. */
struct applied_body {
    struct pod_change *changes;
    size_t n, cap;
};
void applied_body_fini(struct applied_body *b);

/* All of it, or -EINVAL with the document ("document 2 (Pod default/x): "),
 * the path and the value. */
int applied_body_read(const char *data, size_t size,
                      const struct demand_config *config,
                      struct applied_body *ret_body, struct error *err);

#endif
