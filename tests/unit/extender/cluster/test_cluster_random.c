/* Random events in a cluster of two replicas: binds that succeed, fail or
 * stay open, pods that end and come again, watches that lag and lists that
 * overtake them, leaders that change, replicas that start anew.  What the
 * pods of the API server have is never promised twice, and who has heard
 * everything has just that.  15,000 operations, or
 * $BIGA_CLUSTER_OPERATIONS. */
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

enum {
    OPERATIONS = ROUNDS_OF(15000),
    REPLICAS = 2,
    N_NODES = 4,
    N_CARDS = 4,
    N_JOBS = 4,
    PAIRS_MAX = 5,
    ROLES = 2,
    WORLD_PODS_MAX = N_JOBS * ROLES * PAIRS_MAX,
    EVENTS_MAX = 4096,
    NOBODY = -1,
};

static const char *const nodes[N_NODES] = {"n0", "n1", "n2", "n3"};
static const char *const jobs[N_JOBS] = {"a", "b", "c", "d"};
static const int sizes[N_JOBS] = {4, 5, 3, 1};

/* A pod as the API server has it. */
struct pod {
    bool there;
    char uid[DEMAND_UID_MAX + 1];
    struct allocation *has; /* NULL: not bound */
};

/* A call of the leader that nobody knows the end of. */
struct open_bind {
    bool open;
    struct allocation *wanted;
};

struct event {
    struct allocation *adopt; /* or else */
    char name[DEMAND_NAME_MAX + 1], uid[DEMAND_UID_MAX + 1];
};

struct replica {
    struct writer *w;
    struct event events[EVENTS_MAX]; /* not heard yet */
    size_t n_events;
};

struct world {
    struct pod pods[N_JOBS][ROLES][PAIRS_MAX];
    struct open_bind opens[N_JOBS][ROLES][PAIRS_MAX];
    struct replica replicas[REPLICAS];
    int leader;
    uint64_t random;
    unsigned uids;
    unsigned n_bound, n_repeated, n_refused, n_open, n_ended, n_leaders,
        n_lists, n_events, n_starts, n_checked, n_held;
};

static unsigned pick(struct world *x, unsigned n)
{
    return sim_random(&x->random) % n;
}

static struct demand make_demand(int job, int role, int rank, const char *uid)
{
    char name[32];
    (void)snprintf(name, sizeof name, "%s-%d-%d", jobs[job], role, rank);
    struct demand d = sim_member(name, role ? ROLE_XPU : ROLE_HOST, jobs[job],
                                 rank, sizes[job]);
    (void)snprintf(d.uid, sizeof d.uid, "%.60s", uid);
    if (job == 1)
        d = sim_need(d, 4, 4096);
    d.exclusive = job == 2;
    if (job == 3) {
        d.pair_cards = 2;
        d.cards = role ? 1 : 2;
    }
    return d;
}

/* --- the API server ----------------------------------------------------- */

static void tell(struct world *x, struct allocation *adopt, const char *name,
                 const char *uid)
{
    for (int i = 0; i < REPLICAS; i++) {
        struct replica *r = &x->replicas[i];
        cr_assert_lt(r->n_events, EVENTS_MAX);
        struct event *e = &r->events[r->n_events++];
        memset(e, 0, sizeof *e);
        e->adopt = adopt ? allocation_ref(adopt) : NULL;
        (void)snprintf(e->name, sizeof e->name, "%s", name);
        (void)snprintf(e->uid, sizeof e->uid, "%s", uid);
    }
}

/* A copy, as it is read from an annotation. */
static struct allocation *copy(const struct allocation *from)
{
    cleanup_str struct str json = STR_INIT(1 << 20);
    struct allocation *a = NULL;
    struct error err = {0};
    allocation_encode(from, &json);
    cr_assert_eq(allocation_decode(json.data, json.size, &a, &err), 0, "%s",
                 err.text);
    return a;
}

/* A binding call arrives. */
static bool arrive(struct world *x, struct pod *p, struct allocation *wanted)
{
    if (!p->there || p->has || strcmp(p->uid, wanted->demand.uid) != 0)
        return false;
    p->has = copy(wanted);
    tell(x, p->has, wanted->demand.name, p->uid);
    return true;
}

static void end_pod(struct world *x, int job, int role, int rank)
{
    struct pod *p = &x->pods[job][role][rank];
    struct demand d = make_demand(job, role, rank, "");
    if (!p->there)
        return;
    tell(x, NULL, d.name, p->uid);
    allocation_unref(p->has);
    *p = (struct pod){0};
    x->n_ended++;
}

/* --- one replica -------------------------------------------------------- */

static void adopt(struct replica *r, struct allocation *a)
{
    struct writer_op op = {.kind = WRITER_ADOPT, .allocation = a};
    cr_assert_eq(writer_run(r->w, &op), 0, "%s", op.error.text);
}

static void free_pod(struct replica *r, const char *name, const char *uid,
                     const struct allocation *a)
{
    struct writer_op op = {.kind = WRITER_FREE,
                           .namespace = "ns",
                           .pod = name,
                           .uid = uid,
                           .node = a ? a->node : NULL,
                           .number = a ? a->number : 0};
    (void)writer_run(r->w, &op); /* it may be gone */
}

static void hear(struct world *x, struct replica *r, size_t n)
{
    n = n < r->n_events ? n : r->n_events;
    for (size_t i = 0; i < n; i++) {
        struct event *e = &r->events[i];
        if (e->adopt)
            adopt(r, e->adopt);
        else
            free_pod(r, e->name, e->uid, NULL);
        allocation_unref(e->adopt);
        x->n_events++;
    }
    r->n_events -= n;
    memmove(r->events, r->events + n, r->n_events * sizeof *r->events);
}

/* Is a call for it on its way?  The leader alone knows. */
static bool keeps(void *ctx, const char *uid)
{
    const struct world *x = ctx;
    for (int job = 0; job < N_JOBS; job++)
        for (int role = 0; role < ROLES; role++)
            for (int rank = 0; rank < sizes[job]; rank++) {
                const struct open_bind *o = &x->opens[job][role][rank];
                if (o->open && strcmp(o->wanted->demand.uid, uid) == 0)
                    return true;
            }
    return false;
}

static int compare_uids(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void bind_some(struct world *x);

/* What a list has: all pods, and what those have that are bound. */
struct list {
    struct allocation *bound[WORLD_PODS_MAX];
    char texts[WORLD_PODS_MAX][DEMAND_UID_MAX + 1];
    const char *uids[WORLD_PODS_MAX];
    size_t n_bound, n;
};

static void take_list(const struct world *x, struct list *l)
{
    l->n = l->n_bound = 0;
    for (int job = 0; job < N_JOBS; job++)
        for (int role = 0; role < ROLES; role++)
            for (int rank = 0; rank < sizes[job]; rank++) {
                const struct pod *p = &x->pods[job][role][rank];
                if (!p->there)
                    continue;
                memcpy(l->texts[l->n], p->uid, sizeof p->uid);
                l->uids[l->n] = l->texts[l->n];
                l->n++;
                if (p->has)
                    l->bound[l->n_bound++] = allocation_ref(p->has);
            }
    qsort(l->uids, l->n, sizeof *l->uids, compare_uids);
}

/* A list, in the middle of which the leader goes on. */
static void relist(struct world *x, struct replica *r)
{
    struct list l;
    uint64_t number = writer_version(r->w);
    bool leads = x->leader != NOBODY && r == &x->replicas[x->leader];
    for (size_t i = 0; i < r->n_events; i++)
        allocation_unref(r->events[i].adopt);
    r->n_events = 0;
    take_list(x, &l);
    for (unsigned i = pick(x, 3); i > 0 && x->leader != NOBODY; i--)
        bind_some(x);
    for (size_t i = 0; i < l.n_bound; i++) {
        adopt(r, l.bound[i]);
        allocation_unref(l.bound[i]);
    }
    struct writer_op op = {.kind = WRITER_KEEP,
                           .uids = l.uids,
                           .n_uids = l.n,
                           .number = number,
                           .keep = leads ? keeps : NULL,
                           .ctx = x};
    cr_assert_eq(writer_run(r->w, &op), 0);
    x->n_lists++;
}

static size_t command(struct replica *r, enum writer_kind kind)
{
    struct writer_op op = {.kind = kind};
    cr_assert_eq(writer_run(r->w, &op), 0, "%s", op.error.text);
    return op.n_out;
}

static void begin(struct replica *r)
{
    struct writer_config config = {.store = STORE_KUBERNETES,
                                   .fresh_ms = 15000};
    struct error err = {0};
    cr_assert_eq(writer_start(&config, &r->w, &err), 0, "%s", err.text);
    for (int i = 0; i < N_NODES; i++)
        cr_assert_eq(sim_publish(r->w, nodes[i], N_CARDS, "boot", 1), 0);
}

/* --- binds -------------------------------------------------------------- */

/* Where filter would have the pod, or NODE_NONE. */
static int32_t filter(const struct snapshot *s, const struct demand *pod)
{
    struct schedule schedule;
    struct plan_refusal refusal;
    cleanup_with(plan) struct plan *plan = NULL;
    schedule_init(&schedule, s, pod);
    if (job_is_placed(&schedule, NULL, 0))
        return schedule.follows;
    if (job_plan(NULL, s, pod, NULL, 0, NODE_NONE, &plan, &refusal) < 0)
        return NODE_NONE;
    return plan->places[job_rank(pod)].node;
}

static struct allocation *find(struct writer *w, const char *name)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    const struct allocation *a = alloc_index_find(s->allocations, "ns", name);
    return a ? allocation_ref((struct allocation *)a) : NULL;
}

/* What became of a call. */
static void close_bind(struct world *x, int job, int role, int rank, bool came)
{
    struct open_bind *o = &x->opens[job][role][rank];
    struct pod *p = &x->pods[job][role][rank];
    struct replica *r = &x->replicas[x->leader];
    bool done = came && arrive(x, p, o->wanted);
    /* an earlier call of the same may have arrived, too */
    bool is_so = p->has && p->has->number == o->wanted->number &&
                 strcmp(p->uid, o->wanted->demand.uid) == 0;
    if (!done && !is_so)
        free_pod(r, o->wanted->demand.name, o->wanted->demand.uid, o->wanted);
    x->n_bound += done;
    x->n_repeated += !done && is_so;
    x->n_refused += !done && !is_so;
    allocation_unref(o->wanted);
    *o = (struct open_bind){0};
}

static void bind_one(struct world *x, int job, int role, int rank)
{
    struct pod *p = &x->pods[job][role][rank];
    struct open_bind *o = &x->opens[job][role][rank];
    struct writer *w = x->replicas[x->leader].w;
    struct error err = {0};
    if (!p->there) {
        p->there = true;
        (void)snprintf(p->uid, sizeof p->uid, "uid-%u", ++x->uids);
    }
    if (o->open) {
        close_bind(x, job, role, rank, pick(x, 2));
        return;
    }
    struct demand d = make_demand(job, role, rank, p->uid);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    int32_t node = filter(s, &d);
    if (node < 0)
        return;
    if (sim_bind(w, &d, snapshot_node(s, (size_t)node)->name, NULL, &err) < 0)
        return;
    *o = (struct open_bind){.open = true, .wanted = find(w, d.name)};
    cr_assert(o->wanted);
    if (pick(x, 8))
        close_bind(x, job, role, rank, pick(x, 8));
    else
        x->n_open++;
}

static void bind_some(struct world *x)
{
    int job = (int)pick(x, N_JOBS);
    bind_one(x, job, (int)pick(x, ROLES), (int)pick(x, (unsigned)sizes[job]));
}

/* --- leaders ------------------------------------------------------------ */

/* No call is on its way any more when another one may lead. */
static void close_all(struct world *x)
{
    for (int job = 0; job < N_JOBS; job++)
        for (int role = 0; role < ROLES; role++)
            for (int rank = 0; rank < sizes[job]; rank++)
                if (x->opens[job][role][rank].open)
                    close_bind(x, job, role, rank, pick(x, 2));
}

/* How many places are held on a replica. */
static size_t count_held(struct replica *r)
{
    size_t n, held = 0;
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(r->w);
    cleanup_free const struct allocation **list =
        alloc_index_list(s->allocations, &n);
    for (size_t i = 0; i < n; i++)
        held += list[i]->held;
    return held;
}

static void lead(struct world *x, int who)
{
    struct replica *r = &x->replicas[who];
    if (x->leader == who)
        return;
    if (x->leader != NOBODY) {
        close_all(x);
        (void)command(&x->replicas[x->leader], WRITER_FOLLOW);
        cr_assert_eq(count_held(&x->replicas[x->leader]), 0);
    }
    hear(x, r, EVENTS_MAX);
    x->leader = who;
    (void)command(r, WRITER_LEAD);
    x->n_held += (unsigned)count_held(r);
    x->n_leaders++;
}

/* Nothing is left of it but what it is told. */
static void start_anew(struct world *x, int who)
{
    struct replica *r = &x->replicas[who];
    if (x->leader == who) {
        close_all(x);
        x->leader = NOBODY;
    }
    writer_stop(r->w);
    begin(r);
    relist(x, r);
    x->n_starts++;
    if (x->leader == NOBODY)
        lead(x, (int)pick(x, REPLICAS));
}

/* --- what must be so ---------------------------------------------------- */

static void check_snapshot(const struct snapshot *s, const char *whose)
{
    cleanup_str struct str why = STR_INIT(4096);
    cr_assert(sim_check(s, &why), "%s: %s", whose, str_text(&why));
}

/* What the pods have, on nodes of their own. */
static void check_truth(struct world *x)
{
    cleanup_with(snapshot) struct snapshot *now =
        writer_snapshot(x->replicas[0].w);
    struct draft *draft = draft_create(now);
    size_t n;
    cleanup_free const struct allocation **list =
        alloc_index_list(now->allocations, &n);
    for (size_t i = 0; i < n; i++)
        (void)draft_release(draft, "ns", list[i]->demand.name);
    for (int job = 0; job < N_JOBS; job++)
        for (int role = 0; role < ROLES; role++)
            for (int rank = 0; rank < sizes[job]; rank++)
                if (x->pods[job][role][rank].has)
                    draft_allocate(
                        draft, allocation_ref(x->pods[job][role][rank].has));
    cleanup_with(snapshot) struct snapshot *truth = draft_commit(draft);
    check_snapshot(truth, "the pods");
}

/* Who has heard all has what the pods have, and what is on its way. */
static void check_heard(struct world *x, int who)
{
    struct replica *r = &x->replicas[who];
    size_t n = 0;
    hear(x, r, EVENTS_MAX);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(r->w);
    check_snapshot(s, "a replica");
    for (int job = 0; job < N_JOBS; job++)
        for (int role = 0; role < ROLES; role++)
            for (int rank = 0; rank < sizes[job]; rank++) {
                const struct pod *p = &x->pods[job][role][rank];
                const struct open_bind *o = &x->opens[job][role][rank];
                struct demand d = make_demand(job, role, rank, p->uid);
                const struct allocation *a = alloc_index_find(s->allocations,
                                                              "ns", d.name);
                n += a != NULL;
                if (p->has) {
                    cr_assert(a && strcmp(a->demand.uid, p->uid) == 0 &&
                                  strcmp(a->node, p->has->node) == 0 &&
                                  a->number == p->has->number,
                              "%s is lost", d.name);
                } else if (a) {
                    cr_assert(who == x->leader && o->open, "%s was promised",
                              d.name);
                }
            }
    cr_assert_eq(alloc_index_size(s->allocations), n + count_held(r));
    cr_assert(who == x->leader || count_held(r) == 0);
    x->n_checked++;
}

/* Everybody leaves, and nothing is left. */
static void end_all(struct world *x)
{
    for (int job = 0; job < N_JOBS; job++)
        for (int role = 0; role < ROLES; role++)
            for (int rank = 0; rank < sizes[job]; rank++)
                end_pod(x, job, role, rank);
    for (int i = 0; i < REPLICAS; i++) {
        check_heard(x, i);
        cleanup_with(snapshot) struct snapshot *s =
            writer_snapshot(x->replicas[i].w);
        cr_assert_eq(alloc_index_size(s->allocations), 0);
        writer_stop(x->replicas[i].w);
    }
}

static void step(struct world *x)
{
    int who = (int)pick(x, REPLICAS);
    int job = (int)pick(x, N_JOBS);
    unsigned chance = pick(x, 1000);
    if (chance < 600)
        bind_some(x);
    else if (chance < 800)
        hear(x, &x->replicas[who], 1 + pick(x, 6));
    else if (chance < 930)
        end_pod(x, job, (int)pick(x, ROLES),
                (int)pick(x, (unsigned)sizes[job]));
    else if (chance < 960)
        relist(x, &x->replicas[who]);
    else if (chance < 980)
        check_heard(x, who);
    else if (chance < 995)
        lead(x, who);
    else
        start_anew(x, who);
    check_truth(x);
}

Test(cluster_random, nothing_is_promised_twice_and_nothing_lost, .timeout = 600)
{
    const char *more = getenv("BIGA_CLUSTER_OPERATIONS");
    unsigned n = more ? (unsigned)strtoul(more, NULL, 10) : OPERATIONS;
    struct world *x = xcalloc(1, sizeof *x);
    x->random = 20261121;
    x->leader = NOBODY;
    log_set_level(LOG_ERROR + 1);
    clock_set_fake(1000000);
    for (int i = 0; i < REPLICAS; i++)
        begin(&x->replicas[i]);
    lead(x, 0);
    for (unsigned i = 0; i < n; i++)
        step(x);
    close_all(x);
    for (int i = 0; i < REPLICAS; i++)
        check_heard(x, i);
    end_all(x);
    (void)fprintf(
        stderr,
        "cluster_random: %u operations: %u bound, %u repeated, %u "
        "refused, %u open, %u ended, %u leaders, %u held anew, %u lists, %u "
        "events, %u starts, %u checked\n",
        n, x->n_bound, x->n_repeated, x->n_refused, x->n_open, x->n_ended,
        x->n_leaders, x->n_held, x->n_lists, x->n_events, x->n_starts,
        x->n_checked);
    cr_expect(x->n_bound && x->n_refused && x->n_open && x->n_ended &&
              x->n_leaders && x->n_held && x->n_lists && x->n_starts);
    free(x);
    clock_set_fake(-1);
}
