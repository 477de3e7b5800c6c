/* job_told - all jobs as their pods make them.  Where their places are is the
 * snapshot's to say. */
#ifndef BIGA_EXTENDER_JOBS_JOB_TOLD_H
#define BIGA_EXTENDER_JOBS_JOB_TOLD_H

#include <stddef.h>

#include "extender/jobs/job_state.h"
#include "extender/pods/pod_source.h"

struct jobs_told {
    struct job_told *list; /* by namespace and name */
    size_t n, cap;
};
void jobs_told_fini(struct jobs_told *t);

/* All jobs that a source tells of, or those of a namespace, or one (NULL: any),
 * with those that are over and gone; as far as they are seen of the snapshot. */
void jobs_told_read(const struct pod_source *source, const struct snapshot *s,
                    const char *namespace, const char *job,
                    struct jobs_told *ret_told);

#endif
