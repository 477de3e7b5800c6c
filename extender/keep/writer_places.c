/* The places that a plan has for the pairs of a job: are they still free? */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extender/judge/job.h"
#include "extender/keep/writer_private.h"
#include "lib/base/mem.h"

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

/* --- holding them ---------------------------------------------------------- */

/* Is `rank` the first of the next piece, after `n` of at most `max`?  Not within
 * a node, which that piece would find changed. */
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
