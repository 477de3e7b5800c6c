/* Places of a plan that are held for pairs. */
#include <stdio.h>
#include <string.h>

#include "extender/judge/job_private.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

/* The name of a held place: that of no pod, as it has a '/'. */
static void hold_name(const struct demand *pod, uint32_t rank,
                      char ret_name[DEMAND_NAME_MAX + 1])
{
    enum { TAIL_MAX = 12 }; /* "/" and an index */
    const char *head = pod->job[0] ? pod->job : pod->name;
    size_t size = strlen(head);
    int n = 0;
    if (size + TAIL_MAX <= DEMAND_NAME_MAX)
        memcpy(ret_name, head, size);
    else /* as much of it as there is room for, and a sum of the whole */
        n = snprintf(ret_name, DEMAND_NAME_MAX + 1, "%.200s~%016llx", head,
                     (unsigned long long)hash_bytes(head, size));
    char *tail = ret_name + (n > 0 ? (size_t)n : size);
    if (pod->job[0]) {
        *tail++ = '/';
        tail += str_digits(job_is_whole(pod) ? rank : (uint32_t)pod->pair,
                           tail);
        *tail = '\0';
    } else {
        memcpy(tail, "/pair", sizeof "/pair");
    }
}

struct allocation *job_hold(const struct snapshot *snapshot,
                            const struct demand *pod, uint32_t rank,
                            const struct plan_place *place)
{
    struct demand pair;
    int32_t index = job_is_whole(pod) ? (int32_t)rank : pod->pair;
    demand_pair(pod, index, &pair);
    memset(pair.name, 0, sizeof pair.name);
    memset(pair.uid, 0, sizeof pair.uid);
    hold_name(pod, rank, pair.name);
    struct allocation *a = schedule_place(
        &pair, snapshot_node(snapshot, (size_t)place->node), &place->choice);
    if (!pod->job[0])
        demand_pair_key(pod, a->pair_key);
    a->held = true;
    return a;
}

const struct allocation *job_find_hold(const struct alloc_index *x,
                                       const struct demand *pod, uint32_t rank)
{
    char name[DEMAND_NAME_MAX + 1];
    hold_name(pod, rank, name);
    return alloc_index_find(x, pod->namespace, name);
}

struct allocation **job_holds(const struct snapshot *snapshot,
                              const struct demand *pod, const struct plan *plan,
                              size_t *ret_n)
{
    struct allocation **holds = xcalloc(plan->size + 1, sizeof(*holds));
    size_t n = 0;
    for (uint32_t rank = 0; rank < plan->size; rank++)
        if (!plan->places[rank].fixed)
            holds[n++] = job_hold(snapshot, pod, rank, &plan->places[rank]);
    *ret_n = n;
    return holds;
}

struct allocation *job_hold_host(const struct snapshot *snapshot,
                                 const struct demand *pod, int32_t rank)
{
    struct demand pair;
    struct schedule s;
    struct plan_place place = {.fixed = false};
    demand_pair(pod, rank, &pair);
    memset(pair.name, 0, sizeof pair.name);
    memset(pair.uid, 0, sizeof pair.uid);
    schedule_init(&s, snapshot, &pair);
    if (!s.bound || s.follows < 0 ||
        schedule_choose_without(&s, s.follows, NULL, 0, &place.choice) !=
            REASON_NONE)
        return NULL;
    place.node = s.follows;
    return job_hold(snapshot, pod, (uint32_t)rank, &place);
}

struct allocation *job_hold_again(const struct snapshot *snapshot,
                                  const struct allocation *a)
{
    int32_t index = snapshot_find(snapshot, a->node, strlen(a->node));
    const struct node *node = index < 0
                                  ? NULL
                                  : snapshot_node(snapshot, (size_t)index);
    if (!node || !node->topo)
        return NULL;
    struct plan_place place = {
        .node = index,
        .choice = {.cards = allocation_cards(node->topo, a),
                   .gpus = allocation_gpus(node->topo, a),
                   .nics = allocation_nics(node->topo, a),
                   .relation = (uint8_t)a->relation,
                   .nic_relation = (uint8_t)a->nic_relation,
                   .numa = (int16_t)a->numa},
    };
    return job_hold(snapshot, &a->demand, job_rank(&a->demand), &place);
}
