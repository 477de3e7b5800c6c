/* job_pod - a pod that is Biga's as its source tells it: what jobs are counted
 * from, and what is pending. */
#ifndef BIGA_EXTENDER_PODS_JOB_POD_H
#define BIGA_EXTENDER_PODS_JOB_POD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

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

/* Which pods are asked for. */
struct pods_asked {
    const char *namespace; /* NULL: of any */
    const char *job;       /* of this job of it, no services; NULL: all */
    bool unsettled;        /* those that neither run nor are over, without
                            * `job`; others may be told of, too */
};

/* Borrowed; in the order of namespaces, then names. */
struct job_name {
    const char *namespace, *name;
};
/* `states`: of its pods, each as 1 << enum pod_state, where one that has got a
 * place may be pending or wanted; JOB_POD_STATES_ALL also: not known. */
#define JOB_POD_STATES_ALL (~0u)
typedef void job_name_f(void *arg, const struct job_name *job, unsigned states);
static inline int job_name_compare(const struct job_name *a,
                                   const struct job_name *b)
{
    if (a->namespace == b->namespace && a->name == b->name)
        return 0;
    int order = strcmp(a->namespace, b->namespace);
    return order ? order : strcmp(a->name, b->name);
}

/* It neither runs nor is over. */
static inline bool pod_state_is_unsettled(enum pod_state state)
{
    return state != POD_STATE_RUNNING && state != POD_STATE_GONE &&
           state != POD_STATE_FAILED;
}

#endif
