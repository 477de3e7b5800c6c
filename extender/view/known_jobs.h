/* known_jobs - all jobs, one after the other, as their places and their pods
 * tell of them. */
#ifndef BIGA_EXTENDER_VIEW_KNOWN_JOBS_H
#define BIGA_EXTENDER_VIEW_KNOWN_JOBS_H

#include <stdbool.h>
#include <stddef.h>

#include "extender/state/alloc_order.h"
#include "extender/view/job_view.h"

/* Jobs by their places and by their pods, both in the order of their names. */
struct known_jobs {
    struct snapshot *snapshot;
    struct alloc_order *order;
    const char *namespace; /* NULL: of all */
    struct jobs_told told;
    size_t at; /* the next that has places */
    bool is_told;
    unsigned pod_states;    /* if so: of its pods, as job_name_f has them */
    struct job_name name;   /* of the one at hand, */
    struct job_parts parts; /* and once it is read, these */
    struct job_told
        *completed; /* what of them may be completed; NULL: nothing */
    struct job_told told_of;
    unsigned asked;
};

/* Those behind a name (NULL: all) of a namespace (NULL: of all), which are
 * borrowed.  Takes snapshot and order over. */
void known_jobs_init(struct known_jobs *k, const struct pod_source *source,
                     struct snapshot *s, struct alloc_order *order,
                     const char *namespace, const struct job_name *behind);
/* The next job is at hand, by its name alone; false at the end. */
bool known_jobs_next(struct known_jobs *k);
/* May known_jobs_state() be that?  Told without reading it. */
bool known_jobs_may_be(const struct known_jobs *k, enum job_state state);
/* Read it; false: it has gone meanwhile. */
bool known_jobs_read(struct known_jobs *k);
/* The state of its view, by what is told of it and by its places; NULL: nothing,
 * or none. */
enum job_state known_job_state(const struct job_told *told,
                               const struct alloc_job *places);
/* The same of what was read. */
enum job_state known_jobs_state(const struct known_jobs *k);
void known_jobs_fini(struct known_jobs *k);

/* One job alone, which is at hand at once and is read. */
struct known_job {
    struct snapshot *snapshot;
    const struct allocation **members;
    struct job_parts parts;
    struct job_told told;
};
/* False: it is not known, and there is nothing to free.  Takes the snapshot
 * over, also then. */
bool known_job_init(struct known_job *k, const struct pod_source *source,
                    struct snapshot *s, const struct job_name *name);
void known_job_fini(struct known_job *k);

#endif
