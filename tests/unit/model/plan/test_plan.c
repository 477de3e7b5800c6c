/* Plans: what a node holds, what a pair takes, and what must not matter. */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <errno.h>
#include <string.h>

#include "extender/state/usage.h"
#include "model/plan/plan.h"
#include "model/topo/topo_builder.h"
#include "tests/lib/randnode.h"
#include "tests/lib/sim/benchhost.h"
#include "tests/lib/sim/simfabric.h"

/* --- what a pair takes -------------------------------------------------- */

/* A host of cards with and without a known size, of GPUs and NUMA nodes. */
static struct topo *random_topo(void)
{
    struct topo *topo = NULL;
    struct error err;
    cleanup_with(topo_builder) struct topo_builder *b =
        topo_builder_create("host");
    char id[TOPO_ID_MAX + 1];
    unsigned n_numas = 1 + roll(3);
    for (unsigned i = 0; i < 6; i++) {
        (void)snprintf(id, sizeof id, "card-%u", i);
        struct device card = {.kind = DEVICE_CARD, .id = id, .has_pci = true};
        card.pci.bus = (uint8_t)(16 + i);
        card.numa = (int)roll(n_numas + 1) - 1;
        card.package = card.numa;
        card.root_domain = TOPO_ROOT_NONE;
        card.cores = odds(80) ? 1 + roll(16) : 0;
        card.memory_mib = odds(80) ? 1 + roll(32768) : 0;
        card.unhealthy = odds(5);
        topo_builder_add(b, &card, NULL);
        (void)snprintf(id, sizeof id, "gpu-%u", i);
        struct device gpu = {.kind = DEVICE_GPU, .id = id, .has_pci = true};
        gpu.pci.bus = (uint8_t)(64 + i);
        gpu.numa = gpu.package = (int)roll(n_numas + 1) - 1;
        gpu.root_domain = TOPO_ROOT_NONE;
        topo_builder_add(b, &gpu, NULL);
        (void)snprintf(id, sizeof id, "nic-%u", i);
        struct device nic = {.kind = DEVICE_NIC, .id = id, .has_pci = true};
        nic.pci.bus = (uint8_t)(128 + i);
        nic.numa = nic.package = (int)roll(n_numas + 1) - 1;
        nic.root_domain = TOPO_ROOT_NONE;
        nic.rdma = odds(70) ? "mlx5_0" : NULL;
        topo_builder_add(b, &nic, NULL);
    }
    for (unsigned n = 0; n < n_numas; n++) {
        (void)snprintf(id, sizeof id, "numa-%u", n);
        struct device numa = {.kind = DEVICE_NUMA,
                              .id = id,
                              .numa = (int)n,
                              .package = (int)n,
                              .cpus = roll(40)};
        topo_builder_add(b, &numa, NULL);
    }
    cr_assert_eq(topo_build(b, &topo, &err), 0, "%s", err.text);
    return topo;
}

static void roll_pair(struct demand *d, unsigned number)
{
    demand_roll(d, (struct randnode_limits){3, 3, 3, 3});
    d->role = ROLE_HOST;
    d->size = 100;
    d->pair = (int32_t)number;
    d->pair_cards = d->cards;
    d->pair_gpus = d->gpus;
    d->pair_nics = d->nics;
    d->cpu_milli = odds(50) ? roll(20000) : 0;
    d->arch[0] = '\0';
    memcpy(d->namespace, "ns", 3);
    memcpy(d->job, "job", 4);
    (void)snprintf(d->name, sizeof d->name, "pod-%u", number);
}

/* The allocation that binding the pair would make. */
static struct allocation *allocate(const struct topo *topo,
                                   const struct demand *d,
                                   const struct choice *choice)
{
    struct allocation *a = allocation_create(d, "host");
    size_t cards = 0, gpus = 0, nics[TOPO_KIND_MAX];
    (void)topo_count(topo, DEVICE_CARD, &cards);
    (void)topo_count(topo, DEVICE_GPU, &gpus);
    (void)topo_considered(topo, DEVICE_NIC, nics);
    a->cards = xcalloc(TOPO_CARDS_MAX, sizeof *a->cards);
    a->gpus = xcalloc(TOPO_GPUS_MAX, sizeof *a->gpus);
    for (unsigned c = choice->cards; c; c &= c - 1) {
        const char *id =
            topo_device(topo, cards + (unsigned)__builtin_ctz(c))->id;
        memcpy(a->cards[a->n_cards++], id, strlen(id) + 1);
    }
    for (unsigned g = choice->gpus; g; g &= g - 1) {
        const char *id =
            topo_device(topo, gpus + (unsigned)__builtin_ctz(g))->id;
        memcpy(a->gpus[a->n_gpus++], id, strlen(id) + 1);
    }
    a->nics = xcalloc(TOPO_NICS_MAX, sizeof *a->nics);
    for (unsigned n = choice->nics; n; n &= n - 1) {
        const char *id = topo_device(topo, nics[__builtin_ctz(n)])->id;
        memcpy(a->nics[a->n_nics++], id, strlen(id) + 1);
    }
    a->numa = choice->numa;
    a->relation = (enum relation)choice->relation;
    return a;
}

/* node_state_take() gives what usage_state() gives after the allocation. */
Test(plan, takes_what_an_allocation_takes, .timeout = 180)
{
    enum { PAIRS = 8 };
    unsigned taken = 0;
    cr_log_info("BIGA_TEST_SEED=%llu", (unsigned long long)chance_init());
    for (unsigned round = 0; round < 2000; round++) {
        struct allocation *allocations[PAIRS];
        struct topo *topo = random_topo();
        struct shape *shape = shape_create(topo);
        struct node_state left, state;
        struct usage usage = {
            .topo = topo,
            .shape = shape,
            .node = "host",
            .allocations = (const struct allocation *const *)allocations};
        node_state_init(&left, topo, shape);
        for (unsigned i = 0; i < PAIRS; i++) {
            struct demand d;
            struct choice choice;
            roll_pair(&d, i);
            if (decide(&left, &d, 0, UINT16_MAX, &choice) != REASON_NONE)
                continue;
            allocations[usage.n++] = allocate(topo, &d, &choice);
            node_state_take(&left, &d, &choice);
            usage_state(&usage, NULL, &state);
            cr_assert_eq(memcmp(&left, &state, sizeof state), 0,
                         "round %u, pair %u", round, i);
            taken++;
        }
        while (usage.n)
            allocation_unref(allocations[--usage.n]);
        shape_destroy(shape);
        topo_unref(topo);
    }
    cr_log_info("%u pairs", taken);
    cr_assert(taken > 2000);
}

/* --- what a node holds -------------------------------------------------- */

static void roll_question(struct question *q)
{
    do {
        question_roll(q, (struct randnode_limits){5, 4, 3, 3});
        if (q->demand.role == ROLE_HOST && q->shape->n_cards)
            break;
        question_fini(q);
    } while (true);
    if (odds(60))
        q->demand.nics = 0;
    q->demand.has_card_need = odds(50);
    q->demand.card_cores = q->demand.has_card_need ? 1 + roll(4) : 0;
    q->demand.card_memory_mib = q->demand.has_card_need ? roll(6000) : 0;
}

/* All sets of cards in all orders, with the GPUs and NUMA nodes that decide()
 * gives: a lower bound of the room. */
static uint32_t most_pairs(const struct node_state *left,
                           const struct demand *d, uint32_t max, bool aligned)
{
    uint32_t most = 0;
    for (unsigned cards = 1; cards < 1u << left->shape->n_cards && most < max;
         cards++) {
        struct node_state next = *left;
        struct choice choice;
        if ((unsigned)__builtin_popcount(cards) != d->cards ||
            decide(left, d, (uint16_t)cards, (uint16_t)cards, &choice) !=
                REASON_NONE ||
            (aligned && !decide_is_aligned(left->shape, d, &choice)))
            continue;
        node_state_take(&next, d, &choice);
        uint32_t more = 1 + most_pairs(&next, d, max - 1, aligned);
        most = more > most ? more : most;
    }
    return most;
}

Test(plan, rooms, .timeout = 120)
{
    unsigned filled = 0, with_aligned = 0;
    cr_log_info("BIGA_TEST_SEED=%llu", (unsigned long long)chance_init());
    for (unsigned round = 0; round < 6000; round++) {
        struct question q;
        roll_question(&q);
        uint32_t aligned, max = 1 + roll(4);
        uint32_t room = plan_room(&q.state, &q.demand, max, &aligned);
        cr_assert(aligned <= room && room <= max);
        uint32_t least = most_pairs(&q.state, &q.demand, max, false);
        uint32_t least_aligned = most_pairs(&q.state, &q.demand, max, true);
        cr_assert(room >= least, "round %u: %u, but %u fit", round, room,
                  least);
        cr_assert(aligned >= least_aligned, "round %u", round);
        if (q.demand.gpus == 0 && q.demand.cpu_milli == 0) {
            cr_assert_eq(room, least, "round %u", round);
            cr_assert_eq(aligned, least_aligned, "round %u", round);
        }
        filled += room > 1;
        with_aligned += aligned > 0;
        question_fini(&q);
    }
    cr_log_info("%u with room for 2 or more, %u with aligned ones", filled,
                with_aligned);
    cr_assert(filled > 300 && with_aligned > 300);
}

/* --- what must not matter ----------------------------------------------- */

enum { HOSTS = 96 };
struct publisher {
    struct shape *shapes[BENCHHOST_SHAPES];
    struct node_state own[HOSTS];
    const struct node_state *states[HOSTS];
    int32_t leaves[HOSTS];
    struct plan_cluster cluster;
};

static struct demand pair_of(unsigned cards, unsigned gpus)
{
    struct demand d = {.role = ROLE_HOST, .align = RELATION_SYS};
    d.cards = d.pair_cards = (uint8_t)cards;
    d.gpus = d.pair_gpus = (uint8_t)gpus;
    return d;
}

static void fleet_init(struct publisher *f)
{
    const size_t per[2] = {3, 2};
    memset(f, 0, sizeof *f);
    for (size_t i = 0; i < HOSTS; i++) {
        struct topo *topo = benchhost_create("host", i);
        if (i < BENCHHOST_SHAPES)
            f->shapes[i] = shape_create(topo);
        node_state_init(&f->own[i], topo, f->shapes[i % BENCHHOST_SHAPES]);
        topo_unref(topo);
        for (unsigned k = roll(6); k > 0; k--) {
            struct demand d = pair_of(1 + roll(2), roll(2));
            struct choice choice;
            if (decide(&f->own[i], &d, 0, (uint16_t)roll(256), &choice) ==
                REASON_NONE)
                node_state_take(&f->own[i], &d, &choice);
        }
        f->states[i] = &f->own[i];
        f->leaves[i] = (int32_t)(i / 8);
    }
    f->cluster =
        (struct plan_cluster){.fabric = simfabric_create(HOSTS / 8, per, 3),
                              .n_nodes = HOSTS,
                              .states = f->states,
                              .leaves = f->leaves};
}

static void fleet_fini(struct publisher *f)
{
    for (size_t i = 0; i < BENCHHOST_SHAPES; i++)
        shape_destroy(f->shapes[i]);
    fabric_unref((struct fabric *)f->cluster.fabric);
}

static struct plan *plan_of(const struct publisher *f, const struct demand *d,
                            uint32_t size, int within)
{
    struct plan_job job = {.size = size,
                           .shapes = d,
                           .n_shapes = 1,
                           .within = within,
                           .prefer_within = PLAN_ANYWHERE,
                           .pin_rank = -1,
                           .pin_node = -1};
    struct plan *plan = NULL;
    struct plan_refusal no;
    int rc = plan_make(&f->cluster, &job, &plan, &no);
    cr_assert(rc == 0 || rc == -EBUSY);
    return rc == 0 ? plan : NULL;
}

/* Equal states that share a pointer, or do not, at whatever address. */
Test(plan, addresses_do_not_matter, .timeout = 180)
{
    cr_log_info("BIGA_TEST_SEED=%llu", (unsigned long long)chance_init());
    for (unsigned round = 0; round < 40; round++) {
        struct publisher f;
        fleet_init(&f);
        struct demand d = pair_of(1 + roll(3), roll(3));
        uint32_t size = 1 + roll(odds(50) ? 8 : 200);
        cleanup_with(plan) struct plan *first = plan_of(&f, &d, size, -1);
        cleanup_free struct node_state *moved = xmemdup(f.own, sizeof f.own);
        for (size_t i = 0; i < HOSTS; i++) {
            size_t k = 0;
            while (memcmp(&f.own[k], &f.own[i], sizeof f.own[i]) != 0)
                k++;
            f.states[i] = &moved[HOSTS - 1 - i]; /* other addresses */
            moved[HOSTS - 1 - i] = f.own[i];
            if (round % 2)
                f.states[i] = &f.own[k]; /* shared */
        }
        cleanup_with(plan) struct plan *again = plan_of(&f, &d, size, -1);
        cr_assert_eq(!first, !again);
        if (first)
            cr_assert_eq(memcmp(first->places, again->places,
                                size * sizeof first->places[0]),
                         0, "round %u", round);
        fleet_fini(&f);
    }
}

/* A smaller job fits where a larger one does, a wider one where a nearer one
 * does, and neither costs more pairs their alignment. */
Test(plan, refusals_are_monotone, .timeout = 180)
{
    unsigned refused = 0;
    cr_log_info("BIGA_TEST_SEED=%llu", (unsigned long long)chance_init());
    for (unsigned round = 0; round < 20; round++) {
        struct publisher f;
        fleet_init(&f);
        struct demand d = pair_of(1 + roll(4), roll(3));
        for (int within = 0; within < 3; within++) {
            bool fits = true;
            uint32_t unaligned = 0;
            for (uint32_t size = 1; size < 300; size += 13) {
                cleanup_with(plan) struct plan *p = plan_of(&f, &d, size,
                                                            within);
                cr_assert(fits || !p, "round %u, %u pairs", round, size);
                fits = p != NULL;
                refused += !fits;
                cleanup_with(plan) struct plan *wide = plan_of(&f, &d, size,
                                                               -1);
                cr_assert(!p || wide);
                if (!p)
                    continue;
                cr_assert(p->score.unaligned >= unaligned);
                cr_assert(wide->score.unaligned <= p->score.unaligned);
                cr_assert(p->score.tier <= within);
                unaligned = p->score.unaligned;
            }
        }
        fleet_fini(&f);
    }
    cr_assert(refused > 100, "%u", refused);
}

/* A launcher beside many workers: all have a place, nothing twice, and the
 * plan is worth its score. */
Test(plan, large_jobs_of_several_shapes, .timeout = 180)
{
    enum { SIZE = 48 };
    unsigned planned = 0, aligned = 0;
    cr_log_info("BIGA_TEST_SEED=%llu", (unsigned long long)chance_init());
    for (unsigned round = 0; round < 40; round++) {
        struct publisher f;
        struct demand shapes[2] = {pair_of(2, 0), pair_of(1, 1)};
        uint8_t shape_of[SIZE];
        struct plan_job job = {.size = SIZE,
                               .shape_of = shape_of,
                               .shapes = shapes,
                               .n_shapes = 2,
                               .within = odds(50) ? 1 : -1,
                               .prefer_within = PLAN_ANYWHERE,
                               .pin_rank = -1,
                               .pin_node = -1};
        cleanup_with(plan) struct plan *plan = NULL;
        struct plan_refusal no;
        fleet_init(&f);
        memset(shape_of, 1, sizeof shape_of);
        shape_of[0] = 0;
        cleanup_free struct node_state *left = xmemdup(f.own, sizeof f.own);
        int rc = plan_make(&f.cluster, &job, &plan, &no);
        for (uint32_t r = 0; rc == 0 && r < SIZE; r++) {
            const struct plan_place *place = &plan->places[r];
            const struct demand *d = &shapes[shape_of[r]];
            struct choice same;
            uint16_t cards = place->choice.cards;
            cr_assert_eq(decide(&left[place->node], d, cards, cards, &same),
                         REASON_NONE, "round %u, rank %u", round, r);
            cr_assert_eq(left[place->node].gpus_used & place->choice.gpus, 0);
            node_state_take(&left[place->node], d, &place->choice);
        }
        if (rc == 0) {
            struct plan_score score;
            plan_score(&f.cluster, &job, plan->places, &score);
            cr_assert_eq(plan_score_compare(&score, &plan->score), 0);
            cr_assert(job.within < 0 || score.tier <= job.within);
            aligned += SIZE - score.unaligned;
            planned++;
        } else {
            cr_assert_eq(rc, -EBUSY);
            cr_assert_neq(no.lack, PLAN_LACK_NOTHING);
        }
        fleet_fini(&f);
    }
    cr_log_info("%u of 40 planned, %u pairs aligned", planned, aligned);
    cr_assert(planned > 10);
    cr_assert(aligned > planned * SIZE * 9 / 10);
}
