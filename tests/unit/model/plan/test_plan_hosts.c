/* Plans on hosts that have CPUs, memory or pods left for few: large jobs
 * against sums that are counted here. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/plan/plan.h"
#include "tests/lib/randnode.h"
#include "tests/lib/sim/simfabric.h"
#include "tests/lib/sim/simhost.h"

enum { LEAVES = 6, PER_LEAF = 7, HOSTS = LEAVES * PER_LEAF, CARDS = 4 };

struct publisher {
    struct shape *shape;
    struct node_state used[CARDS + 1]; /* with so many cards taken */
    const struct node_state *states[HOSTS];
    int32_t leaves[HOSTS];
    struct host_room rooms[HOSTS];
    uint32_t holds[HOSTS]; /* pairs, by a count of its own */
    struct plan_cluster cluster;
    struct demand pair;
};

static uint32_t least(uint32_t a, int64_t b)
{
    return b < 0 ? 0 : b < a ? (uint32_t)b : a;
}

static uint32_t count_holds(const struct publisher *f, size_t i, uint32_t taken)
{
    const struct host_room *room = &f->rooms[i];
    uint32_t n = CARDS - taken;
    n = least(n, room->pods);
    if (f->pair.cpu_milli)
        n = least(n, room->cpu_milli / f->pair.cpu_milli);
    if (f->pair.memory_mib)
        n = least(n, room->memory_mib / f->pair.memory_mib);
    return n;
}

static void fleet_roll(struct publisher *f)
{
    const size_t per = LEAVES;
    f->pair.cpu_milli = odds(70) ? 1 + roll(3000) : 0;
    f->pair.memory_mib = odds(70) ? 1 + roll(3000) : 0;
    for (size_t i = 0; i < HOSTS; i++) {
        uint32_t taken = odds(50) ? 0 : roll(CARDS + 1);
        f->states[i] = &f->used[taken];
        f->leaves[i] = (int32_t)(i / PER_LEAF);
        f->rooms[i] = (struct host_room){
            odds(30) ? INT64_MAX : (int64_t)roll(12000) - 500,
            odds(30) ? INT64_MAX : (int64_t)roll(12000) - 500,
            odds(50) ? INT64_MAX : roll(6)};
        f->holds[i] = count_holds(f, i, taken);
    }
    f->cluster =
        (struct plan_cluster){.fabric = simfabric_create(LEAVES, &per, 2),
                              .n_nodes = HOSTS,
                              .states = f->states,
                              .leaves = f->leaves,
                              .rooms = f->rooms};
}

static void fleet_init(struct publisher *f)
{
    memset(f, 0, sizeof *f);
    f->pair = (struct demand){.role = ROLE_HOST,
                              .cards = 1,
                              .pair_cards = 1,
                              .align = RELATION_SYS,
                              .prefer_align = RELATION_SYS,
                              .within = PLAN_ANYWHERE,
                              .prefer_within = PLAN_ANYWHERE};
    struct topo *topo = simhost_topo("host", CARDS);
    f->shape = shape_create(topo);
    node_state_init(&f->used[0], topo, f->shape);
    /* CPUs of NUMA nodes are not what is tried here */
    for (size_t i = 0; i < ARRAY_LEN(f->used[0].free_cpu_milli); i++)
        f->used[0].free_cpu_milli[i] = UINT32_MAX;
    for (unsigned i = 1; i <= CARDS; i++) {
        struct choice choice;
        struct demand one = f->pair;
        f->used[i] = f->used[i - 1];
        cr_assert_eq(decide(&f->used[i], &one, 0, UINT16_MAX, &choice),
                     REASON_NONE);
        node_state_take(&f->used[i], &one, &choice);
    }
    topo_unref(topo);
}

static int plan(const struct publisher *f, uint32_t size, int within,
                struct plan **ret_plan, struct plan_refusal *ret_refusal)
{
    struct plan_job job = {.size = size,
                           .shapes = &f->pair,
                           .n_shapes = 1,
                           .within = within,
                           .prefer_within = PLAN_ANYWHERE,
                           .pin_rank = -1,
                           .pin_node = -1};
    return plan_make(&f->cluster, &job, ret_plan, ret_refusal);
}

static int compare_down(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x > y ? -1 : x < y;
}

/* The fewest leaves that hold so many. */
static uint32_t fewest_leaves(const struct publisher *f, uint32_t size)
{
    uint32_t sums[LEAVES] = {0}, n = 0;
    for (size_t i = 0; i < HOSTS; i++)
        sums[i / PER_LEAF] += f->holds[i];
    qsort(sums, LEAVES, sizeof sums[0], compare_down);
    for (uint32_t got = 0; got < size; got += sums[n++])
        cr_assert_lt(n, LEAVES);
    return n;
}

static void check(const struct publisher *f, uint32_t size, uint32_t total,
                  uint32_t best_leaf)
{
    cleanup_with(plan) struct plan *found = NULL;
    cleanup_with(plan) struct plan *within = NULL;
    struct plan_refusal no;
    uint32_t got[HOSTS] = {0};
    int r = plan(f, size, PLAN_ANYWHERE, &found, &no);
    cr_assert_eq(r, size <= total ? 0 : -EBUSY, "%u of %u", size, total);
    for (uint32_t rank = 0; r == 0 && rank < size; rank++)
        got[found->places[rank].node]++;
    for (size_t i = 0; i < HOSTS; i++)
        cr_assert_leq(got[i], f->holds[i], "host %zu", i);
    if (r == 0) {
        cr_assert_eq(found->score.leaves, fewest_leaves(f, size));
    } else {
        cr_assert_eq(no.lack, PLAN_LACK_ROOM);
        cr_assert_eq(no.room, total);
    }
    r = plan(f, size, 0, &within, &no);
    cr_assert_eq(r, size <= best_leaf ? 0 : -EBUSY);
    if (r < 0 && size <= total)
        cr_assert_eq(no.room_within, best_leaf);
}

Test(plan_hosts, hold_what_they_have_room_for)
{
    static struct publisher f;
    (void)chance_init();
    fleet_init(&f);
    for (unsigned round = 0; round < 400; round++) {
        fleet_roll(&f);
        uint32_t total = 0, best_leaf = 0, leaf = 0, cards = 0;
        for (size_t i = 0; i < HOSTS; i++) {
            leaf = (i % PER_LEAF ? leaf : 0) + f.holds[i];
            best_leaf = leaf > best_leaf ? leaf : best_leaf;
            total += f.holds[i];
            cards += (uint32_t)(CARDS - (f.states[i] - f.used));
        }
        for (unsigned n = 0; n < 4 && total > 9; n++)
            check(&f, 9 + roll(total - 8), total, best_leaf);
        check(&f, total + 1, total, best_leaf);
        if (total < cards) {
            struct plan *none;
            struct plan_refusal no;
            cr_assert_eq(plan(&f, cards + 1, PLAN_ANYWHERE, &none, &no),
                         -EBUSY);
            cr_assert(!no.hosts, "cards lack");
            cr_assert_eq(plan(&f, cards, PLAN_ANYWHERE, &none, &no), -EBUSY);
            cr_assert(no.hosts);
        }
        fabric_unref((struct fabric *)f.cluster.fabric);
    }
    shape_destroy(f.shape);
}
