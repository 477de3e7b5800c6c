/* The decision against a brute force over all sets of cards and GPUs, written
 * from the definitions in schema/decision.md and sharing no code with
 * decide.c.  BIGA_TEST_SEED sets the seed, BIGA_TEST_ROUNDS the number. */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <stddef.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/decide.h"

/* --- chance ---------------------------------------------------------------- */

static uint64_t chance;

static uint32_t roll(uint32_t n) /* 0 … n - 1 */
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (uint32_t)((chance * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % n;
}

static bool odds(uint32_t percent)
{
    return roll(100) < percent;
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

static void chance_init(const char *test)
{
    chance = setting("BIGA_TEST_SEED", 20260117);
    cr_log_info("%s: BIGA_TEST_SEED=%llu", test, (unsigned long long)chance);
    chance = chance * 2 + 1; /* never 0 */
}

/* --- random nodes ------------------------------------------------------------ */

struct limits {
    unsigned cards, gpus, numas;
};

static const char *const archs[] = {"", "arm64", "amd64"};

/* Any relations at all, as long as they are symmetric. */
static void fill_any(struct shape *s)
{
    unsigned least = roll(RELATION_COUNT);
    unsigned span = RELATION_COUNT - least;
    for (unsigned c = 0; c < s->n_cards; c++) {
        for (unsigned d = 0; d < c; d++)
            s->card_card[c][d] = s->card_card[d][c] =
                (uint8_t)(least + roll(span));
        for (unsigned g = 0; g < s->n_gpus; g++)
            s->card_gpu[c][g] = (uint8_t)(least + roll(span));
        for (unsigned n = 0; n < s->n_numas; n++)
            s->card_numa[c][n] = (uint8_t)(RELATION_NODE + roll(3));
    }
    s->n_groups = (uint8_t)roll(7);
    for (unsigned i = 0; i < s->n_groups; i++)
        s->groups[i] = (uint16_t)roll(1u << s->n_cards);
}

/* Where a device of a real machine hangs; -1 unknown. */
struct spot {
    int package, numa, root, bridge, leaf;
};

static struct spot any_spot(unsigned n_numas)
{
    struct spot p = {-1, -1, (int)roll(3), (int)roll(2), (int)roll(2)};
    if (n_numas && odds(90)) {
        p.numa = (int)roll(n_numas);
        p.package = p.numa / 2;
        p.root += 3 * p.numa;
    } else {
        p.root += 1000;
    }
    return p;
}

static uint8_t spot_relation(const struct spot *a, const struct spot *b)
{
    if (a->root == b->root && a->bridge == b->bridge && a->leaf == b->leaf)
        return RELATION_PIX;
    if (a->root == b->root && a->bridge == b->bridge)
        return RELATION_PXB;
    if (a->root == b->root)
        return RELATION_PHB;
    if (a->numa >= 0 && a->numa == b->numa)
        return RELATION_NODE;
    return a->package >= 0 && a->package == b->package ? RELATION_SOCKET
                                                       : RELATION_SYS;
}

/* Relations of a tree: packages of two NUMA nodes, roots, two levels of
 * switches; and the aligned groups of it. */
static void fill_tree(struct shape *s)
{
    struct spot card[TOPO_CARDS_MAX], gpu[TOPO_GPUS_MAX];
    for (unsigned g = 0; g < s->n_gpus; g++)
        gpu[g] = any_spot(s->n_numas);
    for (unsigned c = 0; c < s->n_cards; c++) {
        card[c] = any_spot(s->n_numas);
        for (unsigned d = 0; d < c; d++)
            s->card_card[c][d] = s->card_card[d][c] =
                spot_relation(&card[c], &card[d]);
        for (unsigned g = 0; g < s->n_gpus; g++)
            s->card_gpu[c][g] = spot_relation(&card[c], &gpu[g]);
        for (unsigned n = 0; n < s->n_numas; n++) {
            struct spot place = {(int)n / 2, (int)n, -1, -1, -1};
            s->card_numa[c][n] = spot_relation(&card[c], &place);
        }
    }
    for (unsigned c = 0; c < s->n_cards; c++)
        for (unsigned level = RELATION_PIX; level <= RELATION_SYS; level++) {
            unsigned group = 1u << c;
            for (unsigned d = 0; d < s->n_cards; d++)
                if (d != c && s->card_card[c][d] <= level)
                    group |= 1u << d;
            if (__builtin_popcount(group) > 1 &&
                s->n_groups < SHAPE_GROUPS_MAX)
                s->groups[s->n_groups++] = (uint16_t)group;
        }
}

static struct shape *random_shape(struct limits max)
{
    cleanup_free struct shape *s = xcalloc(1, sizeof *s);
    s->n_cards = (uint8_t)(odds(2) ? 0 : 1 + roll(max.cards));
    s->n_gpus = (uint8_t)roll(max.gpus + 1);
    s->n_numas = (uint8_t)roll(max.numas + 1);
    for (unsigned n = 0; n < s->n_numas; n++)
        s->numa_id[n] = (int16_t)(2 * n);
    for (unsigned c = 0; c < s->n_cards; c++) {
        const char *arch = archs[odds(70) ? 1 : roll(ARRAY_LEN(archs))];
        memcpy(s->arch[c], arch, strlen(arch));
    }
    if (odds(50))
        fill_tree(s);
    else
        fill_any(s);
    return shape_create_from(s);
}

static void random_state(const struct shape *shape, struct node_state *state)
{
    unsigned all = (1u << shape->n_cards) - 1;
    bool idle = odds(30);
    memset(state, 0, sizeof *state);
    state->shape = shape;
    state->usable = (uint16_t)(odds(85) ? all : all & roll(65536));
    for (unsigned c = 0; c < shape->n_cards; c++) {
        state->cores[c] = odds(70) ? 8 : 1 + roll(16);
        state->memory_mib[c] = odds(70) ? 16384 : 1 + roll(32768);
        state->free_cores[c] =
            idle || odds(50) ? state->cores[c] : roll(state->cores[c] + 1);
        state->free_memory_mib[c] = idle || odds(50)
                                        ? state->memory_mib[c]
                                        : roll(state->memory_mib[c] + 1);
    }
    if (idle)
        return;
    state->closed = (uint16_t)(all & roll(65536) & roll(65536) & roll(65536));
    state->occupied = (uint16_t)(all & roll(65536) & roll(65536));
    state->shared = (uint16_t)(state->occupied | (all & roll(65536) &
                                                  roll(65536)));
    state->gpus_used = (uint16_t)(((1u << shape->n_gpus) - 1) & roll(65536) &
                                  roll(65536));
}

static void random_demand(struct limits max, struct demand *d)
{
    memset(d, 0, sizeof *d);
    d->role = (enum pod_role)(ROLE_HOST + roll(3));
    d->cards = (uint8_t)(1 + (odds(70) ? roll(3) : roll(max.cards + 1)));
    d->pair_cards = d->cards;
    if (d->role == ROLE_HOST && odds(70))
        d->gpus = (uint8_t)roll(odds(80) ? 4 : max.gpus + 2);
    d->align = (uint8_t)(odds(60) ? RELATION_SYS : roll(RELATION_COUNT));
    d->exclusive = odds(15);
    d->has_card_need = odds(60);
    if (d->has_card_need) {
        d->card_cores = roll(8);
        d->card_memory_mib = d->card_cores && odds(50) ? 0 : 1 + roll(16000);
    }
    if (odds(10))
        memcpy(d->arch, archs[1 + roll(2)], 6);
}

/* --- the brute force ------------------------------------------------------------ */

struct answer {
    bool fits;
    unsigned cards, gpus;
    unsigned relation;
    int numa;
    uint32_t cost;
    /* what is compared, in order */
    uint64_t key[8];
};

static unsigned max_of(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

static bool has(unsigned set, unsigned i)
{
    return set >> i & 1;
}

/* The relation of cards to GPUs: nobody may be left far from all others. */
static unsigned gpu_relation(const struct shape *s, unsigned cards,
                             unsigned gpus)
{
    unsigned worst = 0;
    for (unsigned g = 0; g < s->n_gpus; g++) {
        unsigned nearest = 99;
        for (unsigned c = 0; c < s->n_cards; c++)
            if (has(cards, c) && s->card_gpu[c][g] < nearest)
                nearest = s->card_gpu[c][g];
        if (has(gpus, g))
            worst = max_of(worst, nearest);
    }
    for (unsigned c = 0; c < s->n_cards; c++) {
        unsigned nearest = 99;
        for (unsigned g = 0; g < s->n_gpus; g++)
            if (has(gpus, g) && s->card_gpu[c][g] < nearest)
                nearest = s->card_gpu[c][g];
        if (has(cards, c))
            worst = max_of(worst, nearest);
    }
    return worst;
}

static unsigned numa_relation(const struct shape *s, unsigned cards,
                              int *ret_numa)
{
    unsigned best = 99;
    *ret_numa = -1;
    for (unsigned n = 0; n < s->n_numas; n++) {
        unsigned worst = RELATION_NODE;
        for (unsigned c = 0; c < s->n_cards; c++)
            if (has(cards, c))
                worst = max_of(worst, s->card_numa[c][n]);
        if (worst < best) {
            best = worst;
            *ret_numa = s->numa_id[n];
        }
    }
    return best == 99 ? RELATION_SYS : best;
}

static unsigned gpu_weight(const struct shape *s, unsigned cards,
                           unsigned gpus)
{
    unsigned sum = 0;
    for (unsigned g = 0; g < s->n_gpus; g++) {
        unsigned nearest = 99;
        for (unsigned c = 0; c < s->n_cards; c++)
            if (has(cards, c) && s->card_gpu[c][g] < nearest)
                nearest = s->card_gpu[c][g];
        if (has(gpus, g))
            sum += nearest;
    }
    return sum;
}

static bool card_is_available(const struct node_state *st,
                              const struct demand *d, unsigned c)
{
    uint32_t cores = d->has_card_need ? d->card_cores : 1;
    uint32_t memory = d->has_card_need ? d->card_memory_mib : 1;
    return has(st->usable, c) && !has(st->closed, c) &&
           !(d->exclusive && has(st->shared, c)) &&
           (!d->arch[0] || strcmp(d->arch, st->shape->arch[c]) == 0) &&
           st->free_cores[c] >= cores && st->free_memory_mib[c] >= memory;
}

static bool cards_are_allowed(const struct node_state *st,
                              const struct demand *d, unsigned cards,
                              unsigned must, unsigned within)
{
    if ((unsigned)__builtin_popcount(cards) != d->cards)
        return false;
    for (unsigned c = 0; c < 16; c++) {
        if (has(must, c) && !has(cards, c))
            return false;
        if (has(cards, c) &&
            (!has(within, c) || !card_is_available(st, d, c)))
            return false;
    }
    return true;
}

/* Levels 2 to 5 into key[1] … key[4]. */
static void card_levels(const struct node_state *st, const struct demand *d,
                        unsigned cards, uint64_t key[8])
{
    const struct shape *s = st->shape;
    unsigned idle = st->usable & ~(unsigned)st->occupied;
    key[1] = key[2] = key[3] = key[4] = 0;
    for (unsigned c = 0; c < s->n_cards; c++)
        for (unsigned e = c + 1; e < s->n_cards; e++)
            if (has(cards, c) && has(cards, e))
                key[1] += s->card_card[c][e];
    for (unsigned i = 0; i < s->n_groups; i++) {
        unsigned group = s->groups[i];
        if ((group & idle) == group && (group & cards) != 0)
            key[2] += (unsigned)__builtin_popcount(group & ~cards);
    }
    key[3] = (unsigned)__builtin_popcount(idle & ~cards);
    for (unsigned c = 0; c < s->n_cards; c++)
        if (has(cards, c))
            key[4] += st->free_cores[c] -
                      (d->has_card_need ? d->card_cores : 1);
}

static uint32_t pack(const uint64_t key[8])
{
    static const uint64_t cap[5] = {7, 1023, 63, 15, 511};
    static const unsigned shift[5] = {29, 19, 13, 9, 0};
    uint64_t cost = 0;
    for (int i = 0; i < 5; i++) {
        uint64_t value = key[i] + (i == 4);
        cost += (value > cap[i] ? cap[i] : value) << shift[i];
    }
    return (uint32_t)cost;
}

static bool key_is_less(const uint64_t a[8], const uint64_t b[8])
{
    for (int i = 0; i < 8; i++)
        if (a[i] != b[i])
            return a[i] < b[i];
    return false;
}

static void consider(const struct shape *s, const struct demand *d,
                     unsigned cards, unsigned gpus, struct answer *now,
                     struct answer *best)
{
    unsigned near = numa_relation(s, cards, &now->numa);
    unsigned align = d->align;
    if (d->gpus)
        near = gpu_relation(s, cards, gpus);
    else
        align = max_of(align, RELATION_NODE);
    if (near > align)
        return;
    now->fits = true;
    now->cards = cards;
    now->gpus = gpus;
    now->relation = near;
    now->key[0] = near;
    now->key[5] = cards;
    now->key[6] = gpu_weight(s, cards, gpus);
    now->key[7] = gpus;
    now->cost = pack(now->key);
    if (!best->fits || key_is_less(now->key, best->key))
        *best = *now;
}

static struct answer brute_force(const struct node_state *st,
                                 const struct demand *d, unsigned must,
                                 unsigned within)
{
    const struct shape *s = st->shape;
    struct answer best = {0}, now = {0};
    for (unsigned cards = 0; cards < 1u << s->n_cards; cards++) {
        if (!cards_are_allowed(st, d, cards, must, within))
            continue;
        card_levels(st, d, cards, now.key);
        for (unsigned gpus = 0; gpus < 1u << s->n_gpus; gpus++)
            if ((unsigned)__builtin_popcount(gpus) == d->gpus &&
                (gpus & st->gpus_used) == 0)
                consider(s, d, cards, gpus, &now, &best);
    }
    return best;
}

/* --- the properties ---------------------------------------------------------------- */

static void expect_same(const struct answer *want, enum reason reason,
                        const struct choice *got, unsigned round)
{
    cr_assert_eq(reason == REASON_NONE, want->fits, "round %u: %s, fits %d",
                 round, reason_word(reason), want->fits);
    if (!want->fits)
        return;
    cr_assert_eq(got->cards, want->cards, "round %u: cards %x, best %x",
                 round, got->cards, want->cards);
    cr_assert_eq(got->cost, want->cost, "round %u: cost %x, best %x", round,
                 got->cost, want->cost);
    cr_assert_eq(got->gpus, want->gpus, "round %u: gpus %x, best %x", round,
                 got->gpus, want->gpus);
    cr_assert_eq(got->relation, want->relation, "round %u", round);
    cr_assert_eq(got->numa, want->numa, "round %u", round);
    cr_assert(got->cost != 0 && got->cost != COST_NO_FIT);
}

/* What preemption could reach: everything on the node gone. */
static void expect_reason(enum reason reason, const struct node_state *state,
                          const struct demand *demand, unsigned must,
                          unsigned within, unsigned round)
{
    struct node_state idle = *state;
    memcpy(idle.free_cores, idle.cores, sizeof idle.cores);
    memcpy(idle.free_memory_mib, idle.memory_mib, sizeof idle.memory_mib);
    idle.closed = idle.occupied = idle.shared = idle.gpus_used = 0;
    struct answer answer = brute_force(&idle, demand, must, within);
    cr_assert_eq(reason_resolvable(reason), answer.fits,
                 "round %u: %s, but idle it fits: %d", round,
                 reason_word(reason), answer.fits);
    struct str text = STR_INIT(4096);
    reason_explain(reason, state, demand, &text);
    cr_assert(text.size > 0 && !text.overflow);
    str_fini(&text);
}

static void random_bounds(const struct shape *shape, uint16_t *must,
                          uint16_t *within)
{
    unsigned all = (1u << shape->n_cards) - 1;
    *must = 0;
    *within = UINT16_MAX;
    if (odds(20))
        *must = (uint16_t)(all & roll(65536) & roll(65536));
    if (odds(20))
        *within = (uint16_t)(odds(80) ? *must | roll(65536) : roll(65536));
}

static unsigned check_optimum(struct limits max, unsigned rounds)
{
    unsigned fitting = 0;
    for (unsigned i = 0; i < rounds; i++) {
        struct node_state state;
        struct demand demand;
        struct choice choice;
        uint16_t must, within;
        struct shape *shape = random_shape(max);
        random_state(shape, &state);
        random_demand(max, &demand);
        random_bounds(shape, &must, &within);
        enum reason reason = decide(&state, &demand, must, within, &choice);
        struct answer want = brute_force(&state, &demand, must, within);
        expect_same(&want, reason, &choice, i);
        if (must == 0 && within == UINT16_MAX)
            cr_assert_eq(decide_cost(&state, &demand),
                         want.fits ? want.cost : COST_NO_FIT);
        if (!want.fits)
            expect_reason(reason, &state, &demand, must, within, i);
        fitting += want.fits;
        shape_destroy(shape);
    }
    return fitting;
}

Test(decide_optimum, small_nodes, .timeout = 300)
{
    unsigned rounds = (unsigned)setting("BIGA_TEST_ROUNDS", 10000);
    chance_init("small_nodes");
    unsigned fitting = check_optimum((struct limits){6, 5, 4}, rounds);
    cr_log_info("%u of %u fit", fitting, rounds);
    cr_assert(fitting > rounds / 5 && fitting < rounds * 4 / 5,
              "a test of both: %u of %u fit", fitting, rounds);
}

Test(decide_optimum, large_nodes, .timeout = 300)
{
    unsigned rounds = (unsigned)setting("BIGA_TEST_ROUNDS", 10000) / 10;
    chance_init("large_nodes");
    check_optimum((struct limits){10, 9, 8}, rounds);
}

/* Other names for the same cards, GPUs and NUMA nodes: the same cost. */
static void shuffle(unsigned *order, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        order[i] = i;
    for (unsigned i = n; i > 1; i--) {
        unsigned j = roll(i), held = order[i - 1];
        order[i - 1] = order[j];
        order[j] = held;
    }
}

static uint16_t renamed(unsigned set, const unsigned *order, unsigned n)
{
    unsigned out = 0;
    for (unsigned i = 0; i < n; i++)
        if (has(set, i))
            out |= 1u << order[i];
    return (uint16_t)out;
}

static struct shape *rename_shape(const struct shape *s, const unsigned *card,
                                  const unsigned *gpu)
{
    cleanup_free struct shape *t = xcalloc(1, sizeof *t);
    memcpy(t, s, offsetof(struct shape, hash));
    for (unsigned c = 0; c < s->n_cards; c++) {
        for (unsigned d = 0; d < s->n_cards; d++)
            t->card_card[card[c]][card[d]] = s->card_card[c][d];
        for (unsigned g = 0; g < s->n_gpus; g++)
            t->card_gpu[card[c]][gpu[g]] = s->card_gpu[c][g];
        memcpy(t->card_numa[card[c]], s->card_numa[c],
               sizeof s->card_numa[c]);
        memcpy(t->arch[card[c]], s->arch[c], sizeof s->arch[c]);
    }
    for (unsigned i = 0; i < s->n_groups; i++)
        t->groups[i] = renamed(s->groups[i], card, s->n_cards);
    return shape_create_from(t);
}

static void rename_state(const struct node_state *state,
                         const struct shape *shape, const unsigned *card,
                         const unsigned *gpu, struct node_state *out)
{
    unsigned n = shape->n_cards;
    memset(out, 0, sizeof *out);
    out->shape = shape;
    for (unsigned c = 0; c < n; c++) {
        out->free_cores[card[c]] = state->free_cores[c];
        out->free_memory_mib[card[c]] = state->free_memory_mib[c];
        out->cores[card[c]] = state->cores[c];
        out->memory_mib[card[c]] = state->memory_mib[c];
    }
    out->usable = renamed(state->usable, card, n);
    out->closed = renamed(state->closed, card, n);
    out->occupied = renamed(state->occupied, card, n);
    out->shared = renamed(state->shared, card, n);
    out->gpus_used = renamed(state->gpus_used, gpu, shape->n_gpus);
}

Test(decide_optimum, names_do_not_matter, .timeout = 60)
{
    struct limits max = {12, 12, 8};
    chance_init("names_do_not_matter");
    for (unsigned i = 0; i < 1000; i++) {
        struct node_state state, other;
        struct demand demand;
        unsigned card[TOPO_CARDS_MAX], gpu[TOPO_GPUS_MAX];
        struct shape *shape = random_shape(max);
        random_state(shape, &state);
        random_demand(max, &demand);
        shuffle(card, shape->n_cards);
        shuffle(gpu, shape->n_gpus);
        struct shape *other_shape = rename_shape(shape, card, gpu);
        rename_state(&state, other_shape, card, gpu, &other);
        struct choice ignored;
        cr_assert_eq(decide_cost(&state, &demand),
                     decide_cost(&other, &demand), "round %u", i);
        cr_assert_eq(decide(&state, &demand, 0, UINT16_MAX, &ignored),
                     decide(&other, &demand, 0, UINT16_MAX, &ignored));
        shape_destroy(shape);
        shape_destroy(other_shape);
    }
}

/* The same bytes 1,000 times, whatever was decided in between. */
Test(decide_optimum, same_answer_every_time, .timeout = 60)
{
    struct limits max = {16, 16, 8};
    chance_init("same_answer_every_time");
    for (unsigned i = 0; i < 20; i++) {
        struct node_state state;
        struct demand demand;
        struct choice first;
        struct shape *shape = random_shape(max);
        random_state(shape, &state);
        random_demand((struct limits){4, 4, 8}, &demand);
        memset(&first, 0, sizeof first);
        enum reason reason = decide(&state, &demand, 0, UINT16_MAX, &first);
        for (unsigned j = 0; j < 1000; j++) {
            struct choice again;
            memset(&again, 0, sizeof again);
            cr_assert_eq(decide(&state, &demand, 0, UINT16_MAX, &again),
                         reason);
            cr_assert_eq(memcmp(&again, &first, sizeof again), 0,
                         "round %u", i);
        }
        shape_destroy(shape);
    }
}

/* Demands of one class get one answer; what decides nothing is not in it. */
Test(decide_optimum, classes, .timeout = 60)
{
    struct limits max = {6, 5, 4};
    chance_init("classes");
    unsigned same = 0;
    for (unsigned i = 0; i < 20000; i++) {
        struct node_state state;
        struct demand a, b;
        struct shape *shape = random_shape(max);
        random_state(shape, &state);
        random_demand((struct limits){2, 1, 1}, &a);
        random_demand((struct limits){2, 1, 1}, &b);
        if (odds(30)) {
            b = a;
            b.priority = roll(1000);
            memcpy(b.name, "other", 6);
        }
        if (demand_same_class(&a, &b)) {
            same++;
            cr_assert_eq(demand_class_hash(&a), demand_class_hash(&b));
            cr_assert_eq(decide_cost(&state, &a), decide_cost(&state, &b));
        }
        shape_destroy(shape);
    }
    cr_assert(same > 5000, "%u", same);
}
