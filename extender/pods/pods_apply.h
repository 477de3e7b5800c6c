/* pods_apply - the body of a request to apply as changes to be made: Pods,
 * ConfigMaps, Secrets and Lists of them, as JSON documents one after the
 * other.  Pure but for the uids of new pods. */
#ifndef BIGA_EXTENDER_PODS_PODS_APPLY_H
#define BIGA_EXTENDER_PODS_PODS_APPLY_H

#include "extender/pods/pods.h"

/* What is to be applied; each change is of kind PODS_APPLY or CONFIG_APPLY. */
struct pods_body {
    struct pod_change *changes;
    size_t n, cap;
};
void pods_body_fini(struct pods_body *b);

/* All of it, or -EINVAL with the document ("document 2 (Pod default/x): "),
 * the path and the value. */
int pods_body_read(const char *data, size_t size,
                   const struct demand_config *config,
                   struct pods_body *ret_body, struct error *err);

/* A random uid (version 4 of RFC 9562). */
void pods_new_uid(char ret_uid[PODS_UID_SIZE]);

#endif
