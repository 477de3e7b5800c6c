/* job_object - the Pods of a Job of Kubernetes (batch/v1) that was applied, one
 * for each index, as its controller there makes them: names and host names
 * JOB-INDEX, labels and annotation of the job and the index, and
 * JOB_COMPLETION_INDEX in the environment.  Pure. */
#ifndef BIGA_EXTENDER_PODS_JOB_OBJECT_H
#define BIGA_EXTENDER_PODS_JOB_OBJECT_H

#include "lib/base/error.h"
#include "lib/base/json.h"

enum { JOB_OBJECT_PODS_MAX = 4096 };

/* Label of all Pods of a Job, with its name, and of their buddies. */
#define JOB_OBJECT_LABEL "batch.kubernetes.io/job-name"
/* Does a pod that was applied, as JSON, come of one? */
bool job_object_made(const char *pod);

/* Takes the pod over; not 0 ends it. */
typedef int job_object_f(void *arg, cJSON *pod);

/* 0, what `visit` has returned, or -EINVAL with path and value: all pairs run
 * at once, and a pod that failed is not made anew, so what asks for something
 * else is refused. */
int job_object_each(const cJSON *job, job_object_f *visit, void *arg,
                    struct error *err);

#endif
