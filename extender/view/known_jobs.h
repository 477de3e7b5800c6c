/* known_jobs - all jobs, one after the other, as their places and their pods
 * tell of them. */
#ifndef BIGA_EXTENDER_VIEW_KNOWN_JOBS_H
#define BIGA_EXTENDER_VIEW_KNOWN_JOBS_H

#include <stdbool.h>
#include <stddef.h>

#include "extender/view/job_view.h"

/* Jobs by their places and by their pods, both in the order of their names. */
struct known_jobs {
    struct snapshot *snapshot;
    const struct allocation **members;
    size_t n;
    struct job_told *told;
    size_t n_told, told_cap;
    size_t at_member, at_told; /* of the next */
    struct job_parts parts;    /* of the one at hand, and what of them may be */
    struct job_told *completed; /* completed; NULL: nothing */
    unsigned asked;
};

/* Of a namespace, or one of it (NULL: all).  Takes the snapshot over. */
void known_jobs_init(struct known_jobs *k, const struct pod_source *source,
                     struct snapshot *s, const char *namespace,
                     const char *job);
/* The next job is at hand; false at the end. */
bool known_jobs_next(struct known_jobs *k);
void known_jobs_fini(struct known_jobs *k);

#endif
