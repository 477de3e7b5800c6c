/* Operations that come from the API server: allocations of pods, nodes that are
 * lost or back, and whether this replica leads. */
#include <stdlib.h>
#include <string.h>

#include "extender/judge/job.h"
#include "extender/keep/writer_private.h"
#include "extender/state/draft.h"
#include "extender/state/overcommit.h"
#include "lib/base/mem.h"
#include "lib/base/strmap.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"

enum {
    LOST_MAX = 524288, /* names of lost nodes; beyond that those without
                        * slices are forgotten */
};

/* Versions stay exact in JSON whatever number an annotation makes up. */
#define NUMBER_RAISED_MAX (UINT64_C(1) << 52)

/* --- adopting ------------------------------------------------------------- */

static bool is_same(const struct allocation *a, const struct allocation *b)
{
    cleanup_str struct str x = STR_INIT(STR_MAX_DEFAULT);
    cleanup_str struct str y = STR_INIT(STR_MAX_DEFAULT);
    if (a->number != b->number)
        return false;
    allocation_encode(a, &x);
    allocation_encode(b, &y);
    return x.size == y.size && memcmp(x.data, y.data, x.size) == 0;
}

static void tell_conflict(struct writer *w, const struct allocation *a,
                          const char *text)
{
    log_event(LOG_ERROR, "allocation-conflict", "namespace",
              a->demand.namespace, "pod", a->demand.name, "node", a->node,
              "text", text, NULL);
    atomic_fetch_add(&w->conflicts, 1);
    if (w->overfull)
        w->overfull(w->overfull_ctx, a, text);
}

/* To be asked before the allocation is adopted. */
static bool is_conflict(const struct snapshot *s, const struct allocation *a,
                        struct str *text)
{
    int32_t index = snapshot_find(s, a->node, strlen(a->node));
    return index >= 0 && overcommit_find(snapshot_node(s, (size_t)index),
                                         s->policy, a, text) == OVERCOMMIT_MORE;
}

size_t list_conflicts(struct batch *b, const char *name,
                      const struct allocation ***ret_list)
{
    const struct node *node = draft_node(batch_draft(b), name);
    const struct allocation **list = NULL;
    size_t n = 0, cap = 0;
    for (size_t i = 0; node && i < node->n_allocations; i++) {
        const struct allocation *a = node->allocations[i];
        if (a->held || overcommit_find(node, b->w->current->policy, a, NULL) ==
                           OVERCOMMIT_NOT)
            continue;
        list = xgrow(list, n, &cap, sizeof *list);
        list[n++] = a;
    }
    *ret_list = list;
    return n;
}

static bool is_among(const struct allocation *a,
                     const struct allocation *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == a)
            return true;
    return false;
}

void tell_conflicts(struct batch *b, const char *name,
                    const struct allocation *const *known, size_t n_known)
{
    const struct node *node = draft_node(batch_draft(b), name);
    for (size_t i = 0; node && i < node->n_allocations; i++) {
        const struct allocation *a = node->allocations[i];
        cleanup_str struct str text = STR_INIT(STR_MAX_DEFAULT);
        if (!a->held && !is_among(a, known, n_known) &&
            overcommit_find(node, b->w->current->policy, a, &text) !=
                OVERCOMMIT_NOT)
            tell_conflict(b->w, a, str_text(&text));
    }
}

static void log_healed(const struct allocation *a, const struct allocation *old)
{
    const struct demand *d = &a->demand;
    if (old && strcmp(old->demand.uid, d->uid) == 0)
        log_event(LOG_WARN, "allocation-healed", "namespace", d->namespace,
                  "pod", d->name, "node", a->node, "was", old->node, NULL);
}

static int adopt(struct batch *b, struct allocation *a,
                 const struct allocation *old)
{
    struct demand former;
    if (old)
        former = old->demand;
    int e = batch_begin(b);
    if (e == 0)
        e = store_put_allocation(b->w->store, a, &b->error);
    if (e < 0)
        return e;
    store_raise_version(b->w->store, a->number < NUMBER_RAISED_MAX
                                         ? a->number
                                         : NUMBER_RAISED_MAX);
    draft_allocate(batch_draft(b), allocation_ref(a));
    return bind_settle(b, a, old ? &former : NULL);
}

void apply_adopt(struct batch *b, struct writer_op *op)
{
    struct allocation *a = op->allocation;
    const struct demand *d = &a->demand;
    if (a->held || d->role == ROLE_NONE || !d->uid[0]) {
        op->result = error_set(&op->error, EINVAL,
                               "pod %s/%s: its allocation is that of no pod",
                               d->namespace, d->name);
        return;
    }
    const struct snapshot *s = batch_view(b);
    const struct allocation *old = alloc_index_find(s->allocations,
                                                    d->namespace, d->name);
    op->resource_version = a->number;
    bool another = old && strcmp(old->demand.uid, d->uid) != 0;
    if (old && (is_same(old, a) || (another && old->number > a->number)))
        return; /* known already, or of an earlier pod of that name */
    cleanup_str struct str text = STR_INIT(STR_MAX_DEFAULT);
    bool conflict = is_conflict(s, a, &text);
    log_healed(a, old);
    op->result = adopt(b, a, old);
    op->created = op->result == 0;
    op->healed = op->created && old && !another;
    if (conflict && op->created)
        tell_conflict(b->w, a, str_text(&text));
}

/* --- giving back -------------------------------------------------------- */

/* A bind that failed: the pod comes again.  A host pod has its place kept,
 * planned or not, as long as anybody of its job or pair is bound: its xPU pods
 * can go nowhere else. */
static int free_place(struct batch *b, struct writer_op *op,
                      const struct allocation *a)
{
    struct allocation *hold = a->demand.role == ROLE_HOST && a->demand.job[0]
                                  ? job_hold_again(batch_view(b), a)
                                  : NULL;
    cleanup_with(allocation) struct allocation *kept =
        allocation_ref((struct allocation *)a);
    int e = drop_allocation(b, op, kept);
    if (e == 0 && hold) {
        struct allocation **list = xcalloc(1, sizeof(*list));
        list[0] = steal(&hold);
        e = hold_anew(b, &kept->demand, list, 1);
    }
    allocation_unref(hold);
    if (e < 0 && e != -EBUSY)
        return e;
    return lease_end_unbound(b, &kept->demand);
}

void apply_free(struct batch *b, struct writer_op *op)
{
    const struct allocation *a = draft_find_allocation(batch_draft(b),
                                                       op->namespace, op->pod);
    bool is_it = a && !a->held && strcmp(a->demand.uid, op->uid) == 0 &&
                 (op->number == 0 || a->number == op->number) &&
                 (!op->node || strcmp(a->node, op->node) == 0);
    if (is_it && may_give_back(b, op, a))
        op->result = op->node ? free_place(b, op, a) : release_pod(b, op, a);
    else if (!is_it)
        op->result = error_set(&op->error, ENOENT,
                               "pod %s/%s (uid %s): has no such allocation",
                               op->namespace, op->pod, op->uid);
}

/* All allocations as they are before the operation; the snapshot owns them. */
static const struct allocation **
list_all(struct batch *b, struct snapshot **ret_snapshot, size_t *ret_n)
{
    *ret_snapshot = snapshot_ref((struct snapshot *)batch_view(b));
    return alloc_index_list((*ret_snapshot)->allocations, ret_n);
}

static int compare_uid(const void *key, const void *item)
{
    return strcmp(key, *(const char *const *)item);
}

bool is_among_uids(const char *uid, const char *const *uids, size_t n)
{
    return n && bsearch(uid, uids, n, sizeof *uids, compare_uid);
}

static bool is_kept(const struct writer_op *op, const struct allocation *a)
{
    const char *uid = a->demand.uid;
    if (a->held || a->number > op->number)
        return true;
    if (is_among_uids(uid, op->uids, op->n_uids))
        return true;
    return op->keep && op->keep(op->ctx, uid);
}

void apply_keep(struct batch *b, struct writer_op *op)
{
    size_t n;
    cleanup_with(snapshot) struct snapshot *s = NULL;
    cleanup_free const struct allocation **list = list_all(b, &s, &n);
    op->n_out = 0;
    for (size_t i = 0; i < n && op->result == 0; i++) {
        const struct allocation *a = list[i];
        if (is_kept(op, a))
            continue;
        log_event(LOG_WARN, "allocation-dropped", "namespace",
                  a->demand.namespace, "pod", a->demand.name, "node", a->node,
                  "text", "the cluster has no such bound pod", NULL);
        op->result = release_pod(b, op, a);
        op->n_out += op->result == 0;
    }
}

/* --- nodes -------------------------------------------------------------- */

bool is_lost(const struct writer *w, const char *node)
{
    return strmap_get(&w->lost, node) != NULL;
}

/* Forget those that nothing else is known of. */
static void lost_trim(struct batch *b)
{
    struct writer *w = b->w;
    struct strmap kept = {0};
    size_t pos = 0;
    char *name;
    while ((name = strmap_next(&w->lost, &pos))) {
        if (draft_node(batch_draft(b), name))
            (void)strmap_put(&kept, name, name);
        else
            free(name);
    }
    strmap_fini(&w->lost);
    w->lost = kept;
}

static void lost_set(struct batch *b, const char *node, bool gone)
{
    struct writer *w = b->w;
    if (!gone) {
        free(strmap_remove(&w->lost, node));
        return;
    }
    if (is_lost(w, node))
        return;
    if (w->lost.n >= LOST_MAX)
        lost_trim(b);
    char *name = xstrdup(node);
    (void)strmap_put(&w->lost, name, name);
}

void apply_lost(struct batch *b, struct writer_op *op)
{
    lost_set(b, op->node, op->gone);
    int32_t index = snapshot_find(batch_view(b), op->node, strlen(op->node));
    if (index == NODE_NONE)
        return; /* its status is set when its slices come */
    const struct node *n = snapshot_node(batch_view(b), (size_t)index);
    enum node_status status = status_now(b->w, n);
    if (status == n->status)
        return;
    op->result = batch_begin(b);
    if (op->result < 0)
        return;
    log_event(LOG_INFO, "node-status", "node", op->node, "status",
              node_status_name(status), NULL);
    draft_set_status(batch_draft(b), op->node, status);
}

void read_heard(struct writer *w, struct writer_op *op)
{
    int32_t index = snapshot_find(w->current, op->node, strlen(op->node));
    if (index == NODE_NONE) {
        op->result = error_set(&op->error, ENOENT,
                               "node %s: nothing was published for it",
                               op->node);
        return;
    }
    const struct node *n = snapshot_node(w->current, (size_t)index);
    int64_t ms = clock_ms() - (op->gone ? w->config.fresh_ms + 1 : 0);
    atomic_store_explicit(&n->liveness->heard_ms, ms, memory_order_relaxed);
    if (op->gone || n->status == NODE_STALE)
        sweep_soon(w);
}

void apply_rooms(struct batch *b, struct writer_op *op)
{
    op->result = batch_begin(b);
    struct draft *draft = op->result < 0 ? NULL : batch_draft(b);
    for (size_t i = 0; draft && i < op->n_rooms; i++)
        draft_set_room(draft, op->rooms[i].node, &op->rooms[i].room);
}

/* --- leading ------------------------------------------------------------ */

/* The first pair of the pod's job that has no place, or -1.  `list` is in the
 * order of pairs. */
static int32_t first_missing(const struct allocation *const *list, size_t n,
                             const struct demand *pod)
{
    int32_t pair = 0;
    if (!pod->job[0] || pod->size <= 1)
        return -1; /* no other pair is planned with it */
    for (size_t i = 0; i < n && list[i]->demand.pair <= pair; i++)
        if (list[i]->demand.pair == pair)
            pair++;
    return pair < pod->size ? pair : -1;
}

/* The pairs of which only xPU pods are bound; the caller frees the array.
 * `list` is in the order of pairs. */
static int32_t *missing_hosts(const struct allocation *const *list, size_t n,
                              size_t *ret_n)
{
    int32_t *pairs = xcalloc(n + 1, sizeof *pairs);
    size_t n_pairs = 0;
    for (size_t i = 0, end; i < n; i = end) {
        bool host = false;
        for (end = i; end < n; end++) {
            if (list[end]->demand.pair != list[i]->demand.pair)
                break;
            host = host || list[end]->held ||
                   list[end]->demand.role == ROLE_HOST;
        }
        if (!host)
            pairs[n_pairs++] = list[i]->demand.pair;
    }
    *ret_n = n_pairs;
    return pairs;
}

/* For the host pods of these pairs hold cards and GPUs near their xPU pods. */
static int hold_hosts(struct batch *b, const struct demand *pod,
                      const int32_t *pairs, size_t n, size_t *ret_held)
{
    int e = 0;
    for (size_t i = 0; i < n && (e == 0 || e == -EBUSY); i++) {
        struct allocation *hold = job_hold_host(batch_view(b), pod, pairs[i]);
        if (!hold)
            continue;
        struct allocation **list = xcalloc(1, sizeof(*list));
        list[0] = hold;
        e = hold_anew(b, pod, list, 1);
        *ret_held += e == 0;
    }
    return e == -EBUSY ? 0 : e;
}

/* Hold places for the pairs that have none; `pod` is one of them. */
static int hold_rest(struct batch *b, const struct demand *pod,
                     size_t *ret_held)
{
    size_t n;
    struct plan_refusal refusal;
    cleanup_with(plan) struct plan *plan = NULL;
    if (job_plan(NULL, batch_view(b), pod, NULL, 0, NODE_NONE, &plan,
                 &refusal) < 0) {
        log_event(LOG_WARN, "job-not-held", "namespace", pod->namespace, "job",
                  pod->job, "text", "no room for the rest of it", NULL);
        return 0;
    }
    struct allocation **list = job_holds(batch_view(b), pod, plan, &n);
    int e = hold_anew(b, pod, list, n);
    *ret_held += e == 0 ? n : 0;
    return e == -EBUSY ? 0 : e;
}

/* What was known when this replica began to lead. */
struct lead {
    struct batch *b;
    const struct snapshot *before;
    bool wait; /* nodes that are silent count as ready */
};

static void count_silent_as(struct lead *l, enum node_status status)
{
    for (size_t i = 0; i < l->before->n_nodes; i++) {
        const struct node *n = snapshot_node(l->before, i);
        if (n->status == NODE_STALE)
            draft_set_status(batch_draft(l->b), n->name, status);
    }
}

/* While the API server is away no node can be heard of, and who leads next
 * finds all of them silent.  What is not held then goes to others as soon as
 * nodes are heard of, and the rest of a job has no room; what is held on a node
 * that stays silent is given back when the lease ends. */
static void wait_for_silent(struct lead *l)
{
    if (!l->wait)
        count_silent_as(l, NODE_READY);
    l->wait = true;
}

static int lead_job(struct lead *l, struct writer_op *op,
                    const struct demand *member)
{
    size_t n, n_hosts, held = 0;
    struct demand rest = *member;
    cleanup_free const struct allocation **list =
        job_together(batch_view(l->b)->allocations, member, &n);
    cleanup_free int32_t *hosts = missing_hosts(list, n, &n_hosts);
    rest.pair = first_missing(list, n, member);
    if (n_hosts == 0 && rest.pair < 0)
        return 0;
    wait_for_silent(l);
    /* a pod of that pair, whatever its name */
    memset(rest.name, 0, sizeof rest.name);
    memset(rest.uid, 0, sizeof rest.uid);
    int e = hold_hosts(l->b, member, hosts, n_hosts, &held);
    if (e == 0 && rest.pair >= 0)
        e = hold_rest(l->b, &rest, &held);
    op->n_out += held > 0;
    return e;
}

void apply_lead(struct batch *b, struct writer_op *op)
{
    size_t n;
    cleanup_with(snapshot) struct snapshot *s = NULL;
    cleanup_free const struct allocation **list = list_all(b, &s, &n);
    cleanup_free char(*keys)[JOB_LEASE_KEY_MAX] = xcalloc(n + 1, sizeof *keys);
    struct lead lead = {.b = b, .before = s};
    struct strmap done = {0};
    op->n_out = 0;
    for (size_t i = 0; i < n && op->result == 0; i++) {
        const struct demand *pod = &list[i]->demand;
        if (list[i]->held || !demand_is_planned(pod))
            continue;
        job_lease_key(pod, keys[i]);
        if (strmap_get(&done, keys[i]))
            continue;
        (void)strmap_put(&done, keys[i], keys[i]);
        op->result = lead_job(&lead, op, pod);
    }
    if (lead.wait)
        count_silent_as(&lead, NODE_STALE);
    strmap_fini(&done);
}

/* Drops all held places.  Their leases stay until they expire; nothing is left
 * to give back then. */
void apply_follow(struct batch *b, struct writer_op *op)
{
    size_t n;
    cleanup_with(snapshot) struct snapshot *s = NULL;
    cleanup_free const struct allocation **list = list_all(b, &s, &n);
    op->n_out = 0;
    taking_give_back(b->w, "this replica leads no more");
    for (size_t i = 0; i < n && op->result == 0; i++) {
        if (!list[i]->held)
            continue;
        op->result = drop_hold(b, list[i]);
        op->n_out += op->result == 0;
    }
}
