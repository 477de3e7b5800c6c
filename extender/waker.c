#include "extender/waker.h"

#include <stdlib.h>

/* --- judging -------------------------------------------------------------- */

/* How many of these nodes (NULL: all) the pod fits, as filter would say; of
 * one whose job is to be planned 1 when there is a plan. */
static size_t count_fitting(struct plans *memory,
                            const struct snapshot *snapshot,
                            const struct demand *pod, const int32_t *nodes,
                            size_t n)
{
    struct schedule s;
    struct plan_refusal ignored;
    cleanup_with(plan) struct plan *plan = NULL;
    schedule_init(&s, snapshot, pod);
    if (demand_is_planned(pod) && s.quota.kind == QUOTA_OK &&
        !job_is_placed(&s, nodes, n))
        return job_plan(memory, snapshot, pod, nodes, n, NODE_NONE, &plan,
                        &ignored) == 0;
    cleanup_free int32_t *all = NULL;
    if (!nodes) {
        n = snapshot->n_nodes;
        all = xcalloc(n + 1, sizeof *all);
        for (size_t i = 0; i < n; i++)
            all[i] = (int32_t)i;
        nodes = all;
    }
    uint32_t best;
    size_t fitting;
    (void)schedule_best(&s, nodes, n, 1, &best, &fitting);
    return fitting;
}

void waker_judge(struct plans *memory, const struct snapshot *snapshot,
                 const struct demand *pod, const struct candidates *named,
                 struct waiting_verdict *ret_verdict)
{
    size_t n;
    cleanup_free int32_t *nodes = candidates_indexes(named, snapshot, &n);
    size_t all = count_fitting(memory, snapshot, pod, NULL, 0);
    *ret_verdict = (struct waiting_verdict){
        .number = snapshot->number,
        .fits_named = nodes ? count_fitting(memory, snapshot, pod, nodes, n) > 0
                            : all > 0,
        .fitting = all,
    };
}
