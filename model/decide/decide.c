#include "model/decide/decide.h"

#include <string.h>

#include "lib/base/hash.h"
#include "model/decide/bits.h"
#include "model/decide/decide_search.h"

/* What levels 2 to 7 compare, in this order. */
struct rank {
    uint32_t spread, damage, idle;
    uint32_t nics; /* relation; PIX as long as it is not known */
    uint64_t cores;
    uint16_t cards;
};

/* --- what is asked ------------------------------------------------------ */

struct card_need decide_need(const struct demand *demand)
{
    if (!demand->has_card_need)
        return (struct card_need){1, 1};
    return (struct card_need){demand->card_cores, demand->card_memory_mib};
}

enum relation decide_align(const struct demand *demand)
{
    enum relation align = (enum relation)demand->align;
    return demand->gpus == 0 && align < RELATION_NODE ? RELATION_NODE : align;
}

uint32_t decide_cpus(const struct demand *demand)
{
    return demand->role == ROLE_HOST ? demand->cpu_milli : 0;
}

uint64_t decide_numas_with(const struct node_state *state, uint32_t cpu_milli)
{
    uint64_t numas = 0;
    for (unsigned n = 0; n < state->shape->n_numas; n++)
        if (state->free_cpu_milli[n] >= cpu_milli)
            numas |= UINT64_C(1) << n;
    return numas;
}

void decide_idle_cpus(const struct shape *shape,
                      uint32_t ret_milli[TOPO_NUMAS_MAX])
{
    for (unsigned n = 0; n < shape->n_numas; n++) {
        uint64_t milli = UINT64_C(1000) * shape->numa_cpus[n];
        ret_milli[n] = milli && milli < UINT32_MAX ? (uint32_t)milli
                                                   : UINT32_MAX;
    }
}

/* What a class consists of, with every equivalent spelling made one. */
struct class_key {
    uint8_t cards, gpus, nics, align, exclusive, runs, by_claim, every_gpu;
    struct card_need need;
    uint32_t cpus;
    char arch[DEMAND_ARCH_MAX + 1];
    struct device_sets devices;
    uint64_t rights;
};

static bool wants_every_gpu(const struct demand *demand)
{
    return demand->every_gpu && demand->gpus && demand->align < RELATION_SYS;
}

static struct class_key class_of(const struct demand *demand)
{
    struct class_key key;
    memset(&key, 0, sizeof key); /* compared and hashed as bytes */
    key.cards = demand->cards;
    key.gpus = demand->gpus;
    key.nics = demand->nics;
    key.align = (uint8_t)decide_align(demand);
    key.exclusive = demand->exclusive;
    key.runs = demand->runs;
    key.by_claim = demand->by_claim;
    key.every_gpu = wants_every_gpu(demand);
    key.need = decide_need(demand);
    key.cpus = decide_cpus(demand);
    memcpy(key.arch, demand->arch, strlen(demand->arch));
    memcpy(key.devices.text, demand->devices.text,
           strlen(demand->devices.text));
    key.rights = demand->runs ? demand->rights : 0;
    return key;
}

bool demand_same_class(const struct demand *a, const struct demand *b)
{
    struct class_key key_a = class_of(a), key_b = class_of(b);
    return memcmp(&key_a, &key_b, sizeof key_a) == 0;
}

uint64_t demand_class_hash(const struct demand *demand)
{
    struct class_key key = class_of(demand);
    return hash_bytes(&key, sizeof key);
}

/* --- level 1: can a set of cards reach the relation? -------------------- */

/* Every card needs a GPU near it, every GPU a card: GPUs of the smallest
 * cover are near cards, and what is missing to the number asked may be any
 * that is near a card.  All of `cards` are in s->reach. */
static bool gpus_suffice(struct search *s, unsigned cards)
{
    unsigned asked = s->demand->gpus;
    if (count_bits(cover_near(&s->gpus, cards)) < asked)
        return false;
    return asked >= s->demand->cards || cover_size(&s->gpus, cards) <= asked;
}

/* Whichever it gets has a card near it; each card has one of any set near it,
 * or search_every_gpu() has ruled it out. */
static bool every_gpu_is_near(const struct search *s, unsigned cards)
{
    unsigned near = 0;
    for (unsigned c = cards; c; c &= c - 1)
        near |= s->any_near[__builtin_ctz(c)];
    return near == (1u << s->shape->n_gpus) - 1;
}

static bool reaches(struct search *s, unsigned cards)
{
    if (s->demand->gpus)
        return (!(cards & s->rooted) || (cards & s->at_cpus)) &&
               (!s->every_gpu || every_gpu_is_near(s, cards)) &&
               gpus_suffice(s, cards);
    for (unsigned i = 0; i < s->n_around; i++)
        if ((cards & ~(unsigned)s->around[i]) == 0)
            return true;
    return false;
}

static void add_around(struct search *s, unsigned cards)
{
    for (unsigned i = 0; i < s->n_around; i++)
        if ((cards & ~(unsigned)s->around[i]) == 0)
            return;
    s->around[s->n_around++] = (uint16_t)cards;
    s->reach |= (uint16_t)cards;
}

/* Without a NUMA node nothing is known to be closer than SYS. */
static void try_numas(struct search *s)
{
    const struct shape *shape = s->shape;
    s->n_around = 0;
    s->reach = 0;
    if (s->relation == RELATION_SYS)
        add_around(s, s->available);
    for (uint64_t left = s->numas; left; left &= left - 1) {
        unsigned cards = 0, n = (unsigned)__builtin_ctzll(left);
        for (unsigned c = 0; c < shape->n_cards; c++)
            if (shape->card_numa[c][n] <= s->relation)
                cards |= 1u << c;
        cards &= s->available;
        if (count_bits(cards) >= s->demand->cards)
            add_around(s, cards);
    }
}

/* False when not even the GPUs that serve most could serve as many cards as
 * asked. */
static bool prepare_covers(struct search *s)
{
    unsigned n_gpus = s->shape->n_gpus;
    unsigned most = cover_serve(&s->gpus, s->reach, n_gpus);
    if (most * s->demand->gpus < s->demand->cards)
        return false;
    cover_prepare(&s->gpus, s->shape->n_cards, n_gpus);
    return true;
}

/* False when no GPU is nearer than in the relation before, which failed. */
static bool try_gpus(struct search *s)
{
    const struct shape *shape = s->shape;
    bool changed = false;
    s->reach = 0;
    for (unsigned c = 0; c < shape->n_cards; c++) {
        unsigned gpus = 0;
        for (unsigned g = 0; g < shape->n_gpus; g++)
            if (shape->card_gpu[c][g] <= s->relation)
                gpus |= 1u << g;
        gpus &= s->gpus_free;
        changed |= s->gpus.near[c] != gpus;
        s->gpus.near[c] = (uint16_t)gpus;
        if (gpus && s->available & 1u << c)
            s->reach |= (uint16_t)(1u << c);
    }
    return changed;
}

/* Make ready for `relation`; false when it is out of reach at a glance. */
static bool try_relation(struct search *s, enum relation relation)
{
    s->relation = relation;
    if (!s->demand->gpus)
        try_numas(s);
    else if (!try_gpus(s))
        return false;
    if (count_bits(s->reach) < s->demand->cards || (s->must & ~s->reach) != 0)
        return false;
    if (!s->demand->gpus)
        return true;
    return count_bits(cover_near(&s->gpus, s->reach)) >= s->demand->gpus &&
           (s->demand->gpus >= s->demand->cards || prepare_covers(s));
}

/* --- levels 2 to 7: which set of cards ---------------------------------- */

static void rank_cards(const struct search *s,
                       const struct shape_subset *subset, struct rank *ret_rank)
{
    unsigned cards = subset->cards;
    *ret_rank = (struct rank){.spread = subset->spread,
                              .cards = subset->cards,
                              .idle = count_bits(s->idle & ~cards)};
    for (unsigned i = 0; i < s->n_groups; i++)
        if (s->groups[i] & cards)
            ret_rank->damage += count_bits(s->groups[i] & ~cards);
    for (unsigned c = cards; c; c &= c - 1)
        ret_rank->cores += s->state->free_cores[__builtin_ctz(c)] -
                           s->need.cores;
}

/* Of two with the same spread. */
static bool rank_is_better(const struct rank *a, const struct rank *b)
{
    if (a->damage != b->damage)
        return a->damage < b->damage;
    if (a->idle != b->idle)
        return a->idle < b->idle;
    if (a->nics != b->nics)
        return a->nics < b->nics;
    if (a->cores != b->cores)
        return a->cores < b->cores;
    return a->cards < b->cards;
}

/* Beyond this relation of its NICs a set of cards is not better than the best
 * so far, if there is one. */
static enum relation farthest_nics(const struct rank *rank,
                                   const struct rank *best, bool found)
{
    bool tied = found && rank->damage == best->damage &&
                rank->idle == best->idle;
    return tied ? best->nics : RELATION_SYS;
}

/* The best set of cards that reaches the relation.  Sets come tightest
 * first, so the first that does bounds the spread. */
static bool find_cards(struct search *s, struct rank *ret_rank)
{
    const struct shape *shape = s->shape;
    const struct shape_subset *end = shape->subsets +
                                     shape->first[s->demand->cards + 1];
    const struct shape_subset *at = shape->subsets +
                                    shape->first[s->demand->cards];
    bool found = false;
    struct rank rank, best = {0};
    for (; at < end && (!found || at->spread == best.spread); at++) {
        if ((at->cards & ~s->reach) || (s->must & ~at->cards))
            continue;
        if (!found && !reaches(s, at->cards))
            continue;
        rank_cards(s, at, &rank);
        if (found && (!rank_is_better(&rank, &best) || !reaches(s, at->cards)))
            continue;
        if (s->nics)
            rank.nics = decide_nics_relation(
                s, at->cards, farthest_nics(&rank, &best, found));
        if (found && !rank_is_better(&rank, &best))
            continue;
        best = rank;
        found = true;
    }
    if (found)
        *ret_rank = best;
    return found;
}

static uint32_t at_most(uint64_t value, unsigned bits)
{
    uint64_t max = (UINT64_C(1) << bits) - 1;
    return (uint32_t)(value < max ? value : max);
}

/* Level 1 in the highest bits, then spread, damage, idle cards, NICs if any
 * are asked, and cores left; a level beyond its width counts as its highest
 * value. */
static uint32_t cost_pack(enum relation relation, const struct rank *rank,
                          bool nics)
{
    unsigned cores_bits = COST_CORES_BITS;
    uint32_t cost = at_most(relation, COST_RELATION_BITS);
    cost = cost << COST_SPREAD_BITS | at_most(rank->spread, COST_SPREAD_BITS);
    cost = cost << COST_DAMAGE_BITS | at_most(rank->damage, COST_DAMAGE_BITS);
    cost = cost << COST_IDLE_BITS | at_most(rank->idle, COST_IDLE_BITS);
    if (nics) {
        cost = cost << COST_NICS_BITS | at_most(rank->nics, COST_NICS_BITS);
        cores_bits -= COST_NICS_BITS;
    }
    return cost << cores_bits | at_most(rank->cores + 1, cores_bits);
}

/* --- the whole ---------------------------------------------------------- */

/* A host pod with GPUs that asks for NODE or closer has its CPUs on the NUMA
 * node of one of its cards, as far as those are on any. */
static void search_numas(struct search *s)
{
    const struct shape *shape = s->shape;
    uint32_t cpus = decide_cpus(s->demand);
    unsigned rooted = 0, at_cpus = 0;
    s->numas = decide_numas_with(s->state, cpus);
    s->rooted = s->at_cpus = 0;
    if (!cpus || !s->demand->gpus || s->demand->align > RELATION_NODE)
        return;
    for (unsigned c = 0; c < shape->n_cards; c++)
        for (unsigned n = 0; n < shape->n_numas; n++)
            if (shape->card_numa[c][n] <= RELATION_NODE) {
                rooted |= 1u << c;
                at_cpus |= (unsigned)(s->numas >> n & 1) << c;
            }
    s->rooted = (uint16_t)rooted;
    s->at_cpus = (uint16_t)at_cpus;
}

/* A card that is far from as many GPUs as are asked may get only such. */
static void search_every_gpu(struct search *s)
{
    const struct shape *shape = s->shape;
    s->every_gpu = wants_every_gpu(s->demand);
    for (unsigned c = 0; s->every_gpu && c < shape->n_cards; c++) {
        unsigned near = 0;
        for (unsigned g = 0; g < shape->n_gpus; g++)
            if (shape->card_gpu[c][g] <= s->demand->align)
                near |= 1u << g;
        s->any_near[c] = (uint16_t)near;
        if (shape->n_gpus - count_bits(near) >= s->demand->gpus)
            s->available &= (uint16_t) ~(1u << c);
    }
}

/* False when there are not even enough cards, GPUs and NICs. */
static bool search_init(struct search *s, const struct node_state *state,
                        const struct demand *demand, uint16_t must,
                        uint16_t within)
{
    const struct shape *shape = state->shape;
    s->shape = shape;
    s->state = state;
    s->demand = demand;
    s->must = must;
    s->need = decide_need(demand);
    s->available = within & decide_cards_for(state, demand);
    search_every_gpu(s);
    s->gpus_free = (uint16_t)(((1u << shape->n_gpus) - 1) &
                              ~(unsigned)state->gpus_used);
    if (demand->cards == 0 || demand->cards > TOPO_CARDS_MAX ||
        count_bits(s->available) < demand->cards ||
        (must & ~s->available) != 0 || count_bits(must) > demand->cards ||
        count_bits(s->gpus_free) < demand->gpus ||
        (demand->nics && count_bits(decide_nics_free(state)) < demand->nics))
        return false;
    s->idle = (uint16_t)(state->usable & ~state->occupied);
    memset(s->gpus.near, 0, sizeof s->gpus.near);
    search_numas(s);
    s->n_groups = 0;
    for (unsigned i = 0; i < shape->n_groups; i++)
        if ((shape->groups[i] & ~s->idle) == 0)
            s->groups[s->n_groups++] = shape->groups[i];
    return true;
}

/* After search_init().  `nics`: NULL when none are asked. */
static bool search(struct search *s, struct nic_search *nics,
                   struct choice *ret_choice)
{
    uint8_t known[1 << TOPO_CARDS_MAX]; /* cleared as far as it is used */
    struct rank rank;
    s->gpus.known = known;
    s->nics = nics;
    enum relation align = decide_align(s->demand);
    enum relation r = s->demand->gpus ? RELATION_PIX : RELATION_NODE;
    for (; r <= align; r++)
        if (try_relation(s, r) && find_cards(s, &rank))
            break;
    if (r > align)
        return false;
    memset(ret_choice, 0, sizeof *ret_choice); /* choices compare as bytes */
    ret_choice->cost = cost_pack(r, &rank, nics != NULL);
    ret_choice->relation = (uint8_t)r;
    decide_pick(s, rank.cards, ret_choice);
    return true;
}

/* On its own, as it takes much of the stack. */
__attribute__((noinline)) static bool
search_with_nics(struct search *s, struct choice *ret_choice)
{
    struct nic_search nics;
    decide_nics_init(&nics, s->shape, decide_nics_free(s->state),
                     s->demand->gpus != 0);
    return search(s, &nics, ret_choice);
}

bool decide_search(const struct node_state *state, const struct demand *demand,
                   uint16_t must, uint16_t within, struct choice *ret_choice)
{
    struct search s;
    if (!search_init(&s, state, demand, must, within))
        return false;
    return demand->nics ? search_with_nics(&s, ret_choice)
                        : search(&s, NULL, ret_choice);
}

enum reason decide(const struct node_state *state, const struct demand *demand,
                   uint16_t must, uint16_t within, struct choice *ret_choice)
{
    if (decide_search(state, demand, must, within, ret_choice))
        return REASON_NONE;
    return decide_reason(state, demand, must, within);
}

uint32_t decide_cost(const struct node_state *state,
                     const struct demand *demand)
{
    struct choice choice;
    return decide_search(state, demand, 0, UINT16_MAX, &choice) ? choice.cost
                                                                : COST_NO_FIT;
}
