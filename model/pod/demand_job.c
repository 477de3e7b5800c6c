/* Which job a pod is of, and which pair of it. */
#include <string.h>

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

int demand_take_job(const struct pod *pod, struct demand *d, struct error *err)
{
    static const enum pod_text jobs[] = {POD_JOB, POD_GROUP, POD_JOB_NAME,
                                         POD_REPLICA_JOB};
    static const enum pod_text pairs[] = {POD_PAIR, POD_INDEX_ANNOTATION,
                                          POD_INDEX_LABEL, POD_REPLICA_INDEX};
    enum pod_text pair = POD_PAIR;
    int rc = 0;
    d->size = 1;
    d->grouped = demand_given(pod, POD_GROUP);
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
        if (demand_given(pod, jobs[i])) {
            rc = demand_take_name(pod, jobs[i], d->job, sizeof d->job, err);
            break;
        }
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(pairs); i++)
        if (demand_given(pod, pairs[i])) {
            pair = pairs[i];
            rc = demand_take_number(pod, pair, DEMAND_PAIR_MAX, &d->pair, err);
            break;
        }
    if (rc == 0)
        rc = take_buddy(pod, d, err);
    if (rc < 0 || !demand_given(pod, POD_SIZE))
        return rc;
    rc = demand_take_number(pod, POD_SIZE, DEMAND_SIZE_MAX, &d->size, err);
    if (rc == 0 && d->pair >= d->size)
        return error_set(err, EDOM,
                         "%s: is \"%d\", but %s is \"%d\"; must be from 0 "
                         "to %d",
                         pod_text_path(pair), (int)d->pair,
                         pod_text_path(POD_SIZE), (int)d->size,
                         (int)d->size - 1);
    return rc;
}
