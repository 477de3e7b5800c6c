/* Advice for a job of which not all pairs have a place: what its owner could
 * do without. */
#include <string.h>

#include "extender/judge/advice_private.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"

/* What all trials may cost together, see job_search.steps. */
#define STEPS_MAX UINT64_C(250000)
enum {
    STATE_STEPS = 16,   /* of one that many hosts have in common */
    ODD_STEPS = 128,    /* where hardly two hosts are alike, cards are shared */
    STATES_USUAL = 512, /* and what they hold takes longer to find out */
    AMOUNTS_MAX = 16,
};

bool job_search_fits(struct job_search *j)
{
    struct plan *plan = NULL;
    struct plan_refusal ignored;
    if (j->steps < j->steps_per_plan)
        return false;
    j->steps -= j->steps_per_plan;
    if (plan_make(&j->in.cluster, &j->in.job, &plan, &ignored) < 0)
        return false;
    plan_unref(plan);
    return true;
}

bool job_search_fits_changed(struct job_search *j)
{
    const struct plan_base *base = j->in.cluster.base;
    j->in.cluster.base = NULL;
    bool fits = job_search_fits(j);
    j->in.cluster.base = base;
    return fits;
}

/* --- asking for less ---------------------------------------------------- */

/* Does it help to ask for `value` where a pair asks for more (a farther
 * relation: where it asks for a nearer one)? */
static bool fits_with_less(void *ctx, enum change_kind kind, uint64_t value)
{
    struct job_search *j = ctx;
    const struct demand *old = j->in.job.shapes;
    struct demand shapes[PLAN_SHAPES_MAX];
    for (size_t i = 0; i < j->in.job.n_shapes; i++) {
        shapes[i] = old[i];
        uint64_t now = demand_amount(&old[i], kind);
        if (kind == CHANGE_ALIGN ? now < value : now > value)
            demand_set_amount(&shapes[i], kind, value);
    }
    j->in.job.shapes = shapes;
    bool fits = job_search_fits(j);
    j->in.job.shapes = old;
    return fits;
}

/* The shape that asks for most. */
static const struct demand *greediest(const struct job_search *j,
                                      enum change_kind kind)
{
    const struct demand *most = &j->in.job.shapes[0];
    for (size_t i = 1; i < j->in.job.n_shapes; i++) {
        const struct demand *d = &j->in.job.shapes[i];
        uint64_t a = demand_amount(d, kind), b = demand_amount(most, kind);
        if (kind == CHANGE_ALIGN ? a < b : a > b)
            most = d;
    }
    return most;
}

static void try_less(struct job_search *j, enum change_kind kind)
{
    const struct demand *d = greediest(j, kind);
    struct change change = {.kind = kind, .node = NODE_NONE};
    uint64_t now = demand_amount(d, kind);
    bool devices = kind == CHANGE_NICS || kind == CHANGE_GPUS ||
                   kind == CHANGE_CARDS;
    if (devices && now > AMOUNTS_MAX)
        return;
    if (advice_lessen(d, kind, fits_with_less, j, &change.value))
        advice_add(j->advice, &change);
}

/* --- the fabric, the number of pairs ------------------------------------ */

static void try_within(struct job_search *j)
{
    struct change change = {.kind = CHANGE_WITHIN, .node = NODE_NONE};
    struct plan_job *job = &j->in.job;
    int within = job->within, n = (int)fabric_n_tiers(j->in.cluster.fabric);
    bool fits = false;
    if (within < 0)
        return;
    job->within = PLAN_ANYWHERE;
    if (!job_search_fits(j)) {
        job->within = within;
        return;
    }
    for (int tier = within + 1; tier < n && !fits; tier++) {
        job->within = tier;
        change.value = (uint64_t)tier;
        fits = job_search_fits(j);
    }
    if (!fits)
        change.value = FABRIC_APART;
    job->within = within;
    advice_add(j->advice, &change);
}

/* No pair may have its place behind the last one. */
static bool covers_fixed(const struct plan_job *job, uint32_t size)
{
    return job->n_fixed == 0 ||
           job->fixed[job->n_fixed - 1].rank < (int32_t)size;
}

/* Of the pairs without a place, so many have room where the job may be. */
static uint32_t room_of(const struct job_search *j)
{
    const struct plan_refusal *r = &j->refusal;
    bool within = j->in.job.within >= 0 && r->room_within < r->room;
    return within ? r->room_within : r->room;
}

static void try_pairs(struct job_search *j)
{
    struct change change = {.kind = CHANGE_PAIRS, .node = NODE_NONE};
    struct plan_job *job = &j->in.job;
    uint32_t size = job->size, fixed = (uint32_t)job->n_fixed;
    uint32_t room = room_of(j);
    uint32_t fewer = fixed + (room < size - fixed ? room : size - fixed);
    if (fewer >= size)
        fewer = size - 1;
    if (fewer == 0 || !covers_fixed(job, fewer))
        return;
    job->size = fewer;
    bool fits = job_search_fits(j);
    job->size = size;
    change.value = fewer;
    if (fits)
        advice_add(j->advice, &change);
}

/* --- the quota ---------------------------------------------------------- */

static void try_quota(struct job_search *j, const struct allocation *former)
{
    struct change change = {.kind = CHANGE_QUOTA, .node = NODE_NONE};
    struct policy policy = *j->snapshot->policy;
    cleanup_free struct policy_quota *quotas =
        xmemdup(policy.quotas, policy.n_quotas * sizeof *quotas);
    policy.quotas = quotas;
    /* the plan itself knows of no quota */
    if (advice_raise_quota(j->snapshot, j->pod, former, &policy,
                           &change.quota) &&
        job_search_fits(j))
        advice_add(j->advice, &change);
}

/* --- the whole ---------------------------------------------------------- */

/* How many different states there are, about: by what is in them, so that
 * every process counts the same; of large clusters a sample is looked at, and
 * stands for the whole when it is mostly different. */
static uint64_t count_states(const struct plan_cluster *c)
{
    enum { LOOKS = 2048, SEEN = 2 * LOOKS };
    cleanup_free uint64_t *seen = xcalloc(SEEN, sizeof *seen);
    size_t step = 1 + c->n_nodes / LOOKS;
    uint64_t n = 0, looks = 0;
    for (size_t i = 0; i < c->n_nodes; i += step) {
        const struct node_state *state = c->states[i];
        if (!state)
            continue;
        uint64_t hash =
            hash_mix(hash_bytes(state->free_cores,
                                sizeof *state - sizeof state->shape),
                     state->shape->hash) |
            1;
        size_t at = hash / 2 % SEEN;
        while (seen[at] && seen[at] != hash)
            at = (at + 1) % SEEN;
        n += !seen[at];
        seen[at] = hash;
        looks++;
    }
    return n > looks / 2 ? n * step : n;
}

static void search_around(struct job_search *j)
{
    struct plan *plan = NULL;
    uint64_t each = j->in.cluster.n_nodes / 4 + j->in.job.size;
    uint64_t states = count_states(&j->in.cluster);
    uint64_t odd = states > STATES_USUAL ? states - STATES_USUAL : 0;
    j->steps_per_plan = each + STATE_STEPS * (states - odd) + ODD_STEPS * odd;
    j->steps = STEPS_MAX;
    if (plan_make(&j->in.cluster, &j->in.job, &plan, &j->refusal) == 0) {
        plan_unref(plan);
        return;
    }
    job_search_take_little(j);
    try_within(j);
    for (enum change_kind kind = CHANGE_ALIGN; kind <= CHANGE_CARDS; kind++)
        try_less(j, kind);
    try_pairs(j);
    job_search_take_more(j);
}

static void search(struct job_search *j)
{
    if (j->in.n_waiting)
        return; /* room is on its way */
    struct plan_base *base = plan_base_create(&j->in.cluster,
                                              j->in.job.candidates);
    j->in.cluster.base = base;
    search_around(j);
    j->in.cluster.base = NULL;
    plan_base_destroy(base);
}

void advise_job(const struct snapshot *snapshot, const struct demand *pod,
                const int32_t *candidates, size_t n, struct advice *ret_advice)
{
    struct advice advice = {0};
    struct job_search j = {.snapshot = snapshot, .pod = pod, .advice = &advice};
    struct schedule s;
    schedule_init(&s, snapshot, pod);
    job_key(pod, j.job);
    job_input_init(&j.in, snapshot, pod, candidates, n, NODE_NONE);
    if (s.quota.kind == QUOTA_OK) {
        search(&j);
    } else if (s.quota.kind !=
               QUOTA_DEVICES) { /* else there may be no policy */
        j.steps = STEPS_MAX;
        try_quota(&j, s.former);
    }
    job_input_fini(&j.in);
    *ret_advice = advice;
}
