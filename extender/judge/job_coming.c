/* Pairs of a job that kube-scheduler makes room for while another one is
 * planned: each is nominated to a node of its own. */
#include <stdlib.h>
#include <string.h>

#include "extender/judge/job_private.h"

size_t job_coming_count(const struct snapshot *snapshot,
                        const struct demand *pod)
{
    size_t n = 0, pos = 0;
    int32_t ignored;
    while (moving_pods_next_of_job(snapshot->moves, pod, &pos, &ignored))
        n++;
    return n;
}

/* Take the pair off what its node has left; false when that is too little. */
static bool take_room(struct job_input *in, int32_t rank, int32_t node,
                      struct choice *ret_choice)
{
    const struct demand *shape =
        &in->shapes[in->shape_of ? in->shape_of[rank] : 0];
    const struct node_state *state = in->states[node];
    struct host_room *room = in->rooms ? &in->rooms[node] : NULL;
    if (!state ||
        decide(state, shape, 0, UINT16_MAX, ret_choice) != REASON_NONE ||
        (room && host_room_holds(room, shape, 1) == 0))
        return false;
    struct node_state *left = &in->changed[in->n_changed++];
    *left = *state;
    node_state_take(left, shape, ret_choice);
    in->states[node] = left;
    if (room)
        host_room_take(room, shape);
    return true;
}

static void put(struct job_input *in, int32_t rank, int32_t node)
{
    struct job_coming *c = &in->coming[in->n_coming];
    const struct node_state *state = in->states[node];
    if (!take_room(in, rank, node, &c->choice)) {
        in->n_waiting++;
        return;
    }
    c->rank = rank;
    c->node = node;
    in->n_coming++;
    in->fixed[in->job.n_fixed++] = (struct plan_fixed){
        .rank = rank,
        .node = node,
        .leaf = in->leaves[node],
        .unaligned = !decide_is_aligned(
            state->shape, &in->shapes[in->shape_of ? in->shape_of[rank] : 0],
            &c->choice),
    };
}

static int compare_rank(const void *a, const void *b)
{
    const struct plan_fixed *x = a, *y = b;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

void job_coming_take(struct job_input *in, const struct snapshot *snapshot,
                     const struct demand *pod)
{
    size_t pos = 0;
    int32_t rank, last = (int32_t)job_rank(pod); /* that one is planned */
    in->coming = xcalloc(job_coming_count(snapshot, pod) + 1,
                         sizeof *in->coming);
    /* those of one pair come one after the other, the host pod first */
    for (const char *node;
         (node = moving_pods_next_of_job(snapshot->moves, pod, &pos, &rank));) {
        int32_t index = snapshot_find(snapshot, node, strlen(node));
        bool unsettled = !*node;
        if ((index < 0 && !unsettled) || rank < 0 ||
            rank >= (int32_t)in->job.size || rank == last ||
            rank == (int32_t)job_rank(pod) || job_has_place(in, (uint32_t)rank))
            continue;
        last = rank;
        if (unsettled)
            in->n_waiting++;
        else
            put(in, rank, index);
    }
    if (in->n_coming)
        qsort(in->fixed, in->job.n_fixed, sizeof *in->fixed, compare_rank);
}

void job_coming_plan(const struct job_input *in, struct plan *plan)
{
    for (size_t i = 0; i < in->n_coming; i++) {
        struct plan_place *place = &plan->places[in->coming[i].rank];
        place->fixed = false;
        place->choice = in->coming[i].choice;
    }
}
