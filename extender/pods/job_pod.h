/* job_pod - a pod that is Biga's as its source tells it: what jobs are counted
 * from, and what is pending. */
#ifndef BIGA_EXTENDER_PODS_JOB_POD_H
#define BIGA_EXTENDER_PODS_JOB_POD_H

#include <stdbool.h>
#include <stdint.h>

#include "extender/pods/applied_status.h"
#include "model/pod/demand.h"

/* All borrowed. */
struct job_pod {
    const char *namespace, *name, *uid, *job; /* job "": it is alone */
    enum pod_role role;
    int32_t pair, size;
    enum pod_state state;
    bool ready, deleting;
    bool gated; /* its gate is closed, and Biga's to open */
    bool told;  /* of one that is pending: `reason` says what it waits for, else
                * the pod is to be judged, or its source asked (find) */
    const char *reason, *message; /* "" none */
    /* seconds since 1970; 0: not, or not known */
    int64_t submitted_s, started_s, ended_s;
};

typedef void job_pod_f(void *arg, const struct job_pod *pod);

#endif
