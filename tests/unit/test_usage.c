#include "extender/usage.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "model/base/mem.h"
#include "tests/lib/simhost.h"
#include "tests/lib/simstate.h"

enum { CORES = 16, MIB = 32768 }; /* of a simhost's card */

static struct topo *topo;
static struct shape *shape;

static void set_up(void)
{
    topo = simhost_topo("n1", 4);
    shape = shape_create(topo);
}

static void tear_down(void)
{
    shape_destroy(shape);
    topo_unref(topo);
}

TestSuite(usage, .init = set_up, .fini = tear_down);

/* An allocation of the cards in `bits`. */
static struct allocation *on_cards(struct demand d, unsigned bits)
{
    struct allocation *a = allocation_create(&d, "n1");
    a->cards = xcalloc(4, sizeof *a->cards);
    for (unsigned i = 0; i < 4; i++)
        if (bits >> i & 1)
            (void)snprintf(a->cards[a->n_cards++], sizeof *a->cards, "%s",
                           topo_device(topo, i)->id);
    return a;
}

static struct node_state state_of(struct allocation **list, size_t n,
                                  const char *except)
{
    struct node_state s;
    usage_state(topo, shape, (const struct allocation *const *)list, n, except,
                &s);
    for (size_t i = 0; i < n; i++)
        allocation_unref(list[i]);
    return s;
}

Test(usage, charges_xpu_pods_and_services_what_they_state)
{
    struct demand x = sim_need(sim_pod("x", ROLE_XPU, "j", 0), 4, 1000);
    struct demand v = sim_need(sim_pod("v", ROLE_SERVICE, "", 0), 2, 500);
    struct allocation *list[] = {on_cards(x, 3), on_cards(v, 1)};
    struct node_state s = state_of(list, 2, NULL);
    cr_expect_eq(s.free_cores[0], CORES - 6);
    cr_expect_eq(s.free_memory_mib[0], MIB - 1500);
    cr_expect_eq(s.free_cores[1], CORES - 4);
    cr_expect_eq(s.free_cores[2], CORES);
    cr_expect_eq(s.occupied, 3, "by the xPU pod's pair");
    cr_expect_eq(s.shared, 3);
    cr_expect_eq(s.closed, 0);
}

Test(usage, does_not_count_a_service_as_occupying)
{
    struct demand v = sim_need(sim_pod("v", ROLE_SERVICE, "", 0), 2, 500);
    struct allocation *list[] = {on_cards(v, 4)};
    struct node_state s = state_of(list, 1, NULL);
    cr_expect_eq(s.occupied, 0);
    cr_expect_eq(s.shared, 4);
}

Test(usage, holds_for_a_host_pod_the_larger_of_both)
{
    struct demand h = sim_need(sim_pod("h", ROLE_HOST, "j", 0), 6, 1000);
    struct demand x = sim_need(sim_pod("x", ROLE_XPU, "j", 0), 4, 3000);
    struct demand y = sim_need(sim_pod("y", ROLE_XPU, "j", 0), 4, 3000);
    struct allocation *one[] = {on_cards(h, 1), on_cards(x, 1)};
    struct node_state s = state_of(one, 2, NULL);
    cr_expect_eq(s.free_cores[0], CORES - 6);
    cr_expect_eq(s.free_memory_mib[0], MIB - 3000);

    struct allocation *two[] = {on_cards(y, 1), on_cards(h, 1), on_cards(x, 1)};
    s = state_of(two, 3, NULL);
    cr_expect_eq(s.free_cores[0], CORES - 8);
    cr_expect_eq(s.free_memory_mib[0], MIB - 6000);
}

Test(usage, closes_a_card_whose_need_nobody_stated)
{
    struct demand h = sim_pod("h", ROLE_HOST, "j", 0);
    struct demand x = sim_need(sim_pod("x", ROLE_XPU, "j", 0), 4, 1000);
    struct allocation *alone[] = {on_cards(h, 3)};
    cr_expect_eq(state_of(alone, 1, NULL).closed, 3);
    struct allocation *with[] = {on_cards(h, 3), on_cards(x, 1)};
    struct node_state s = state_of(with, 2, NULL);
    cr_expect_eq(s.closed, 2, "the other card's need is unknown still");
    cr_expect_eq(s.free_cores[0], CORES - 4);
}

Test(usage, closes_the_cards_of_exclusive_pods)
{
    struct demand h = sim_need(sim_pod("h", ROLE_HOST, "", 0), 1, 1);
    h.exclusive = true;
    struct allocation *list[] = {on_cards(h, 8)};
    cr_expect_eq(state_of(list, 1, NULL).closed, 8);
}

Test(usage, leaves_the_own_pair_out)
{
    struct demand h = sim_need(sim_pod("h", ROLE_HOST, "j", 0), 6, 1000);
    struct demand x = sim_need(sim_pod("x", ROLE_XPU, "j", 0), 4, 500);
    struct demand o = sim_need(sim_pod("o", ROLE_XPU, "j", 1), 2, 100);
    char pair[DEMAND_PAIR_KEY_MAX];
    demand_pair_key(&h, pair);
    h.exclusive = true;
    struct allocation *list[] = {on_cards(h, 3), on_cards(x, 1),
                                 on_cards(o, 4)};
    struct node_state s = state_of(list, 3, pair);
    cr_expect_eq(s.free_cores[0], CORES - 4, "what its xPU pod really takes");
    cr_expect_eq(s.free_cores[1], CORES);
    cr_expect_eq(s.free_cores[2], CORES - 2);
    cr_expect_eq(s.closed, 0);
    cr_expect_eq(s.occupied, 4);
    cr_expect_eq(s.shared, 4);
}

Test(usage, leaves_devices_out_that_are_gone)
{
    struct demand h = sim_need(sim_pod("h", ROLE_HOST, "", 0), 6, 1000);
    struct allocation *a = on_cards(h, 1);
    (void)snprintf(a->cards[0], sizeof *a->cards, "card-ffff-ff-1f");
    cr_expect_eq(usage_cards(topo, a), 0);
    struct node_state s = state_of(&a, 1, NULL);
    cr_expect_eq(s.shared, 0);
    cr_expect_eq(s.free_cores[0], CORES);
}

Test(usage, counts_gpus_and_never_goes_below_nothing)
{
    struct demand h = sim_need(sim_pod("h", ROLE_HOST, "", 0), 99, UINT32_MAX);
    struct allocation *a = on_cards(h, 1);
    size_t first = 0;
    (void)topo_count(topo, DEVICE_GPU, &first);
    a->gpus = xcalloc(1, sizeof *a->gpus);
    a->n_gpus = 1;
    (void)snprintf(a->gpus[0], sizeof *a->gpus, "%s",
                   topo_device(topo, first + 2)->id);
    struct node_state s = state_of(&a, 1, NULL);
    cr_expect_eq(s.gpus_used, 4);
    cr_expect_eq(s.free_cores[0], 0);
    cr_expect_eq(s.free_memory_mib[0], 0);
}

/* Equal use gives equal bytes, in whatever order it came. */
Test(usage, does_not_depend_on_the_order)
{
    struct node_state first;
    for (unsigned turn = 0; turn < 24; turn++) {
        struct demand d[4] = {
            sim_need(sim_pod("h", ROLE_HOST, "j", 0), 6, 1000),
            sim_need(sim_pod("x", ROLE_XPU, "j", 0), 4, 500),
            sim_pod("g", ROLE_HOST, "j", 1),
            sim_need(sim_pod("v", ROLE_SERVICE, "", 0), 1, 1)};
        struct allocation *list[4];
        for (unsigned i = 0; i < 4; i++)
            list[i] = on_cards(d[i], 1u << i | 1u);
        for (unsigned i = 3, t = turn; i > 0; t /= i + 1, i--) {
            struct allocation *held = list[i];
            list[i] = list[t % (i + 1)];
            list[t % (i + 1)] = held;
        }
        struct node_state s = state_of(list, 4, NULL);
        if (turn == 0)
            memcpy(&first, &s, sizeof s);
        cr_assert_eq(memcmp(&first, &s, sizeof s), 0);
    }
}
