/* plan_make(): the whole. */
#include <errno.h>
#include <string.h>

#include "model/plan_private.h"

static struct plan *plan_create(uint32_t size)
{
    struct plan *p = xcalloc(1, sizeof *p + size * sizeof p->places[0]);
    atomic_init(&p->refs, 1);
    p->size = size;
    return p;
}

int plan_make(const struct plan_cluster *cluster, const struct plan_job *job,
              struct plan **ret_plan, struct plan_refusal *ret_refusal)
{
    cleanup_with(plan) struct plan *plan = plan_create(job->size);
    bool done = job->n_shapes > 1
                    ? plan_many(cluster, job, plan->places, ret_refusal)
                    : plan_one(cluster, job, plan->places, ret_refusal);
    if (!done)
        return -EBUSY;
    plan_score(cluster, job, plan->places, &plan->score);
    *ret_plan = steal(&plan);
    return 0;
}
