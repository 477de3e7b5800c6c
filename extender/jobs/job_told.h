/* job_told - jobs as their pods make them, one after the other.  Where their
 * places are is the snapshot's to say. */
#ifndef BIGA_EXTENDER_JOBS_JOB_TOLD_H
#define BIGA_EXTENDER_JOBS_JOB_TOLD_H

#include <stddef.h>

#include "extender/jobs/job_state.h"
#include "extender/pods/pod_source.h"
#include "lib/base/mem.h"

/* Those that a source tells of, and those that are over and gone, in the order
 * of their names; as far as they are seen of the snapshot.  Source and snapshot
 * are borrowed. */
struct jobs_told {
    const struct pod_source *source;
    const struct snapshot *snapshot;
    const struct job_name *only; /* NULL: all */
    struct arena texts;
    struct job_pod *asking; /* those of each_asking(), in order */
    size_t n_asking, asking_cap, at_asking;
    struct job_told *ended; /* over and gone, in order */
    size_t n_ended, ended_cap, at_ended;
    struct arena names_texts;
    struct job_states {
        struct job_name name;
        unsigned states; /* of its pods, as job_name_f has them */
    } * names;           /* some of those that each_job() gives, */
    size_t n_names, names_cap, at_name;
    bool has_all; /* the last of them */
    struct job_name behind;
    char last[2][DEMAND_NAME_MAX + 1];
    struct job_name next;
    unsigned next_states;
};

/* Those behind that name, which is borrowed; {"", ""}: all. */
void jobs_told_begin(struct jobs_told *t, const struct pod_source *source,
                     const struct snapshot *s, const struct job_name *behind);
/* The next name; NULL: there is none.  Borrowed until the call after that of
 * jobs_told_pass(), which goes on to the one behind it.  `next_states`: in which
 * states its pods are, as job_name_f has them. */
const struct job_name *jobs_told_peek(struct jobs_told *t);
void jobs_told_pass(struct jobs_told *t);
/* A job by its name; false: it is gone, or is not known. */
bool jobs_told_get(const struct jobs_told *t, const struct job_name *job,
                   struct job_told *ret_told);
void jobs_told_fini(struct jobs_told *t);

/* One job alone; false: it is not known, or not seen. */
bool job_told_read(const struct pod_source *source, const struct snapshot *s,
                   const struct job_name *job, struct job_told *ret_told);

#endif
