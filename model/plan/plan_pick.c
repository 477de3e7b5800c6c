/* plan_make(): the whole. */
#include <errno.h>
#include <string.h>

#include "model/plan/plan_private.h"

static struct plan *plan_create(uint32_t size)
{
    struct plan *p = xcalloc(1, sizeof *p + size * sizeof p->places[0]);
    atomic_init(&p->refs, 1);
    p->size = size;
    return p;
}

/* Plan, and if the job is small try everything.  A refusal of jobs of several
 * shapes still lacks its reason. */
static bool make(const struct plan_cluster *cluster, const struct plan_job *job,
                 struct plan *plan, struct plan_refusal *ret_refusal)
{
    bool one = job->n_shapes == 1, done = false;
    bool found = one ? plan_one(cluster, job, plan->places, ret_refusal)
                     : plan_many(cluster, job, plan, ret_refusal);
    if (job->size - job->n_fixed > PLAN_FEW ||
        (one && (!found || cluster->n_nodes > PLAN_FEW_NODES)))
        return found;
    found = plan_search(cluster, job, found, plan->places, &done);
    plan->exact = found && done;
    if (!found && done) {
        ret_refusal->lack = PLAN_LACK_ROOM;
        /* shape by shape there is, together not */
        if (ret_refusal->room == ret_refusal->asked && ret_refusal->room)
            ret_refusal->room--;
        if (ret_refusal->room_within > ret_refusal->room)
            ret_refusal->room_within = ret_refusal->room;
    }
    return found;
}

/* Would the job fit without what `change` leaves out?  Then on which tier? */
static bool fits(const struct plan_cluster *cluster,
                 const struct plan_job *change, unsigned *ret_tier)
{
    cleanup_with(plan) struct plan *plan = plan_create(change->size);
    struct plan_refusal no;
    struct plan_score score;
    if (!make(cluster, change, plan, &no))
        return false;
    plan_score(cluster, change, plan->places, &score);
    *ret_tier = score.tier;
    return true;
}

/* The tier that the pairs which have their place are spread over. */
static unsigned fixed_tier(const struct plan_cluster *cluster,
                           const struct plan_job *job)
{
    unsigned tier = 0;
    bool one_node = true;
    for (size_t i = 0; i < job->n_fixed; i++) {
        const struct plan_fixed *first = &job->fixed[0], *at = &job->fixed[i];
        unsigned common = fabric_common_tier(cluster->fabric, first->leaf,
                                             at->leaf);
        tier = common > tier ? common : tier;
        one_node &= at->node >= 0 && at->node == first->node;
    }
    return one_node ? 0 : tier;
}

/* Find what prevents a plan, by planning without it. */
static void explain(const struct plan_cluster *cluster,
                    const struct plan_job *job, struct plan_refusal *no)
{
    struct plan_job change = *job;
    unsigned tier = FABRIC_APART;
    if (job->within >= 0 && fixed_tier(cluster, job) > (unsigned)job->within) {
        no->lack = PLAN_LACK_FIXED;
        return;
    }
    change.pin_rank = change.pin_node = -1;
    if (job->pin_rank >= 0 && fits(cluster, &change, &tier)) {
        no->lack = PLAN_LACK_PIN;
        return;
    }
    change = *job;
    change.within = PLAN_ANYWHERE;
    if (job->n_shapes > 1 && no->lack == PLAN_LACK_ROOM && cluster->rooms) {
        struct plan_cluster without = *cluster;
        without.rooms = NULL;
        no->hosts = fits(&without, job, &tier);
    }
    if (job->n_shapes > 1 && job->within >= 0 &&
        fits(cluster, &change, &tier)) {
        no->lack = PLAN_LACK_TIER;
        no->fits_tier = tier;
        if (no->room_within == no->asked) /* one by one, not together */
            no->room_within--;
    }
}

int plan_make(const struct plan_cluster *cluster, const struct plan_job *job,
              struct plan **ret_plan, struct plan_refusal *ret_refusal)
{
    const struct plan_cluster known = plan_known(cluster);
    cleanup_with(plan) struct plan *plan = plan_create(job->size);
    if (!make(&known, job, plan, ret_refusal)) {
        explain(&known, job, ret_refusal);
        return -EBUSY;
    }
    plan_score(&known, job, plan->places, &plan->score);
    *ret_plan = steal(&plan);
    return 0;
}
