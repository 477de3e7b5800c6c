/* ended_jobs - jobs whose pods are gone: how they ended, for a while.  In
 * memory.  Any thread. */
#ifndef BIGA_EXTENDER_JOBS_ENDED_JOBS_H
#define BIGA_EXTENDER_JOBS_ENDED_JOBS_H

#include "extender/jobs/job_state.h"
#include "extender/pods/job_pod.h"

enum {
    ENDED_JOBS_MAX = 1000,     /* the oldest makes room, */
    ENDED_PAIRS_MAX = 1 << 18, /* also when they have had so many pairs */
    ENDED_JOBS_S = 24 * 3600,  /* since the last of its pods was gone */
};

struct ended_jobs;
struct ended_jobs *ended_jobs_create(void);
void ended_jobs_destroy(struct ended_jobs *e); /* NULL allowed */

/* A pod is gone, as it was last; in any order.  Of a pair the last try counts.
 * One that was submitted after its job had ended begins another job of that
 * name. */
void ended_jobs_add(struct ended_jobs *e, const struct job_pod *pod,
                    int64_t now_s);
/* Those that are kept, in no order. */
typedef void ended_jobs_f(void *arg, const struct job_told *job);
void ended_jobs_each(struct ended_jobs *e, int64_t now_s, ended_jobs_f *visit,
                     void *arg);

#endif
