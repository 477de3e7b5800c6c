/* Random operations on whole jobs that race for the same cards: nothing is
 * promised twice, a job within its lease has a place for every pair, nothing
 * leaks, and a plan is the same wherever it is made.  40,000 operations, or
 * $BIGA_JOB_OPERATIONS; each kind is met dozens of times at least. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "extender/judge/job.h"
#include "extender/keep/writer.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/tmpdir.h"

enum {
    OPERATIONS = ROUNDS_OF(40000),
    N_NODES = 4,
    N_CARDS = 4,
    N_JOBS = 4,
    SIZE_MAX_ = 5, /* pairs of a job */
    ROLES = 2,
    GROUP_MAX = 4, /* posted together, planned on the same snapshot */
    LEASE_MS = WRITER_LEASE_MS,
    RESTART_EVERY = 400,
};

static const char *const nodes[N_NODES] = {"n0", "n1", "n2", "n3"};
static const char *const jobs[N_JOBS] = {"a", "b", "c", "d"};
static const int sizes[N_JOBS] = {4, 5, 3, 1};

/* What is known to be true of one pod name. */
struct truth {
    bool bound;
    char uid[DEMAND_UID_MAX + 1];
    int node;
};

struct world {
    char *dir;
    struct writer *w;
    struct plans *plans;
    uint64_t random;
    int64_t now_ms;
    struct truth pods[N_JOBS][ROLES][SIZE_MAX_];
    int64_t lease_end[N_JOBS];      /* 0: no lease */
    bool exempt[N_JOBS][SIZE_MAX_]; /* its pod left within the lease */
    int64_t generation[N_NODES];    /* 0: withdrawn */
    int64_t last_generation;
    unsigned n_ops, n_bound, n_repeated, n_refused, n_released, n_leases,
        n_expired, n_restarts, n_slices, n_plans, n_refusals, n_compared;
};

struct step {
    struct writer_op op;
    struct demand demand;
    struct candidates *candidates;
    int job, role, rank, node;
};

static unsigned pick(struct world *x, unsigned n)
{
    return sim_random(&x->random) % n;
}

/* --- pods --------------------------------------------------------------- */

static struct demand make_pod(int job, int role, int rank, unsigned uid)
{
    char name[32];
    (void)snprintf(name, sizeof name, "%s-%d-%d", jobs[job], role, rank);
    struct demand d = sim_member(name, role ? ROLE_XPU : ROLE_HOST, jobs[job],
                                 rank, sizes[job]);
    (void)snprintf(d.uid, sizeof d.uid, "%s-%u", name, uid);
    if (job == 1) { /* shares its cards, and has a pair of three */
        d = sim_need(d, 4, 4096);
        d.n_shapes = 1;
        d.shapes[0] = (struct pair_shape){.cards = 3,
                                          .align = RELATION_SYS,
                                          .has_card_need = true,
                                          .card_cores = 4,
                                          .card_memory_mib = 4096};
        d.cards = d.pair_cards = rank == 0 ? 3 : 1;
    }
    if (job == 2) { /* with GPUs, and nobody else on its cards */
        d.exclusive = true;
        d.pair_gpus = 1;
        d.gpus = role ? 0 : 1;
    }
    if (job == 3) { /* one pair of two cards, of which an xPU pod has one */
        d.pair_cards = 2;
        d.cards = role ? 1 : 2;
    }
    return d;
}

/* --- plans ---------------------------------------------------------------- */

/* Some of the nodes, usually all. */
static size_t make_candidates(struct world *x, const struct snapshot *s,
                              int32_t *ret_list)
{
    size_t n = 0;
    bool all = pick(x, 4) > 0;
    for (size_t i = 0; i < s->n_nodes; i++)
        if (all || pick(x, 3))
            ret_list[n++] = (int32_t)i;
    return n;
}

/* Where filter would have the pod, or NODE_NONE. */
static int32_t filter(struct world *x, const struct snapshot *s,
                      const struct demand *pod, const int32_t *list, size_t n)
{
    struct schedule schedule;
    struct plan_refusal refusal;
    cleanup_with(plan) struct plan *plan = NULL;
    schedule_init(&schedule, s, pod);
    if (job_is_placed(&schedule, list, n))
        return schedule.follows;
    if (job_plan(x->plans, s, pod, list, n, NODE_NONE, &plan, &refusal) < 0) {
        x->n_refusals++;
        return NODE_NONE;
    }
    x->n_plans++;
    return plan->places[job_rank(pod)].node;
}

static bool same_place(const struct plan_place *a, const struct plan_place *b)
{
    return a->node == b->node && a->fixed == b->fixed &&
           (a->fixed || (a->choice.cards == b->choice.cards &&
                         a->choice.gpus == b->choice.gpus &&
                         a->choice.numa == b->choice.numa));
}

/* The same plans for all jobs on both, or the same refusals. */
static void compare_plans(struct world *x, const struct snapshot *a,
                          const struct snapshot *b)
{
    for (int job = 0; job < N_JOBS; job++) {
        struct demand pod = make_pod(job, (int)pick(x, 2),
                                     (int)pick(x, (unsigned)sizes[job]), 9);
        cleanup_with(plan) struct plan *p = NULL;
        cleanup_with(plan) struct plan *q = NULL;
        struct plan_refusal no_p = {0}, no_q = {0};
        int r = job_plan(x->plans, a, &pod, NULL, 0, NODE_NONE, &p, &no_p);
        int e = job_plan(NULL, b, &pod, NULL, 0, NODE_NONE, &q, &no_q);
        cr_assert_eq(r, e);
        cr_assert(r == 0 ||
                  (no_p.lack == no_q.lack && no_p.asked == no_q.asked &&
                   no_p.room == no_q.room));
        for (uint32_t i = 0; r == 0 && i < p->size; i++)
            cr_assert(same_place(&p->places[i], &q->places[i]),
                      "job %s, rank %u", jobs[job], i);
        x->n_compared++;
    }
}

/* The same content, made in another order by somebody else. */
static void compare_elsewhere(struct world *x)
{
    cleanup_with(snapshot) struct snapshot *here = writer_snapshot(x->w);
    struct writer *w = sim_writer(NULL);
    for (int i = N_NODES; i-- > 0;)
        if (x->generation[i])
            cr_assert_eq(
                sim_publish(w, nodes[i], N_CARDS, "boot", x->generation[i]), 0);
    cleanup_with(snapshot) struct snapshot *base = writer_snapshot(w);
    struct draft *draft = draft_create(base);
    for (size_t i = 0; i < here->n_nodes; i++) {
        const struct node *n = snapshot_node(here, i);
        draft_set_status(draft, n->name, n->status);
    }
    size_t n = 0;
    cleanup_free const struct allocation **list =
        alloc_index_list(here->allocations, &n);
    while (n-- > 0)
        draft_allocate(draft, allocation_ref((struct allocation *)list[n]));
    cleanup_with(snapshot) struct snapshot *there = draft_commit(draft);
    compare_plans(x, here, there);
    writer_stop(w);
}

/* --- what happens to hosts and to time ---------------------------------- */

static void publish(struct world *x, int node)
{
    x->generation[node] = ++x->last_generation;
    x->n_slices++;
    cr_assert_eq(
        sim_publish(x->w, nodes[node], N_CARDS, "boot", x->generation[node]),
        0);
}

static void withdraw(struct world *x, int node)
{
    cr_assert_eq(sim_withdraw(x->w, nodes[node]),
                 x->generation[node] ? 0 : -ENOENT);
    x->generation[node] = 0;
    x->n_slices++;
}

static void heartbeat(struct world *x, int node)
{
    cr_assert(
        sim_heartbeat(x->w, nodes[node], N_CARDS, "boot", x->generation[node]));
}

static void pass_time(struct world *x, int64_t ms)
{
    x->now_ms += ms;
    clock_set_fake(x->now_ms);
    for (int i = 0; i < N_NODES; i++)
        if (x->generation[i] && pick(x, 8))
            heartbeat(x, i);
    writer_sweep(x->w);
    for (int job = 0; job < N_JOBS; job++)
        if (x->lease_end[job] && x->lease_end[job] <= x->now_ms) {
            x->lease_end[job] = 0;
            x->n_expired++;
        }
}

static size_t count_held(const struct snapshot *s, int job)
{
    size_t n, held = 0;
    cleanup_free const struct allocation **list =
        alloc_index_find_job(s->allocations, "ns", jobs[job], &n);
    for (size_t i = 0; i < n; i++)
        held += list[i]->held;
    return held;
}

static void restart(struct world *x)
{
    struct snapshot *before = writer_snapshot(x->w);
    writer_stop(x->w);
    x->w = sim_writer(x->dir);
    x->n_restarts++;
    cleanup_with(snapshot) struct snapshot *after = writer_snapshot(x->w);
    compare_plans(x, before, after);
    for (int job = 0; job < N_JOBS; job++)
        x->lease_end[job] = count_held(after, job) ? x->now_ms + LEASE_MS : 0;
    snapshot_unref(before);
}

/* --- operations --------------------------------------------------------- */

static int index_of(const char *node)
{
    for (int i = 0; i < N_NODES; i++)
        if (strcmp(nodes[i], node) == 0)
            return i;
    return -1;
}

static void make_step(struct world *x, const struct snapshot *s,
                      struct step *step)
{
    int32_t list[N_NODES + 1];
    memset(step, 0, sizeof *step);
    step->job = (int)pick(x, N_JOBS);
    step->role = (int)pick(x, ROLES);
    step->rank = (int)pick(x, (unsigned)sizes[step->job]);
    step->demand = make_pod(step->job, step->role, step->rank, pick(x, 8) == 0);
    size_t n = make_candidates(x, s, list);
    int32_t node = filter(x, s, &step->demand, list, n);
    step->node = node >= 0 && pick(x, 8)
                     ? index_of(snapshot_node(s, (size_t)node)->name)
                     : (int)pick(x, N_NODES);
    if (pick(x, 4))
        step->candidates = candidates_create(s, list, n, NULL);
    if (pick(x, 10) < 7)
        step->op = (struct writer_op){.kind = WRITER_BIND,
                                      .node = nodes[step->node],
                                      .candidates = step->candidates,
                                      .demand = &step->demand};
    else
        step->op = (struct writer_op){.kind = WRITER_RELEASE,
                                      .namespace = step->demand.namespace,
                                      .pod = step->demand.name};
}

static bool job_bound(const struct world *x, int job)
{
    for (int role = 0; role < ROLES; role++)
        for (int rank = 0; rank < sizes[job]; rank++)
            if (x->pods[job][role][rank].bound)
                return true;
    return false;
}

static void pod_left(struct world *x, int job, int rank)
{
    x->exempt[job][rank] = true;
    if (!job_bound(x, job))
        x->lease_end[job] = 0;
}

static void learn_bind(struct world *x, const struct step *s)
{
    struct truth *t = &x->pods[s->job][s->role][s->rank];
    bool same = t->bound && strcmp(t->uid, s->demand.uid) == 0;
    bool pair = x->pods[s->job][!s->role][s->rank].bound;
    switch (s->op.result) {
    case 0:
        cr_assert_eq(s->op.created, !same, "a repeat makes nothing new");
        cr_assert(!same || t->node == s->node);
        x->n_repeated += same;
        x->n_bound += !same;
        if (same)
            return;
        t->bound = true;
        t->node = s->node;
        memcpy(t->uid, s->demand.uid, sizeof t->uid);
        /* a pair that had no member may have led to a new plan */
        if (!pair && x->lease_end[s->job] == 0) {
            memset(x->exempt[s->job], 0, sizeof x->exempt[s->job]);
            x->n_leases++;
            x->lease_end[s->job] = x->now_ms + LEASE_MS;
        } else if (x->lease_end[s->job]) {
            x->lease_end[s->job] = x->now_ms + LEASE_MS;
        }
        break;
    case -EEXIST:
        cr_assert(same && t->node != s->node);
        break;
    case -EBUSY:
        cr_assert(!same, "a bound pod is told so: %s", s->op.error.text);
        x->n_refused++;
        break;
    default:
        cr_assert_fail("bind: %s", s->op.error.text);
    }
}

static void learn(struct world *x, const struct step *s)
{
    struct truth *t = &x->pods[s->job][s->role][s->rank];
    if (s->op.kind == WRITER_BIND) {
        learn_bind(x, s);
        return;
    }
    cr_assert_eq(s->op.result, t->bound ? 0 : -ENOENT);
    x->n_released += t->bound;
    if (t->bound) {
        t->bound = false;
        pod_left(x, s->job, s->rank);
    }
}

/* Post some operations at once; the last one is waited for, as the writer
 * keeps their order. */
static void run_group(struct world *x)
{
    struct step steps[GROUP_MAX];
    unsigned n = 1 + pick(x, GROUP_MAX);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(x->w);
    for (unsigned i = 0; i < n; i++) {
        make_step(x, s, &steps[i]);
        str_init(&steps[i].op.out, 1 << 20);
    }
    for (unsigned i = 0; i + 1 < n; i++)
        writer_post(x->w, &steps[i].op);
    (void)writer_run(x->w, &steps[n - 1].op); /* learned below */
    for (unsigned i = 0; i < n; i++) {
        learn(x, &steps[i]);
        str_fini(&steps[i].op.out);
        candidates_unref(steps[i].candidates);
    }
    x->n_ops += n;
}

/* --- the invariants ----------------------------------------------------- */

static void check_pod(const struct world *x, const struct snapshot *s, int job,
                      int role, int rank)
{
    const struct truth *t = &x->pods[job][role][rank];
    struct demand d = make_pod(job, role, rank, 0);
    const struct allocation *a = alloc_index_find(s->allocations, "ns", d.name);
    cr_assert_eq(a != NULL, t->bound, "%s", d.name);
    cr_assert(!a || (strcmp(a->demand.uid, t->uid) == 0 && !a->held &&
                     strcmp(a->node, nodes[t->node]) == 0));
}

/* Each pair on one node; what is held is held within the lease alone, and
 * then with all pairs. */
static void check_job(const struct world *x, const struct snapshot *s, int job)
{
    size_t held = count_held(s, job);
    cr_assert(held == 0 || x->lease_end[job] > x->now_ms,
              "job %s holds %zu places without a lease", jobs[job], held);
    for (int rank = 0; rank < sizes[job]; rank++) {
        struct demand d = make_pod(job, 0, rank, 0);
        const struct allocation *members[8];
        char key[DEMAND_PAIR_KEY_MAX];
        demand_pair_key(&d, key);
        size_t n = alloc_index_find_pair(s->allocations, key, members, 8);
        for (size_t i = 1; i < n; i++)
            cr_assert_str_eq(members[i]->node, members[0]->node);
        cr_assert(
            n > 0 || x->lease_end[job] <= x->now_ms || x->exempt[job][rank],
            "job %s: pair %d has no place within the lease", jobs[job], rank);
    }
}

static void check(const struct world *x)
{
    cleanup_str struct str why = STR_INIT(4096);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(x->w);
    size_t n = 0;
    cr_assert(sim_check(s, &why), "%s", str_text(&why));
    for (int job = 0; job < N_JOBS; job++) {
        check_job(x, s, job);
        n += count_held(s, job);
        for (int role = 0; role < ROLES; role++)
            for (int rank = 0; rank < sizes[job]; rank++) {
                check_pod(x, s, job, role, rank);
                n += x->pods[job][role][rank].bound;
            }
    }
    cr_assert_eq(alloc_index_size(s->allocations), n);
}

/* Everybody leaves: all is as if nobody had ever come. */
static void check_no_leak(struct world *x)
{
    for (int job = 0; job < N_JOBS; job++)
        for (int role = 0; role < ROLES; role++)
            for (int rank = 0; rank < sizes[job]; rank++) {
                struct demand d = make_pod(job, role, rank, 0);
                struct truth *t = &x->pods[job][role][rank];
                cr_assert_eq(sim_release(x->w, d.name), t->bound ? 0 : -ENOENT);
                t->bound = false;
            }
    memset(x->lease_end, 0, sizeof x->lease_end);
    for (int i = 0; i < N_NODES; i++)
        publish(x, i);
    check(x);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(x->w);
    cr_assert_eq(alloc_index_size(s->allocations), 0);
    for (size_t i = 0; i < s->n_nodes; i++) {
        const struct node *n = snapshot_node(s, i);
        struct node_state idle;
        node_state_init(&idle, n->topo, n->shape);
        cr_assert_eq(memcmp(&idle, &n->state, sizeof idle), 0, "%s", n->name);
    }
}

static void step_on(struct world *x)
{
    int node = (int)pick(x, N_NODES);
    run_group(x);
    unsigned chance = pick(x, RESTART_EVERY);
    x->n_ops += chance < 60;
    if (chance == 0)
        restart(x);
    else if (chance == 1)
        withdraw(x, node);
    else if (chance < 8)
        publish(x, node);
    else if (chance < 20)
        pass_time(x, LEASE_MS);
    else if (chance < 58)
        pass_time(x, 1 + (int64_t)pick(x, 8000));
    else if (chance < 60)
        compare_elsewhere(x);
    check(x);
    if (pick(x, 2000) == 0)
        check_no_leak(x);
}

Test(job_random, whole_jobs_stay_whole)
{
    const char *more = getenv("BIGA_JOB_OPERATIONS");
    unsigned n = more ? (unsigned)strtoul(more, NULL, 10) : OPERATIONS;
    struct world x = {.random = 20260301, .now_ms = 1000000};
    log_set_level(LOG_ERROR);
    clock_set_fake(x.now_ms);
    x.dir = tmpdir_create();
    x.w = sim_writer(x.dir);
    x.plans = plans_create();
    for (int i = 0; i < N_NODES; i++)
        publish(&x, i);
    while (x.n_ops < n)
        step_on(&x);
    check_no_leak(&x);
    writer_stop(x.w);
    plans_destroy(x.plans);
    tmpdir_remove(x.dir);
    clock_set_fake(-1);
    (void)fprintf(stderr,
                  "job_random: %u operations: %u bound, %u repeated, %u "
                  "refused, %u released, %u leases, %u expired, %u restarts, "
                  "%u slices, %u plans, %u no plan, %u plans compared\n",
                  x.n_ops, x.n_bound, x.n_repeated, x.n_refused, x.n_released,
                  x.n_leases, x.n_expired, x.n_restarts, x.n_slices, x.n_plans,
                  x.n_refusals, x.n_compared);
    cr_expect(n < 10000 || (x.n_bound && x.n_repeated && x.n_refused &&
                            x.n_released && x.n_leases && x.n_expired &&
                            x.n_restarts && x.n_plans && x.n_compared));
}
