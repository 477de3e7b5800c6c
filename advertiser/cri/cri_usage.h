/* cri_usage - what containers use, as their runtime tells. */
#ifndef BIGA_ADVERTISER_CRI_CRI_USAGE_H
#define BIGA_ADVERTISER_CRI_CRI_USAGE_H

#include "advertiser/cri/cri_endpoint.h"

struct cri_usage {
    char id[CRI_ID_MAX + 1];
    struct cri_pair *labels;
    size_t n_labels;
    uint64_t cpu_ns; /* of processors, since it began */
    int64_t at_ns;   /* when that was so, by the runtime's clock; 0: unknown */
    uint64_t memory; /* bytes of its working set */
};
struct cri_usages {
    struct cri_usage *list;
    size_t n;
};
void cri_usages_fini(struct cri_usages *u);
/* Of all containers that run there; those of which it says nothing are left
 * out. */
int cri_list_usage(struct cri *c, unsigned ms, struct cri_usages *ret_list,
                   struct error *err);

#endif
