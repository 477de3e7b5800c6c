/* pod_files - what of ConfigMaps and Secrets goes to a node with a pod: the keys
 * that the pod takes, and no others.  Pure. */
#ifndef BIGA_EXTENDER_PODS_POD_FILES_H
#define BIGA_EXTENDER_PODS_POD_FILES_H

#include "extender/pods/applied.h"
#include "lib/base/error.h"
#include "lib/base/str.h"

/* Can the pod have what it asks for?  As podspec_parse() says; -EFBIG also when
 * it is more than a node takes (PODFEED_FILES_MAX). */
int pod_files_check(const struct pod_set *set, const struct applied_pod *p,
                    struct error *err);

/* The same of all pods that are to be applied, with the ConfigMaps and Secrets
 * that are to be: -EFBIG names the pod, what it would have, and the limit.
 * Everything else may still be set right later. */
int pod_files_check_size(const struct pod_set *set,
                         const struct pod_change *changes, size_t n,
                         struct error *err);

/* As a JSON array, see schema/actuator.md.  -EFBIG: nothing is written.  What is
 * not there is left out: the node will say so. */
int pod_files_write(const struct pod_set *set, const struct applied_pod *p,
                    const char *node, struct str *out, struct error *err);

#endif
