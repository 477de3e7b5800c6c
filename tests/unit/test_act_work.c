/* Steps that are done on a card, and what it is told. */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actrig.h"

static void told_where_its_host_is(bool plaintext_tcp)
{
    static const struct cri_pair peer = {"BIGA_PEER_ADDRESS", ""};
    struct actrig r;
    char value[64];
    actrig_init(&r, 1);
    if (plaintext_tcp)
        actrig_tcp(&r, 0);
    actrig_open(&r);
    const struct act_pod pod = {
        .name = "x", .place = "card-0", .env = {&peer, 1}};
    cr_assert_eq(actrig_want_as(&r, pod), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cardserver_env(r.cards[0], "BIGA_PEER_ADDRESS", value, sizeof value);
    cr_assert_str_eq(value, plaintext_tcp ? "127.0.0.1" : "");
    actrig_fini(&r);
}

Test(act_work, a_pod_is_told_where_its_host_is, .timeout = 30)
{
    told_where_its_host_is(true);
    told_where_its_host_is(false);
}

Test(act_work, one_that_was_half_made_is_told_too, .timeout = 30)
{
    static const struct cri_pair peer = {"BIGA_PEER_ADDRESS", ""};
    struct actrig r;
    char value[64];
    actrig_init(&r, 1);
    actrig_tcp(&r, 0);
    actrig_open(&r);
    const struct act_pod pod = {
        .name = "x", .place = "card-0", .env = {&peer, 1}};
    cardserver_fail(r.cards[0], "CreateContainer", 14, 1 << 20);
    cr_assert_eq(actrig_want_as(&r, pod), 0);
    while (cardserver_calls(r.cards[0], "CreateContainer") == 0)
        (void)usleep(1000);
    actrig_close(&r);
    cardserver_fail(r.cards[0], "CreateContainer", 0, 0);
    actrig_open(&r);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cardserver_env(r.cards[0], "BIGA_PEER_ADDRESS", value, sizeof value);
    cr_assert_str_eq(value, "127.0.0.1");
    actrig_fini(&r);
}
