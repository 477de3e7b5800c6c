#include "extender/judge/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/judge/job_private.h"
#include "extender/state/usage.h"
#include "lib/base/mem.h"

/* --- names -------------------------------------------------------------- */

void job_key(const struct demand *demand, char ret_key[JOB_KEY_MAX])
{
    (void)snprintf(ret_key, JOB_KEY_MAX, "%s/%s", demand->namespace,
                   demand->job[0] ? demand->job : demand->name);
}

void job_lease_key(const struct demand *demand, char ret_key[JOB_LEASE_KEY_MAX])
{
    if (job_is_whole(demand))
        (void)snprintf(ret_key, JOB_LEASE_KEY_MAX, "%s/%s/", demand->namespace,
                       demand->job);
    else
        demand_pair_key(demand, ret_key);
}

uint32_t job_rank(const struct demand *pod)
{
    return job_is_whole(pod) && pod->pair < pod->size ? (uint32_t)pod->pair : 0;
}

const struct allocation **job_together(const struct alloc_index *x,
                                       const struct demand *demand,
                                       size_t *ret_n)
{
    char key[DEMAND_PAIR_KEY_MAX];
    if (job_is_whole(demand))
        return alloc_index_find_job(x, demand->namespace, demand->job, ret_n);
    demand_pair_key(demand, key);
    size_t n = alloc_index_find_pair(x, key, NULL, 0);
    const struct allocation **list = xcalloc(n + 1, sizeof *list);
    *ret_n = alloc_index_find_pair(x, key, list, n);
    return list;
}

bool job_has_any(const struct alloc_index *x, const struct demand *demand)
{
    size_t n;
    free(job_together(x, demand, &n));
    return n > 0;
}

/* --- who has a place ---------------------------------------------------- */

/* Which held places count as there. */
enum keep { KEEP_ALL, KEEP_OTHERS, KEEP_NONE };

/* What is being put together. */
struct make {
    struct job_input *in;
    const struct snapshot *snapshot;
    const struct demand *pod;
    enum keep keep;
    const struct allocation *former; /* under the pod's own name, or NULL */
    const struct allocation **gone;  /* they count as gone */
    size_t n_gone;
};

/* The members of one pair: the best witness of its place, and its hold. */
struct pair {
    const struct allocation *host, *hold, *xpu;
};

static struct pair pair_of(const struct make *m,
                           const struct allocation *const *list, size_t n)
{
    struct pair p = {NULL, NULL, NULL};
    for (size_t i = 0; i < n; i++) {
        const struct allocation *a = list[i];
        if (a == m->former)
            continue;
        if (a->held)
            p.hold = a;
        else if (a->demand.role == ROLE_HOST && !p.host)
            p.host = a;
        else if (a->demand.role != ROLE_HOST && !p.xpu)
            p.xpu = a;
    }
    return p;
}

static uint16_t bits_of(const struct node *node, const struct allocation *a)
{
    return node->topo ? allocation_cards(node->topo, a) : 0;
}

/* Nobody says how well an unknown place is aligned: then it counts as well
 * placed, as it does in no comparison of plans. */
static bool is_unaligned(const struct make *m, uint32_t rank,
                         const struct allocation *a, const struct node *node)
{
    const struct job_input *in = m->in;
    if (!node || !node->shape)
        return false;
    struct choice choice = {.cards = bits_of(node, a),
                            .relation = (uint8_t)a->relation,
                            .numa = (int16_t)a->numa};
    const struct demand *asked =
        &in->shapes[in->shape_of ? in->shape_of[rank] : 0];
    return !decide_is_aligned(node->shape, asked, &choice);
}

bool job_has_place(const struct job_input *in, uint32_t rank)
{
    for (size_t i = 0; i < in->job.n_fixed; i++)
        if (in->fixed[i].rank == (int32_t)rank)
            return true;
    return false;
}

static void fix_pair(struct make *m, uint32_t rank, const struct allocation *a)
{
    const struct snapshot *s = m->snapshot;
    int32_t index = snapshot_find(s, a->node, strlen(a->node));
    const struct node *node = index < 0 ? NULL
                                        : snapshot_node(s, (size_t)index);
    m->in->fixed[m->in->job.n_fixed++] = (struct plan_fixed){
        .rank = (int32_t)rank,
        .node = index,
        .leaf = index < 0 ? FABRIC_NONE : snapshot_leaf(s, (size_t)index),
        .unaligned = is_unaligned(m, rank, a, node),
    };
}

/* Is a place held for a pair that comes to another node?  Its own nomination
 * does not bind the pod that is planned. */
static bool is_passed_over(const struct make *m, uint32_t rank,
                           const struct allocation *hold)
{
    const char *own = rank == job_rank(m->pod) ? m->pod->uid : "";
    const char *node = schedule_coming(m->snapshot, hold->pair_key, own);
    return node && strcmp(node, hold->node) != 0;
}

static void take_pair(struct make *m, uint32_t rank, const struct pair *p)
{
    bool keep = m->keep == KEEP_ALL ||
                (m->keep == KEEP_OTHERS && rank != job_rank(m->pod));
    if (p->host)
        fix_pair(m, rank, p->host);
    else if (p->hold && !p->xpu && is_passed_over(m, rank, p->hold))
        m->gone[m->n_gone++] = p->hold;
    else if (p->hold && (keep || p->xpu))
        fix_pair(m, rank, p->hold);
    else if (p->xpu)
        fix_pair(m, rank, p->xpu);
    else if (p->hold)
        m->gone[m->n_gone++] = p->hold;
}

/* Members in the order of their pairs: those with a place are fixed. */
static void take_members(struct make *m, const struct allocation *const *list,
                         size_t n)
{
    m->in->fixed = xcalloc(n + job_coming_count(m->snapshot, m->pod) + 1,
                           sizeof *m->in->fixed);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n; end++)
            if (list[end]->demand.pair != list[i]->demand.pair)
                break;
        struct pair p = pair_of(m, list + i, end - i);
        uint32_t rank = job_is_whole(m->pod) ? (uint32_t)list[i]->demand.pair
                                             : 0;
        if (rank < m->in->job.size)
            take_pair(m, rank, &p);
    }
    m->in->job.fixed = m->in->fixed;
}

/* --- shapes ------------------------------------------------------------- */

/* What the ranks first … last ask, when any of them is in the job. */
static void add_shape(struct make *m, int32_t first, int32_t last)
{
    struct job_input *in = m->in;
    uint8_t number = (uint8_t)in->job.n_shapes;
    bool used = false;
    for (int32_t r = first; r <= last && r < (int32_t)in->job.size; r++) {
        if (in->shape_of[r] != UINT8_MAX)
            continue;
        if (!used)
            demand_pair(m->pod, r, &in->shapes[number]);
        in->shape_of[r] = number;
        used = true;
    }
    in->job.n_shapes += used;
}

static void take_shapes(struct make *m)
{
    struct job_input *in = m->in;
    const struct demand *pod = m->pod;
    in->job.shapes = in->shapes;
    if (!job_is_whole(pod) || pod->n_shapes == 0) {
        demand_pair(pod, pod->pair, &in->shapes[0]);
        in->job.n_shapes = 1;
        return;
    }
    in->shape_of = xmalloc(in->job.size);
    memset(in->shape_of, UINT8_MAX, in->job.size);
    for (unsigned i = 0; i < pod->n_shapes; i++)
        add_shape(m, pod->shapes[i].first, pod->shapes[i].last);
    add_shape(m, 0, (int32_t)in->job.size - 1);
    in->job.shape_of = in->shape_of;
}

/* --- the cluster -------------------------------------------------------- */

static bool is_gone(const void *ctx, const struct allocation *a)
{
    const struct make *m = ctx;
    for (size_t i = 0; i < m->n_gone; i++)
        if (m->gone[i] == a)
            return true;
    return a == m->former;
}

/* The state of a node without those that count as gone. */
static void change_state(struct make *m, size_t index)
{
    const struct node *node = snapshot_node(m->snapshot, index);
    struct job_input *in = m->in;
    struct node_state *state = &in->changed[in->n_changed];
    if (!node_state_without(node, m->snapshot->policy, is_gone, m, state))
        return;
    in->n_changed++;
    in->states[index] = state;
}

/* What those that count as gone take of their hosts. */
static void change_rooms(struct make *m)
{
    for (size_t i = 0; m->in->rooms && i < m->n_gone; i++) {
        const struct allocation *a = m->gone[i];
        int32_t index = snapshot_find(m->snapshot, a->node, strlen(a->node));
        if (index >= 0)
            room_give(&m->in->rooms[index], a);
    }
}

static int compare_node(const void *a, const void *b)
{
    const struct allocation *x = *(const struct allocation *const *)a;
    const struct allocation *y = *(const struct allocation *const *)b;
    return strcmp(x->node, y->node);
}

static void change_states(struct make *m)
{
    if (m->former)
        m->gone[m->n_gone++] = m->former;
    size_t n_coming = job_coming_count(m->snapshot, m->pod);
    m->in->changed = xcalloc(m->n_gone + n_coming + 1, sizeof *m->in->changed);
    change_rooms(m);
    qsort(m->gone, m->n_gone, sizeof *m->gone, compare_node);
    for (size_t i = 0; i < m->n_gone; i++) {
        const char *node = m->gone[i]->node;
        if (i > 0 && strcmp(m->gone[i - 1]->node, node) == 0)
            continue;
        int32_t index = snapshot_find(m->snapshot, node, strlen(node));
        if (index >= 0 && m->in->states[index])
            change_state(m, (size_t)index);
    }
}

static void take_cluster(struct make *m)
{
    const struct snapshot *s = m->snapshot;
    struct job_input *in = m->in;
    in->states = xcalloc(s->n_nodes + 1, sizeof *in->states);
    in->leaves = xcalloc(s->n_nodes + 1, sizeof *in->leaves);
    for (size_t i = 0; i < s->n_nodes; i++) {
        uint32_t id = snapshot_state(s, i);
        in->states[i] = id == STATE_UNUSABLE ? NULL
                                             : state_intern_get(s->states, id);
        in->leaves[i] = snapshot_leaf(s, i);
    }
    in->rooms = snapshot_rooms_left(s);
    in->cluster = (struct plan_cluster){.fabric = s->fabric,
                                        .n_nodes = s->n_nodes,
                                        .states = in->states,
                                        .leaves = in->leaves,
                                        .rooms = in->rooms};
}

/* Bits of the candidates, NULL for all: also when a filter names each node, of
 * which its bind knows as little as candidates.h keeps. */
static uint64_t *candidate_bits(const struct snapshot *s,
                                const int32_t *candidates, size_t n)
{
    if (!candidates)
        return NULL;
    size_t words = s->n_nodes / 64 + 1, count = 0;
    cleanup_free uint64_t *bits = xcalloc(words, sizeof *bits);
    for (size_t i = 0; i < n; i++)
        if (candidates[i] >= 0)
            bits[candidates[i] / 64] |= UINT64_C(1) << candidates[i] % 64;
    for (size_t i = 0; i < words; i++)
        count += (size_t)__builtin_popcountll(bits[i]);
    return count == s->n_nodes ? NULL : steal(&bits);
}

/* Takes over the candidates. */
static void input_make(struct make *m, uint64_t *candidates, int32_t pin)
{
    struct job_input *in = m->in;
    const struct demand *pod = m->pod;
    size_t n;
    memset(in, 0, sizeof *in);
    in->job.size = job_is_whole(pod) ? (uint32_t)pod->size : 1;
    in->job.within = pod->within;
    in->job.prefer_within = pod->prefer_within;
    in->candidates = candidates;
    in->job.candidates = candidates;
    m->former = alloc_index_find(m->snapshot->allocations, pod->namespace,
                                 pod->name);
    cleanup_free const struct allocation **members =
        job_together(m->snapshot->allocations, pod, &n);
    cleanup_free const struct allocation **gone = xcalloc(n + 1, sizeof *gone);
    m->gone = gone;
    take_shapes(m);
    take_members(m, members, n);
    take_cluster(m);
    change_states(m);
    if (job_is_whole(pod))
        job_coming_take(in, m->snapshot, pod);
    m->gone = NULL;
    bool pinned = pin != NODE_NONE && !job_has_place(in, job_rank(pod));
    in->job.pin_rank = pinned ? (int32_t)job_rank(pod) : -1;
    in->job.pin_node = pinned ? pin : NODE_NONE;
}

static enum keep first_keep(const struct schedule *s, const int32_t *candidates,
                            size_t n, int32_t pin)
{
    if (!s->hold || s->bound)
        return KEEP_ALL;
    bool there = pin == NODE_NONE || pin == s->follows;
    return there && job_is_placed(s, candidates, n) ? KEEP_ALL : KEEP_OTHERS;
}

static bool has_holds(const struct snapshot *s, const struct demand *pod)
{
    size_t n;
    bool held = false;
    cleanup_free const struct allocation **members =
        job_together(s->allocations, pod, &n);
    for (size_t i = 0; i < n && !held; i++)
        held = members[i]->held;
    return held;
}

/* Nothing else has led to a plan. */
static bool ends_with_none(const struct schedule *s)
{
    return !s->bound && has_holds(s->snapshot, s->demand);
}

void job_input_init(struct job_input *in, const struct snapshot *snapshot,
                    const struct demand *pod, const int32_t *candidates,
                    size_t n, int32_t pin)
{
    struct schedule s;
    schedule_init(&s, snapshot, pod);
    struct make m = {.in = in,
                     .snapshot = snapshot,
                     .pod = pod,
                     .keep = ends_with_none(&s)
                                 ? KEEP_NONE
                                 : first_keep(&s, candidates, n, pin)};
    input_make(&m, candidate_bits(snapshot, candidates, n), pin);
}

void job_input_fini(struct job_input *in)
{
    free(in->states);
    free(in->leaves);
    free(in->rooms);
    free(in->shape_of);
    free(in->fixed);
    free(in->candidates);
    free(in->changed);
    free(in->coming);
}

/* --- the plan ----------------------------------------------------------- */

bool job_is_placed(const struct schedule *s, const int32_t *candidates,
                   size_t n)
{
    struct choice ignored;
    if (s->bound || s->unsettled)
        return true;
    if (!s->hold || s->follows < 0)
        return false;
    bool among = !candidates;
    for (size_t i = 0; i < n && !among; i++)
        among = candidates[i] == s->follows;
    if (!among)
        return false;
    enum reason reason = schedule_choose_without(s, s->follows, NULL, 0,
                                                 &ignored);
    return reason == REASON_NONE || reason == REASON_QUOTA ||
           reason == REASON_NOT_ALLOWED;
}

/* The key of a plan, which is the same for every pod of the job that asks. */
static void decisive(const struct demand *pod, struct demand *ret_asked)
{
    struct demand d;
    memcpy(&d, pod, sizeof d);
    memset(d.uid, 0, sizeof d.uid);
    d.role = ROLE_HOST;
    d.cards = d.pair_cards;
    d.gpus = d.pair_gpus;
    d.nics = d.pair_nics;
    d.priority = 0;
    if (job_is_whole(pod))
        d.pair = 0;
    if (d.job[0])
        memset(d.name, 0, sizeof d.name);
    memcpy(ret_asked, &d, sizeof d);
}

struct attempt {
    struct plans *memory;
    const struct snapshot *snapshot;
    const struct demand *pod;
    const uint64_t *bits; /* of the candidates, or NULL */
    int32_t pin;
    bool remember;
};

static int make_plan(const struct job_input *in, struct plan **ret_plan,
                     struct plan_refusal *ret_refusal)
{
    if (in->n_waiting) {
        *ret_refusal = (struct plan_refusal){.lack = PLAN_LACK_COMING,
                                             .asked = in->job.size -
                                                      (uint32_t)in->job.n_fixed,
                                             .coming = in->n_waiting,
                                             .domain = FABRIC_NONE};
        return -EBUSY;
    }
    int r = plan_make(&in->cluster, &in->job, ret_plan, ret_refusal);
    if (r == 0)
        job_coming_plan(in, *ret_plan);
    return r;
}

static int plan_anew(const struct attempt *t, enum keep keep,
                     struct plan **ret_plan, struct plan_refusal *ret_refusal)
{
    size_t words = t->snapshot->n_nodes / 64 + 1;
    struct job_input in;
    struct make m = {
        .in = &in, .snapshot = t->snapshot, .pod = t->pod, .keep = keep};
    input_make(&m, t->bits ? xmemdup(t->bits, words * sizeof *t->bits) : NULL,
               t->pin);
    int r = make_plan(&in, ret_plan, ret_refusal);
    job_input_fini(&in);
    return r;
}

/* The key of a plan; `asked` is for it. */
static struct plans_key attempt_key(const struct attempt *t, enum keep keep,
                                    struct demand *asked)
{
    bool own = keep == KEEP_OTHERS || t->pin != NODE_NONE ||
               moving_pods_has_job(t->snapshot->moves, t->pod, NULL);
    decisive(t->pod, asked);
    return (struct plans_key){.snapshot = t->snapshot,
                              .asked = asked,
                              .candidates = t->bits,
                              .rank = own ? (int32_t)job_rank(t->pod) : -1,
                              .pin = t->pin,
                              .mode = keep};
}

static int plan_once(const struct attempt *t, enum keep keep,
                     struct plan **ret_plan, struct plan_refusal *ret_refusal)
{
    struct demand asked;
    struct plan *plan = NULL;
    struct plan_refusal refusal = {0};
    if (!t->remember)
        return plan_anew(t, keep, ret_plan, ret_refusal);
    struct plans_key key = attempt_key(t, keep, &asked);
    if (!plans_find(t->memory, &key, &plan, &refusal)) {
        (void)plan_anew(t, keep, &plan, &refusal);
        plans_put(t->memory, &key, plan, &refusal);
    }
    if (plan)
        *ret_plan = plan;
    else
        *ret_refusal = refusal;
    return plan ? 0 : -EBUSY;
}

/* The plan for all nodes, when it has the pod's pair on a candidate. */
static struct plan *plan_group(const struct attempt *t, enum keep keep)
{
    struct attempt wide = *t;
    struct plan_refusal ignored;
    cleanup_with(plan) struct plan *plan = NULL;
    wide.bits = NULL;
    if (!t->pod->grouped || !job_is_whole(t->pod) || !t->bits ||
        t->pin != NODE_NONE || plan_once(&wide, keep, &plan, &ignored) < 0)
        return NULL;
    int32_t node = plan->places[job_rank(t->pod)].node;
    bool there = node >= 0 && t->bits[node / 64] >> (node % 64) & 1;
    return there ? steal(&plan) : NULL;
}

int job_plan(struct plans *memory, const struct snapshot *snapshot,
             const struct demand *pod, const int32_t *candidates, size_t n,
             int32_t pin, struct plan **ret_plan,
             struct plan_refusal *ret_refusal)
{
    struct schedule s;
    schedule_init(&s, snapshot, pod);
    if (s.nominated && pin == NODE_NONE)
        pin = s.follows;
    cleanup_free uint64_t *bits = candidate_bits(snapshot, candidates, n);
    /* what another pod of that name had counts as free for this pod alone */
    struct attempt t = {memory, snapshot, pod, bits, pin, memory && !s.former};
    enum keep keep = first_keep(&s, candidates, n, pin);
    struct plan *plan = plan_group(&t, keep);
    if (plan) {
        *ret_plan = plan;
        return 0;
    }
    int r = plan_once(&t, keep, ret_plan, ret_refusal);
    if (r == 0 || !ends_with_none(&s))
        return r;
    return plan_once(&t, KEEP_NONE, ret_plan, ret_refusal);
}

struct plan *job_plan_earlier(struct plans *memory,
                              const struct snapshot *snapshot,
                              const struct demand *pod,
                              const int32_t *candidates, size_t n,
                              struct snapshot **ret_snapshot)
{
    struct demand asked;
    if (!memory || job_has_any(snapshot->allocations, pod) ||
        job_coming_count(snapshot, pod) > 0)
        return NULL;
    cleanup_free uint64_t *bits = candidate_bits(snapshot, candidates, n);
    struct attempt t = {memory, snapshot, pod, bits, NODE_NONE, true};
    if (pod->grouped && job_is_whole(pod))
        t.bits = NULL; /* see plan_group() */
    struct plans_key key = attempt_key(&t, KEEP_ALL, &asked);
    return plans_find_earlier(memory, &key, ret_snapshot);
}
