/* Which job a pod is of, and which pair of it. */
#include <string.h>
#include <strings.h>

#include "lib/base/mem.h"
#include "model/pod/demand_private.h"

enum { LABEL_VALUE_MAX = 63 };

/* A host pod whose xPU pod is made for it needs a job that both can name in a
 * label: its own name, when it has none. */
static int take_buddy(const struct pod *pod, struct demand *d,
                      struct error *err)
{
    char name[DEMAND_NAME_MAX + 1];
    if (d->role != ROLE_HOST || !demand_given(pod, POD_BUDDY))
        return 0;
    int rc = demand_take_name(pod, POD_BUDDY, name, sizeof name, err);
    if (rc < 0 || d->job[0])
        return rc;
    size_t size = strlen(d->name);
    if (size > LABEL_VALUE_MAX)
        return error_set(err, EDOM,
                         "%s: is missing, and the pod's name has %zu bytes, "
                         "more than the %d of a label: with %s the pod needs "
                         "a job",
                         pod_text_path(POD_JOB), size, LABEL_VALUE_MAX,
                         pod_text_path(POD_BUDDY));
    memcpy(d->job, d->name, size + 1);
    return 0;
}

/* --- what other controllers say ------------------------------------------- */

/* Where the index of the pod in its Job stands; POD_PAIR: nowhere. */
static enum pod_text index_of(const struct pod *pod)
{
    static const enum pod_text texts[] = {POD_INDEX_ANNOTATION, POD_INDEX_LABEL,
                                          POD_REPLICA_INDEX};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (demand_given(pod, texts[i]))
            return texts[i];
    return POD_PAIR;
}

/* Kubeflow's operators have an index of their own: of an MPIJob whose launcher
 * is a worker, too, that one is the pod of a Job. */
static bool is_replica(const struct pod *pod)
{
    return demand_given(pod, POD_REPLICA_JOB) &&
           (!demand_given(pod, POD_JOB_NAME) ||
            index_of(pod) == POD_REPLICA_INDEX);
}

/* `d->job` and `more`, as one name. */
static int extend_job(enum pod_text which, struct demand *d, const char *more,
                      struct error *err)
{
    size_t size = strlen(d->job), n = strlen(more);
    if (size + n > DEMAND_NAME_MAX)
        return error_set(err, EDOM, "%s: has %zu bytes, must have at most %zu",
                         pod_text_path(which), size, DEMAND_NAME_MAX - n);
    memcpy(d->job + size, more, n + 1);
    return 0;
}

/* The index of a master counts masters, so workers alone are the job's pairs;
 * others are a job of their own. */
static int take_replica_job(const struct pod *pod, struct demand *d,
                            struct error *err)
{
    char type[LABEL_VALUE_MAX + 1], more[LABEL_VALUE_MAX + 2];
    int rc = demand_take_name(pod, POD_REPLICA_JOB, d->job, sizeof d->job, err);
    if (rc < 0 || !demand_given(pod, POD_REPLICA_TYPE))
        return rc;
    rc = demand_take_name(pod, POD_REPLICA_TYPE, type, sizeof type, err);
    if (rc < 0 || strcasecmp(type, "worker") == 0)
        return rc;
    (void)snprintf(more, sizeof more, "-%s", type);
    return extend_job(POD_REPLICA_JOB, d, more, err);
}

/* --- JobSets ---------------------------------------------------------------- */

/* A JobSet has replicated Jobs (one for host pods, say, one for xPU pods), each
 * with so many Jobs, each with so many pods.  How many pods a Job has no label
 * says; it follows from biga.dev/size, which counts the pairs of all Jobs. */
struct jobset {
    int32_t jobs;  /* of the replicated Job; 0: not known */
    int32_t index; /* of this one */
    int32_t pods;  /* of each Job, when there are several; 0: not known */
};

static int read_jobset(const struct pod *pod, int32_t size,
                       struct jobset *ret_set, struct error *err)
{
    struct jobset set = {.jobs = 0};
    int rc = 0;
    if (demand_given(pod, POD_JOBSET_INDEX))
        rc = demand_take_number(pod, POD_JOBSET_INDEX, DEMAND_PAIR_MAX,
                                &set.index, err);
    else
        set.jobs = 1;
    if (rc == 0 && demand_given(pod, POD_JOBSET_JOBS))
        rc = demand_take_number(pod, POD_JOBSET_JOBS, DEMAND_PAIR_MAX,
                                &set.jobs, err);
    if (rc < 0)
        return rc;
    if (set.jobs && set.index >= set.jobs)
        return error_set(err, EDOM,
                         "%s: is \"%d\", but %s is \"%d\"; must be from 0 to "
                         "%d",
                         pod_text_path(POD_JOBSET_INDEX), (int)set.index,
                         pod_text_path(POD_JOBSET_JOBS), (int)set.jobs,
                         (int)set.jobs - 1);
    if (set.jobs && size > 1 && size % set.jobs)
        return error_set(err, EDOM,
                         "%s: is \"%d\", but %s is \"%d\"; must be a multiple "
                         "of it, as it counts the pairs of all Jobs",
                         pod_text_path(POD_SIZE), (int)size,
                         pod_text_path(POD_JOBSET_JOBS), (int)set.jobs);
    if (set.jobs > 1 && size > 1)
        set.pods = size / set.jobs;
    *ret_set = set;
    return 0;
}

/* All Jobs of the JobSet are one job, when their pairs can be told apart;
 * else those of each index are.  No JobSet has '.' in its name. */
static int take_jobset_job(const struct pod *pod, const struct jobset *set,
                           struct demand *d, struct error *err)
{
    char more[16];
    int rc = demand_take_name(pod, POD_JOBSET, d->job, sizeof d->job, err);
    if (rc < 0 || set->jobs == 1 || set->pods)
        return rc;
    (void)snprintf(more, sizeof more, ".%d", (int)set->index);
    return extend_job(POD_JOBSET, d, more, err);
}

static int take_jobset_pair(const struct pod *pod, const struct jobset *set,
                            struct demand *d, struct error *err)
{
    enum pod_text which = index_of(pod);
    int rc = which == POD_PAIR ? 0
                               : demand_take_number(pod, which, DEMAND_PAIR_MAX,
                                                    &d->pair, err);
    if (rc < 0 || !set->pods)
        return rc;
    if (d->pair >= set->pods)
        return error_set(err, EDOM,
                         "%s: is \"%d\", but %s is \"%d\" over %d Jobs; must "
                         "be from 0 to %d",
                         pod_text_path(which), (int)d->pair,
                         pod_text_path(POD_SIZE), (int)d->size, (int)set->jobs,
                         (int)set->pods - 1);
    d->pair += set->index * set->pods;
    return 0;
}

/* --- the whole -------------------------------------------------------------- */

static int take_name(const struct pod *pod, const struct jobset *set,
                     struct demand *d, struct error *err)
{
    if (demand_given(pod, POD_JOB))
        return demand_take_name(pod, POD_JOB, d->job, sizeof d->job, err);
    if (demand_given(pod, POD_JOBSET))
        return take_jobset_job(pod, set, d, err);
    if (demand_given(pod, POD_GROUP))
        return demand_take_name(pod, POD_GROUP, d->job, sizeof d->job, err);
    if (is_replica(pod))
        return take_replica_job(pod, d, err);
    return demand_given(pod, POD_JOB_NAME)
               ? demand_take_name(pod, POD_JOB_NAME, d->job, sizeof d->job, err)
               : 0;
}

static int take_pair(const struct pod *pod, const struct jobset *set,
                     struct demand *d, struct error *err)
{
    enum pod_text which = demand_given(pod, POD_PAIR) ? POD_PAIR
                                                      : index_of(pod);
    int rc = 0;
    if (!demand_given(pod, POD_PAIR) && demand_given(pod, POD_JOBSET))
        rc = take_jobset_pair(pod, set, d, err);
    else if (demand_given(pod, which))
        rc = demand_take_number(pod, which, DEMAND_PAIR_MAX, &d->pair, err);
    if (rc == 0 && demand_given(pod, POD_SIZE) && d->pair >= d->size)
        rc = error_set(err, EDOM,
                       "%s: is \"%d\", but %s is \"%d\"; must be from 0 to %d",
                       pod_text_path(which), (int)d->pair,
                       pod_text_path(POD_SIZE), (int)d->size, (int)d->size - 1);
    return rc;
}

int demand_take_job(const struct pod *pod, struct demand *d, struct error *err)
{
    struct jobset set = {.jobs = 1};
    int rc = 0;
    d->size = 1;
    d->grouped = demand_given(pod, POD_GROUP);
    if (demand_given(pod, POD_SIZE))
        rc = demand_take_number(pod, POD_SIZE, DEMAND_SIZE_MAX, &d->size, err);
    if (rc == 0 && demand_given(pod, POD_JOBSET))
        rc = read_jobset(pod, d->size, &set, err);
    if (rc == 0)
        rc = take_name(pod, &set, d, err);
    if (rc == 0)
        rc = take_buddy(pod, d, err);
    return rc == 0 ? take_pair(pod, &set, d, err) : rc;
}
