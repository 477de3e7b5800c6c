/* Small jobs: rank after rank on every node, with the best plan so far as the
 * bound. */
#include <string.h>

#include "model/plan/plan_private.h"

enum {
    NOBODY = -1, /* one_node: no pair has a place yet */
    SEVERAL = -2,
    SEARCH_STEPS = 60000, /* nodes that are tried for a rank */
    PACK_STEPS = 200000,  /* of all packs together */
};

/* A node that may be used. */
struct seat {
    uint32_t node, class, slot;
    uint32_t twin;         /* the seat before with the same class and slot */
    uint32_t code;         /* rung of its pack: who sits here */
    struct host_room room; /* left on its host; INT64_MAX: enough for all */
};

struct seeker {
    const struct plan_cluster *cluster;
    const struct plan_job *job;
    struct plan_classes classes;
    struct pack *packs; /* by class; n_rungs 0: not made yet */
    uint32_t most[PLAN_SHAPES_MAX];
    uint64_t pack_steps, steps;
    bool cut;

    struct seat *seats;
    uint32_t n_seats;
    uint32_t *slots;   /* by rank */
    uint32_t *on_slot; /* by slot: pairs there */
    uint64_t *idle;    /* by slot: idle cards before the job */
    uint32_t *seat_of; /* by rank that is not fixed */
    uint32_t *best_seat;
    uint32_t *best_code; /* by seat */
    uint8_t *is_fixed;   /* by rank */
    int32_t *fixed_node;
    struct plan_score best;
    bool has_best, found;
};

/* What a partial plan has come to; nothing of it ever gets better. */
struct partial {
    struct plan_score score;
    int64_t one_node;
};

/* NULL when there are no steps left to make it. */
static const struct pack *pack_of(struct seeker *k, const struct seat *seat)
{
    struct pack *p = &k->packs[seat->class];
    if (p->n_rungs == 0 && k->pack_steps == 0) {
        k->cut = true;
        return NULL;
    }
    if (p->n_rungs == 0) {
        pack_init(p, k->classes.states[seat->class], k->job->shapes,
                  k->job->n_shapes, k->most, &k->pack_steps);
        k->cut |= p->cut;
        uint64_t room = p->n_rungs; /* memory is bounded, too */
        k->pack_steps -= room < k->pack_steps ? room : k->pack_steps;
    }
    return p;
}

static void improve(struct seeker *k, const struct plan_score *score)
{
    int order = k->has_best ? plan_score_compare(score, &k->best) : -1;
    if (order > 0 || (order == 0 && k->found))
        return;
    k->best = *score;
    k->has_best = k->found = true;
    memcpy(k->best_seat, k->seat_of, k->job->size * sizeof *k->best_seat);
    for (uint32_t i = 0; i < k->n_seats; i++)
        k->best_code[i] = k->seats[i].code;
}

/* Levels 1 to 5 only grow; the last two are known at the end. */
static bool hopeless(const struct seeker *k, const struct partial *p)
{
    if (k->job->within >= 0 && p->score.tier > k->job->within)
        return true;
    if (!k->has_best)
        return false;
    struct plan_score bound = p->score;
    bound.damage = 0;
    bound.idle_left = 0;
    return plan_score_compare(&bound, &k->best) > 0;
}

/* Rank `r` goes to `slot` on `node`. */
static void step_to(struct seeker *k, struct partial *p, uint32_t r,
                    uint32_t slot, int64_t node)
{
    struct plan_score *s = &p->score;
    const struct plan_cluster *c = k->cluster;
    k->slots[r] = slot;
    if (k->on_slot[slot]++ == 0) {
        s->leaves++;
        s->idle_left += k->idle[slot];
    }
    if (r > 0 && slot != k->slots[r - 1])
        s->crossings++;
    if (p->one_node == NOBODY && node >= 0)
        p->one_node = node;
    else if (node < 0 || p->one_node != node)
        p->one_node = SEVERAL;
    if (p->one_node >= 0)
        return;
    unsigned tier = fabric_common_tier(
        c->fabric, plan_slot_leaf(c, k->slots[0]), plan_slot_leaf(c, slot));
    if (tier > s->tier)
        s->tier = (uint8_t)tier;
    s->wider = k->job->prefer_within >= 0 && s->tier > k->job->prefer_within;
}

static void seek(struct seeker *k, uint32_t r, const struct partial *p);

static void try_seat(struct seeker *k, uint32_t r, struct seat *seat,
                     const struct partial *p)
{
    const struct demand *pair = plan_shape(k->job, r);
    size_t shape = (size_t)(pair - k->job->shapes);
    if (!host_room_holds(&seat->room, pair, 1))
        return;
    const struct pack *pack = pack_of(k, seat);
    if (!pack)
        return;
    const struct pack_rung *from = &pack->rungs[seat->code];
    const struct pack_rung *to = from + pack->stride[shape];
    if (!to->fits)
        return;
    struct partial next = *p;
    next.score.unaligned += to->unaligned - from->unaligned;
    next.score.damage += to->damage - from->damage;
    step_to(k, &next, r, seat->slot, seat->node);
    next.score.idle_left += from->idle;
    next.score.idle_left -= to->idle;
    if (!hopeless(k, &next)) {
        seat->code += pack->stride[shape];
        host_room_take(&seat->room, pair);
        k->seat_of[r] = (uint32_t)(seat - k->seats);
        seek(k, r + 1, &next);
        host_room_give(&seat->room, pair);
        seat->code -= pack->stride[shape];
    }
    k->on_slot[seat->slot]--;
}

static void seek(struct seeker *k, uint32_t r, const struct partial *p)
{
    const struct plan_job *job = k->job;
    if (r == job->size) {
        improve(k, &p->score);
        return;
    }
    if (k->is_fixed[r]) {
        struct partial next = *p;
        uint32_t slot = k->slots[r];
        step_to(k, &next, r, slot, k->fixed_node[r]);
        if (!hopeless(k, &next))
            seek(k, r + 1, &next);
        k->on_slot[slot]--;
        return;
    }
    for (uint32_t i = 0; i < k->n_seats; i++) {
        struct seat *seat = &k->seats[i];
        if ((int32_t)r == job->pin_rank && (int32_t)seat->node != job->pin_node)
            continue;
        if (seat->code == 0 && seat->twin != UINT32_MAX &&
            k->seats[seat->twin].code == 0)
            continue;
        if (k->steps == 0) {
            k->cut = true;
            return;
        }
        k->steps--;
        try_seat(k, r, seat, p);
    }
}

/* --- before and after --------------------------------------------------- */

static int compare_i64(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

/* As far as two empty seats can differ for the job. */
static int compare_kind(const struct seat *x, const struct seat *y)
{
    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    if (x->slot != y->slot)
        return x->slot < y->slot ? -1 : 1;
    int order = compare_i64(x->room.cpu_milli, y->room.cpu_milli);
    if (order == 0)
        order = compare_i64(x->room.memory_mib, y->room.memory_mib);
    return order ? order : compare_i64(x->room.pods, y->room.pods);
}

static int compare_seat(const void *a, const void *b)
{
    const struct seat *x = a, *y = b;
    int order = compare_kind(x, y);
    if (order)
        return order;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* Of empty seats with the same class, slot and room only the first is tried,
 * unless something makes them differ. */
static void find_twins(struct seeker *k)
{
    const struct plan_job *job = k->job;
    cleanup_free uint8_t *apart = xcalloc(k->cluster->n_nodes + 1, 1);
    cleanup_free struct seat *sorted =
        xmemdup(k->seats, (k->n_seats + 1) * sizeof *sorted);
    for (size_t i = 0; i < job->n_fixed; i++)
        if (job->fixed[i].node >= 0)
            apart[job->fixed[i].node] = 1;
    if (job->pin_rank >= 0)
        apart[job->pin_node] = 1;
    qsort(sorted, k->n_seats, sizeof *sorted, compare_seat);
    uint32_t last = UINT32_MAX; /* in sorted */
    for (uint32_t i = 0; i < k->n_seats; i++) {
        struct seat *seat = &k->seats[sorted[i].code];
        if (apart[seat->node])
            continue;
        if (last != UINT32_MAX && compare_kind(&sorted[last], seat) == 0)
            seat->twin = sorted[last].code;
        last = i;
    }
}

/* What a host has for the job; what all of it does not use up is without end,
 * so that hosts with enough are alike, and of one shape only counts differ. */
static struct host_room seat_room(const struct seeker *k, size_t node,
                                  const struct host_room *all)
{
    struct host_room room = {INT64_MAX, INT64_MAX, INT64_MAX};
    if (!k->cluster->rooms)
        return room;
    const struct host_room *has = &k->cluster->rooms[node];
    if (k->job->n_shapes == 1) {
        uint32_t n = host_room_holds(has, k->job->shapes, k->most[0]);
        room.pods = n < k->most[0] ? n : INT64_MAX;
        return room;
    }
    if (has->cpu_milli < all->cpu_milli)
        room.cpu_milli = has->cpu_milli;
    if (has->memory_mib < all->memory_mib)
        room.memory_mib = has->memory_mib;
    if (has->pods < all->pods)
        room.pods = has->pods;
    return room;
}

/* What all pairs that need a place ask of their hosts together. */
static struct host_room sum_asked(const struct seeker *k)
{
    struct host_room all = {0, 0, 0};
    for (size_t s = 0; s < k->job->n_shapes; s++)
        for (uint32_t n = 0; n < k->most[s]; n++)
            host_room_give(&all, &k->job->shapes[s]);
    return all;
}

static void list_seats(struct seeker *k)
{
    const struct plan_cluster *c = k->cluster;
    const struct host_room all = sum_asked(k);
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        uint32_t slot = plan_node_slot(c, i);
        if (c->states[i]) {
            unsigned idle = c->states[i]->usable &
                            ~(unsigned)c->states[i]->occupied;
            k->idle[slot] += (unsigned)__builtin_popcount(idle);
        }
        if (k->classes.class_of[i] == UINT32_MAX)
            continue;
        k->seats[k->n_seats] = (struct seat){
            .node = i,
            .class = k->classes.class_of[i],
            .slot = slot,
            .twin = UINT32_MAX,
            .code = k->n_seats, /* its own number, for find_twins() */
            .room = seat_room(k, i, &all),
        };
        k->n_seats++;
    }
    find_twins(k);
    for (uint32_t i = 0; i < k->n_seats; i++)
        k->seats[i].code = 0;
}

static void seeker_init(struct seeker *k, const struct plan_cluster *cluster,
                        const struct plan_job *job)
{
    size_t n_slots = plan_n_slots(cluster, job), n = cluster->n_nodes;
    memset(k, 0, sizeof *k);
    k->cluster = cluster;
    k->job = job;
    k->pack_steps = PACK_STEPS;
    k->steps = SEARCH_STEPS;
    plan_classes_init(&k->classes, cluster, job->candidates);
    k->packs = xcalloc(k->classes.n + 1u, sizeof *k->packs);
    k->seats = xcalloc(n + 1, sizeof *k->seats);
    k->best_code = xcalloc(n + 1, sizeof *k->best_code);
    k->on_slot = xcalloc(n_slots + 1, sizeof *k->on_slot);
    k->idle = xcalloc(n_slots + 1, sizeof *k->idle);
    k->slots = xcalloc(job->size, sizeof *k->slots);
    k->seat_of = xcalloc(job->size, sizeof *k->seat_of);
    k->best_seat = xcalloc(job->size, sizeof *k->best_seat);
    k->is_fixed = xcalloc(job->size, 1);
    k->fixed_node = xcalloc(job->size, sizeof *k->fixed_node);
    for (size_t i = 0; i < job->n_fixed; i++) {
        int32_t r = job->fixed[i].rank;
        k->is_fixed[r] = 1;
        k->fixed_node[r] = job->fixed[i].node;
        k->slots[r] = plan_fixed_slot(cluster, job, i);
    }
    for (uint32_t r = 0; r < job->size; r++)
        if (!k->is_fixed[r])
            k->most[plan_shape(job, r) - job->shapes]++;
    list_seats(k);
}

static void seeker_fini(struct seeker *k)
{
    for (uint32_t i = 0; i < k->classes.n; i++)
        pack_fini(&k->packs[i]);
    plan_classes_fini(&k->classes);
    free(k->packs);
    free(k->seats);
    free(k->best_code);
    free(k->on_slot);
    free(k->idle);
    free(k->slots);
    free(k->seat_of);
    free(k->best_seat);
    free(k->is_fixed);
    free(k->fixed_node);
}

/* The best seats, with the choices of their rungs: shape by shape, in the
 * order of ranks. */
static void write_places(struct seeker *k, struct plan_place *places)
{
    const struct plan_job *job = k->job;
    cleanup_free uint8_t *given = xcalloc(k->n_seats + 1, 1);
    for (size_t turn = 0; turn < job->n_shapes; turn++) {
        for (uint32_t r = 0; r < job->size; r++) {
            if (k->is_fixed[r])
                continue;
            uint32_t i = k->best_seat[r];
            const struct pack *pack = &k->packs[k->seats[i].class];
            if (plan_shape(job, r) != &job->shapes[pack->order[turn]])
                continue;
            places[r] = (struct plan_place){
                .node = (int32_t)k->seats[i].node,
                .choice = pack->rungs[k->best_code[i]].choices[given[i]++],
            };
        }
    }
    for (size_t i = 0; i < job->n_fixed; i++)
        places[job->fixed[i].rank] =
            (struct plan_place){.node = job->fixed[i].node, .fixed = true};
}

bool plan_search(const struct plan_cluster *cluster, const struct plan_job *job,
                 bool found, struct plan_place *places, bool *ret_done)
{
    struct seeker k;
    struct partial none = {.one_node = NOBODY};
    seeker_init(&k, cluster, job);
    if (found) {
        plan_score(cluster, job, places, &k.best);
        k.has_best = true;
    }
    for (size_t i = 0; i < job->n_fixed; i++)
        none.score.unaligned += job->fixed[i].unaligned;
    seek(&k, 0, &none);
    if (k.found)
        write_places(&k, places);
    *ret_done = !k.cut;
    found = k.has_best;
    seeker_fini(&k);
    return found;
}
