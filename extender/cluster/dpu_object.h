/* dpu_object - what a DPU operator says of one DPU, in its own object: a DPU of
 * NVIDIA's DPF (provisioning.dpu.nvidia.com/v1alpha1), or a DataProcessingUnit
 * of the OpenShift DPU operator (config.openshift.io/v1).  Pure. */
#ifndef BIGA_EXTENDER_CLUSTER_DPU_OBJECT_H
#define BIGA_EXTENDER_CLUSTER_DPU_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

#include "extender/state/card_bars.h"
#include "lib/base/error.h"

enum dpu_kind { DPU_OF_DPF, DPU_OF_OPENSHIFT, DPU_KINDS };

enum { DPU_NAME_MAX = 253, DPU_NAMESPACE_MAX = 63 };

struct dpu_object {
    char namespace[DPU_NAMESPACE_MAX + 1]; /* "": it has none */
    char name[DPU_NAME_MAX + 1];
    char node[DPU_NAME_MAX + 1]; /* its host; "": it is of no host */
    bool ready;
    struct card_bar bar; /* which card; unless it is ready, why not */
};

/* 0; or -EINVAL, and the error names field and value, with `ret_dpu` untouched
 * but for its namespace and name, as far as they could be read.
 *
 * A DPU of DPF is ready with the phase Ready (none is Initializing, as its CRD
 * says), no condition Ready that is not True, and no operational condition
 * OperationalReady that is False.  A DataProcessingUnit is ready with a
 * condition Ready that is True; one of the DPU's own side is of no host. */
int dpu_object_read(enum dpu_kind kind, const char *json, size_t size,
                    struct dpu_object *ret_dpu, struct error *err);

#endif
