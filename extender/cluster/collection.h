/* collection - is in lib/kube now. */
#ifndef BIGA_EXTENDER_CLUSTER_COLLECTION_H
#define BIGA_EXTENDER_CLUSTER_COLLECTION_H

#include "lib/kube/collection.h"

#endif
