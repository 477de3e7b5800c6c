/* Advice for a pod that is decided by itself. */
#include <stdlib.h>
#include <string.h>

#include "extender/judge/advice_private.h"
#include "lib/base/mem.h"

enum {
    SPOTS_MAX = 8192, /* different states that are looked at */
    QUOTA_ROUNDS = 4, /* cards, cores, memory, and then it is enough */
    PAIRS_MAX = 32,   /* pods of one node of which two are tried together */
};

struct pod_search {
    const struct schedule *s;
    struct advice *advice;
    struct spot *spots;
    size_t n_spots;
    struct node_state *views; /* of the spots that need one of their own */
    int32_t fitted;           /* where the last trial fitted */
    unsigned tries;
};

static void pod_search_fini(struct pod_search *p)
{
    free(p->spots);
    free(p->views);
}

/* --- which nodes -------------------------------------------------------- */

static bool by_state(const struct schedule *s, int32_t node)
{
    return s->follows == NODE_NONE && s->former_index != node && !s->own_share;
}

static void add_spot(struct pod_search *p, int32_t node, enum reason reason)
{
    struct spot *spot = &p->spots[p->n_spots];
    *spot = (struct spot){node, reason, NULL, 0, UINT16_MAX};
    if (by_state(p->s, node)) {
        spot->state = &snapshot_node(p->s->snapshot, (size_t)node)->state;
    } else {
        schedule_view(p->s, node, &p->views[p->n_spots], &spot->must,
                      &spot->within);
        spot->state = &p->views[p->n_spots];
    }
    p->n_spots++;
}

static void find_spots(struct pod_search *p)
{
    const struct snapshot *snapshot = p->s->snapshot;
    size_t n = snapshot->n_nodes;
    cleanup_free bool *seen = xcalloc(state_intern_count(snapshot->states) + 2,
                                      sizeof *seen);
    struct schedule_reasons known = {0};
    n = n < SPOTS_MAX ? n : SPOTS_MAX;
    p->spots = xcalloc(n + 1, sizeof *p->spots);
    p->views = xcalloc(p->s->own_share ? n + 1 : 2, sizeof *p->views);
    for (size_t i = 0; i < snapshot->n_nodes && p->n_spots < n; i++) {
        int32_t node = (int32_t)i;
        uint32_t state = snapshot_state(snapshot, i);
        if (p->s->follows != NODE_NONE && p->s->follows != node)
            continue;
        if (state == STATE_UNUSABLE &&
            snapshot_node(snapshot, i)->status != NODE_READY)
            continue;
        bool shared = by_state(p->s, node) && state != STATE_UNUSABLE;
        if (shared && seen[state])
            continue;
        if (shared)
            seen[state] = true;
        add_spot(p, node, schedule_reason(p->s, node, &known));
    }
    schedule_reasons_fini(&known);
}

/* --- the nearest nodes -------------------------------------------------- */

/* How far a node is from fitting, about: it lacks a part of its cards, or
 * what others have, or its hardware does not do, or it does not count. */
static uint64_t distance(const struct schedule *s, int32_t node,
                         enum reason reason)
{
    enum { FREEABLE = 0, TAKEN = 1, NEVER = 2, OUT = 3 };
    const uint64_t step = UINT64_C(1) << 62;
    const struct node *n = snapshot_node(s->snapshot, (size_t)node);
    struct spot spot = {node, reason, &n->state, 0, UINT16_MAX};
    switch (reason) {
    case REASON_CARD_CORES:
    case REASON_CARD_MEMORY: {
        uint64_t bound = advice_free_bound(&spot, s->demand);
        return bound < step ? bound : TAKEN * step;
    }
    case REASON_JOB_ROOM:
    case REASON_FABRIC_TIER:
        return FREEABLE * step;
    case REASON_NO_CARD:
    case REASON_UNKNOWN_NODE:
    case REASON_PAIR_ELSEWHERE:
        return OUT * step;
    default:
        return (reason_resolvable(reason) ? TAKEN : NEVER) * step;
    }
}

void advise_nearest(const struct schedule *s, const uint8_t *reasons,
                    struct advice *advice)
{
    const struct snapshot *snapshot = s->snapshot;
    struct advice *a = advice;
    uint64_t far[ADVICE_NEAREST_MAX];
    struct schedule_reasons known = {0};
    for (size_t i = 0; i < snapshot->n_nodes; i++) {
        int32_t node = (int32_t)i;
        enum reason reason = reasons ? (enum reason)reasons[i]
                                     : schedule_reason(s, node, &known);
        uint64_t d = distance(s, node, reason);
        size_t at = a->n_nearest;
        if (at == ADVICE_NEAREST_MAX && d >= far[at - 1])
            continue;
        if (at == ADVICE_NEAREST_MAX)
            at--;
        else
            a->n_nearest++;
        for (; at > 0 && far[at - 1] > d; at--) {
            far[at] = far[at - 1];
            a->nearest[at] = a->nearest[at - 1];
        }
        far[at] = d;
        a->nearest[at] = (struct near_node){node, reason};
    }
    schedule_reasons_fini(&known);
}

/* --- what could become free --------------------------------------------- */

static bool spot_fits(const struct spot *spot, const struct node_state *state,
                      const struct demand *d)
{
    struct choice ignored;
    return decide(state, d, spot->must, spot->within, &ignored) == REASON_NONE;
}

static void try_free(struct pod_search *p)
{
    const struct demand *d = p->s->demand;
    uint64_t best = FREE_NEVER;
    struct change change = {.kind = CHANGE_FREE};
    unsigned tries = ADVICE_TRIES;
    for (size_t i = 0; i < p->n_spots; i++) {
        const struct spot *spot = &p->spots[i];
        uint16_t cards = 0;
        if (!reason_resolvable(spot->reason) ||
            advice_free_bound(spot, d) >= best)
            continue;
        uint64_t least = advice_free(spot, d, best, &tries, &cards);
        if (least >= best)
            continue;
        struct change better = {.kind = CHANGE_FREE};
        advice_free_change(spot, d, cards, &better);
        struct node_state freed = advice_freed(spot->state, &better);
        if (!better.cards || !spot_fits(spot, &freed, d))
            continue;
        best = least;
        change = better;
    }
    if (best != FREE_NEVER)
        advice_add(p->advice, &change);
}

static void try_free_cpus(struct pod_search *p)
{
    const struct demand *d = p->s->demand;
    struct change change = {.kind = CHANGE_FREE_CPUS};
    for (size_t i = 0; i < p->n_spots; i++) {
        const struct spot *spot = &p->spots[i];
        int16_t numa;
        if (spot->reason != REASON_NUMA_CPUS)
            continue;
        uint32_t least = advice_free_cpus(spot, d, &numa);
        if (least == 0 || (change.value && least >= change.value))
            continue;
        change.value = least;
        change.node = spot->node;
        change.numa = numa;
    }
    if (change.value)
        advice_add(p->advice, &change);
}

/* --- what could be asked instead ---------------------------------------- */

static bool within_quota(const struct schedule *s, const struct demand *d)
{
    struct quota_verdict verdict;
    if (s->quota.kind == QUOTA_OK)
        return true; /* asking for less keeps it so */
    quota_judge(s->snapshot, d, s->former, &verdict);
    return verdict.kind == QUOTA_OK;
}

static bool fits_somewhere(void *ctx, enum change_kind kind, uint64_t value)
{
    struct pod_search *p = ctx;
    struct demand d = *p->s->demand;
    demand_set_amount(&d, kind, value);
    if (!within_quota(p->s, &d))
        return false;
    for (size_t i = 0; i < p->n_spots && p->tries; i++) {
        p->tries--;
        if (spot_fits(&p->spots[i], p->spots[i].state, &d)) {
            p->fitted = p->spots[i].node;
            return true;
        }
    }
    return false;
}

static void try_less(struct pod_search *p, enum change_kind kind)
{
    const struct demand *d = p->s->demand;
    struct change change = {.kind = kind, .node = NODE_NONE};
    p->tries = ADVICE_TRIES;
    if (!advice_lessen(d, kind, fits_somewhere, p, &change.value))
        return;
    /* as it would really be asked */
    struct demand less = *d;
    struct choice ignored;
    struct schedule s = *p->s;
    demand_set_amount(&less, kind, change.value);
    s.demand = &less;
    s.costs = NULL;
    if (s.quota.kind != QUOTA_OK)
        quota_judge(s.snapshot, &less, s.former, &s.quota);
    if (schedule_choose(&s, p->fitted, &ignored) == REASON_NONE)
        advice_add(p->advice, &change);
}

/* --- what others could give up ------------------------------------------ */

bool advice_is_of_job(const struct allocation *a, const char *job)
{
    const char *space = a->demand.namespace;
    const char *name = a->demand.job[0] ? a->demand.job : a->demand.name;
    size_t size = strlen(space);
    return strncmp(job, space, size) == 0 && job[size] == '/' &&
           strcmp(job + size + 1, name) == 0;
}

size_t advice_deletable(const struct node *node, const char *pair_key,
                        const char *job, const struct allocation **ret)
{
    size_t n = 0;
    for (size_t i = 0; i < node->n_allocations && n < ADVICE_GONE_MAX; i++) {
        const struct allocation *a = node->allocations[i];
        if (a->demand.role != ROLE_SERVICE && !a->held &&
            strcmp(a->pair_key, pair_key) != 0 &&
            !(job && advice_is_of_job(a, job)))
            ret[n++] = a;
    }
    return n;
}

static bool fits_without(struct pod_search *p, int32_t node,
                         const struct allocation *const *gone, size_t n)
{
    struct choice ignored;
    if (p->tries == 0)
        return false;
    p->tries--;
    return schedule_choose_without(p->s, node, gone, n, &ignored) ==
           REASON_NONE;
}

/* One or two of the pods, or, by dropping from all what can stay, a set of
 * which each is needed.  Fewer than `below`; 0 when none. */
static size_t fewest_gone(struct pod_search *p, int32_t node, size_t below,
                          const struct allocation **ret)
{
    const struct allocation *all[ADVICE_GONE_MAX], *two[2];
    size_t n = advice_deletable(snapshot_node(p->s->snapshot, (size_t)node),
                                p->s->pair_key, NULL, all);
    if (n == 0 || below < 2 || !fits_without(p, node, all, n))
        return 0;
    for (size_t i = 0; i < n; i++) {
        ret[0] = all[i];
        if (fits_without(p, node, ret, 1))
            return 1;
    }
    for (size_t i = 0; i < n && n <= PAIRS_MAX && below > 2; i++) {
        for (size_t k = i + 1; k < n; k++) {
            two[0] = all[i];
            two[1] = all[k];
            if (!fits_without(p, node, two, 2))
                continue;
            memcpy(ret, two, sizeof two);
            return 2;
        }
    }
    for (size_t i = n; i-- > 0 && n > 1;) {
        const struct allocation *kept = all[i];
        memmove(&all[i], &all[i + 1], (n - i - 1) * sizeof(*all));
        if (fits_without(p, node, all, n - 1)) {
            n--;
            continue;
        }
        memmove(&all[i + 1], &all[i], (n - i - 1) * sizeof(*all));
        all[i] = kept;
    }
    memcpy(ret, all, n * sizeof(*all));
    return n < below ? n : 0;
}

static void try_release(struct pod_search *p)
{
    struct change change = {.kind = CHANGE_RELEASE};
    size_t best = ADVICE_GONE_MAX + 1;
    struct choice ignored;
    p->tries = ADVICE_TRIES;
    for (size_t i = 0; i < p->n_spots && p->tries && best > 1; i++) {
        const struct allocation *gone[ADVICE_GONE_MAX];
        if (!reason_resolvable(p->spots[i].reason))
            continue;
        size_t n = fewest_gone(p, p->spots[i].node, best, gone);
        if (n == 0 || schedule_choose_without(p->s, p->spots[i].node, gone, n,
                                              &ignored) != REASON_NONE)
            continue;
        best = n;
        change.node = p->spots[i].node;
        change.n_gone = n;
        memcpy(change.gone, gone, n * sizeof(*gone));
    }
    if (change.n_gone)
        advice_add(p->advice, &change);
}

/* The places on `node` that a job holds. */
static size_t held_by(const struct node *node, const char *job,
                      const struct allocation **ret)
{
    size_t n = 0;
    for (size_t i = 0; i < node->n_allocations && n < ADVICE_GONE_MAX; i++) {
        const struct allocation *a = node->allocations[i];
        if (a->held && advice_is_of_job(a, job))
            ret[n++] = a;
    }
    return n;
}

static bool try_lease_on(struct pod_search *p, int32_t node,
                         struct change *change)
{
    const struct node *n = snapshot_node(p->s->snapshot, (size_t)node);
    const struct allocation *gone[ADVICE_GONE_MAX];
    for (size_t i = 0; i < n->n_allocations && p->tries; i++) {
        const struct allocation *a = n->allocations[i];
        if (!a->held || strcmp(a->pair_key, p->s->pair_key) == 0)
            continue;
        job_key(&a->demand, change->job);
        size_t n_gone = held_by(n, change->job, gone);
        if (gone[0] != a || !fits_without(p, node, gone, n_gone))
            continue;
        change->node = node;
        return true;
    }
    return false;
}

static void try_lease(struct pod_search *p)
{
    const struct schedule *s = p->s;
    struct change change = {.kind = CHANGE_LEASE};
    p->tries = ADVICE_TRIES;
    for (size_t i = 0; i < s->snapshot->n_nodes && p->tries; i++) {
        int32_t node = (int32_t)i;
        if (s->follows != NODE_NONE && s->follows != node)
            continue;
        snapshot_fetch_held(s->snapshot, i);
        if (snapshot_node(s->snapshot, i)->n_held &&
            try_lease_on(p, node, &change)) {
            advice_add(p->advice, &change);
            return;
        }
    }
}

/* --- the quota ---------------------------------------------------------- */

bool advice_raise_quota(const struct snapshot *s, const struct demand *d,
                        const struct allocation *former, struct policy *policy,
                        struct namespace_use *ret_more)
{
    struct snapshot raised = *s;
    struct namespace_use more = {0};
    struct quota_verdict verdict;
    struct policy_quota *quota = NULL;
    raised.policy = policy;
    for (size_t i = 0; i < policy->n_quotas; i++)
        if (strcmp(policy->quotas[i].namespace, d->namespace) == 0)
            quota = &policy->quotas[i];
    if (!quota)
        return false;
    for (unsigned round = 0; round < QUOTA_ROUNDS; round++) {
        quota_judge(&raised, d, former, &verdict);
        uint64_t lack = verdict.used + verdict.asked - verdict.limit;
        switch (verdict.kind) {
        case QUOTA_OK:
            *ret_more = more;
            return true;
        case QUOTA_CARDS:
            more.cards += lack;
            quota->cards += lack;
            break;
        case QUOTA_CORES:
            more.cores += lack;
            quota->cores += lack;
            break;
        case QUOTA_MEMORY:
            more.memory_mib += lack;
            quota->memory_mib += lack;
            break;
        default:
            return false;
        }
    }
    return false;
}

static void try_quota(struct pod_search *p)
{
    const struct snapshot *snapshot = p->s->snapshot;
    struct change change = {.kind = CHANGE_QUOTA, .node = NODE_NONE};
    struct policy policy = *snapshot->policy;
    struct snapshot raised = *snapshot;
    struct schedule s = *p->s;
    struct choice ignored;
    cleanup_free struct policy_quota *quotas =
        xmemdup(policy.quotas, policy.n_quotas * sizeof *quotas);
    policy.quotas = quotas;
    raised.policy = &policy;
    if (!advice_raise_quota(snapshot, p->s->demand, p->s->former, &policy,
                            &change.quota))
        return;
    s.snapshot = &raised;
    s.costs = NULL;
    s.quota.kind = QUOTA_OK;
    for (size_t i = 0; i < p->n_spots; i++) {
        if (schedule_choose(&s, p->spots[i].node, &ignored) != REASON_NONE)
            continue;
        advice_add(p->advice, &change);
        return;
    }
}

void advise_pod(const struct schedule *s, struct advice *ret_advice)
{
    struct advice advice = {0};
    struct pod_search p = {.s = s, .advice = &advice};
    bool granted = s->quota.kind == QUOTA_OK;
    find_spots(&p);
    if (granted) {
        advise_nearest(s, NULL, &advice);
        try_lease(&p);
        try_free(&p);
        try_free_cpus(&p);
    }
    for (enum change_kind kind = CHANGE_ALIGN; kind <= CHANGE_CARDS; kind++)
        try_less(&p, kind);
    if (granted)
        try_release(&p);
    else if (s->quota.kind != QUOTA_DEVICES) /* else there may be no policy */
        try_quota(&p);
    pod_search_fini(&p);
    *ret_advice = advice;
}
