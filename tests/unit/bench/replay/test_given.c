/* Which GPUs pairs are given: by hand, and beside a search through all. */
#include <criterion/criterion.h>

#include "bench/replay/given.h"
#include "bench/replay/measure.h"
#include "lib/base/hash.h"

/* Eight cards and GPUs, two of each behind a switch, two switches to a NUMA
 * node. */
static void make_fleet(size_t hosts, struct replay_fleet *f)
{
    const struct fleet_config config = {
        .hosts = hosts,
        .shapes = "bench/replay/two-per-switch.host",
        .fabric = "none"};
    struct error err = {0};
    cr_assert_eq(replay_fleet_init(f, &config, &err), 0, "%s", err.text);
}

/* --- by hand ------------------------------------------------------------ */

Test(given, a_plugin_gives_the_lowest_that_are_free)
{
    const struct spot first[] = {{0, 0x30, 0x30}, {1, 0x80, 0x80}};
    const struct spot second[] = {{0, 0x40, 0x40}, {0, 0x80, 0x80}};
    struct replay_fleet f;
    struct given g;
    make_fleet(2, &f);
    given_init(&g, GPUS_BY_PLUGIN, &f, 3);
    const struct spot *has = given_take(&g, 0, first, 2);
    cr_assert_eq(has[0].gpus, 0x03);
    cr_assert_eq(has[1].gpus, 0x01, "of its own node");
    cr_assert_eq(has[0].cards, 0x30, "cards are as they were promised");
    has = given_take(&g, 1, second, 2);
    cr_assert_eq(has[0].gpus, 0x04);
    cr_assert_eq(has[1].gpus, 0x08);
    given_release(&g, 0, 2);
    has = given_take(&g, 2, first, 1);
    cr_assert_eq(has[0].gpus, 0x03, "they are free again");
    given_fini(&g);
    replay_fleet_fini(&f);
}

/* 1 GB/s behind one switch, half of it on the same NUMA node, a quarter
 * across. */
static const struct costs_model simple = {
    .bytes_per_s = {1e9, 5e8, 5e8, 5e8, 25e7, 25e7},
    .alpha_s = {1e-6, 1e-6, 1e-6, 1e-6},
    .factor = {1, 1, 1, 1},
};

/* Two pairs of two cards are promised the second and third switch, and one
 * card of the first is taken: the plugin gives the pairs the free GPU of the
 * first with one of the second, and the other one with one of the third. */
Test(given, the_gpu_of_another_switch_has_its_price)
{
    static struct profile once = {.n = 1, .calls = {{COLL_BCAST, 1000, 1}}};
    const struct spot one[] = {{0, 0x01, 0x01}};
    const struct spot two[] = {{0, 0x0c, 0x0c}, {0, 0x30, 0x30}};
    const struct replay_job jobs[] = {{.pairs = 1, .cards = 1},
                                      {.pairs = 2, .cards = 2}};
    double promised_s[2] = {0}, achieved_s[2] = {0};
    struct replay_result r = {.comm_s = promised_s,
                              .achieved_comm_s = achieved_s};
    struct replay_fleet f;
    const struct replay_config config = {
        .fleet = &f, .costs = &simple, .profile = &once, .want_gpus = true};
    struct measure m;
    struct given g;
    make_fleet(1, &f);
    given_init(&g, GPUS_BY_PLUGIN, &f, 2);
    measure_init(&m, &config, &r);
    measure_job(&m, &jobs[0], 0, one, given_take(&g, 0, one, 1));
    const struct spot *has = given_take(&g, 1, two, 2);
    cr_assert_eq(has[0].gpus, 0x06);
    cr_assert_eq(has[1].gpus, 0x18);
    measure_job(&m, &jobs[1], 1, two, has);
    cr_assert_eq(r.by_relation[RELATION_PIX], 3);
    cr_assert_eq(r.achieved_by_relation[RELATION_PIX], 1);
    cr_assert_eq(r.achieved_by_relation[RELATION_NODE], 1);
    cr_assert_eq(r.achieved_by_relation[RELATION_SYS], 1);
    cr_assert_eq(r.farther, 2);
    cr_assert_eq(r.nearer, 0);
    cr_assert_float_eq(replay_bandwidth_ratio(&r), (1 + 0.5 + 0.25) / 3, 1e-12);
    /* one step, as slow as the farther of both */
    cr_assert_float_eq(promised_s[1], 1e-6 + 1e-6, 1e-15);
    cr_assert_float_eq(achieved_s[1], 1e-6 + 4e-6, 1e-15);
    cr_assert_float_eq(replay_achieved_ratio(&r, 2), 2.5, 1e-9);
    measure_fini(&m);
    given_fini(&g);
    replay_fleet_fini(&f);
}

/* --- any ---------------------------------------------------------------- */

enum { HOSTS = 3, JOBS = 8, PAIRS = 4 };

/* What a test remembers by itself of jobs that come and go. */
struct books {
    struct replay_fleet f;
    struct spot promised[JOBS][PAIRS], has[JOBS][PAIRS];
    uint32_t n[JOBS]; /* 0: does not run */
};

static unsigned taken(const struct books *b, int32_t node, bool promised,
                      bool cards)
{
    unsigned bits = 0;
    for (unsigned j = 0; j < JOBS; j++)
        for (unsigned i = 0; i < b->n[j]; i++) {
            const struct spot *s = promised ? &b->promised[j][i]
                                            : &b->has[j][i];
            if (s->node == node)
                bits |= cards ? s->cards : s->gpus;
        }
    return bits;
}

static uint16_t draw(uint64_t *random, unsigned from, unsigned n)
{
    unsigned drawn = 0;
    while ((unsigned)__builtin_popcount(drawn) < n)
        drawn |= from & 1u << random_below(random, 8);
    return (uint16_t)drawn;
}

/* Promise devices that no job that runs was promised. */
static void promise(struct books *b, unsigned job, uint64_t *random)
{
    uint32_t asked = random_below(random, PAIRS) + 1;
    for (uint32_t i = 0; i < asked; i++) {
        int32_t node = (int32_t)random_below(random, HOSTS);
        unsigned cards = 0xff & ~taken(b, node, true, true);
        unsigned gpus = 0xff & ~taken(b, node, true, false);
        unsigned n = random_below(random, 4) + 1;
        if ((unsigned)__builtin_popcount(gpus) < n)
            continue;
        b->promised[job][b->n[job]] =
            (struct spot){node, draw(random, cards, n), draw(random, gpus, n)};
        b->has[job][b->n[job]++] = (struct spot){.node = -1};
    }
}

static uint8_t relation(const struct books *b, const struct spot *s,
                        unsigned gpus)
{
    struct choice choice;
    kind_rate(fleet_kind(&b->f, (size_t)s->node), s->cards, (uint16_t)gpus,
              &choice);
    return choice.relation;
}

/* Not nearer than the best of all that could be had; and the lowest. */
static void check_given(const struct books *b, const struct spot *has)
{
    unsigned free = 0xff & ~taken(b, has->node, false, false);
    uint8_t best = RELATION_SYS;
    cr_assert_eq(has->gpus & ~free, 0, "nobody else has them");
    for (unsigned gpus = 1; gpus <= 0xff; gpus++) {
        if (gpus & ~free ||
            __builtin_popcount(gpus) != __builtin_popcount(has->gpus))
            continue;
        cr_assert_leq(has->gpus, gpus);
        if (relation(b, has, gpus) < best)
            best = relation(b, has, gpus);
    }
    cr_assert_geq(relation(b, has, has->gpus), best);
}

static void come_and_go(enum gpus_by by, unsigned rounds,
                        unsigned *ret_n_differ)
{
    struct books b = {.n = {0}};
    uint64_t random = 15;
    struct given g;
    make_fleet(HOSTS, &b.f);
    given_init(&g, by, &b.f, JOBS);
    *ret_n_differ = 0;
    for (unsigned round = 0; round < rounds; round++) {
        unsigned job = random_below(&random, JOBS);
        if (b.n[job])
            given_release(&g, job, b.n[job]);
        b.n[job] = 0;
        promise(&b, job, &random);
        if (b.n[job] == 0)
            continue;
        const struct spot *has = given_take(&g, job, b.promised[job], b.n[job]);
        for (uint32_t i = 0; i < b.n[job]; i++) {
            const struct spot *promised = &b.promised[job][i];
            cr_assert_eq(has[i].node, promised->node);
            cr_assert_eq(has[i].cards, promised->cards);
            cr_assert_eq(__builtin_popcount(has[i].gpus),
                         __builtin_popcount(promised->gpus));
            if (by == GPUS_BY_PLUGIN)
                check_given(&b, &has[i]);
            b.has[job][i] = has[i];
            *ret_n_differ += has[i].gpus != promised->gpus;
        }
    }
    given_fini(&g);
    replay_fleet_fini(&b.f);
}

Test(given, a_plugin_is_never_better_than_the_best_that_is_free)
{
    unsigned n_differ;
    come_and_go(GPUS_BY_PLUGIN, 20000, &n_differ);
    cr_assert_gt(n_differ, 1000, "only %u differ", n_differ);
}

Test(given, claims_give_what_was_promised)
{
    unsigned n_differ;
    come_and_go(GPUS_BY_CLAIMS, 20000, &n_differ);
    cr_assert_eq(n_differ, 0);
}
