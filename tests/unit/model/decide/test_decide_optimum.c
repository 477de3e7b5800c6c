/* The decision against a brute force over all sets of cards, GPUs and NICs,
 * written from the definitions in schema/decision.md and sharing no code with
 * decide.c.  BIGA_TEST_SEED sets the seed, BIGA_TEST_ROUNDS the number. */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <string.h>

#include "lib/base/str.h"
#include "tests/lib/randnode.h"

/* --- the brute force ---------------------------------------------------- */

/* What is compared, in order. */
enum {
    RELATION,
    SPREAD,
    DAMAGE,
    IDLE,
    NICS,
    CORES,
    CARDS_BITS,
    GPUS_WEIGHT,
    GPUS_BITS,
    NICS_WEIGHT,
    NICS_BITS,
    KEYS
};

struct answer {
    bool fits;
    unsigned cards, gpus, nics;
    unsigned relation;
    int numa;
    uint32_t cost;
    uint64_t key[KEYS];
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

/* Does any card, of those in `cards`, lie on NUMA node n? */
static bool holds_card(const struct shape *s, unsigned cards, unsigned n)
{
    bool any = false;
    for (unsigned c = 0; c < s->n_cards; c++)
        any |= has(cards, c) && s->card_numa[c][n] == RELATION_NODE;
    return any;
}

static bool has_cpus(const struct node_state *st, const struct demand *d,
                     unsigned n)
{
    return d->role != ROLE_HOST || st->free_cpu_milli[n] >= d->cpu_milli;
}

/* Of the NUMA nodes with the CPUs; `own`: only those that hold a card. */
static unsigned numa_relation(const struct node_state *st,
                              const struct demand *d, unsigned cards, bool own,
                              int *ret_numa)
{
    const struct shape *s = st->shape;
    unsigned best = 99, best_sum = 0;
    *ret_numa = -1;
    for (unsigned n = 0; n < s->n_numas; n++) {
        unsigned worst = RELATION_NODE, sum = 0;
        if (!has_cpus(st, d, n) || (own && !holds_card(s, cards, n)))
            continue;
        for (unsigned c = 0; c < s->n_cards; c++)
            if (has(cards, c)) {
                worst = max_of(worst, s->card_numa[c][n]);
                sum += s->card_numa[c][n];
            }
        if (worst < best || (worst == best && sum < best_sum)) {
            best = worst;
            best_sum = sum;
            *ret_numa = s->numa_id[n];
        }
    }
    return best == 99 ? RELATION_SYS : best;
}

/* Must the CPUs be on a NUMA node of the cards?  Asked of host pods with GPUs
 * that want NODE or closer, when the cards are on any. */
static bool wants_own_numa(const struct shape *s, const struct demand *d,
                           unsigned cards)
{
    bool any = false;
    for (unsigned n = 0; n < s->n_numas; n++)
        any |= holds_card(s, cards, n);
    return any && d->role == ROLE_HOST && d->cpu_milli && d->gpus &&
           d->align <= RELATION_NODE;
}

static unsigned gpu_weight(const struct shape *s, unsigned cards, unsigned gpus)
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

/* How far NIC n is from what it serves: the GPUs, or else the cards. */
static unsigned nic_distance(const struct shape *s, const struct answer *a,
                             unsigned n)
{
    unsigned nearest = 99;
    for (unsigned g = 0; g < s->n_gpus; g++)
        if (has(a->gpus, g) && s->gpu_nic[g][n] < nearest)
            nearest = s->gpu_nic[g][n];
    for (unsigned c = 0; a->gpus == 0 && c < s->n_cards; c++)
        if (has(a->cards, c) && s->card_nic[c][n] < nearest)
            nearest = s->card_nic[c][n];
    return nearest;
}

/* And how far one that is served, at `to`, is from its NIC. */
static unsigned nearest_nic(const struct shape *s, const struct answer *a,
                            const uint8_t to[TOPO_NICS_MAX])
{
    unsigned nearest = 99;
    for (unsigned n = 0; n < s->n_nics; n++)
        if (has(a->nics, n) && to[n] < nearest)
            nearest = to[n];
    return nearest;
}

/* The levels of NICs. */
static void nic_levels(const struct shape *s, struct answer *a)
{
    a->key[NICS] = a->key[NICS_WEIGHT] = 0;
    a->key[NICS_BITS] = a->nics;
    if (a->nics == 0)
        return;
    for (unsigned n = 0; n < s->n_nics; n++)
        if (has(a->nics, n)) {
            unsigned distance = nic_distance(s, a, n);
            a->key[NICS] = max_of((unsigned)a->key[NICS], distance);
            a->key[NICS_WEIGHT] += distance;
        }
    for (unsigned g = 0; g < s->n_gpus; g++)
        if (has(a->gpus, g))
            a->key[NICS] = max_of((unsigned)a->key[NICS],
                                  nearest_nic(s, a, s->gpu_nic[g]));
    for (unsigned c = 0; a->gpus == 0 && c < s->n_cards; c++)
        if (has(a->cards, c))
            a->key[NICS] = max_of((unsigned)a->key[NICS],
                                  nearest_nic(s, a, s->card_nic[c]));
}

static bool card_is_available(const struct node_state *st,
                              const struct demand *d, unsigned c)
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

static bool cards_are_allowed(const struct node_state *st,
                              const struct demand *d, unsigned cards,
                              unsigned must, unsigned within)
{
    if ((unsigned)__builtin_popcount(cards) != d->cards)
        return false;
    for (unsigned c = 0; c < 16; c++) {
        if (has(must, c) && !has(cards, c))
            return false;
        if (has(cards, c) && (!has(within, c) || !card_is_available(st, d, c)))
            return false;
    }
    return true;
}

/* The levels that depend on the cards alone. */
static void card_levels(const struct node_state *st, const struct demand *d,
                        unsigned cards, uint64_t key[KEYS])
{
    const struct shape *s = st->shape;
    unsigned idle = st->usable & ~(unsigned)st->occupied;
    key[SPREAD] = key[DAMAGE] = key[CORES] = 0;
    for (unsigned c = 0; c < s->n_cards; c++)
        for (unsigned e = c + 1; e < s->n_cards; e++)
            if (has(cards, c) && has(cards, e))
                key[SPREAD] += s->card_card[c][e];
    for (unsigned i = 0; i < s->n_groups; i++) {
        unsigned group = s->groups[i];
        if ((group & idle) == group && (group & cards) != 0)
            key[DAMAGE] += (unsigned)__builtin_popcount(group & ~cards);
    }
    key[IDLE] = (unsigned)__builtin_popcount(idle & ~cards);
    for (unsigned c = 0; c < s->n_cards; c++)
        if (has(cards, c))
            key[CORES] += st->free_cores[c] -
                          (d->has_card_need ? d->card_cores : 1);
}

static uint32_t pack(const struct demand *d, const uint64_t key[KEYS])
{
    static const uint64_t cap[IDLE + 1] = {7, 1023, 63, 15};
    static const unsigned shift[IDLE + 1] = {29, 19, 13, 9};
    uint64_t cost = 0, cores = key[CORES] + 1, most = d->nics ? 63 : 511;
    for (int i = 0; i <= IDLE; i++)
        cost += (key[i] > cap[i] ? cap[i] : key[i]) << shift[i];
    if (d->nics)
        cost += key[NICS] << 6;
    return (uint32_t)(cost + (cores > most ? most : cores));
}

static bool key_is_less(const uint64_t a[KEYS], const uint64_t b[KEYS])
{
    for (int i = 0; i < KEYS; i++)
        if (a[i] != b[i])
            return a[i] < b[i];
    return false;
}

/* Whichever of all GPUs it gets. */
static bool holds_for_every(const struct shape *s, const struct demand *d,
                            unsigned cards)
{
    for (unsigned gpus = 0; d->gpus && gpus < 1u << s->n_gpus; gpus++)
        if ((unsigned)__builtin_popcount(gpus) == d->gpus &&
            gpu_relation(s, cards, gpus) > d->align)
            return false;
    return true;
}

/* `now` has cards, GPUs, NICs and the levels of cards. */
static void consider(const struct node_state *st, const struct demand *d,
                     struct answer *now, struct answer *best)
{
    const struct shape *s = st->shape;
    unsigned cards = now->cards, gpus = now->gpus;
    bool own = wants_own_numa(s, d, cards);
    unsigned near = numa_relation(st, d, cards, own, &now->numa);
    unsigned align = d->align;
    if (own && now->numa < 0)
        return;
    if (d->gpus)
        near = gpu_relation(s, cards, gpus);
    else
        align = max_of(align, RELATION_NODE);
    if (near > align || (d->every_gpu && !holds_for_every(s, d, cards)))
        return;
    now->fits = true;
    now->relation = near;
    now->key[RELATION] = near;
    now->key[CARDS_BITS] = cards;
    now->key[GPUS_WEIGHT] = gpu_weight(s, cards, gpus);
    now->key[GPUS_BITS] = gpus;
    nic_levels(s, now);
    now->cost = pack(d, now->key);
    if (!best->fits || key_is_less(now->key, best->key))
        *best = *now;
}

/* With all NICs that it could have. */
static void consider_nics(const struct node_state *st, const struct demand *d,
                          struct answer *now, struct answer *best)
{
    for (now->nics = 0; now->nics < 1u << st->shape->n_nics; now->nics++)
        if ((unsigned)__builtin_popcount(now->nics) == d->nics &&
            (now->nics & st->nics_used) == 0)
            consider(st, d, now, best);
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
        now.cards = cards;
        for (now.gpus = 0; now.gpus < 1u << s->n_gpus; now.gpus++)
            if ((unsigned)__builtin_popcount(now.gpus) == d->gpus &&
                (now.gpus & st->gpus_used) == 0)
                consider_nics(st, d, &now, &best);
    }
    return best;
}

/* --- the properties ----------------------------------------------------- */

static void expect_same(const struct answer *want, enum reason reason,
                        const struct choice *got, unsigned round)
{
    cr_assert_eq(reason == REASON_NONE, want->fits, "round %u: %s, fits %d",
                 round, reason_word(reason), want->fits);
    if (!want->fits)
        return;
    cr_assert_eq(got->cards, want->cards, "round %u: cards %x, best %x", round,
                 got->cards, want->cards);
    cr_assert_eq(got->cost, want->cost, "round %u: cost %x, best %x", round,
                 got->cost, want->cost);
    cr_assert_eq(got->gpus, want->gpus, "round %u: gpus %x, best %x", round,
                 got->gpus, want->gpus);
    cr_assert_eq(got->nics, want->nics, "round %u: nics %x, best %x", round,
                 got->nics, want->nics);
    cr_assert_eq(got->relation, want->relation, "round %u", round);
    cr_assert_eq(got->nic_relation, want->key[NICS], "round %u", round);
    cr_assert_eq(got->numa, want->numa, "round %u", round);
    cr_assert(got->cost != 0 && got->cost != COST_NO_FIT);
}

/* What preemption could reach: everything on the node gone. */
static void expect_reason(enum reason reason, const struct question *q,
                          unsigned round)
{
    struct node_state idle = q->state;
    memcpy(idle.free_cores, idle.cores, sizeof idle.cores);
    memcpy(idle.free_memory_mib, idle.memory_mib, sizeof idle.memory_mib);
    idle.closed = idle.occupied = idle.shared = 0;
    idle.gpus_used = idle.nics_used = 0;
    for (unsigned n = 0; n < q->shape->n_numas; n++)
        if (q->shape->numa_cpus[n])
            idle.free_cpu_milli[n] = 1000 * q->shape->numa_cpus[n];
    struct answer answer = brute_force(&idle, &q->demand, q->must, q->within);
    cr_assert_eq(reason_resolvable(reason), answer.fits,
                 "round %u: %s, but idle it fits: %d", round,
                 reason_word(reason), answer.fits);
    struct str text = STR_INIT(4096);
    reason_explain(reason, &q->state, &q->demand, &text);
    cr_assert(text.size > 0 && !text.overflow);
    str_fini(&text);
}

static enum reason ask(const struct question *q, struct choice *choice)
{
    return decide(&q->state, &q->demand, q->must, q->within, choice);
}

static unsigned check_optimum(struct randnode_limits max, unsigned rounds,
                              bool every_gpu)
{
    unsigned fitting = 0;
    for (unsigned i = 0; i < rounds; i++) {
        struct question q;
        struct choice choice;
        question_roll(&q, max);
        q.demand.every_gpu = every_gpu;
        enum reason reason = ask(&q, &choice);
        struct answer want = brute_force(&q.state, &q.demand, q.must, q.within);
        expect_same(&want, reason, &choice, i);
        if (q.must == 0 && q.within == UINT16_MAX)
            cr_assert_eq(decide_cost(&q.state, &q.demand),
                         want.fits ? want.cost : COST_NO_FIT);
        if (!want.fits)
            expect_reason(reason, &q, i);
        fitting += want.fits;
        question_fini(&q);
    }
    return fitting;
}

static void start(const char *test)
{
    cr_log_info("%s: BIGA_TEST_SEED=%llu", test,
                (unsigned long long)chance_init());
}

Test(decide_optimum, small_nodes, .timeout = 300)
{
    unsigned rounds = (unsigned)setting("BIGA_TEST_ROUNDS", 10000);
    start("small_nodes");
    unsigned fitting = check_optimum((struct randnode_limits){6, 5, 4, 4},
                                     rounds, false);
    cr_log_info("%u of %u fit", fitting, rounds);
    cr_assert(fitting > rounds / 5 && fitting < rounds * 4 / 5,
              "a test of both: %u of %u fit", fitting, rounds);
}

Test(decide_optimum, large_nodes, .timeout = 300)
{
    unsigned rounds = (unsigned)setting("BIGA_TEST_ROUNDS", 10000) / 10;
    start("large_nodes");
    check_optimum((struct randnode_limits){10, 9, 8, 5}, rounds, false);
}

/* A device plugin may give any GPU, and align is to hold all the same. */
Test(decide_optimum, every_gpu, .timeout = 300)
{
    unsigned rounds = (unsigned)setting("BIGA_TEST_ROUNDS", 10000);
    start("every_gpu");
    unsigned fitting = check_optimum((struct randnode_limits){6, 5, 4, 4},
                                     rounds, true);
    cr_assert(fitting > rounds / 20 && fitting < rounds * 4 / 5,
              "a test of both: %u of %u fit", fitting, rounds);
}

/* The order of cards and GPUs decides between equals only. */
Test(decide_optimum, names_do_not_matter, .timeout = 180)
{
    start("names_do_not_matter");
    for (unsigned i = 0; i < 2000; i++) {
        struct question q, other;
        struct choice a, b;
        question_roll(&q, (struct randnode_limits){12, 12, 8, 12});
        question_rename(&q, &other);
        enum reason reason = ask(&q, &a);
        cr_assert_eq(ask(&other, &b), reason, "round %u", i);
        if (reason == REASON_NONE)
            cr_assert_eq(a.cost, b.cost, "round %u", i);
        question_fini(&q);
        question_fini(&other);
    }
}

/* The same bytes 1,000 times. */
Test(decide_optimum, same_answer_every_time, .timeout = 180)
{
    start("same_answer_every_time");
    for (unsigned i = 0; i < 40; i++) {
        struct question q;
        struct choice first, again;
        question_roll(&q, (struct randnode_limits){16, 16, 8, 16});
        demand_roll(&q.demand, (struct randnode_limits){4, 4, 8, 4});
        memset(&first, 0, sizeof first);
        enum reason reason = ask(&q, &first);
        for (unsigned j = 0; j < 1000; j++) {
            memset(&again, 0, sizeof again);
            cr_assert_eq(ask(&q, &again), reason);
            cr_assert_eq(memcmp(&again, &first, sizeof again), 0, "round %u",
                         i);
        }
        question_fini(&q);
    }
}

/* Whatever was asked before, in whatever order. */
Test(decide_optimum, order_of_questions, .timeout = 180)
{
    enum { N = 200 };
    static struct question questions[N];
    static struct choice first[N];
    static enum reason reasons[N];
    start("order_of_questions");
    for (unsigned i = 0; i < N; i++) {
        question_roll(&questions[i], (struct randnode_limits){8, 8, 4, 8});
        reasons[i] = ask(&questions[i], &first[i]);
    }
    for (unsigned i = 0; i < 20 * N; i++) {
        struct choice again = {0};
        unsigned k = roll(N);
        cr_assert_eq(ask(&questions[k], &again), reasons[k]);
        cr_assert_eq(memcmp(&again, &first[k], sizeof again), 0);
    }
    for (unsigned i = 0; i < N; i++)
        question_fini(&questions[i]);
}

/* Demands of one class get one answer; what decides nothing is not in it. */
Test(decide_optimum, classes, .timeout = 180)
{
    start("classes");
    unsigned same = 0;
    for (unsigned i = 0; i < 20000; i++) {
        struct question q;
        struct demand a, b;
        question_roll(&q, (struct randnode_limits){6, 5, 4, 4});
        demand_roll(&a, (struct randnode_limits){2, 1, 1, 1});
        demand_roll(&b, (struct randnode_limits){2, 1, 1, 1});
        if (odds(30)) {
            b = a;
            b.priority = roll(1000);
            memcpy(b.name, "other", 6);
        }
        if (demand_same_class(&a, &b)) {
            same++;
            cr_assert_eq(demand_class_hash(&a), demand_class_hash(&b));
            cr_assert_eq(decide_cost(&q.state, &a), decide_cost(&q.state, &b));
        }
        question_fini(&q);
    }
    cr_assert(same > 5000, "%u", same);
}
