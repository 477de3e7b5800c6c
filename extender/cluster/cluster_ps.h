/* cluster_ps - how the pods of a cluster that are Biga's fare, as the API server
 * tells it, in the words of docs/cards.md where those are told: for `biga ps`
 * and `biga why`. */
#ifndef BIGA_EXTENDER_CLUSTER_CLUSTER_PS_H
#define BIGA_EXTENDER_CLUSTER_CLUSTER_PS_H

#include <stdatomic.h>

#include "extender/jobs/ended_jobs.h"
#include "extender/leader/pod_listener.h"
#include "extender/pods/job_pod.h"
#include "extender/state/scope.h"

/* One pod at one time; immutable. */
struct cluster_ps_pod {
    atomic_uint refs;
    char *namespace, *name, *uid, *job, *node, *address; /* "" none */
    char *reason, *message;                              /* the same */
    char *labels; /* the JSON object; "" none */
    enum pod_role role;
    int32_t pair, size;
    /* in seconds since 1970; 0: not, or not known */
    int64_t created_s, started_s, finished_s;
    bool waits; /* for a place, by what its message does not say */
    enum pod_state state;
    uint32_t restarts;
    bool ready, deleting, gated;
};
void cluster_ps_pod_unref(struct cluster_ps_pod *p); /* NULL allowed */
DEFINE_CLEANUP(cluster_ps_pod, struct cluster_ps_pod *, cluster_ps_pod_unref)

struct cluster_ps;
struct cluster_ps *cluster_ps_create(void);
void cluster_ps_destroy(struct cluster_ps *c); /* NULL allowed */
/* ctx is the struct cluster_ps. */
struct pod_listener cluster_ps_listener(struct cluster_ps *c);

/* Any thread.  Which of the pods. */
struct cluster_ps_filter {
    const struct scope *scope;                /* as far as it sees; NULL: all */
    const char *after_namespace, *after_name; /* behind that; NULL: all */
    const char *namespace, *node, *job;       /* NULL: any */
    enum pod_state state;                     /* POD_STATES: any */
    size_t most;
};
/* The first of these, by namespace and name; the caller unrefs each and frees
 * the array. */
struct cluster_ps_pod **cluster_ps_list(struct cluster_ps *c,
                                        const struct cluster_ps_filter *filter,
                                        size_t *ret_n);
/* Those that are asked for, as jobs are counted from them; who hears of pods
 * does not wait for `visit`. */
void cluster_ps_each(struct cluster_ps *c, const struct pods_asked *asked,
                     job_pod_f *visit, void *arg);
/* pod_source's each_job(). */
void cluster_ps_each_job(struct cluster_ps *c, const struct job_name *behind,
                         size_t most, job_name_f *visit, void *arg);
uint64_t cluster_ps_version(struct cluster_ps *c); /* of all that is told */
/* Of which all pods are gone; lives as long. */
struct ended_jobs *cluster_ps_ended(struct cluster_ps *c);
/* NULL: there is none, or none of ours; the caller unrefs it. */
struct cluster_ps_pod *cluster_ps_find(struct cluster_ps *c,
                                       const char *namespace, const char *name);

#endif
