/* What the files of job.h share. */
#ifndef BIGA_EXTENDER_JUDGE_JOB_PRIVATE_H
#define BIGA_EXTENDER_JUDGE_JOB_PRIVATE_H

#include "extender/judge/job.h"

/* Is the place of this rank fixed? */
bool job_has_place(const struct job_input *in, uint32_t rank);
/* How many pods of that pod's job are nominated to nodes (moving_pods.h). */
size_t job_coming_count(const struct snapshot *snapshot,
                        const struct demand *pod);
/* Put other pairs of the pod's job that come to nodes there, beside those that
 * have their place: each for which its node has room in `in` gets that, the
 * others are counted in in->n_waiting.  `in` has the shapes, who is fixed (with
 * room for as many more as job_coming_count() says) and the cluster. */
void job_coming_take(struct job_input *in, const struct snapshot *snapshot,
                     const struct demand *pod);
/* In a plan for that: what they get is to be held for them, too. */
void job_coming_plan(const struct job_input *in, struct plan *plan);

#endif
