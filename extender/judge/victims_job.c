/* Whom to evict so that a whole job has room. */
#include <stdlib.h>
#include <string.h>

#include "extender/judge/job.h"
#include "extender/judge/victims_private.h"
#include "extender/state/draft.h"
#include "extender/state/usage.h"
#include "lib/base/mem.h"
#include "model/plan/plan.h"

enum {
    ROOM_MAX = 64, /* pairs of one job that are put on one node by evictions;
                    * more go there if they fit without */
    ROOM_STEPS = 2000,     /* to find the room on one node, */
    ROOMS_STEPS = 1000000, /* on all of them */
};

/* Pairs of the job that ask the same and have no place. */
struct group {
    struct demand shape;
    uint32_t need;
};

struct hunt_job {
    struct snapshot *snapshot;
    const struct demand *pod;
    const struct allocation *former; /* under the pod's name, which has
                                      * ended; NULL: none */
    struct group groups[PLAN_SHAPES_MAX];
    size_t n_groups, own; /* the group of the pod's own pair */
    bool placed;          /* some pair has its place: */
    int64_t domain;       /* where that is */
    uint32_t *rooms;      /* by state id: room for the first group plus one */
    uint32_t n_rooms;
    uint32_t steps;
    uint64_t *room_steps; /* that are left */
};

/* A node on the way to an answer. */
struct spot {
    int32_t index;
    int64_t domain;
    const struct victims_ask *ask; /* NULL: not asked for */
    struct pool pool;
    uint64_t evicted; /* units, so far */
    uint64_t before;  /* and before the group that is being placed */
    uint32_t taken[PLAN_SHAPES_MAX]; /* pairs of each group, so far */
    bool open; /* has room for the pod's own pair without evictions */
};

/* A way to put more pairs on a spot. */
struct step {
    uint32_t spot;
    uint32_t pairs, cost; /* more than the step before on the same spot */
    uint32_t room;        /* pairs in all */
    uint64_t evicted;     /* units in all */
};

/* --- what a node holds -------------------------------------------------- */

/* What is left on the node of a spot when `gone` are, and earlier groups have
 * their pairs. */
static void spot_state(const struct hunt_job *h, const struct spot *s,
                       const struct allocation *const *gone, size_t n_gone,
                       struct node_state *ret_state)
{
    const struct node *node = s->pool.node;
    cleanup_free const struct allocation **list =
        xcalloc(node->n_allocations + 1, sizeof *list);
    size_t n = 0;
    for (size_t i = 0; i < node->n_allocations; i++) {
        size_t k = 0;
        while (k < n_gone && gone[k] != node->allocations[i])
            k++;
        if (k == n_gone && node->allocations[i] != h->former)
            list[n++] = node->allocations[i];
    }
    struct usage usage;
    node_usage(node, h->snapshot->policy, &usage);
    usage.allocations = list;
    usage.n = n;
    usage_state(&usage, NULL, ret_state);
    for (size_t g = 0; g < h->n_groups; g++)
        for (uint32_t i = 0; i < s->taken[g]; i++) {
            struct choice choice;
            if (decide(ret_state, &h->groups[g].shape, 0, UINT16_MAX,
                       &choice) == REASON_NONE)
                node_state_take(ret_state, &h->groups[g].shape, &choice);
        }
}

struct wanted {
    const struct hunt_job *hunt;
    const struct spot *spot;
    size_t group;
    uint32_t room;
};

/* How many more pairs of a group its host can have then, at most `max`: one of
 * the pod's own for certain where others go whose CPUs and memory nobody here
 * knows. */
static uint32_t host_holds(const struct wanted *w,
                           const struct allocation *const *gone, size_t n_gone,
                           uint32_t max)
{
    const struct hunt_job *h = w->hunt;
    const struct spot *s = w->spot;
    size_t index = (size_t)s->index;
    const struct node *node = s->pool.node;
    if (!snapshot_knows_room(h->snapshot, index))
        return max;
    struct host_room room = snapshot_room_left(h->snapshot, index);
    for (size_t i = 0; i < n_gone; i++)
        room_give(&room, gone[i]);
    for (size_t i = 0; i < node->n_allocations; i++)
        if (node->allocations[i] == h->former)
            room_give(&room, h->former);
    for (size_t g = 0; g < h->n_groups; g++)
        for (uint32_t i = 0; i < s->taken[g]; i++)
            host_room_take(&room, &h->groups[g].shape);
    uint32_t n = host_room_holds(&room, &h->groups[w->group].shape, max);
    bool own = w->group == h->own && s->taken[w->group] == 0;
    return n == 0 && max > 0 && own && s->ask && s->ask->others ? 1 : n;
}

static uint32_t spot_room(const struct wanted *w,
                          const struct allocation *const *gone, size_t n,
                          uint32_t max)
{
    struct node_state state;
    uint32_t aligned;
    uint64_t *left = w->hunt->room_steps;
    uint64_t part = *left < ROOM_STEPS ? *left : ROOM_STEPS;
    *left -= part;
    max = host_holds(w, gone, n, max);
    spot_state(w->hunt, w->spot, gone, n, &state);
    uint32_t room = plan_room_for(&state, &w->hunt->groups[w->group].shape, max,
                                  &part, &aligned);
    *left += part;
    return room;
}

static bool has_room(void *ctx, const struct allocation *const *gone, size_t n)
{
    const struct wanted *w = ctx;
    return spot_room(w, gone, n, w->room) >= w->room;
}

/* The room as things are; nodes in the same state share it. */
static uint32_t first_room(struct hunt_job *h, struct spot *s, size_t group)
{
    struct wanted w = {h, s, group, 0};
    uint32_t need = h->groups[group].need;
    uint32_t id = snapshot_state(h->snapshot, (size_t)s->index);
    size_t n;
    const struct allocation *const *gone = pool_gone(&s->pool, s->evicted, &n);
    bool ended = h->former && strcmp(h->former->node, s->pool.node->name) == 0;
    if (group > 0 || n > 0 || ended || id >= h->n_rooms ||
        snapshot_knows_room(h->snapshot, (size_t)s->index))
        return spot_room(&w, gone, n, need);
    if (h->rooms[id] == 0)
        h->rooms[id] = 1 + spot_room(&w, gone, n, need);
    return h->rooms[id] - 1;
}

/* --- the ways of one spot ----------------------------------------------- */

struct steps {
    struct step *list;
    size_t n, cap;
};

static void add_step(struct steps *l, struct step step)
{
    l->list = xgrow(l->list, l->n, &l->cap, sizeof *l->list);
    l->list[l->n++] = step;
}

/* Is `a` cheaper per pair? */
static bool is_cheaper(const struct step *a, const struct step *b)
{
    return (uint64_t)a->cost * b->pairs < (uint64_t)b->cost * a->pairs;
}

/* A step that is cheaper than the one before it goes together with it: the
 * one before would not be taken without it. */
static void merge_steps(struct steps *l, size_t from)
{
    while (l->n > from + 1 &&
           is_cheaper(&l->list[l->n - 1], &l->list[l->n - 2])) {
        struct step *a = &l->list[l->n - 2], *b = &l->list[l->n - 1];
        a->pairs += b->pairs;
        a->cost += b->cost;
        a->room = b->room;
        a->evicted = b->evicted;
        l->n--;
    }
}

/* First what fits as it is, then one more pair after the other with the
 * fewest further evictions for it. */
static void find_steps(struct hunt_job *h, struct spot *s, uint32_t number,
                       size_t group, struct steps *l)
{
    struct wanted w = {h, s, group, 0};
    uint32_t need = h->groups[group].need;
    uint32_t room = first_room(h, s, group);
    size_t from = l->n;
    uint64_t evicted = s->evicted, more;
    if (group == h->own)
        s->open = room > 0 && evicted == 0;
    if (room)
        add_step(l, (struct step){number, room, s->pool.n_given_units, room,
                                  evicted});
    for (w.room = room + 1; w.room <= need && w.room <= ROOM_MAX && h->steps &&
                            pool_find(&s->pool, evicted, has_room, &w, &more);
         w.room = room + 1) {
        uint32_t before = room;
        size_t n;
        evicted |= more;
        const struct allocation *const *gone = pool_gone(&s->pool, evicted, &n);
        room = spot_room(&w, gone, n, need);
        if (room <= before)
            break;
        add_step(l, (struct step){number, room - before,
                                  (uint32_t)__builtin_popcountll(more), room,
                                  evicted});
        merge_steps(l, from);
    }
}

/* --- one domain --------------------------------------------------------- */

static int compare_steps(const void *a, const void *b)
{
    const struct step *x = a, *y = b;
    if (is_cheaper(x, y) != is_cheaper(y, x))
        return is_cheaper(x, y) ? -1 : 1;
    if (x->spot != y->spot)
        return x->spot < y->spot ? -1 : 1;
    return x->room < y->room ? -1 : x->room > y->room;
}

/* The fewest evictions, beside those for earlier groups, for the pairs that
 * the spot was given. */
static void settle_spot(struct hunt_job *h, struct spot *s, size_t group)
{
    struct wanted w = {h, s, group, s->taken[group]};
    uint64_t more;
    if (s->evicted == s->before)
        return;
    s->taken[group] = 0; /* while they are looked for */
    if (pool_find(&s->pool, s->before, has_room, &w, &more))
        s->evicted = s->before | more;
    s->taken[group] = w.room;
}

/* Places for all pairs of the group on the spots; false when there are not
 * enough. */
static bool place_group(struct hunt_job *h, struct spot *spots, uint32_t n,
                        size_t group)
{
    struct steps l = {0};
    uint32_t got = 0, need = h->groups[group].need;
    for (int asked = 1; asked >= 0; asked--)
        for (uint32_t i = 0; i < n; i++)
            if ((spots[i].ask != NULL) == asked) {
                spots[i].before = spots[i].evicted;
                find_steps(h, &spots[i], i, group, &l);
            }
    if (l.n)
        qsort(l.list, l.n, sizeof *l.list, compare_steps);
    for (size_t i = 0; i < l.n && got < need; i++) {
        const struct step *t = &l.list[i];
        uint32_t pairs = t->pairs < need - got ? t->pairs : need - got;
        spots[t->spot].evicted = t->evicted;
        spots[t->spot].taken[group] += pairs;
        got += pairs;
    }
    free(l.list);
    for (uint32_t i = 0; i < n && got == need; i++)
        if (spots[i].taken[group])
            settle_spot(h, &spots[i], group);
    return got == need;
}

struct total {
    uint32_t pairs;
    int64_t priority;
};

/* Would an eviction there, or the given one, help the pod itself? */
static bool is_of_use(const struct hunt_job *h, const struct spot *s)
{
    return s->ask && s->taken[h->own] && (s->evicted || s->pool.n_given_units);
}

/* False when there is no room; `*ret_helps`: some of it has to be made where
 * the pod is asked for. */
static bool place_all(struct hunt_job *h, struct spot *spots, uint32_t n,
                      struct total *ret_total, bool *ret_helps)
{
    struct total total = {0};
    bool helps = false;
    for (size_t g = 0; g < h->n_groups; g++)
        if (!place_group(h, spots, n, g))
            return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct spot *s = &spots[i];
        bool used = false;
        for (size_t g = 0; g < h->n_groups; g++)
            used |= s->taken[g] > 0;
        if (used)
            total.pairs += s->pool.n_given_units;
        total.pairs += (uint32_t)__builtin_popcountll(s->evicted);
        total.priority += pool_priority(&s->pool, s->evicted);
        helps |= is_of_use(h, s);
    }
    *ret_total = total;
    *ret_helps = helps;
    return true;
}

/* --- the job ------------------------------------------------------------ */

/* What lies in one domain of `within` has the same number. */
static int64_t domain_of(const struct hunt_job *h, int32_t index)
{
    int32_t leaf = snapshot_leaf(h->snapshot, (size_t)index);
    if (h->pod->within < 0)
        return 0;
    int32_t domain = fabric_up(h->snapshot->fabric, leaf,
                               (unsigned)h->pod->within);
    return domain == FABRIC_NONE ? -1 - (int64_t)index : domain;
}

/* The node where a pair has its place; NULL: none. */
static const char *place_of_pair(const struct hunt_job *h,
                                 const struct demand *pair)
{
    enum { MEMBERS = 64 };
    const struct allocation *members[MEMBERS];
    char key[DEMAND_PAIR_KEY_MAX];
    demand_pair_key(pair, key);
    size_t n = alloc_index_find_pair(h->snapshot->allocations, key, members,
                                     MEMBERS);
    for (size_t i = 0; i < n && i < MEMBERS; i++)
        if (members[i] != h->former)
            return members[i]->node;
    return NULL;
}

/* A pair that has its place says where the others have to be; false when
 * that cannot be met, and no eviction helps. */
static bool keep_place(struct hunt_job *h, const char *name)
{
    int32_t node = snapshot_find(h->snapshot, name, strlen(name));
    if (node < 0 || (h->placed && domain_of(h, node) != h->domain))
        return false;
    h->domain = domain_of(h, node);
    h->placed = true;
    return true;
}

static bool add_pair(struct hunt_job *h, int32_t rank)
{
    struct demand pair;
    size_t g = 0;
    demand_pair(h->pod, rank, &pair);
    const char *place = place_of_pair(h, &pair);
    if (place)
        return keep_place(h, place);
    while (g < h->n_groups &&
           (!demand_same_class(&h->groups[g].shape, &pair) ||
            h->groups[g].shape.memory_mib != pair.memory_mib))
        g++;
    if (g == PLAN_SHAPES_MAX)
        return false;
    if (g == h->n_groups)
        h->groups[h->n_groups++].shape = pair;
    h->groups[g].need++;
    if (rank == h->pod->pair)
        h->own = g;
    return true;
}

/* The pairs that are hardest to place come first. */
static bool is_harder(const struct demand *a, const struct demand *b)
{
    if (a->cards != b->cards)
        return a->cards > b->cards;
    if (a->gpus != b->gpus)
        return a->gpus > b->gpus;
    if (a->nics != b->nics)
        return a->nics > b->nics;
    if (a->card_cores != b->card_cores)
        return a->card_cores > b->card_cores;
    return a->cpu_milli > b->cpu_milli;
}

static void sort_groups(struct hunt_job *h)
{
    for (size_t i = 1; i < h->n_groups; i++)
        for (size_t j = i;
             j > 0 && is_harder(&h->groups[j].shape, &h->groups[j - 1].shape);
             j--) {
            struct group held = h->groups[j];
            h->groups[j] = h->groups[j - 1];
            h->groups[j - 1] = held;
            if (h->own == j || h->own == j - 1)
                h->own = h->own == j ? j - 1 : j;
        }
}

static bool read_job(struct hunt_job *h)
{
    if (!h->pod->job[0] || h->pod->size == 1)
        return add_pair(h, h->pod->pair);
    for (int32_t rank = 0; rank < h->pod->size; rank++)
        if (!add_pair(h, rank))
            return false;
    sort_groups(h);
    return true;
}

static int compare_spots(const void *a, const void *b)
{
    const struct spot *x = a, *y = b;
    if (x->domain != y->domain)
        return x->domain < y->domain ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* The nodes that can be used, by domain. */
static struct spot *read_spots(struct hunt_job *h,
                               const struct victims_ask *asks, size_t n,
                               uint32_t *ret_n)
{
    static const struct victims_ask nothing = {.node = NODE_NONE};
    size_t n_nodes = h->snapshot->n_nodes;
    cleanup_free const struct victims_ask **asked = xcalloc(n_nodes + 1,
                                                            sizeof *asked);
    struct spot *spots = xcalloc(n_nodes + 1, sizeof *spots);
    uint32_t used = 0;
    for (size_t i = 0; i < n; i++)
        if (asks[i].node >= 0)
            asked[asks[i].node] = &asks[i];
    for (size_t i = 0; i < n_nodes; i++) {
        const struct node *node = snapshot_node(h->snapshot, i);
        struct spot *s = &spots[used];
        int64_t domain = domain_of(h, (int32_t)i);
        if (node->status != NODE_READY || (h->placed && domain != h->domain))
            continue;
        s->index = (int32_t)i;
        s->domain = domain;
        s->ask = asked[i];
        bool sound = pool_init(&s->pool, node, h->pod,
                               asked[i] ? asked[i] : &nothing);
        s->pool.steps = &h->steps;
        if (sound)
            used++;
        else
            pool_fini(&s->pool);
    }
    qsort(spots, used, sizeof *spots, compare_spots);
    *ret_n = used;
    return spots;
}

/* Where the job fits as things are: what the scheduler evicts, which is
 * nobody's of ours, is enough. */
static void answer_open(const struct spot *spots, uint32_t n,
                        const struct victims_ask *asks,
                        struct victims *ret_victims)
{
    for (uint32_t i = 0; i < n; i++)
        if (spots[i].ask && spots[i].open)
            ret_victims[spots[i].ask - asks].fits = true;
}

/* Is there a plan for the job once all that was found is evicted? */
static bool has_plan(const struct hunt_job *h, struct spot *spots, uint32_t n)
{
    struct draft *draft = draft_create(h->snapshot);
    struct plan_refusal ignored;
    struct plan *plan = NULL;
    const struct host_room unknown = {INT64_MAX, INT64_MAX, INT64_MAX};
    for (uint32_t i = 0; i < n; i++) {
        size_t n_gone;
        const struct allocation *const *gone =
            pool_gone(&spots[i].pool, spots[i].evicted, &n_gone);
        if (spots[i].ask && spots[i].ask->others && spots[i].taken[h->own])
            draft_set_room(draft, spots[i].pool.node->name, &unknown);
        for (size_t k = 0; k < n_gone; k++)
            draft_evict(draft, gone[k]);
    }
    struct snapshot *after = draft_commit(draft);
    int r = job_plan(NULL, after, h->pod, NULL, 0, NODE_NONE, &plan, &ignored);
    plan_unref(r == 0 ? plan : NULL);
    snapshot_unref(after);
    return r == 0;
}

static void answer_evictions(const struct hunt_job *h, struct spot *spots,
                             uint32_t n, const struct victims_ask *asks,
                             struct victims *ret_victims)
{
    for (uint32_t i = 0; i < n; i++)
        if (is_of_use(h, &spots[i]))
            pool_name(&spots[i].pool, spots[i].ask, spots[i].evicted,
                      &ret_victims[spots[i].ask - asks]);
}

/* The domains where nobody has to go, or else the one with the fewest
 * evictions. */
static void answer_job(struct hunt_job *h, struct spot *spots, uint32_t n,
                       const struct victims_ask *asks,
                       struct victims *ret_victims)
{
    struct total best = {UINT32_MAX, 0}, total;
    uint32_t best_first = 0, best_n = 0;
    for (uint32_t first = 0, end; first < n; first = end) {
        bool helps;
        end = first;
        while (end < n && spots[end].domain == spots[first].domain)
            end++;
        if (!place_all(h, spots + first, end - first, &total, &helps))
            continue;
        if (total.pairs == 0)
            answer_open(spots + first, end - first, asks, ret_victims);
        if ((!helps && total.pairs) || total.pairs > best.pairs ||
            (total.pairs == best.pairs && total.priority >= best.priority))
            continue;
        best = total;
        best_first = first;
        best_n = end - first;
    }
    if (best.pairs > 0 && best.pairs < UINT32_MAX &&
        has_plan(h, spots + best_first, best_n))
        answer_evictions(h, spots + best_first, best_n, asks, ret_victims);
}

void victims_find_job(struct snapshot *snapshot,
                      const struct schedule *schedule,
                      const struct victims_ask *asks, size_t n,
                      struct victims *ret_victims)
{
    uint64_t room_steps = ROOMS_STEPS;
    struct hunt_job h = {.snapshot = snapshot,
                         .room_steps = &room_steps,
                         .pod = schedule->demand,
                         .former = schedule->former,
                         .steps = VICTIMS_JOB_STEPS_MAX};
    uint32_t n_spots;
    if (!read_job(&h))
        return;
    h.n_rooms = state_intern_count(h.snapshot->states);
    h.rooms = xcalloc(h.n_rooms + 1, sizeof *h.rooms);
    struct spot *spots = read_spots(&h, asks, n, &n_spots);
    answer_job(&h, spots, n_spots, asks, ret_victims);
    for (uint32_t i = 0; i < n_spots; i++)
        pool_fini(&spots[i].pool);
    free(spots);
    free(h.rooms);
}
