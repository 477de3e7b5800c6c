#include "extender/judge/victims.h"

#include <stdlib.h>
#include <string.h>

#include "extender/judge/job.h"
#include "extender/judge/victims_private.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"

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

/* --- beside the scheduler's proposal -------------------------------------- */

/* What evicted pods of Biga free on their host. */
struct freed {
    uint64_t cpu_milli, memory_mib, gpus, nics, cards;
};

static struct freed freed_by(const struct allocation *const *list, size_t n)
{
    struct freed f = {0};
    for (size_t i = 0; i < n; i++) {
        const struct demand *d = &list[i]->demand;
        f.cpu_milli += d->role == ROLE_HOST ? d->cpu_milli : 0;
        f.memory_mib += d->role == ROLE_HOST ? d->memory_mib : 0;
        f.gpus += list[i]->n_gpus;
        f.nics += list[i]->n_nics;
        f.cards += list[i]->n_cards;
    }
    return f;
}

/* What was proposed freed enough of the host; does this? */
static bool frees_as_much(const struct victims *v,
                          const struct victims_ask *ask)
{
    struct freed is = freed_by(v->named, v->n);
    struct freed must = freed_by(ask->given, ask->n_given);
    return v->fits && v->n > 0 && !ask->others &&
           is.cpu_milli >= must.cpu_milli && is.memory_mib >= must.memory_mib &&
           is.gpus >= must.gpus && is.nics >= must.nics &&
           is.cards >= must.cards;
}

static bool find_instead(struct snapshot *snapshot, const struct demand *pod,
                         const struct victims_ask *asks, size_t n,
                         struct victims *ret_victims)
{
    bool any = false;
    cleanup_free struct victims_ask *bare = xcalloc(n + 1, sizeof *bare);
    for (size_t i = 0; i < n; i++)
        bare[i] = (struct victims_ask){.node = asks[i].node,
                                       .others = asks[i].others};
    victims_find(snapshot, pod, bare, n, ret_victims);
    for (size_t i = 0; i < n; i++) {
        struct victims *v = &ret_victims[i];
        v->instead = frees_as_much(v, &asks[i]);
        any |= v->instead;
        if (!v->instead)
            victims_fini(v);
    }
    return any;
}

/* --- what is leaving ------------------------------------------------------ */

/* Those on a node that leave it, in the caller's array. */
static size_t leaving_from(const struct snapshot *s, const struct node *node,
                           const struct allocation **ret)
{
    size_t n = 0;
    for (size_t i = 0; i < node->n_allocations; i++)
        if (moving_pods_is_leaving(s->moves, node->allocations[i]->demand.uid))
            ret[n++] = node->allocations[i];
    return n;
}

static void release_leaving(struct draft *draft, const struct snapshot *s,
                            const struct node *node)
{
    cleanup_free const struct allocation **list =
        xcalloc(node->n_allocations + 1, sizeof *list);
    size_t n = leaving_from(s, node, list);
    for (size_t i = 0; i < n; i++)
        draft_evict(draft, list[i]);
}

/* Bits of the nodes that pods of the job are nominated to. */
static uint64_t *coming_bits(const struct snapshot *s, const struct demand *pod)
{
    uint64_t *bits = xcalloc(s->n_nodes / 64 + 1, sizeof *bits);
    size_t pos = 0;
    int32_t ignored;
    for (const char *name;
         (name = moving_pods_next_of_job(s->moves, pod, &pos, &ignored));) {
        int32_t i = snapshot_find(s, name, strlen(name));
        if (i >= 0)
            bits[i / 64] |= UINT64_C(1) << i % 64;
    }
    return bits;
}

static bool has_bit(const uint64_t *bits, size_t i)
{
    return bits[i / 64] >> i % 64 & 1;
}

/* The snapshot as it is once those are gone that leave where pods of the job are
 * nominated to, and without nominations: each pair that is not bound needs
 * room.  For the caller to release. */
static struct snapshot *after_leaving(struct snapshot *s,
                                      const struct demand *pod)
{
    struct draft *draft = draft_create(s);
    cleanup_free uint64_t *coming = coming_bits(s, pod);
    draft_forget_moves(draft);
    for (size_t i = 0; i < s->n_nodes; i++)
        if (has_bit(coming, i))
            release_leaving(draft, s, snapshot_node(s, i));
    return draft_commit(draft);
}

/* No other victims are needed: those that are already leaving are named again,
 * each on its node. */
static void name_leaving(const struct snapshot *s, const struct demand *pod,
                         const struct victims_ask *asks, size_t n,
                         struct victims *ret_victims)
{
    cleanup_free uint64_t *coming = coming_bits(s, pod);
    memset(ret_victims, 0, n * sizeof *ret_victims);
    for (size_t i = 0; i < n; i++) {
        struct victims *v = &ret_victims[i];
        if (asks[i].node < 0 || !has_bit(coming, (size_t)asks[i].node))
            continue;
        const struct node *node = snapshot_node(s, (size_t)asks[i].node);
        v->named = xcalloc(node->n_allocations + 1, sizeof *v->named);
        v->n = leaving_from(s, node, v->named);
        v->fits = v->instead = v->n > 0 && !asks[i].others;
    }
}

static bool has_plan(const struct snapshot *s, const struct demand *pod)
{
    struct plan *plan = NULL;
    struct plan_refusal ignored;
    int r = job_plan(NULL, s, pod, NULL, 0, NODE_NONE, &plan, &ignored);
    plan_unref(plan);
    return r == 0;
}

/* Do other pods ask for the same room, each with a proposal of its own? */
static bool is_of_many(const struct demand *pod)
{
    return demand_is_planned(pod) && pod->job[0] && pod->size > 1;
}

void victims_choose(struct snapshot *snapshot, const struct demand *pod,
                    const struct victims_ask *asks, size_t n,
                    struct victims *ret_victims)
{
    struct schedule s;
    bool coming = moving_pods_has_job(snapshot->moves, pod, NULL);
    schedule_init(&s, snapshot, pod);
    if (!is_of_many(pod) || s.follows != NODE_NONE) {
        victims_find(snapshot, pod, asks, n, ret_victims);
        return;
    }
    cleanup_with(snapshot) struct snapshot *after =
        coming ? after_leaving(snapshot, pod) : snapshot_ref(snapshot);
    if (coming && has_plan(after, pod))
        name_leaving(snapshot, pod, asks, n, ret_victims);
    else if (!find_instead(after, pod, asks, n, ret_victims) && !coming)
        victims_find(snapshot, pod, asks, n, ret_victims);
}
