/* Plans of small clusters against an exhaustive search that shares no code
 * with the planner but plan_score() and what defines an aligned pair.
 *
 * The search tries, for every node and every number of pairs of each shape,
 * all sets of cards and GPUs one after the other; and then every assignment
 * of ranks to nodes.  BIGA_TEST_SEED sets the seed, BIGA_TEST_ROUNDS the
 * number of clusters (1,000 without it). */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <errno.h>
#include <string.h>

#include "model/plan/plan.h"
#include "tests/lib/randnode.h"
#include "tests/lib/sim/simfabric.h"

enum {
    NODES_MAX = 6,
    PAIRS_MAX = 5,
    SHAPES_MAX = 3,
    CODES = 6 * 6 * 6, /* up to 5 pairs of each of 3 shapes */
};

/* --- a cluster and a job ------------------------------------------------ */

struct trial {
    struct question nodes[NODES_MAX]; /* own the shapes */
    const struct node_state *states[NODES_MAX];
    int32_t leaves[NODES_MAX];
    struct host_room rooms[NODES_MAX];
    struct plan_cluster cluster;
    struct demand shapes[SHAPES_MAX];
    uint8_t shape_of[PAIRS_MAX];
    struct plan_fixed fixed[PAIRS_MAX];
    uint64_t candidates;
    struct plan_job job;
    unsigned order[SHAPES_MAX], n_order; /* in which shapes are placed */
};

static void roll_nodes(struct trial *t)
{
    size_t n = 1 + roll(NODES_MAX), per = 1 + roll(2);
    size_t n_leaves = 1 + roll(3);
    bool alike = odds(40);
    for (size_t i = 0; i < n; i++) {
        question_roll(&t->nodes[i], (struct randnode_limits){4, 4, 3, 3});
        t->states[i] = &t->nodes[i].state;
        if (i > 0 && (alike || odds(30))) {
            size_t k = roll((uint32_t)i);
            t->states[i] = t->states[k];
            if (t->states[i] && odds(50)) { /* equal, but not shared */
                t->nodes[i].state = *t->states[k];
                t->states[i] = &t->nodes[i].state;
            }
        }
        if (odds(3))
            t->states[i] = NULL;
        t->leaves[i] = odds(12) ? FABRIC_NONE
                                : (int32_t)roll((uint32_t)n_leaves);
    }
    t->cluster = (struct plan_cluster){
        .fabric = odds(92) ? simfabric_create(n_leaves, &per, 2) : NULL,
        .n_nodes = n,
        .states = t->states,
        .leaves = t->leaves,
    };
    for (size_t i = 0; i < n && !t->cluster.fabric; i++)
        t->leaves[i] = FABRIC_NONE;
}

/* Often tight, sometimes without end, once in a while overdrawn. */
static int64_t roll_room(uint32_t each)
{
    if (odds(30))
        return INT64_MAX;
    return odds(4) ? -(int64_t)roll(2000)
                   : (int64_t)roll(PAIRS_MAX) * each + roll(each);
}

static void roll_rooms(struct trial *t)
{
    for (size_t i = 0; i < t->cluster.n_nodes; i++) {
        if (i > 0 && odds(30))
            t->rooms[i] = t->rooms[roll((uint32_t)i)];
        else
            t->rooms[i] = (struct host_room){
                .cpu_milli = roll_room(4000),
                .memory_mib = roll_room(3000),
                .pods = odds(70) ? INT64_MAX : roll(PAIRS_MAX)};
    }
    t->cluster.rooms = t->rooms;
}

static void roll_shape(struct demand *d)
{
    demand_roll(d, (struct randnode_limits){2, 2, 3, 2});
    d->role = ROLE_HOST;
    d->cpu_milli = odds(30) ? 1 + roll(9000) : 0;
    d->memory_mib = odds(30) ? 1 + roll(5000) : 0;
    if (odds(60))
        d->cards = 1;
    if (d->gpus > d->cards && odds(70))
        d->gpus = d->cards;
    d->pair_cards = d->cards;
    d->pair_gpus = d->gpus;
    d->pair_nics = d->nics;
    if (d->has_card_need && odds(60)) {
        d->card_cores = 1 + roll(3);
        d->card_memory_mib = roll(4000);
    }
    d->prefer_align = (uint8_t)(odds(70) ? RELATION_PIX : roll(RELATION_COUNT));
}

static void roll_fixed(struct trial *t)
{
    for (uint32_t r = 0; r < t->job.size; r++) {
        if (!odds(25))
            continue;
        int32_t node = odds(92) ? (int32_t)roll((uint32_t)t->cluster.n_nodes)
                                : -1;
        t->fixed[t->job.n_fixed++] = (struct plan_fixed){
            .rank = (int32_t)r,
            .node = node,
            .leaf = node >= 0 ? t->leaves[node] : FABRIC_NONE,
            .unaligned = odds(20),
        };
    }
}

static void roll_pin(struct trial *t)
{
    uint32_t r = roll(t->job.size);
    for (size_t i = 0; i < t->job.n_fixed; i++)
        if (t->fixed[i].rank == (int32_t)r)
            return;
    t->job.pin_rank = (int32_t)r;
    t->job.pin_node = (int32_t)roll((uint32_t)t->cluster.n_nodes);
}

/* A pair without a stated need closes its cards, so it must come last: the
 * others may still share what it lies on. */
static void order_shapes(struct trial *t, size_t n)
{
    t->n_order = 0;
    for (int stated = 1; stated >= 0; stated--)
        for (unsigned s = 0; s < SHAPES_MAX; s++)
            if ((s < n && t->shapes[s].has_card_need) == stated)
                t->order[t->n_order++] = s;
}

static void trial_roll(struct trial *t)
{
    memset(t, 0, sizeof *t);
    roll_nodes(t);
    if (odds(50))
        roll_rooms(t);
    size_t n_shapes = odds(60) ? 1 : 2 + roll(SHAPES_MAX - 1);
    for (size_t i = 0; i < n_shapes; i++)
        roll_shape(&t->shapes[i]);
    order_shapes(t, n_shapes);
    t->job = (struct plan_job){
        .size = 1 + roll(PAIRS_MAX),
        .shape_of = n_shapes > 1 ? t->shape_of : NULL,
        .shapes = t->shapes,
        .n_shapes = n_shapes,
        .fixed = t->fixed,
        .within = odds(25) ? (int)roll(2) : PLAN_ANYWHERE,
        .prefer_within = odds(25) ? (int)roll(2) : PLAN_ANYWHERE,
        .pin_rank = -1,
        .pin_node = -1,
    };
    for (uint32_t r = 0; r < t->job.size; r++)
        t->shape_of[r] = (uint8_t)roll((uint32_t)n_shapes);
    if (odds(25))
        roll_fixed(t);
    if (odds(15))
        roll_pin(t);
    if (odds(25)) {
        t->candidates = roll(1u << NODES_MAX) | roll(1u << NODES_MAX);
        t->job.candidates = &t->candidates;
    }
}

static void trial_fini(struct trial *t)
{
    for (size_t i = 0; i < t->cluster.n_nodes; i++)
        question_fini(&t->nodes[i]);
    fabric_unref((struct fabric *)t->cluster.fabric);
}

/* --- one pair on one node ----------------------------------------------- */

static bool has(unsigned set, unsigned i)
{
    return set >> i & 1;
}

static bool card_is_free(const struct node_state *st, const struct demand *d,
                         unsigned c)
{
    uint32_t cores = d->has_card_need ? d->card_cores : 1;
    uint32_t memory = d->has_card_need ? d->card_memory_mib : 1;
    return has(st->usable, c) && !has(st->closed, c) &&
           d->by_claim == has(st->claimed, c) && !(d->runs && st->passive) &&
           !(d->runs & RUNS_CARDS && has(st->inert, c)) &&
           !(d->exclusive && has(st->shared, c)) &&
           (!d->arch[0] || strcmp(d->arch, st->shape->arch[c]) == 0) &&
           (!d->devices.text[0] ||
            strstr(st->shape->devices[c].text, d->devices.text)) &&
           randnode_lets(st->shape, c, d) && st->free_cores[c] >= cores &&
           st->free_memory_mib[c] >= memory;
}

static unsigned nearest_gpu(const struct shape *s, unsigned card, unsigned gpus)
{
    unsigned near = 99;
    for (unsigned g = 0; g < s->n_gpus; g++)
        if (has(gpus, g) && s->card_gpu[card][g] < near)
            near = s->card_gpu[card][g];
    return near;
}

static unsigned nearest_card(const struct shape *s, unsigned gpu,
                             unsigned cards)
{
    unsigned near = 99;
    for (unsigned c = 0; c < s->n_cards; c++)
        if (has(cards, c) && s->card_gpu[c][gpu] < near)
            near = s->card_gpu[c][gpu];
    return near;
}

static unsigned gpu_relation(const struct shape *s, unsigned cards,
                             unsigned gpus)
{
    unsigned worst = 0;
    for (unsigned g = 0; g < s->n_gpus; g++)
        if (has(gpus, g) && nearest_card(s, g, cards) > worst)
            worst = nearest_card(s, g, cards);
    for (unsigned c = 0; c < s->n_cards; c++)
        if (has(cards, c) && nearest_gpu(s, c, gpus) > worst)
            worst = nearest_gpu(s, c, gpus);
    return worst;
}

static unsigned numa_relation(const struct shape *s, unsigned cards, unsigned n)
{
    unsigned worst = RELATION_NODE;
    for (unsigned c = 0; c < s->n_cards; c++)
        if (has(cards, c) && s->card_numa[c][n] > worst)
            worst = s->card_numa[c][n];
    return worst;
}

static bool card_is_on(const struct shape *s, unsigned cards, unsigned n)
{
    for (unsigned c = 0; c < s->n_cards; c++)
        if (has(cards, c) && s->card_numa[c][n] <= RELATION_NODE)
            return true;
    return false;
}

/* May the pair's CPUs be on NUMA column `n`?  With GPUs and an alignment of
 * NODE or closer one of its cards has to be there, if they are anywhere. */
static bool numa_serves(const struct node_state *st, const struct demand *d,
                        unsigned cards, unsigned n)
{
    bool rooted = false;
    if (st->free_cpu_milli[n] < d->cpu_milli)
        return false;
    if (!d->gpus)
        return numa_relation(st->shape, cards, n) <=
               (d->align < RELATION_NODE ? RELATION_NODE : d->align);
    for (unsigned m = 0; m < st->shape->n_numas; m++)
        rooted |= card_is_on(st->shape, cards, m);
    return !d->cpu_milli || d->align > RELATION_NODE || !rooted ||
           card_is_on(st->shape, cards, n);
}

/* May the CPUs be on none?  Without CPUs only when there is none. */
static bool nowhere_serves(const struct node_state *st, const struct demand *d,
                           unsigned cards)
{
    bool rooted = false;
    for (unsigned n = 0; n < st->shape->n_numas; n++) {
        if (!d->cpu_milli && numa_serves(st, d, cards, n))
            return false;
        rooted |= card_is_on(st->shape, cards, n);
    }
    if (!d->gpus)
        return d->align == RELATION_SYS;
    return d->align > RELATION_NODE || !rooted || !d->cpu_milli;
}

/* Some free NICs, as many as asked: which they are hinders no other pair. */
static unsigned any_nics(const struct node_state *st, const struct demand *d)
{
    unsigned nics = 0, n = 0;
    for (unsigned i = 0; i < st->shape->n_nics && n < d->nics; i++)
        if (!has(st->nics_used, i)) {
            nics |= 1u << i;
            n++;
        }
    return nics;
}

/* How far NICs are from what they serve, and these from them. */
static unsigned nics_relation(const struct shape *s, const struct demand *d,
                              const struct choice *c)
{
    unsigned worst = 0, nearest_served[TOPO_NICS_MAX];
    for (unsigned n = 0; n < s->n_nics; n++)
        nearest_served[n] = 99;
    for (unsigned at = 0; at < 16; at++) {
        unsigned nearest = 99;
        const uint8_t *to = d->gpus ? s->gpu_nic[at] : s->card_nic[at];
        if (!has(d->gpus ? c->gpus : c->cards, at))
            continue;
        for (unsigned n = 0; n < s->n_nics; n++) {
            if (!has(c->nics, n))
                continue;
            nearest = to[n] < nearest ? to[n] : nearest;
            nearest_served[n] = to[n] < nearest_served[n] ? to[n]
                                                          : nearest_served[n];
        }
        worst = nearest > worst ? nearest : worst;
    }
    for (unsigned n = 0; n < s->n_nics; n++)
        if (has(c->nics, n) && nearest_served[n] > worst)
            worst = nearest_served[n];
    return c->nics ? worst : 0;
}

/* Do these cards and GPUs serve the demand, with its CPUs on that NUMA
 * column, or on none (-1)?  Fills the choice. */
static bool serves(const struct node_state *st, const struct demand *d,
                   unsigned cards, unsigned gpus, int numa, struct choice *ret)
{
    if ((unsigned)__builtin_popcount(cards) != d->cards ||
        (unsigned)__builtin_popcount(gpus) != d->gpus ||
        (gpus & st->gpus_used) || gpus >> st->shape->n_gpus ||
        (unsigned)__builtin_popcount(any_nics(st, d)) != d->nics)
        return false;
    for (unsigned c = 0; c < TOPO_CARDS_MAX; c++)
        if (has(cards, c) && !card_is_free(st, d, c))
            return false;
    if (numa < 0 ? !nowhere_serves(st, d, cards)
                 : !numa_serves(st, d, cards, (unsigned)numa))
        return false;
    memset(ret, 0, sizeof *ret);
    ret->cards = (uint16_t)cards;
    ret->gpus = (uint16_t)gpus;
    ret->nics = (uint16_t)any_nics(st, d);
    ret->numa = (int16_t)(numa < 0 ? -1 : st->shape->numa_id[numa]);
    ret->relation = RELATION_SYS;
    if (d->gpus)
        ret->relation = (uint8_t)gpu_relation(st->shape, cards, gpus);
    else if (numa >= 0)
        ret->relation = (uint8_t)numa_relation(st->shape, cards,
                                               (unsigned)numa);
    return !d->gpus || ret->relation <= d->align;
}

/* --- all ways to fill one node ------------------------------------------ */

struct rung {
    bool fits;
    unsigned unaligned, damage, idle;
    struct choice choices[PAIRS_MAX]; /* shape by shape */
};

struct filling {
    const struct trial *t;
    const struct node_state *state;
    struct rung *rungs; /* CODES */
    unsigned most[SHAPES_MAX], used[SHAPES_MAX];
    struct choice chosen[PAIRS_MAX];
    unsigned depth;
};

static unsigned damage_of(const struct node_state *st, unsigned cards)
{
    unsigned idle = st->usable & ~(unsigned)st->occupied, damage = 0;
    for (unsigned i = 0; i < st->shape->n_groups; i++) {
        unsigned group = st->shape->groups[i];
        if ((group & idle) == group && (group & cards) != 0)
            damage += (unsigned)__builtin_popcount(group & ~cards);
    }
    return damage;
}

static void note(struct filling *f, unsigned unaligned)
{
    struct rung *rung =
        &f->rungs[f->used[0] + 6 * f->used[1] + 36 * f->used[2]];
    unsigned cards = 0;
    for (unsigned i = 0; i < f->depth; i++)
        cards |= f->chosen[i].cards;
    struct rung now = {.fits = true, .unaligned = unaligned};
    now.damage = damage_of(f->state, cards);
    now.idle = (unsigned)__builtin_popcount(
        f->state->usable & ~(unsigned)f->state->occupied & ~cards);
    if (rung->fits &&
        (rung->unaligned < unaligned ||
         (rung->unaligned == unaligned &&
          (rung->damage < now.damage ||
           (rung->damage == now.damage && rung->idle <= now.idle)))))
        return;
    memcpy(now.choices, f->chosen, sizeof now.choices);
    *rung = now;
}

static void fill(struct filling *f, const struct node_state *left, unsigned at,
                 unsigned unaligned)
{
    const struct shape *shape = left->shape;
    note(f, unaligned);
    for (; at < SHAPES_MAX; at++) {
        unsigned s = f->t->order[at];
        const struct demand *d = &f->t->shapes[s];
        if (f->used[s] == f->most[s])
            continue;
        unsigned n_cards = 1u << shape->n_cards, n_gpus = 1u << shape->n_gpus;
        unsigned ways = n_cards * n_gpus * (shape->n_numas + 1u);
        for (unsigned way = 0; way < ways; way++) {
            struct node_state next = *left;
            struct choice *choice = &f->chosen[f->depth];
            if (!d->cpu_milli && d->gpus && way >= 2 * n_cards * n_gpus)
                break; /* the NUMA node makes no difference */
            if (!serves(left, d, way % n_cards, way / n_cards % n_gpus,
                        (int)(way / n_cards / n_gpus) - 1, choice))
                continue;
            bool bad = !decide_is_aligned(shape, d, choice);
            node_state_take(&next, d, choice);
            f->used[s]++;
            f->depth++;
            fill(f, &next, at, unaligned + bad);
            f->depth--;
            f->used[s]--;
        }
    }
}

/* --- all plans ---------------------------------------------------------- */

struct exhaustive {
    const struct trial *t;
    struct rung rungs[NODES_MAX][CODES];
    bool usable[NODES_MAX];
    bool is_fixed[PAIRS_MAX];
    struct plan_place places[PAIRS_MAX];
    bool found;
    struct plan_score best;
};

static void fill_nodes(struct exhaustive *e)
{
    const struct plan_job *job = &e->t->job;
    struct filling f = {.t = e->t};
    for (uint32_t r = 0; r < job->size; r++)
        f.most[e->t->shape_of[r]] += !e->is_fixed[r];
    for (size_t i = 0; i < e->t->cluster.n_nodes; i++) {
        e->usable[i] = e->t->states[i] &&
                       (!job->candidates || *job->candidates >> i & 1);
        if (!e->usable[i])
            continue;
        size_t same = 0; /* work once for a state that is shared */
        while (same < i &&
               !(e->usable[same] && e->t->states[same] == e->t->states[i]))
            same++;
        if (same < i) {
            memcpy(e->rungs[i], e->rungs[same], sizeof e->rungs[i]);
            continue;
        }
        f.state = e->t->states[i];
        f.rungs = e->rungs[i];
        fill(&f, f.state, 0, 0);
    }
}

/* Do the pairs of each host fit what it has left? */
static bool hosts_hold(const struct trial *t, const struct plan_place *places,
                       uint32_t size)
{
    int64_t cpu[NODES_MAX] = {0}, memory[NODES_MAX] = {0},
            pods[NODES_MAX] = {0};
    for (uint32_t r = 0; r < size && t->cluster.rooms; r++) {
        if (places[r].fixed)
            continue;
        const struct demand *d = &t->shapes[t->shape_of[r]];
        const struct host_room *room = &t->rooms[places[r].node];
        int32_t i = places[r].node;
        cpu[i] += d->cpu_milli;
        memory[i] += d->memory_mib;
        pods[i]++;
        /* who asks nothing is not kept off by what others overdrew */
        if ((d->cpu_milli && cpu[i] > room->cpu_milli) ||
            (d->memory_mib && memory[i] > room->memory_mib) ||
            pods[i] > room->pods)
            return false;
    }
    return true;
}

/* All ranks have a node: give them their choices and weigh the plan. */
static void weigh(struct exhaustive *e)
{
    const struct plan_job *job = &e->t->job;
    unsigned given[NODES_MAX] = {0}, used[NODES_MAX][SHAPES_MAX] = {0};
    struct plan_score score;
    if (!hosts_hold(e->t, e->places, job->size))
        return;
    for (uint32_t r = 0; r < job->size; r++)
        if (!e->is_fixed[r])
            used[e->places[r].node][e->t->shape_of[r]]++;
    for (unsigned at = 0; at < SHAPES_MAX; at++)
        for (uint32_t r = 0; r < job->size; r++) {
            if (e->is_fixed[r] || e->t->shape_of[r] != e->t->order[at])
                continue;
            int32_t i = e->places[r].node;
            const struct rung *rung =
                &e->rungs[i][used[i][0] + 6 * used[i][1] + 36 * used[i][2]];
            if (!rung->fits)
                return;
            e->places[r].choice = rung->choices[given[i]++];
        }
    plan_score(&e->t->cluster, job, e->places, &score);
    if (job->within >= 0 && score.tier > job->within)
        return;
    if (!e->found || plan_score_compare(&score, &e->best) < 0)
        e->best = score;
    e->found = true;
}

static void assign(struct exhaustive *e, uint32_t r)
{
    const struct plan_job *job = &e->t->job;
    if (r == job->size) {
        weigh(e);
        return;
    }
    if (e->is_fixed[r]) {
        assign(e, r + 1);
        return;
    }
    for (size_t i = 0; i < e->t->cluster.n_nodes; i++) {
        if (!e->usable[i] ||
            ((int32_t)r == job->pin_rank && (int32_t)i != job->pin_node))
            continue;
        e->places[r].node = (int32_t)i;
        assign(e, r + 1);
    }
}

static bool exhaust(const struct trial *t, struct plan_score *ret_best)
{
    cleanup_free struct exhaustive *e = xcalloc(1, sizeof *e);
    e->t = t;
    for (size_t i = 0; i < t->job.n_fixed; i++) {
        int32_t r = t->fixed[i].rank;
        e->is_fixed[r] = true;
        e->places[r].fixed = true;
        e->places[r].node = t->fixed[i].node;
    }
    fill_nodes(e);
    assign(e, 0);
    *ret_best = e->best;
    return e->found;
}

/* --- the plan ----------------------------------------------------------- */

static void validate_place(const struct trial *t,
                           const struct plan_place *place, uint32_t r,
                           struct node_state *left)
{
    const struct demand *d = &t->shapes[t->shape_of[r]];
    struct choice choice;
    cr_assert(!place->fixed && place->node >= 0);
    cr_assert((size_t)place->node < t->cluster.n_nodes);
    cr_assert(t->states[place->node]);
    cr_assert(!t->job.candidates || t->candidates >> place->node & 1);
    if ((int32_t)r == t->job.pin_rank)
        cr_assert_eq(place->node, t->job.pin_node);
    const struct shape *shape = t->states[place->node]->shape;
    int numa = shape->n_numas - 1;
    while (numa >= 0 && shape->numa_id[numa] != place->choice.numa)
        numa--;
    cr_assert(serves(&left[place->node], d, place->choice.cards,
                     place->choice.gpus, numa, &choice),
              "rank %u on node %d", r, place->node);
    cr_assert_eq(choice.relation, place->choice.relation);
    cr_assert_eq(__builtin_popcount(place->choice.nics), d->nics);
    cr_assert(!(place->choice.nics & left[place->node].nics_used) &&
              !(place->choice.nics >> shape->n_nics));
    cr_assert_eq(place->choice.nic_relation,
                 nics_relation(shape, d, &place->choice));
    node_state_take(&left[place->node], d, &place->choice);
}

/* Nothing twice, everything within, aligned as asked. */
static void validate(const struct trial *t, const struct plan *plan,
                     unsigned round)
{
    struct node_state left[NODES_MAX];
    struct plan_score score;
    bool is_fixed[PAIRS_MAX] = {false};
    for (size_t i = 0; i < t->cluster.n_nodes; i++)
        if (t->states[i])
            left[i] = *t->states[i];
    cr_assert_eq(plan->size, t->job.size);
    for (size_t i = 0; i < t->job.n_fixed; i++) {
        const struct plan_place *place = &plan->places[t->fixed[i].rank];
        cr_assert(place->fixed && place->node == t->fixed[i].node);
        is_fixed[t->fixed[i].rank] = true;
    }
    for (unsigned at = 0; at < SHAPES_MAX; at++)
        for (uint32_t r = 0; r < plan->size; r++)
            if (!is_fixed[r] && t->shape_of[r] == t->order[at])
                validate_place(t, &plan->places[r], r, left);
    cr_assert(hosts_hold(t, plan->places, plan->size), "round %u", round);
    plan_score(&t->cluster, &t->job, plan->places, &score);
    cr_assert_eq(plan_score_compare(&score, &plan->score), 0);
    if (t->job.within >= 0)
        cr_assert(score.tier <= t->job.within, "round %u: tier %u", round,
                  score.tier);
}

/* One number for all levels, in pairs: what an unaligned pair costs is 100;
 * a tier as much as a leaf, a leaf half of that; a crossing 10, a card left
 * useless 2, an idle card 1; and 100 for the job itself. */
static double cost_of(const struct plan_score *s)
{
    unsigned tier = s->tier == FABRIC_APART ? 2 : s->tier;
    return 100.0 + 100.0 * s->unaligned + 100.0 * s->wider + 50.0 * tier +
           50.0 * s->leaves + 10.0 * s->crossings + 2.0 * s->damage +
           (double)s->idle_left;
}

struct counts {
    unsigned planned, refused, equal, same_cost, near, exact, several;
};

static void expect_same(const struct plan *a, const struct plan *b)
{
    cr_assert_eq(plan_score_compare(&a->score, &b->score), 0);
    cr_assert_eq(a->exact, b->exact);
    for (uint32_t r = 0; r < a->size; r++) {
        const struct plan_place *x = &a->places[r], *y = &b->places[r];
        cr_assert(x->node == y->node && x->fixed == y->fixed);
        cr_assert_eq(x->choice.cards, y->choice.cards);
        cr_assert_eq(x->choice.gpus, y->choice.gpus);
        cr_assert_eq(x->choice.nics, y->choice.nics);
        cr_assert_eq(x->choice.numa, y->choice.numa);
    }
}

/* What is found out of the nodes beforehand, as of another job, changes
 * nothing. */
static void check_base(const struct trial *t, const struct plan *plan,
                       const struct plan_refusal *no)
{
    struct plan_cluster known = t->cluster;
    cleanup_with(plan) struct plan *again = NULL;
    struct plan_refusal same;
    struct plan_base *base = plan_base_create(&t->cluster, t->job.candidates);
    known.base = base;
    int rc = plan_make(&known, &t->job, &again, &same);
    plan_base_destroy(base);
    cr_assert_eq(rc, plan ? 0 : -EBUSY);
    if (plan) {
        expect_same(plan, again);
        return;
    }
    cr_assert_eq(same.lack, no->lack);
    cr_assert_eq(same.room, no->room);
    cr_assert_eq(same.room_within, no->room_within);
    cr_assert_eq(same.domain, no->domain);
}

static void check(const struct trial *t, unsigned round, struct counts *n)
{
    cleanup_with(plan) struct plan *plan = NULL;
    struct plan_refusal no;
    struct plan_score best;
    bool found = exhaust(t, &best);
    int rc = plan_make(&t->cluster, &t->job, &plan, &no);
    cr_assert_eq(rc, found ? 0 : -EBUSY, "round %u: %d, exhaustion %d", round,
                 rc, found);
    check_base(t, plan, &no);
    if (!found) {
        n->refused++;
        cr_assert_neq(no.lack, PLAN_LACK_NOTHING);
        cr_assert_neq(no.lack, PLAN_LACK_SEARCH, "round %u", round);
        return;
    }
    validate(t, plan, round);
    n->planned++;
    n->several += t->job.n_shapes > 1;
    n->exact += plan->exact;
    int order = plan_score_compare(&plan->score, &best);
    cr_assert(order >= 0, "round %u: better than the best", round);
    cr_assert(order == 0 || !plan->exact, "round %u: claims to be exact",
              round);
    n->equal += order == 0;
    double cost = cost_of(&plan->score), least = cost_of(&best);
    n->same_cost += cost <= least;
    n->near += cost <= least * 1.05;
}

Test(plan_optimum, small_clusters, .timeout = 300)
{
    unsigned rounds = (unsigned)setting("BIGA_TEST_ROUNDS", 1000);
    struct counts n = {0};
    cr_log_info("BIGA_TEST_SEED=%llu", (unsigned long long)chance_init());
    for (unsigned i = 0; i < rounds; i++) {
        struct trial t;
        trial_roll(&t);
        check(&t, i, &n);
        trial_fini(&t);
    }
    cr_log_info("%u clusters: %u planned (%u of several shapes), %u refused; "
                "%u have the best score, %u the lowest cost, %u within 5 %%; "
                "%u known to be exact",
                rounds, n.planned, n.several, n.refused, n.equal, n.same_cost,
                n.near, n.exact);
    cr_assert(n.planned > rounds / 4 && n.refused > rounds / 10);
    cr_assert(rounds < 1000 || (n.several && n.exact));
    cr_assert(n.same_cost * 100 >= n.planned * 99);
    cr_assert_eq(n.near, n.planned);
}
