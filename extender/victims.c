#include "extender/victims.h"

#include <stdlib.h>
#include <string.h>

#include "extender/victims_private.h"

void victims_fini(struct victims *v)
{
    free(v->named);
    memset(v, 0, sizeof *v);
}

/* One pod on one node. */
struct attempt {
    const struct schedule *schedule;
    int32_t node;
};

static bool pod_has_room(void *ctx, const struct allocation *const *gone,
                         size_t n)
{
    const struct attempt *t = ctx;
    struct choice choice;
    return schedule_choose_without(t->schedule, t->node, gone, n, &choice) ==
           REASON_NONE;
}

static void find_on_node(const struct schedule *s,
                         const struct victims_ask *ask, uint32_t *steps,
                         struct victims *ret_victims)
{
    struct attempt t = {s, ask->node};
    struct pool pool;
    uint64_t set;
    if (pool_init(&pool, snapshot_node(s->snapshot, (size_t)ask->node),
                  s->demand, ask)) {
        pool.steps = steps;
        if (pool_find(&pool, 0, pod_has_room, &t, &set))
            pool_name(&pool, ask, set, ret_victims);
    }
    pool_fini(&pool);
}

void victims_find(struct snapshot *snapshot, const struct demand *pod,
                  const struct victims_ask *asks, size_t n,
                  struct victims *ret_victims)
{
    uint32_t steps = VICTIMS_STEPS_MAX;
    struct schedule s;
    memset(ret_victims, 0, n * sizeof *ret_victims);
    schedule_init(&s, snapshot, pod);
    if (s.quota.kind != QUOTA_OK)
        return; /* evicting others does not help */
    if (s.follows == NODE_NONE && demand_is_planned(pod)) {
        victims_find_job(snapshot, &s, asks, n, ret_victims);
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (asks[i].node >= 0)
            find_on_node(&s, &asks[i], &steps, &ret_victims[i]);
}
