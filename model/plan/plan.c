#include "model/plan/plan.h"

#include <string.h>

#include "lib/base/refs.h"
#include "model/plan/plan_private.h"

DEFINE_REF(plan_ref, struct plan)

void plan_unref(struct plan *p)
{
    if (p && refs_drop(&p->refs))
        free(p);
}

const char *plan_lack_name(enum plan_lack lack)
{
    static const char *const names[PLAN_LACKS] = {
        [PLAN_LACK_ROOM] = "room",     [PLAN_LACK_TIER] = "tier",
        [PLAN_LACK_FIXED] = "fixed",   [PLAN_LACK_PIN] = "pin",
        [PLAN_LACK_SEARCH] = "search", [PLAN_LACK_COMING] = "coming",
    };
    const char *name = (unsigned)lack < PLAN_LACKS ? names[lack] : NULL;
    return name ? name : "room";
}

/* --- scores ------------------------------------------------------------- */

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

int plan_score_compare(const struct plan_score *a, const struct plan_score *b)
{
    int order = compare(a->unaligned, b->unaligned);
    if (order == 0)
        order = compare(a->wider, b->wider);
    if (order == 0)
        order = compare(a->tier, b->tier);
    if (order == 0)
        order = compare(a->leaves, b->leaves);
    if (order == 0)
        order = compare(a->crossings, b->crossings);
    if (order == 0)
        order = compare(a->damage, b->damage);
    return order ? order : compare(a->idle_left, b->idle_left);
}

uint32_t plan_damage(const struct node_state *state, uint16_t cards)
{
    unsigned idle = state->usable & ~(unsigned)state->occupied;
    const struct shape *shape = state->shape;
    uint32_t damage = 0;
    for (unsigned i = 0; i < shape->n_groups; i++) {
        unsigned group = shape->groups[i];
        if ((group & ~idle) == 0 && (group & cards) != 0)
            damage += (uint32_t)__builtin_popcount(group & ~(unsigned)cards);
    }
    return damage;
}

/* What a placement uses. */
struct tally {
    const struct plan_cluster *cluster;
    const struct plan_job *job;
    uint16_t *cards; /* by node: taken by pairs that are not fixed */
    uint8_t *used;   /* by slot */
    uint32_t *slots; /* by rank */
    struct decide_ideal ideal[PLAN_SHAPES_MAX];
    const struct shape *ideal_of[PLAN_SHAPES_MAX];
};

static bool is_unaligned(struct tally *t, uint32_t rank,
                         const struct plan_place *place)
{
    const struct demand *demand = plan_shape(t->job, rank);
    size_t i = (size_t)(demand - t->job->shapes);
    const struct shape *shape = t->cluster->states[place->node]->shape;
    if (t->ideal_of[i] != shape) {
        t->ideal_of[i] = shape;
        if (!decide_ideal(shape, demand, &t->ideal[i]))
            t->ideal[i] = (struct decide_ideal){0, 0};
    }
    return !decide_meets(shape, demand, &t->ideal[i], &place->choice);
}

static void tally_places(struct tally *t, const struct plan_place *places,
                         struct plan_score *score)
{
    const struct plan_job *job = t->job;
    for (size_t i = 0; i < job->n_fixed; i++) {
        uint32_t slot = plan_fixed_slot(t->cluster, job, i);
        t->slots[job->fixed[i].rank] = slot;
        score->unaligned += job->fixed[i].unaligned;
    }
    for (uint32_t r = 0; r < job->size; r++) {
        if (!places[r].fixed) {
            size_t node = (size_t)places[r].node;
            t->slots[r] = plan_node_slot(t->cluster, node);
            t->cards[node] |= places[r].choice.cards;
            score->unaligned += is_unaligned(t, r, &places[r]);
        }
        if (!t->used[t->slots[r]]) {
            t->used[t->slots[r]] = 1;
            score->leaves++;
        }
        if (r > 0 && t->slots[r] != t->slots[r - 1])
            score->crossings++;
    }
}

static bool on_one_node(const struct plan_job *job,
                        const struct plan_place *places)
{
    for (uint32_t r = 0; r < job->size; r++)
        if (places[r].node < 0 || places[r].node != places[0].node)
            return false;
    return true;
}

static uint8_t tier_of(const struct tally *t, const struct plan_place *places)
{
    const struct plan_cluster *c = t->cluster;
    unsigned tier = 0;
    if (on_one_node(t->job, places))
        return 0;
    for (uint32_t r = 0; r < t->job->size; r++) {
        if (r > 0 && t->slots[r] == t->slots[r - 1])
            continue;
        unsigned common = fabric_common_tier(c->fabric,
                                             plan_slot_leaf(c, t->slots[0]),
                                             plan_slot_leaf(c, t->slots[r]));
        if (common > tier)
            tier = common;
    }
    return (uint8_t)tier;
}

void plan_score(const struct plan_cluster *cluster, const struct plan_job *job,
                const struct plan_place *places, struct plan_score *ret_score)
{
    const struct plan_cluster known = plan_known(cluster);
    struct plan_score score = {0};
    cleanup_free uint16_t *cards = xcalloc(cluster->n_nodes + 1, sizeof *cards);
    cleanup_free uint8_t *used = xcalloc(plan_n_slots(&known, job) + 1, 1);
    cleanup_free uint32_t *slots = xcalloc(job->size, sizeof *slots);
    struct tally t = {.cluster = &known,
                      .job = job,
                      .cards = cards,
                      .used = used,
                      .slots = slots};
    tally_places(&t, places, &score);
    score.tier = tier_of(&t, places);
    score.wider = job->prefer_within >= 0 && score.tier > job->prefer_within;
    for (size_t i = 0; i < cluster->n_nodes; i++) {
        const struct node_state *state = cluster->states[i];
        if (!state || !used[plan_node_slot(&known, i)])
            continue;
        unsigned idle = state->usable & ~(unsigned)state->occupied;
        score.idle_left += (unsigned)__builtin_popcount(idle & ~cards[i]);
        if (cards[i])
            score.damage += plan_damage(state, cards[i]);
    }
    *ret_score = score;
}
