/* Whole jobs: the places that are held with a bind, and how leases end. */
#include <stdlib.h>
#include <string.h>

#include "extender/judge/job.h"
#include "extender/judge/schedule.h"
#include "extender/keep/job_lease.h"
#include "extender/keep/writer_private.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"

/* --- giving held places back --------------------------------------------- */

int drop_hold(struct batch *b, const struct allocation *hold)
{
    struct allocation *a = allocation_ref((struct allocation *)hold);
    const struct demand *d = &a->demand;
    int e = batch_begin(b);
    if (e == 0)
        e = store_delete_allocation(b->w->store, d->namespace, d->name,
                                    &b->error);
    if (e == 0)
        (void)draft_release(batch_draft(b), d->namespace, d->name);
    allocation_unref(a);
    return e;
}

/* The allocations under the same lease as `pod`; holds a reference to each. */
struct together {
    struct allocation **list;
    size_t n, n_held;
};

static void together_init(struct together *t, struct batch *b,
                          const struct demand *pod)
{
    char key[JOB_LEASE_KEY_MAX], other[JOB_LEASE_KEY_MAX];
    memset(t, 0, sizeof *t);
    job_lease_key(pod, key);
    t->list = (struct allocation **)job_together(batch_view(b)->allocations,
                                                 pod, &t->n);
    size_t kept = 0;
    for (size_t i = 0; i < t->n; i++) {
        struct allocation *a = t->list[i];
        if (a->held)
            job_lease_key(&a->demand, other);
        if (a->held && strcmp(key, other) != 0)
            continue;
        t->n_held += a->held;
        t->list[kept++] = allocation_ref(a);
    }
    t->n = kept;
}

static void together_fini(struct together *t)
{
    for (size_t i = 0; i < t->n; i++)
        allocation_unref(t->list[i]);
    free(t->list);
}

static int give_back(struct batch *b, const struct together *t)
{
    int e = 0;
    for (size_t i = 0; i < t->n && e == 0; i++)
        if (t->list[i]->held)
            e = drop_hold(b, t->list[i]);
    return e;
}

static bool is_held_under(void *ctx, const struct allocation *a)
{
    char key[JOB_LEASE_KEY_MAX];
    const char *lease = ctx;
    if (!a->held || !lease)
        return a->held;
    job_lease_key(&a->demand, key);
    return strcmp(key, lease) == 0;
}

int lease_give_piece(struct batch *b, const char *namespace, const char *job,
                     const char *lease, size_t *ret_n)
{
    size_t piece = b->w->config.piece;
    const struct alloc_wanted wanted = {.namespace = namespace,
                                        .job = job,
                                        .is_wanted = is_held_under,
                                        .ctx = (void *)(uintptr_t)lease};
    cleanup_free const struct allocation **list = xcalloc(piece + 1,
                                                          sizeof *list);
    int e = 0;
    size_t n = alloc_index_find_some(batch_allocations(b), &wanted, list,
                                     piece + 1);
    for (size_t i = 0; i < n && i < piece && e == 0; i++)
        e = drop_hold(b, list[i]);
    *ret_n = n;
    return e;
}

/* The next batches go on with the lease of `held`. */
static void end_soon(struct batch *b, const struct demand *held)
{
    leases_hasten(b->w->leases, held, clock_ms());
    b->leaves_some = true;
}

static void end_orphans_soon(struct batch *b, const struct demand *pod)
{
    const struct allocation *any;
    const struct alloc_wanted wanted = {.namespace = pod->namespace,
                                        .job = pod->job,
                                        .is_wanted = is_held_under};
    if (alloc_index_find_some(batch_allocations(b), &wanted, &any, 1) > 0)
        end_soon(b, &any->demand);
}

/* What is held under the lease of `pod`; `*ret_n` as of lease_give_piece(). */
static int give_back_lease(struct batch *b, const struct demand *pod,
                           size_t *ret_n)
{
    struct together t;
    char key[JOB_LEASE_KEY_MAX];
    if (job_is_whole(pod)) {
        job_lease_key(pod, key);
        return lease_give_piece(b, pod->namespace, pod->job, key, ret_n);
    }
    together_init(&t, b, pod);
    int e = give_back(b, &t);
    *ret_n = t.n_held;
    together_fini(&t);
    return e;
}

int lease_give_back(struct batch *b, const struct demand *pod)
{
    size_t n;
    int e = give_back_lease(b, pod, &n);
    if (e == 0 && n > b->w->config.piece)
        end_soon(b, pod);
    return e;
}

/* A lease that has ended. */
static int expire(struct batch *b, const struct demand *pod)
{
    size_t n;
    int e = give_back_lease(b, pod, &n);
    if (e == 0 && n == 0)
        leases_drop(b->w->leases, pod);
    else if (e == 0 && n > b->w->config.piece)
        b->leaves_some = true;
    else if (e == 0)
        log_event(LOG_INFO, "lease-ended", "namespace", pod->namespace, "job",
                  pod->job, NULL);
    return e;
}

int leases_expire(struct batch *b)
{
    const struct leases *leases = b->w->leases;
    int64_t now_ms = clock_ms();
    const struct demand *pod;
    int e = 0;
    if (!leases_due(leases, now_ms))
        return 0;
    for (size_t pos = SIZE_MAX;
         e == 0 && (pod = leases_next_ended(leases, now_ms, &pos));)
        e = expire(b, pod);
    return e;
}

int lease_end_unbound(struct batch *b, const struct demand *pod)
{
    size_t n;
    int e = 0;
    bool member = pod->job[0] && pod->role != ROLE_SERVICE;
    if (!member || pod->size <= 1) {
        struct together t;
        together_init(&t, b, pod);
        e = t.n_held == t.n ? give_back(b, &t) : 0;
        together_fini(&t);
    }
    /* as long as others are bound nothing ends; when all are released this is
     * asked once for each of them.  Else places go under whatever lease, also
     * that of a pod that stated another size of the job. */
    if (e < 0 || !member ||
        alloc_index_has_bound(batch_allocations(b), pod->namespace, pod->job))
        return e;
    e = lease_give_piece(b, pod->namespace, pod->job, NULL, &n);
    if (e == 0 && n > b->w->config.piece)
        end_orphans_soon(b, pod);
    return e;
}

void leases_load(struct writer *w)
{
    size_t n;
    int64_t until_ms = clock_ms() + w->config.lease_ms;
    cleanup_free const struct allocation **list =
        alloc_index_list(w->current->allocations, &n);
    for (size_t i = 0; i < n; i++)
        if (list[i]->held)
            leases_renew(w->leases, &list[i]->demand, until_ms);
}

/* --- the plan of a bind ------------------------------------------------- */

static const struct allocation *find_hold(struct batch *b,
                                          const struct allocation *a)
{
    return alloc_index_find(batch_view(b)->allocations, a->demand.namespace,
                            a->demand.name);
}

void hold_places(struct batch *b, struct allocation **list, size_t n,
                 struct hold_change *change)
{
    change->added = list;
    change->n_added = n;
    change->removed = xcalloc(change->n_added + 1, sizeof(*change->removed));
    for (size_t i = 0; i < change->n_added; i++) {
        const struct allocation *old = find_hold(b, change->added[i]);
        if (old)
            change->removed[change->n_removed++] =
                allocation_ref((struct allocation *)old);
    }
    struct draft *draft = batch_draft(b);
    for (size_t i = 0; i < change->n_added; i++) {
        change->added[i]->number = store_take_version(b->w->store);
        draft_allocate(draft, allocation_ref(change->added[i]));
    }
}

void hold_change_undo(struct batch *b, struct hold_change *change)
{
    struct draft *draft = batch_draft(b);
    for (size_t i = 0; i < change->n_added; i++) {
        const struct demand *d = &change->added[i]->demand;
        (void)draft_release(draft, d->namespace, d->name);
    }
    for (size_t i = 0; i < change->n_removed; i++)
        draft_allocate(draft, allocation_ref(change->removed[i]));
}

int hold_change_store(struct batch *b, const struct hold_change *change)
{
    int e = 0;
    for (size_t i = 0; i < change->n_added && e == 0; i++)
        e = store_put_allocation(b->w->store, change->added[i], &b->error);
    return e;
}

void hold_change_fini(struct hold_change *change)
{
    for (size_t i = 0; i < change->n_added; i++)
        allocation_unref(change->added[i]);
    for (size_t i = 0; i < change->n_removed; i++)
        allocation_unref(change->removed[i]);
    free(change->added);
    free(change->removed);
}

/* The plan that filter made, when its places are still free and the pod's pair
 * is on `node`. */
static bool plan_of_filter(struct batch *b, const struct writer_op *op,
                           int32_t node, const int32_t *names, size_t n,
                           struct places *ret_places)
{
    const struct snapshot *s = batch_view(b);
    struct places p = {0};
    p.plan = job_plan_earlier(b->w->config.plans, s, op->demand, names, n,
                              &p.snapshot);
    bool holds = p.plan && p.plan->places[job_rank(op->demand)].node == node &&
                 places_are_free(s, op->demand, &p);
    if (holds)
        *ret_places = p;
    else
        places_fini(&p);
    return holds;
}

/* The plan with the pod's pair on `node`: that of filter if it still holds and
 * has the pair there, else the best one that has. */
static int plan_bind(struct batch *b, const struct writer_op *op, int32_t node,
                     struct places *ret_places,
                     struct plan_refusal *ret_refusal)
{
    const struct snapshot *s = batch_view(b);
    struct plans *memory = s == b->w->current ? b->w->config.plans : NULL;
    size_t n;
    cleanup_free int32_t *names = candidates_indexes(op->candidates, s, &n);
    cleanup_with(plan) struct plan *plan = NULL;
    if (plan_of_filter(b, op, node, names, n, ret_places))
        return 0;
    int r = job_plan(memory, s, op->demand, names, n, NODE_NONE, &plan,
                     ret_refusal);
    if (r == 0 && plan->places[job_rank(op->demand)].node != node) {
        plan_unref(steal(&plan));
        r = job_plan(NULL, s, op->demand, names, n, node, &plan, ret_refusal);
    }
    if (r == 0)
        *ret_places =
            (struct places){.snapshot = snapshot_ref((struct snapshot *)s),
                            .plan = steal(&plan)};
    return r;
}

static int refuse(struct batch *b, struct writer_op *op, int32_t node,
                  const struct plan_refusal *refusal)
{
    struct schedule s;
    struct demand pair;
    struct choice ignored;
    cleanup_str struct str why = STR_INIT(ERROR_TEXT_MAX - 128);
    demand_pair(op->demand, op->demand->pair, &pair);
    schedule_init_job(&s, batch_view(b), &pair, refusal);
    schedule_explain(&s, node, schedule_choose(&s, node, &ignored), &why);
    return error_set(&op->error, EBUSY, "pod %s/%s does not fit node %s: %s",
                     op->demand->namespace, op->demand->name, op->node,
                     str_text(&why));
}

/* Held places count, too: has the use grown, and is it over the limit? */
static bool is_over(uint64_t before, uint64_t after, uint64_t limit)
{
    return after > before && after > limit;
}

static bool grows_over(const struct policy_quota *quota,
                       const struct namespace_use *before,
                       const struct namespace_use *after)
{
    return quota &&
           (is_over(before->cards, after->cards, quota->cards) ||
            is_over(before->cores, after->cores, quota->cores) ||
            is_over(before->memory_mib, after->memory_mib, quota->memory_mib));
}

bool exceeds_quota(struct batch *b, const char *namespace,
                   const struct namespace_use *before)
{
    const struct policy_quota *quota = policy_find_quota(b->w->current->policy,
                                                         namespace);
    struct namespace_use after;
    if (!quota)
        return false; /* a view of what has changed is dear */
    snapshot_quota_use(batch_view(b), namespace, &after);
    return grows_over(quota, before, &after);
}

/* Would the places of a job, of which nobody has one yet, exceed the quota? */
static bool exceeds_quota_anew(struct batch *b, const struct demand *pod,
                               const struct places *p)
{
    const struct snapshot *s = batch_view(b);
    const struct policy_quota *quota = policy_find_quota(s->policy,
                                                         pod->namespace);
    struct namespace_use before, after;
    snapshot_quota_use(s, pod->namespace, &before);
    after = before;
    for (uint32_t rank = 0; quota && rank < p->plan->size; rank++) {
        struct demand pair;
        demand_pair(pod, (int32_t)rank, &pair);
        after.cards += pair.cards;
        after.cores += (uint64_t)pair.cards * pair.card_cores;
        after.memory_mib += (uint64_t)pair.cards * pair.card_memory_mib;
    }
    return grows_over(quota, &before, &after);
}

/* Is the job too large for one batch?  Not when its plan counts as free what
 * somebody has until all is held. */
static bool goes_in_pieces(struct batch *b, const struct schedule *s,
                           const struct places *p)
{
    return p->plan->size > b->w->config.piece && !s->former &&
           !job_has_any(s->snapshot->allocations, s->demand);
}

int refuse_quota(struct writer_op *op)
{
    const char *namespace = op->demand->namespace;
    return error_set(&op->error, EBUSY,
                     "pod %s/%s does not fit node %s: quota of namespace %s "
                     "used up",
                     namespace, op->demand->name, op->node, namespace);
}

/* Hold all of them, in this batch. */
static int hold_all(struct batch *b, struct writer_op *op, struct places *p,
                    struct hold_change *ret_change)
{
    size_t n;
    struct allocation **list;
    struct namespace_use before;
    snapshot_quota_use(batch_view(b), op->demand->namespace, &before);
    int e = batch_begin(b);
    if (e < 0)
        return e;
    /* the plan was just made, or found free */
    (void)places_hold(batch_view(b), op->demand, p, SIZE_MAX, &list, &n);
    hold_places(b, list, n, ret_change);
    return exceeds_quota(b, op->demand->namespace, &before) ? refuse_quota(op)
                                                            : 0;
}

int bind_plan(struct batch *b, struct writer_op *op,
              struct hold_change *ret_change)
{
    struct schedule s;
    struct plan_refusal refusal = {0};
    struct places places = {0};
    int e = 0;
    if (!demand_is_planned(op->demand))
        return 0;
    if (taking_is_of(b->w, op))
        e = taking_go_on(b, op);
    if (e < 0 || op->again)
        return e;
    const struct snapshot *snapshot = batch_view(b);
    int32_t node = snapshot_find(snapshot, op->node, strlen(op->node));
    schedule_init(&s, snapshot, op->demand);
    if (node == NODE_NONE || s.quota.kind != QUOTA_OK ||
        job_is_placed(&s, &node, 1))
        return 0; /* bind_decide() judges the pod */
    if (s.nominated && s.follows != node)
        return 0; /* the same: its pair has to follow another node */
    if (plan_bind(b, op, node, &places, &refusal) < 0)
        return refuse(b, op, node, &refusal);
    if (!goes_in_pieces(b, &s, &places))
        e = hold_all(b, op, &places, ret_change);
    else if (exceeds_quota_anew(b, op->demand, &places))
        e = refuse_quota(op);
    else
        e = taking_begin(b, op, &places);
    places_fini(&places);
    return e;
}

int hold_anew(struct batch *b, const struct demand *pod,
              struct allocation **list, size_t n)
{
    struct hold_change change = {0};
    struct namespace_use before;
    snapshot_quota_use(batch_view(b), pod->namespace, &before);
    hold_places(b, list, n, &change);
    int e = batch_begin(b);
    if (e == 0 && exceeds_quota(b, pod->namespace, &before)) {
        hold_change_undo(b, &change);
        e = -EBUSY;
    } else if (e == 0) {
        e = hold_change_store(b, &change);
        leases_renew(b->w->leases, pod, clock_ms() + b->w->config.lease_ms);
    }
    hold_change_fini(&change);
    return e;
}

/* --- after a bind ------------------------------------------------------- */

/* The place held for the pod's own pair, or NULL. */
static const struct allocation *own_hold(struct batch *b,
                                         const struct allocation *fresh)
{
    struct schedule s;
    schedule_init(&s, batch_view(b), &fresh->demand);
    return s.hold;
}

/* A hold is used up once the host pod is bound, for a pod without a job, and
 * when the pod was bound to another node. */
static bool is_used_up(const struct allocation *hold,
                       const struct allocation *fresh)
{
    return fresh->demand.role == ROLE_HOST || !fresh->demand.job[0] ||
           strcmp(hold->node, fresh->node) != 0;
}

int bind_settle(struct batch *b, const struct allocation *fresh,
                const struct demand *former)
{
    const struct allocation *hold = own_hold(b, fresh);
    struct demand leased = hold ? hold->demand : fresh->demand;
    int e = 0;
    if (hold && is_used_up(hold, fresh))
        e = drop_hold(b, hold);
    if (e == 0 && former)
        e = lease_end_unbound(b, former);
    if (e < 0)
        return e;
    /* do not look at all pairs of a large job at each bind: a lease under which
     * nothing is held any more simply expires */
    int64_t until_ms = clock_ms() + b->w->config.lease_ms;
    if (leases_prolong(b->w->leases, &leased, until_ms))
        return 0;
    struct together t;
    together_init(&t, b, &leased);
    if (t.n_held)
        leases_renew(b->w->leases, &leased, until_ms);
    together_fini(&t);
    return 0;
}
