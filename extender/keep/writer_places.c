/* The places that a plan has for the pairs of a job: are they still free, and
 * how a large job gets them over several batches, so that others come between.
 *
 * The bind that takes them goes into each batch again until it is done.  A
 * crash on the way leaves held places of a job of which nobody is bound; they
 * end with its lease. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extender/judge/job.h"
#include "extender/keep/job_lease.h"
#include "extender/keep/writer_private.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/failpoint.h"

void places_fini(struct places *p)
{
    snapshot_unref(p->snapshot);
    plan_unref(p->plan);
}

/* --- are they free? ------------------------------------------------------ */

/* What is left of nodes that have changed since the plan was made, as the
 * places that were looked at before leave them. */
struct changed {
    int32_t node;
    struct node_state state;
    struct host_room room;
};

struct check {
    const struct snapshot *now;
    const struct demand *pod;
    const struct places *places;
    struct changed *changed;
    size_t n_changed, cap;
};

static struct changed *find_changed(struct check *c, int32_t node)
{
    for (size_t i = c->n_changed; i > 0; i--)
        if (c->changed[i - 1].node == node)
            return &c->changed[i - 1];
    c->changed = xgrow(c->changed, c->n_changed, &c->cap, sizeof *c->changed);
    struct changed *x = &c->changed[c->n_changed++];
    *x = (struct changed){node, snapshot_node(c->now, (size_t)node)->state,
                          snapshot_room_left(c->now, (size_t)node)};
    return x;
}

/* The same cards as the plan has, as close, on what is left. */
static bool is_still_free(struct check *c, uint32_t rank,
                          struct plan_place *place)
{
    struct demand pair;
    struct choice choice;
    const struct choice *planned = &place->choice;
    struct changed *x = find_changed(c, place->node);
    demand_pair(c->pod, (int32_t)rank, &pair);
    if (decide(&x->state, &pair, 0, planned->cards, &choice) != REASON_NONE ||
        choice.relation > planned->relation ||
        choice.nic_relation > planned->nic_relation ||
        host_room_holds(&x->room, &pair, 1) == 0)
        return false;
    node_state_take(&x->state, &pair, &choice);
    host_room_take(&x->room, &pair);
    place->choice = choice;
    return true;
}

static bool is_same_room(const struct host_room *a, const struct host_room *b)
{
    return a->cpu_milli == b->cpu_milli && a->memory_mib == b->memory_mib &&
           a->pods == b->pods;
}

/* The place of a rank in the snapshot of now; false when it is not free. */
static bool place_now(struct check *c, uint32_t rank,
                      struct plan_place *ret_place)
{
    const struct places *p = c->places;
    struct plan_place place = p->plan->places[rank];
    size_t at = (size_t)place.node;
    const struct node *was = snapshot_node(p->snapshot, at);
    if (c->now->roster != p->snapshot->roster)
        place.node = snapshot_find(c->now, was->name, strlen(was->name));
    if (place.node < 0)
        return false;
    const struct node *is = snapshot_node(c->now, (size_t)place.node);
    const struct host_room room = snapshot_room_left(c->now,
                                                     (size_t)place.node);
    const struct host_room before = snapshot_room_left(p->snapshot, at);
    if (is != was || !is_same_room(&room, &before)) {
        if (is->status != NODE_READY || !is->shape || is->topo != was->topo ||
            !is_still_free(c, rank, &place))
            return false;
    }
    *ret_place = place;
    return true;
}

bool places_are_free(const struct snapshot *now, const struct demand *pod,
                     const struct places *p)
{
    struct check c = {.now = now, .pod = pod, .places = p};
    struct plan_place ignored;
    bool free_all = true;
    for (uint32_t rank = 0; rank < p->plan->size && free_all; rank++)
        free_all = !p->plan->places[rank].fixed &&
                   place_now(&c, rank, &ignored);
    free(c.changed);
    return free_all;
}

/* --- holding them --------------------------------------------------------- */

/* Is `rank` the first of the next piece, after `n` of at most `max`?  Not
 * within a node, which that piece would find changed. */
static bool is_next_piece(const struct plan *plan, uint32_t rank, size_t n,
                          size_t max)
{
    return n >= max && plan->places[rank].node != plan->places[rank - 1].node;
}

int places_hold(const struct snapshot *now, const struct demand *pod,
                struct places *p, size_t max, struct allocation ***ret_list,
                size_t *ret_n)
{
    struct check c = {.now = now, .pod = pod, .places = p};
    struct allocation **list = NULL;
    struct plan_place place;
    size_t n = 0, cap = 0;
    bool is_free = true;
    for (; p->next < p->plan->size; p->next++) {
        if (is_next_piece(p->plan, p->next, n, max))
            break;
        if (p->plan->places[p->next].fixed)
            continue;
        is_free = place_now(&c, p->next, &place);
        if (!is_free)
            break;
        list = xgrow(list, n, &cap, sizeof(*list));
        list[n++] = job_hold(now, pod, p->next, &place);
    }
    free(c.changed);
    *ret_list = list;
    *ret_n = n;
    return is_free ? 0 : -EBUSY;
}

/* --- over several batches ------------------------------------------------- */

/* A bind whose job is getting its places. */
struct taking {
    const struct writer_op *op;
    struct places places;
    bool gives_back;
    uint32_t given;   /* ranks below have given theirs back */
    struct error why; /* they do */
};

bool taking_is_of(const struct writer *w, const struct writer_op *op)
{
    return w->taking && w->taking->op == op;
}

bool taking_waits(const struct batch *b, const struct writer_op *op)
{
    char key[JOB_LEASE_KEY_MAX], other[JOB_LEASE_KEY_MAX];
    const struct writer *w = b->w;
    const struct demand *pod = op->demand;
    if (!w->taking || w->taking->op == op)
        return false;
    job_lease_key(w->taking->op->demand, key);
    job_lease_key(pod, other);
    bool large = pod->job[0] && (size_t)pod->size > w->config.piece;
    return strcmp(key, other) == 0 ||
           (large && !alloc_index_has_bound(batch_allocations(b),
                                            pod->namespace, pod->job));
}

bool taking_is_of_job(const struct writer *w, const struct job_name *job)
{
    const struct demand *pod = w->taking ? w->taking->op->demand : NULL;
    return pod && strcmp(pod->job, job->name) == 0 &&
           strcmp(pod->namespace, job->namespace) == 0;
}

/* The pod of a bind, or of what undoes one; false: it is another operation. */
static bool op_pod(const struct writer_op *op, const char *ret_pod[2])
{
    bool bind = op->kind == WRITER_BIND;
    if (!bind && op->kind != WRITER_RELEASE && op->kind != WRITER_FREE)
        return false;
    ret_pod[0] = bind ? op->demand->namespace : op->namespace;
    ret_pod[1] = bind ? op->demand->name : op->pod;
    return true;
}

bool taking_delays(const struct writer *w, const struct writer_op *ops,
                   const struct writer_op *op)
{
    const char *pod[2], *other[2];
    bool after = false;
    for (; w->taking && ops != op && !after; ops = ops->next)
        after = ops->again && op_pod(op, pod) && op_pod(ops, other) &&
                strcmp(pod[0], other[0]) == 0 && strcmp(pod[1], other[1]) == 0;
    return after;
}

void taking_end(struct writer *w)
{
    if (w->taking)
        places_fini(&w->taking->places);
    free(w->taking);
    w->taking = NULL;
}

void taking_give_back(struct writer *w, const char *why)
{
    struct taking *t = w->taking;
    if (!t || t->gives_back)
        return;
    const struct demand *pod = t->op->demand;
    t->gives_back = true;
    (void)error_set(&t->why, EBUSY, "pod %s/%s does not fit node %s: %s",
                    pod->namespace, pod->name, t->op->node, why);
}

/* A piece of those that are held; then the bind fails. */
static int give_piece(struct batch *b, struct writer_op *op)
{
    struct taking *t = b->w->taking;
    int e = 0;
    size_t n = 0;
    cleanup_with(snapshot) struct snapshot *s =
        snapshot_ref((struct snapshot *)batch_view(b));
    for (; t->given < t->places.next && n < b->w->config.piece && e == 0;
         t->given++) {
        const struct allocation *hold = job_find_hold(s->allocations,
                                                      op->demand, t->given);
        if (!hold || t->places.plan->places[t->given].fixed)
            continue;
        e = drop_hold(b, hold);
        n++;
    }
    op->again = e == 0 && t->given < t->places.next;
    if (e < 0 || op->again)
        return e;
    op->error = t->why;
    taking_end(b->w);
    return -EBUSY;
}

/* The next rank has no place any more. */
static void lose_place(struct writer *w)
{
    const struct places *p = &w->taking->places;
    int32_t node = p->plan->places[p->next].node;
    cleanup_str struct str why = STR_INIT(ERROR_TEXT_MAX);
    str_addf(&why,
             "node %s, which pair %u of its job was planned on, has changed "
             "meanwhile: try again",
             snapshot_node(p->snapshot, (size_t)node)->name, p->next);
    taking_give_back(w, str_text(&why));
}

/* Hold the next piece; false when it cannot be had, with the reason noted. */
static bool take_piece(struct batch *b, const struct demand *pod,
                       struct hold_change *change)
{
    size_t n;
    struct allocation **list;
    struct taking *t = b->w->taking;
    struct namespace_use before;
    snapshot_quota_use(batch_view(b), pod->namespace, &before);
    int r = places_hold(batch_view(b), pod, &t->places, b->w->config.piece,
                        &list, &n);
    hold_places(b, list, n, change);
    if (r < 0)
        lose_place(b->w);
    else if (exceeds_quota(b, pod->namespace, &before))
        taking_give_back(b->w, "its job exceeds the quota of its namespace");
    if (t->gives_back)
        hold_change_undo(b, change);
    return !t->gives_back;
}

int taking_go_on(struct batch *b, struct writer_op *op)
{
    struct taking *t = b->w->taking;
    struct hold_change change = {0};
    int e = batch_begin(b);
    if (e < 0)
        return e;
    if (t->gives_back)
        return give_piece(b, op);
    bool held = take_piece(b, op->demand, &change);
    if (held) {
        e = hold_change_store(b, &change);
        leases_renew(b->w->leases, op->demand,
                     clock_ms() + b->w->config.lease_ms);
    }
    hold_change_fini(&change);
    (void)failpoint("bind-piece-written");
    if (!held)
        return give_piece(b, op);
    op->again = e == 0 && t->places.next < t->places.plan->size;
    if (e == 0 && !op->again)
        taking_end(b->w);
    return e;
}

int taking_begin(struct batch *b, struct writer_op *op, struct places *places)
{
    assert(!b->w->taking); /* see taking_waits() */
    struct taking *t = xcalloc(1, sizeof *t);
    t->op = op;
    t->places = *places;
    *places = (struct places){0};
    b->w->taking = t;
    return taking_go_on(b, op);
}
