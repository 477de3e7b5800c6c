/* What running jobs send over uplinks: counted at their start, gone at their
 * end. */
#include <criterion/criterion.h>

#include "bench/replay/uplink.h"

static void make(struct replay_fleet *f, struct uplinks *u, double tapered)
{
    const struct fleet_config config = {.hosts = 5,
                                        .cards = 8,
                                        .shapes = "dell-xe9680-bf3",
                                        .fabric = "leaf=2,spine=2"};
    const struct costs_model costs = {.tapered = tapered, .contended = 1};
    struct error err = {0};
    cr_assert_eq(replay_fleet_init(f, &config, &err), 0, "%s", err.text);
    uplinks_init(u, f, &costs);
}

Test(uplink, has_its_part_of_the_cards_below)
{
    struct replay_fleet f;
    struct uplinks u;
    make(&f, &u, 4);
    struct cost_net net = uplinks_net(&u);
    cr_assert_float_eq(net.links[snapshot_leaf(f.idle, 0)], 4, 1e-9);
    cr_assert_float_eq(net.links[snapshot_leaf(f.idle, 4)], 2, 1e-9);
    uplinks_fini(&u);
    replay_fleet_fini(&f);
}

Test(uplink, carries_the_ring_of_each_job)
{
    struct replay_fleet f;
    struct uplinks u;
    static const struct spot runs[4] = {
        {0, 1, 1}, {1, 1, 1}, {2, 1, 1}, {3, 1, 1}};
    static const struct spot in_turn[4] = {
        {0, 2, 2}, {2, 2, 2}, {1, 2, 2}, {4, 2, 2}};
    static const struct spot near[2] = {{0, 4, 4}, {1, 4, 4}};
    make(&f, &u, 2);
    int32_t l0 = snapshot_leaf(f.idle, 0), l1 = snapshot_leaf(f.idle, 2);
    int32_t l2 = snapshot_leaf(f.idle, 4);
    uplinks_start(&u, runs, 4);
    uplinks_start(&u, in_turn, 4);
    uplinks_start(&u, near, 2);
    cr_assert_float_eq(uplinks_net(&u).others[l0], 1 + 2, 1e-9);
    cr_assert_float_eq(uplinks_net(&u).others[l1], 1 + 1, 1e-9);
    cr_assert_float_eq(uplinks_net(&u).others[l2], 1, 1e-9);
    uplinks_end(&u, runs, 4);
    cr_assert_float_eq(uplinks_net(&u).others[l0], 2, 1e-9);
    uplinks_end(&u, near, 2);
    uplinks_end(&u, in_turn, 4);
    for (int32_t i = 0; (size_t)i < fabric_n_domains(f.idle->fabric); i++)
        cr_assert_float_eq(uplinks_net(&u).others[i], 0, 1e-9);
    uplinks_fini(&u);
    replay_fleet_fini(&f);
}

Test(uplink, is_nobodys_matter_without_a_figure)
{
    struct replay_fleet f;
    struct uplinks u;
    static const struct spot two[2] = {{0, 1, 1}, {2, 1, 1}};
    make(&f, &u, 0);
    uplinks_start(&u, two, 2);
    uplinks_end(&u, two, 2);
    cr_assert_null(uplinks_net(&u).links);
    uplinks_fini(&u);
    replay_fleet_fini(&f);
}
