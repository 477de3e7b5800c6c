/* pod_labels - the labels of a pod as it was applied, or as the API server
 * tells it.  Pure. */
#ifndef BIGA_EXTENDER_PODS_POD_LABELS_H
#define BIGA_EXTENDER_PODS_POD_LABELS_H

#include <stddef.h>

#include "lib/base/jscan.h"

/* The object metadata.labels of a Pod as it stands in its JSON, which the
 * caller has checked before; size 0: it has none. */
struct jtext pod_labels_find(const char *json, size_t size);

#endif
