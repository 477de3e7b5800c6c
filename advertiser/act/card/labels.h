/* labels - the labels of the sandboxes and containers that Biga makes, by which
 * it finds them again. */
#ifndef BIGA_ADVERTISER_ACT_CARD_LABELS_H
#define BIGA_ADVERTISER_ACT_CARD_LABELS_H

#include <stddef.h>

#include "advertiser/cri/cri.h"

#define ACT_LABEL_CLUSTER "biga.dev/cluster"
#define ACT_LABEL_NODE "biga.dev/node"
#define ACT_LABEL_UID "biga.dev/pod-uid"
#define ACT_LABEL_ATTEMPT "biga.dev/attempt"
#define ACT_LABEL_CONTAINER "io.kubernetes.container.name"

/* The value of `key`, "" when it is not there. */
const char *label_find(const struct cri_pair *list, size_t n, const char *key);

#endif
