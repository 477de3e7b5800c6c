#include "extender/judge/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "extender/state/usage.h"
#include "lib/base/mem.h"

enum { PAIR_MEMBERS_MAX = 64 }; /* members of one pair that are looked at */

/* --- whom it follows ---------------------------------------------------- */

static size_t pair_members(const struct schedule *s,
                           const struct allocation **members)
{
    if (s->demand->role == ROLE_SERVICE)
        return 0;
    size_t n = alloc_index_find_pair(s->snapshot->allocations, s->pair_key,
                                     members, PAIR_MEMBERS_MAX);
    size_t kept = 0;
    for (size_t i = 0; i < n && i < PAIR_MEMBERS_MAX; i++)
        if (members[i] != s->former)
            members[kept++] = members[i];
    return kept;
}

/* The node, when the snapshot has it. */
static const char *if_there(const struct snapshot *snapshot, const char *node)
{
    bool there = node && snapshot_find(snapshot, node, strlen(node)) >= 0;
    return there ? node : NULL;
}

const char *schedule_coming(const struct snapshot *snapshot,
                            const char *pair_key, const char *uid)
{
    return if_there(snapshot,
                    moving_pods_pair_node(snapshot->moves, pair_key, uid));
}

/* Where room is made for another pod of the pair; NULL: nowhere. */
static const char *room_of_pair(const struct schedule *s)
{
    return s->demand->role == ROLE_SERVICE
               ? NULL
               : moving_pods_pair_node(s->snapshot->moves, s->pair_key,
                                       s->demand->uid);
}

/* The name of the node where the pod has to go, or NULL: that of a bound
 * member, else where room is made for it, else that of the place which is held
 * for its pair. */
static const char *node_to_follow(struct schedule *s)
{
    const struct allocation *members[PAIR_MEMBERS_MAX];
    const struct allocation *own = s->former, *bound = NULL;
    size_t n = pair_members(s, members);
    for (size_t i = 0; i < n; i++)
        if (members[i]->held)
            s->hold = members[i];
        else if (!bound)
            bound = members[i];
    if (own && strcmp(own->demand.uid, s->demand->uid) == 0)
        bound = own;
    s->bound = bound != NULL;
    if (bound)
        return bound->node;
    const char *room = room_of_pair(s);
    s->unsettled = room && !*room; /* nobody knows yet where */
    if (s->unsettled) {
        s->hold = NULL;
        return MOVING_PODS_UNSETTLED;
    }
    room = if_there(s->snapshot, room);
    /* what is evicted now counts for more than a place nobody has taken */
    if (room && s->hold && strcmp(room, s->hold->node) != 0)
        s->hold = NULL;
    s->nominated = room && !s->hold;
    return s->hold ? s->hold->node : room;
}

static void init_free(struct schedule *s, const struct snapshot *snapshot,
                      const struct demand *demand)
{
    memset(s, 0, sizeof *s);
    s->snapshot = snapshot;
    s->demand = demand;
    s->follows = NODE_NONE;
    s->former_index = NODE_NONE;
    demand_pair_key(demand, s->pair_key);
    s->former = alloc_index_find(snapshot->allocations, demand->namespace,
                                 demand->name);
    if (s->former)
        s->former_index = snapshot_find(snapshot, s->former->node,
                                        strlen(s->former->node));
}

void schedule_init(struct schedule *s, const struct snapshot *snapshot,
                   const struct demand *demand)
{
    init_free(s, snapshot, demand);
    const char *node = node_to_follow(s);
    if (node) {
        s->follows = snapshot_find(snapshot, node, strlen(node));
        if (s->follows == NODE_NONE)
            s->follows = NODE_GONE;
        s->follows_node = node;
        return;
    }
    quota_judge(snapshot, demand, s->former, &s->quota);
    s->own_share = policy_has_share(snapshot->policy, demand);
    if (demand->role != ROLE_NONE && !s->own_share)
        s->costs = state_intern_costs(snapshot->states, demand);
}

/* May places be held for the job?  Those without a job have no index. */
static bool may_have_holds(const struct schedule *s)
{
    size_t n;
    bool held = !s->demand->job[0];
    cleanup_free const struct allocation **members = alloc_index_find_job(
        s->snapshot->allocations, s->demand->namespace, s->demand->job, &n);
    for (size_t i = 0; i < n && !held; i++)
        held = members[i]->held;
    return held;
}

void schedule_init_job(struct schedule *s, const struct snapshot *snapshot,
                       const struct demand *pair,
                       const struct plan_refusal *refusal)
{
    init_free(s, snapshot, pair);
    s->refusal = refusal;
    s->own_holds = may_have_holds(s);
    quota_judge(snapshot, pair, s->former, &s->quota);
    if (s->quota.kind == QUOTA_OK)
        s->costs = state_intern_costs(snapshot->states, pair);
}

/* A held place of the very job that is asked about, which counts as free. */
static bool is_own_hold(const struct schedule *s, const struct allocation *a)
{
    return a->held && s->own_holds &&
           strcmp(a->demand.job, s->demand->job) == 0 &&
           strcmp(a->demand.namespace, s->demand->namespace) == 0;
}

static bool has_own_hold(const struct schedule *s, int32_t index)
{
    if (!s->own_holds)
        return false;
    const struct node *node = snapshot_node(s->snapshot, (size_t)index);
    for (size_t i = 0; node->n_held && i < node->n_allocations; i++)
        if (is_own_hold(s, node->allocations[i]))
            return true;
    return false;
}

/* The state of `node` as the demand's pair sees it, and which cards that
 * leaves to choose from. */
struct view {
    struct node_state state;
    uint16_t must, within;
};

static bool is_gone(const struct allocation *a,
                    const struct allocation *const *gone, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (gone[i] == a)
            return true;
    return false;
}

static void view_cards(const struct schedule *s, const struct node *node,
                       const struct allocation *const *list, size_t n,
                       struct view *view)
{
    uint16_t host = 0, xpu = 0;
    bool has_host = false;
    for (size_t i = 0; i < n; i++) {
        const struct allocation *a = list[i];
        if (strcmp(a->pair_key, s->pair_key) != 0)
            continue;
        if (a->demand.role == ROLE_HOST) {
            has_host = true;
            host |= allocation_cards(node->topo, a);
        } else if (a->demand.role == ROLE_XPU) {
            xpu |= allocation_cards(node->topo, a);
        }
    }
    if (s->demand->role == ROLE_HOST) {
        view->must = xpu;
        return;
    }
    /* an xPU pod takes a card of its pair that no sibling has, and shares
     * one when there is none */
    uint16_t pair = has_host ? host : xpu;
    bool settled = has_host || __builtin_popcount(xpu) >= s->demand->pair_cards;
    uint16_t free_of_pair = pair & (uint16_t)~xpu;
    if (!settled)
        view->within = (uint16_t)~xpu;
    else if (__builtin_popcount(free_of_pair) >= s->demand->cards)
        view->within = free_of_pair;
    else
        view->within = pair;
}

/* A pair has a card of unknown size whole, so what it asks of it is between
 * it and the card. */
static void view_open_unsized(const struct schedule *s, const struct node *node,
                              struct view *view)
{
    uint16_t own = 0;
    for (size_t i = 0; i < node->n_allocations; i++)
        if (strcmp(node->allocations[i]->pair_key, s->pair_key) == 0)
            own |= allocation_cards(node->topo, node->allocations[i]);
    unsigned open = own & usage_unsized(node->topo) &
                    ~(unsigned)view->state.closed;
    for (; open; open &= open - 1) {
        view->state.free_cores[__builtin_ctz(open)] = UINT32_MAX;
        view->state.free_memory_mib[__builtin_ctz(open)] = UINT32_MAX;
    }
}

/* Does a host pod ask for just what is held for it? */
static bool is_held_for(const struct schedule *s)
{
    const struct demand *pod = s->demand;
    return s->hold && pod->role == ROLE_HOST &&
           pod->cards == s->hold->n_cards && pod->gpus == s->hold->n_gpus &&
           pod->nics == s->hold->n_nics;
}

/* A host pod gets the place that is held for it, no other on its node. */
static void view_hold(const struct schedule *s, const struct node *node,
                      struct view *view)
{
    struct node_state *state = &view->state;
    const struct allocation *hold = s->hold;
    uint16_t cards = allocation_cards(node->topo, hold);
    view->must |= cards;
    view->within = view->must;
    state->gpus_used |= (uint16_t)~allocation_gpus(node->topo, hold);
    state->nics_used |= (uint16_t)~allocation_nics(node->topo, hold);
    if (hold->numa < 0 || s->demand->cpu_milli == 0 ||
        s->demand->cpu_milli > hold->demand.cpu_milli)
        return;
    for (unsigned i = 0; i < state->shape->n_numas; i++)
        if (state->shape->numa_id[i] != hold->numa)
            state->free_cpu_milli[i] = 0;
}

static void view_make(const struct schedule *s, const struct node *node,
                      const struct allocation *const *gone, size_t n_gone,
                      struct view *ret_view)
{
    struct view view = {.must = 0, .within = UINT16_MAX};
    cleanup_free const struct allocation **list = xcalloc(node->n_allocations,
                                                          sizeof *list);
    size_t n = 0;
    for (size_t i = 0; i < node->n_allocations; i++)
        if (node->allocations[i] != s->former &&
            !(s->demand->role == ROLE_HOST &&
              node->allocations[i] == s->hold) &&
            !is_own_hold(s, node->allocations[i]) &&
            !is_gone(node->allocations[i], gone, n_gone))
            list[n++] = node->allocations[i];
    if (s->follows >= 0)
        view_cards(s, node, list, n, &view);
    struct usage usage;
    node_usage(node, s->snapshot->policy, &usage);
    usage.allocations = list;
    usage.n = n;
    usage_state(&usage, s->demand, &view.state);
    if (s->follows >= 0)
        view_open_unsized(s, node, &view);
    if (is_held_for(s) && s->follows >= 0)
        view_hold(s, node, &view);
    *ret_view = view;
}

/* May the pod have this place, beside what its pair has? */
static void judge_place(const struct schedule *s, int32_t index,
                        const struct choice *choice,
                        struct quota_verdict *ret_verdict)
{
    struct allocation *a = schedule_allocation(s, index, choice);
    quota_judge_allocation(s->snapshot, a, s->former, ret_verdict);
    allocation_unref(a);
}

static enum reason reason_of(enum quota_kind kind)
{
    return kind == QUOTA_OK        ? REASON_NONE
           : kind == QUOTA_DEVICES ? REASON_NOT_ALLOWED
                                   : REASON_QUOTA;
}

static enum reason may_have(const struct schedule *s, int32_t index,
                            const struct choice *choice)
{
    struct quota_verdict verdict = s->quota;
    if (s->follows >= 0 &&
        (s->demand->devices.text[0] ||
         policy_find_quota(s->snapshot->policy, s->demand->namespace)))
        judge_place(s, index, choice, &verdict);
    return reason_of(verdict.kind);
}

void schedule_view(const struct schedule *s, int32_t index,
                   struct node_state *ret_state, uint16_t *ret_must,
                   uint16_t *ret_within)
{
    struct view view;
    view_make(s, snapshot_node(s->snapshot, (size_t)index), NULL, 0, &view);
    *ret_state = view.state;
    *ret_must = view.must;
    *ret_within = view.within;
}

/* --- one node ----------------------------------------------------------- */

static enum reason node_reason(const struct schedule *s, int32_t index)
{
    if (s->follows == NODE_GONE || (s->follows >= 0 && s->follows != index))
        return REASON_PAIR_ELSEWHERE;
    if (s->quota.kind != QUOTA_OK)
        return reason_of(s->quota.kind);
    if (index < 0)
        return REASON_UNKNOWN_NODE;
    if (snapshot_state(s->snapshot, (size_t)index) != STATE_UNUSABLE)
        return REASON_NONE;
    switch (snapshot_node(s->snapshot, (size_t)index)->status) {
    case NODE_STALE:
        return REASON_STALE;
    case NODE_LOST:
        return REASON_LOST;
    case NODE_DOUBTFUL:
        return REASON_DOUBTFUL;
    case NODE_INCOMPLETE:
        return REASON_INCOMPLETE;
    case NODE_READY:
    case NODE_STATUSES:
        break;
    }
    return REASON_NONE;
}

enum reason schedule_choose_without(const struct schedule *s, int32_t index,
                                    const struct allocation *const *gone,
                                    size_t n, struct choice *ret_choice)
{
    enum reason reason = node_reason(s, index);
    if (reason != REASON_NONE)
        return reason;
    const struct node *node = snapshot_node(s->snapshot, (size_t)index);
    if (s->follows < 0 && n == 0 && s->former_index != index && !s->own_share &&
        !has_own_hold(s, index))
        return decide(&node->state, s->demand, 0, UINT16_MAX, ret_choice);

    struct view view;
    view_make(s, node, gone, n, &view);
    struct choice choice;
    reason = decide(&view.state, s->demand, view.must, view.within, &choice);
    if (reason == REASON_NONE) {
        enum reason refused = may_have(s, index, &choice);
        if (refused != REASON_NONE)
            return refused;
    }
    if (reason == REASON_NONE)
        *ret_choice = choice;
    if (reason == REASON_NONE || s->follows < 0)
        return reason;
    return reason_resolvable(reason) ? reason : REASON_PAIR_CARDS;
}

/* What the pod lacks may be only leased to others. */
static enum reason leased_or(const struct schedule *s, int32_t index,
                             enum reason reason)
{
    struct choice ignored;
    if (index < 0 || !reason_resolvable(reason))
        return reason;
    const struct node *node = snapshot_node(s->snapshot, (size_t)index);
    cleanup_free const struct allocation **gone = NULL;
    size_t n = 0;
    for (size_t i = 0; node->n_held && i < node->n_allocations; i++) {
        const struct allocation *a = node->allocations[i];
        if (!a->held || is_own_hold(s, a) ||
            strcmp(a->pair_key, s->pair_key) == 0)
            continue;
        if (!gone)
            gone = xcalloc(node->n_allocations, sizeof *gone);
        gone[n++] = a;
    }
    if (n &&
        schedule_choose_without(s, index, gone, n, &ignored) == REASON_NONE)
        return REASON_LEASED;
    return reason;
}

struct host_room schedule_room(const struct schedule *s, int32_t index)
{
    const struct node *node = snapshot_node(s->snapshot, (size_t)index);
    struct host_room room = snapshot_room_left(s->snapshot, (size_t)index);
    for (size_t i = 0; i < node->n_allocations; i++)
        if (node->allocations[i] == s->former ||
            is_own_hold(s, node->allocations[i]))
            room_give(&room, node->allocations[i]);
    return room;
}

static bool host_holds(const struct schedule *s, int32_t index)
{
    if (!snapshot_knows_room(s->snapshot, (size_t)index))
        return true;
    struct host_room room = schedule_room(s, index);
    return host_room_holds(&room, s->demand, 1) == 1;
}

/* The whole truth about a node that a pair, or pod, fits or not. */
static enum reason final_reason(const struct schedule *s, int32_t index,
                                enum reason reason)
{
    if (reason != REASON_NONE)
        return leased_or(s, index, reason);
    if (!s->refusal)
        return REASON_NONE;
    if (index >= 0 && !host_holds(s, index))
        return REASON_HOST_ROOM;
    bool tier = s->refusal->lack == PLAN_LACK_TIER ||
                (s->refusal->lack == PLAN_LACK_FIXED && s->demand->within >= 0);
    return tier ? REASON_FABRIC_TIER : REASON_JOB_ROOM;
}

enum reason schedule_choose(const struct schedule *s, int32_t index,
                            struct choice *ret_choice)
{
    enum reason reason = schedule_choose_without(s, index, NULL, 0, ret_choice);
    return final_reason(s, index, reason);
}

enum reason schedule_reason(const struct schedule *s, int32_t index,
                            struct schedule_reasons *known)
{
    struct choice ignored;
    enum reason reason = node_reason(s, index);
    if (reason != REASON_NONE)
        return reason;
    uint32_t state = snapshot_state(s->snapshot, (size_t)index);
    if (s->follows >= 0 || s->former_index == index || s->own_share ||
        state == STATE_UNUSABLE || has_own_hold(s, index))
        return schedule_choose(s, index, &ignored);
    if (!known->of)
        known->of = xcalloc(state_intern_count(s->snapshot->states), 1);
    if (!known->of[state])
        known->of[state] =
            (uint8_t)(1 + schedule_choose_without(s, index, NULL, 0, &ignored));
    return final_reason(s, index, (enum reason)(known->of[state] - 1));
}

void schedule_reasons_fini(struct schedule_reasons *known)
{
    free(known->of);
}

uint32_t schedule_cost(const struct schedule *s, int32_t index)
{
    struct choice choice;
    if (index < 0 || s->quota.kind != QUOTA_OK)
        return COST_NO_FIT;
    if (s->costs && s->former_index != index)
        return costs_get(s->costs, snapshot_state(s->snapshot, (size_t)index));
    if (schedule_choose_without(s, index, NULL, 0, &choice) != REASON_NONE)
        return COST_NO_FIT;
    return choice.cost;
}

/* --- the outcome -------------------------------------------------------- */

static uint8_t copy_devices(const struct topo *topo, enum device_kind kind,
                            uint16_t bits, char (**ret_ids)[TOPO_ID_MAX + 1],
                            char (**ret_pci)[PCI_ADDR_TEXT_MAX])
{
    size_t considered[TOPO_KIND_MAX];
    size_t n = topo_considered(topo, kind, considered);
    size_t room = (size_t)__builtin_popcount(bits);
    uint8_t used = 0;
    char(*ids)[TOPO_ID_MAX + 1] = xcalloc(room, sizeof *ids);
    char(*pci)[PCI_ADDR_TEXT_MAX] = xcalloc(room, sizeof *pci);
    for (size_t i = 0; i < n; i++) {
        const struct device *d = topo_device(topo, considered[i]);
        if (!(bits & 1u << i))
            continue;
        if (d->has_pci)
            pci_addr_format(&d->pci, pci[used]);
        (void)snprintf(ids[used++], sizeof *ids, "%s", d->id);
    }
    *ret_ids = ids;
    *ret_pci = pci;
    return used;
}

/* The host pod that an xPU pod joins, or NULL. */
static const struct allocation *host_of_pair(const struct schedule *s)
{
    const struct allocation *members[PAIR_MEMBERS_MAX];
    size_t n = s->demand->role == ROLE_XPU ? pair_members(s, members) : 0;
    for (size_t i = 0; i < n; i++)
        if (members[i]->demand.role == ROLE_HOST)
            return members[i];
    return NULL;
}

struct allocation *schedule_place(const struct demand *demand,
                                  const struct node *node,
                                  const struct choice *choice)
{
    struct allocation *a = allocation_create(demand, node->name);
    a->n_cards = copy_devices(node->topo, DEVICE_CARD, choice->cards, &a->cards,
                              &a->card_pci);
    a->n_gpus = copy_devices(node->topo, DEVICE_GPU, choice->gpus, &a->gpus,
                             &a->gpu_pci);
    a->n_nics = copy_devices(node->topo, DEVICE_NIC, choice->nics, &a->nics,
                             &a->nic_pci);
    a->relation = choice->relation;
    a->nic_relation = choice->nic_relation;
    a->numa = choice->numa;
    a->epoch = node->epoch;
    return a;
}

struct allocation *schedule_allocation(const struct schedule *s, int32_t index,
                                       const struct choice *choice)
{
    struct allocation *a = schedule_place(
        s->demand, snapshot_node(s->snapshot, (size_t)index), choice);
    /* what counts for an xPU pod is how close its host pod is */
    const struct allocation *host = host_of_pair(s);
    if (host) {
        a->relation = host->relation;
        a->numa = host->numa;
    }
    return a;
}
