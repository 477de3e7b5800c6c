/* applied_set - all that was applied, at one time: immutable, ref-counted. */
#ifndef BIGA_EXTENDER_PODS_APPLIED_SET_H
#define BIGA_EXTENDER_PODS_APPLIED_SET_H

#include "extender/pods/applied_object.h"

struct pod_set {
    atomic_uint refs;
    uint64_t version; /* grows with each change, also of a status; from another
                       * number after each start */
    struct applied_pod **pods; /* by namespace, name */
    size_t n_pods, pods_cap;
    uint8_t *states; /* of `pods`: pod_state_shown(), place or not */
    struct applied_pod **by_uid;
    struct applied_pod **by_job; /* those of jobs, by namespace, job, name */
    uint8_t *job_states;         /* of `by_job` (job_states.h) */
    size_t n_by_job, by_job_cap;
    struct applied_config **configs; /* by namespace, kind, name */
    size_t n_configs, configs_cap;
};
struct pod_set *pod_set_ref(struct pod_set *s);
void pod_set_unref(struct pod_set *s); /* NULL allowed */
DEFINE_CLEANUP(pod_set, struct pod_set *, pod_set_unref)

/* Borrowed from the set; NULL when there is none. */
struct applied_pod *pod_set_find(const struct pod_set *s, const char *namespace,
                                 const char *name);
struct applied_pod *pod_set_find_uid(const struct pod_set *s, const char *uid);
/* The first that is not below these names, of `pods` and of `by_job`; `past`: the
 * first that is above, of `by_job` that is of another job. */
size_t pod_set_from(const struct pod_set *s, const char *namespace,
                    const char *name, bool past);
size_t pod_set_job_from(const struct pod_set *s, const char *namespace,
                        const char *job, bool past);
/* Where the job ends that begins there. */
size_t pod_set_job_end(const struct pod_set *s, size_t first);
/* In which states they are, each as 1 << enum pod_state. */
unsigned pod_set_job_states(const struct pod_set *s, size_t first, size_t end);
/* Add to what is decided on what `p`, which goes with it, asks: what the node
 * has to run, and what an xPU pod needs of the cards of its pair. */
void applied_pod_join(const struct applied_pod *p, struct demand *demand);
/* What is decided on to place it: its demand, joined with those of its pair,
 * or of its job when that is planned as a whole. */
void pod_set_demand(const struct pod_set *s, const struct applied_pod *p,
                    struct demand *ret_demand);
struct applied_config *pod_set_config(const struct pod_set *s, bool secret,
                                      const char *namespace, const char *name);
/* What podspec_parse() takes files and variables from; borrows the set. */
struct podspec_source pod_set_source(const struct pod_set *s);

#endif
