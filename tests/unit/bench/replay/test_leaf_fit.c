/* Which leaf a job goes to: eight hosts, two below a leaf, two leaves below a
 * spine. */
#include "bench/replay/leaf_fit.h"

#include <criterion/criterion.h>
#include <string.h>

static struct replay_fleet fleet;
static struct leaf_fit leaves;

static void set_up(const char *fabric)
{
    const struct fleet_config config = {
        .hosts = 8, .shapes = "dell-xe9680-bf3", .fabric = fabric};
    struct error err = {0};
    cr_assert_eq(replay_fleet_init(&fleet, &config, &err), 0, "%s", err.text);
    leaf_fit_init(&leaves, &fleet);
}

static void tear_down(void)
{
    leaf_fit_fini(&leaves);
    replay_fleet_fini(&fleet);
}

/* So much room on each host, and where so many pairs go, a node each. */
static void place(const uint32_t room[8], uint32_t pairs, int32_t *ret_nodes)
{
    leaf_fit_begin(&leaves);
    for (size_t i = 0; i < 8; i++)
        leaf_fit_add(&leaves, i, room[i]);
    leaf_fit_choose(&leaves, pairs);
    uint32_t left[8];
    (void)memcpy(left, room, sizeof left);
    for (uint32_t p = 0; p < pairs; p++) {
        const int32_t *nodes;
        size_t n = leaf_fit_nodes(&leaves, pairs - p, &nodes);
        ret_nodes[p] = -1;
        for (size_t i = 0; i < n && ret_nodes[p] < 0; i++)
            if (left[nodes[i]])
                ret_nodes[p] = nodes[i];
        if (ret_nodes[p] < 0)
            return;
        left[ret_nodes[p]]--;
        leaf_fit_take(&leaves, (size_t)ret_nodes[p]);
    }
}

static void expect(const uint32_t room[8], uint32_t pairs, const char *nodes)
{
    int32_t got[64];
    place(room, pairs, got);
    for (uint32_t p = 0; p < pairs; p++)
        cr_expect_eq(got[p], nodes[p] - '0', "pair %u: %d, not %c", p, got[p],
                     nodes[p]);
}

Test(leaf_fit, takes_the_leaf_with_the_least_room_that_is_enough)
{
    set_up("leaf=2,spine=2");
    expect((uint32_t[]){4, 4, 1, 1, 2, 1, 0, 8}, 3, "445");
    expect((uint32_t[]){4, 4, 1, 1, 2, 1, 0, 8}, 2, "23");
    expect((uint32_t[]){4, 4, 1, 1, 2, 1, 0, 8}, 8, "00001111");
    tear_down();
}

Test(leaf_fit, stays_below_one_spine_where_no_leaf_is_enough)
{
    set_up("leaf=2,spine=2");
    /* leaves have 4, 1, 4, 2: five are below either spine, six only below
     * the second; the larger leaf is filled first */
    expect((uint32_t[]){4, 0, 1, 0, 4, 0, 1, 1}, 5, "00002");
    expect((uint32_t[]){4, 0, 1, 0, 4, 0, 1, 1}, 6, "444467");
    /* below none, so anywhere: the fullest leaves after each other */
    expect((uint32_t[]){4, 0, 1, 0, 4, 0, 1, 1}, 10, "0000444467");
    tear_down();
}

Test(leaf_fit, a_host_of_unknown_place_is_a_leaf_by_itself)
{
    set_up("none");
    expect((uint32_t[]){3, 2, 4, 8, 8, 8, 8, 8}, 2, "11");
    expect((uint32_t[]){3, 2, 4, 8, 8, 8, 8, 8}, 9, "333333331");
    tear_down();
}

Test(leaf_fit, has_no_place_for_too_many)
{
    int32_t got[4];
    set_up("leaf=2,spine=2");
    place((uint32_t[8]){1, 0, 1, 0, 1, 0, 0, 0}, 4, got);
    cr_expect_eq(got[2], 4);
    cr_expect_eq(got[3], -1);
    tear_down();
}
