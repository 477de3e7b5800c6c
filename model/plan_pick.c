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

/* Plan, and if the job is small try everything. */
static bool make(const struct plan_cluster *cluster, const struct plan_job *job,
                 struct plan *plan, struct plan_refusal *ret_refusal)
{
    bool one = job->n_shapes == 1;
    bool found = one ? plan_one(cluster, job, plan->places, ret_refusal)
                     : plan_many(cluster, job, plan->places, ret_refusal);
    if (job->size - job->n_fixed > PLAN_FEW || (one && !found))
        return found;
    return plan_search(cluster, job, found, plan->places, &plan->exact);
}

int plan_make(const struct plan_cluster *cluster, const struct plan_job *job,
              struct plan **ret_plan, struct plan_refusal *ret_refusal)
{
    cleanup_with(plan) struct plan *plan = plan_create(job->size);
    if (!make(cluster, job, plan, ret_refusal))
        return -EBUSY;
    plan_score(cluster, job, plan->places, &plan->score);
    *ret_plan = steal(&plan);
    return 0;
}
