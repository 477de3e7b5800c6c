#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/judge/schedule.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/simfleet.h"
#include "tests/lib/sim/simhost.h"

static struct demand pod(const char *name, enum pod_role role, const char *job,
                         int pair)
{
    struct demand d = {.role = role,
                       .pair = pair,
                       .size = 1,
                       .cards = 1,
                       .pair_cards = 1,
                       .align = RELATION_SYS};
    (void)snprintf(d.name, sizeof d.name, "%s", name);
    (void)snprintf(d.namespace, sizeof d.namespace, "default");
    (void)snprintf(d.uid, sizeof d.uid, "uid-%s", name);
    (void)snprintf(d.job, sizeof d.job, "%s", job);
    return d;
}

static void need(struct demand *d, uint32_t cores, uint32_t mib)
{
    d->has_card_need = true;
    d->card_cores = cores;
    d->card_memory_mib = mib;
}

/* Bind to `index` and go on from there. */
static void bind_to(struct snapshot **s, const struct demand *d, int32_t index,
                    struct choice *ret_choice)
{
    struct schedule sc;
    schedule_init(&sc, *s, d);
    enum reason r = schedule_choose(&sc, index, ret_choice);
    cr_assert_eq(r, REASON_NONE, "%s: %s", d->name, reason_word(r));
    struct draft *draft = draft_create(*s);
    draft_allocate(draft, schedule_allocation(&sc, index, ret_choice));
    struct snapshot *next = draft_commit(draft);
    snapshot_unref(*s);
    *s = next;
}

static enum reason ask(struct snapshot *s, const struct demand *d,
                       int32_t index, struct choice *ret_choice)
{
    struct schedule sc;
    schedule_init(&sc, s, d);
    return schedule_choose(&sc, index, ret_choice);
}

Test(schedule, xpu_pod_follows_its_host_pod_to_node_and_card)
{
    struct snapshot *s = simfleet_create(4, 4);
    struct choice host, xpu;
    struct demand h = pod("h", ROLE_HOST, "job", 0);
    struct demand x = pod("x", ROLE_XPU, "job", 0);
    h.gpus = 1;
    need(&x, 8, 1024);
    bind_to(&s, &h, 2, &host);
    for (int32_t i = 0; i < 4; i++)
        cr_assert_eq(ask(s, &x, i, &xpu),
                     i == 2 ? REASON_NONE : REASON_PAIR_ELSEWHERE);
    cr_assert_eq(ask(s, &x, 2, &xpu), REASON_NONE);
    cr_assert_eq(xpu.cards, host.cards);
    bind_to(&s, &x, 2, &xpu);
    const struct allocation *a = alloc_index_find(s->allocations, "default",
                                                  "x");
    cr_assert_eq(a->relation, RELATION_PIX, "as close as its host pod");
    snapshot_unref(s);
}

Test(schedule, host_pod_follows_its_xpu_pod)
{
    struct snapshot *s = simfleet_create(4, 4);
    struct choice host, xpu;
    struct demand h = pod("h", ROLE_HOST, "job", 7);
    struct demand x = pod("x", ROLE_XPU, "job", 7);
    h.cards = h.pair_cards = 2;
    x.pair_cards = 2;
    need(&x, 8, 1024);
    bind_to(&s, &x, 1, &xpu);
    cr_assert_eq(ask(s, &h, 0, &host), REASON_PAIR_ELSEWHERE);
    bind_to(&s, &h, 1, &host);
    cr_assert_eq(host.cards & xpu.cards, xpu.cards);
    cr_assert_eq(__builtin_popcount(host.cards), 2);

    /* its sibling gets the pair's other card */
    struct demand y = pod("y", ROLE_XPU, "job", 7);
    struct choice other;
    y.pair_cards = 2;
    need(&y, 8, 1024);
    bind_to(&s, &y, 1, &other);
    cr_assert_eq(other.cards, host.cards & (uint16_t)~xpu.cards);
    snapshot_unref(s);
}

Test(schedule, a_card_promised_to_a_pair_of_unknown_need_is_closed)
{
    struct snapshot *s = simfleet_create(1, 2);
    struct choice c;
    struct demand h = pod("h", ROLE_HOST, "a", 0);
    struct demand big = pod("b", ROLE_XPU, "b", 0);
    need(&big, 1, 1);
    big.cards = big.pair_cards = 2;
    bind_to(&s, &h, 0, &c);
    cr_assert_eq(ask(s, &big, 0, &c), REASON_CARDS_BUSY);

    /* once the xPU pod has said what it takes, the rest is free */
    struct demand x = pod("x", ROLE_XPU, "a", 0);
    need(&x, 4, 1024);
    bind_to(&s, &x, 0, &c);
    cr_assert_eq(ask(s, &big, 0, &c), REASON_NONE);
    snapshot_unref(s);
}

Test(schedule, a_stated_need_is_held_for_the_xpu_pod)
{
    struct snapshot *s = simfleet_create(1, 1);
    struct choice c;
    struct demand h = pod("h", ROLE_HOST, "a", 0);
    struct demand small = pod("s", ROLE_SERVICE, "", 0);
    need(&h, 10, 1024);
    need(&small, 6, 1024);
    bind_to(&s, &h, 0, &c);
    bind_to(&s, &small, 0, &c);
    struct demand more = pod("m", ROLE_SERVICE, "", 0);
    need(&more, 1, 1);
    cr_assert_eq(ask(s, &more, 0, &c), REASON_CARD_CORES);
    struct demand x = pod("x", ROLE_XPU, "a", 0);
    need(&x, 10, 1024);
    cr_assert_eq(ask(s, &x, 0, &c), REASON_NONE);
    snapshot_unref(s);
}

Test(schedule, the_best_are_best_first_with_ties_by_name)
{
    struct snapshot *s = simfleet_create(40, 4);
    struct choice c;
    struct schedule sc;
    int32_t candidates[40];
    uint32_t best[40];
    size_t fitting;
    struct demand filler = pod("f", ROLE_HOST, "f", 0);
    filler.gpus = 1;
    bind_to(&s, &filler, 30, &c);
    for (int32_t i = 0; i < 40; i++)
        candidates[i] = 39 - i; /* the scheduler's order is not ours */
    struct demand h = pod("h", ROLE_HOST, "h", 0);
    h.gpus = 1;
    schedule_init(&sc, s, &h);
    cr_assert_eq(schedule_best(&sc, candidates, 40, 5, best, &fitting), 5);
    cr_assert_eq(fitting, 40);
    /* node030 has a broken switch group already: taking its other half
     * leaves every whole group whole */
    const int32_t expected[] = {30, 0, 1, 2, 3};
    for (size_t i = 0; i < 5; i++)
        cr_assert_eq(candidates[best[i]], expected[i], "%zu: %d", i,
                     candidates[best[i]]);

    /* all of them, by the other way of sorting, agree */
    uint32_t all[40];
    cr_assert_eq(schedule_best(&sc, candidates, 40, 0, all, &fitting), 40);
    cr_assert_arr_eq(all, best, 5 * sizeof *best);
    snapshot_unref(s);
}

Test(schedule, unknown_stale_and_incomplete_nodes_never_fit)
{
    struct snapshot *s = simfleet_create(3, 1);
    struct choice c;
    struct draft *d = draft_create(s);
    draft_set_status(d, "node001", NODE_STALE);
    draft_set_status(d, "node002", NODE_INCOMPLETE);
    struct snapshot *next = draft_commit(d);
    struct demand h = pod("h", ROLE_HOST, "h", 0);
    cr_assert_eq(ask(next, &h, NODE_NONE, &c), REASON_UNKNOWN_NODE);
    cr_assert_eq(ask(next, &h, 1, &c), REASON_STALE);
    cr_assert_eq(ask(next, &h, 2, &c), REASON_INCOMPLETE);
    struct schedule sc;
    schedule_init(&sc, next, &h);
    const int32_t candidates[] = {NODE_NONE, 2, 1, 0};
    uint32_t best[4];
    size_t fitting;
    cr_assert_eq(schedule_best(&sc, candidates, 4, 16, best, &fitting), 1);
    cr_assert_eq(best[0], 3);
    snapshot_unref(next);
    snapshot_unref(s);
}

Test(schedule, room_that_victims_would_make)
{
    struct snapshot *s = simfleet_create(1, 1);
    struct choice c;
    struct demand victim = pod("v", ROLE_HOST, "v", 0);
    struct demand h = pod("h", ROLE_HOST, "h", 0);
    bind_to(&s, &victim, 0, &c);
    struct schedule sc;
    schedule_init(&sc, s, &h);
    cr_assert_eq(schedule_choose(&sc, 0, &c), REASON_CARDS_BUSY);
    const struct allocation *gone = alloc_index_find(s->allocations, "default",
                                                     "v");
    cr_assert_not_null(gone);
    cr_assert_eq(schedule_choose_without(&sc, 0, &gone, 1, &c), REASON_NONE);
    snapshot_unref(s);
}

Test(schedule, a_pair_whose_node_is_gone_waits_for_it)
{
    struct snapshot *s = simfleet_create(2, 1);
    struct choice c;
    struct demand h = pod("h", ROLE_HOST, "j", 0);
    struct demand x = pod("x", ROLE_XPU, "j", 0);
    bind_to(&s, &h, 1, &c);
    struct draft *d = draft_create(s);
    draft_remove_node(d, "node001");
    struct snapshot *next = draft_commit(d);
    cleanup_str struct str text = STR_INIT(1024);
    struct schedule sc;
    schedule_init(&sc, next, &x);
    cr_assert_eq(schedule_choose(&sc, 0, &c), REASON_PAIR_ELSEWHERE);
    schedule_explain(&sc, 0, REASON_PAIR_ELSEWHERE, &text);
    cr_assert_str_eq(text.data, "its pair is on node node001");
    snapshot_unref(next);
    snapshot_unref(s);
}

Test(schedule, a_card_of_unknown_size_is_had_whole_or_not_at_all)
{
    struct snapshot *s = draft_commit(simfleet_draft(simhost_unsized, 1, 1));
    struct choice c;
    struct demand service = pod("s", ROLE_SERVICE, "", 0);
    need(&service, 8, 1024);
    cr_assert_eq(ask(s, &service, 0, &c), REASON_CARD_TOO_SMALL);
    struct schedule sc;
    cleanup_str struct str text = STR_INIT(1024);
    schedule_init(&sc, s, &service);
    schedule_explain(&sc, 0, REASON_CARD_TOO_SMALL, &text);
    cr_assert_not_null(strstr(text.data, "the size of 1 card is not known"),
                       "%s", text.data);

    struct demand h = pod("h", ROLE_HOST, "j", 0);
    struct demand x = pod("x", ROLE_XPU, "j", 0);
    need(&x, 8, 1024);
    bind_to(&s, &h, 0, &c);
    bind_to(&s, &x, 0, &c);
    struct demand other = pod("o", ROLE_HOST, "o", 0);
    cr_assert_eq(ask(s, &other, 0, &c), REASON_CARDS_BUSY);
    need(&service, 1, 1);
    cr_assert_eq(ask(s, &service, 0, &c), REASON_CARDS_BUSY);
    snapshot_unref(s);
}

Test(schedule, too_small_names_what_was_asked_alone)
{
    static const struct {
        uint32_t cores, mib;
        const char *want;
    } cases[] = {
        {17, 0, "no card with 17 cores, even idle"},
        {1, 64, "no card with 1 core and 64 MiB, even idle"},
        {0, 64, "no card with 64 MiB, even idle"},
        {0, 0, "no card with cores and memory, even idle"},
    };
    struct snapshot *s = draft_commit(simfleet_draft(simhost_unsized, 1, 1));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup_str struct str text = STR_INIT(1024);
        struct demand d = pod("s", ROLE_SERVICE, "", 0);
        struct schedule sc;
        need(&d, cases[i].cores, cases[i].mib);
        schedule_init(&sc, s, &d);
        schedule_brief(&sc, REASON_CARD_TOO_SMALL, &text);
        cr_expect_str_eq(str_text(&text), cases[i].want);
    }
    snapshot_unref(s);
}

Test(schedule, a_pod_that_is_bound_already_fits_its_node_alone)
{
    struct snapshot *s = simfleet_create(2, 1);
    struct choice c;
    struct demand h = pod("h", ROLE_HOST, "j", 0);
    struct demand x = pod("x", ROLE_XPU, "j", 0);
    h.gpus = 1;
    need(&x, 12, 1024);
    bind_to(&s, &h, 1, &c);
    bind_to(&s, &x, 1, &c);
    cr_expect_eq(ask(s, &h, 1, &c), REASON_NONE);
    cr_expect_eq(ask(s, &x, 1, &c), REASON_NONE);
    cr_expect_eq(ask(s, &h, 0, &c), REASON_PAIR_ELSEWHERE);
    cr_expect_eq(ask(s, &x, 0, &c), REASON_PAIR_ELSEWHERE);

    struct demand service = pod("s", ROLE_SERVICE, "", 0);
    need(&service, 4, 1024);
    bind_to(&s, &service, 1, &c);
    cr_expect_eq(ask(s, &service, 1, &c), REASON_NONE);
    cr_expect_eq(ask(s, &service, 0, &c), REASON_PAIR_ELSEWHERE);
    snapshot_unref(s);
}

Test(schedule, a_pod_that_was_made_again_has_the_room_of_its_namesake)
{
    struct snapshot *s = simfleet_create(2, 1);
    struct choice c;
    struct schedule sc;
    struct demand h = pod("h", ROLE_HOST, "", 0);
    struct demand other = pod("o", ROLE_HOST, "", 0);
    const int32_t candidates[] = {0, 1};
    uint32_t best[2];
    size_t fitting;
    bind_to(&s, &h, 1, &c);
    cr_assert_eq(ask(s, &other, 1, &c), REASON_CARDS_BUSY);

    (void)snprintf(h.uid, sizeof h.uid, "another");
    schedule_init(&sc, s, &h);
    cr_expect_eq(schedule_choose(&sc, 0, &c), REASON_NONE);
    cr_expect_eq(schedule_choose(&sc, 1, &c), REASON_NONE);
    cr_expect_eq(schedule_best(&sc, candidates, 2, 16, best, &fitting), 2);
    cr_expect_eq(schedule_best(&sc, candidates, 2, 0, best, &fitting), 2);

    /* nor does it follow its namesake, but the rest of its pair */
    struct demand x = pod("x", ROLE_XPU, "j", 0);
    bind_to(&s, &x, 0, &c);
    struct demand again = pod("h", ROLE_HOST, "j", 0);
    (void)snprintf(again.uid, sizeof again.uid, "third");
    cr_expect_eq(ask(s, &again, 0, &c), REASON_NONE);
    cr_expect_eq(ask(s, &again, 1, &c), REASON_PAIR_ELSEWHERE);
    snapshot_unref(s);
}

Test(schedule, what_a_host_pod_asks_is_what_its_xpu_pods_have)
{
    struct snapshot *s = simfleet_create(1, 1);
    struct choice c;
    struct demand h = pod("h", ROLE_HOST, "j", 0);
    struct demand x = pod("x", ROLE_XPU, "j", 0);
    need(&h, 12, 1024);
    need(&x, 12, 1024);
    bind_to(&s, &x, 0, &c);
    bind_to(&s, &h, 0, &c);

    /* not what somebody else has */
    struct demand service = pod("s", ROLE_SERVICE, "", 0);
    need(&service, 4, 1024);
    bind_to(&s, &service, 0, &c);
    struct demand again = pod("h", ROLE_HOST, "j", 0);
    (void)snprintf(again.uid, sizeof again.uid, "another");
    need(&again, 13, 1024);
    cr_expect_eq(ask(s, &again, 0, &c), REASON_CARD_CORES);
    snapshot_unref(s);
}

Test(schedule, a_service_of_a_job_is_in_no_pair)
{
    struct snapshot *s = simfleet_create(1, 2);
    struct choice c;
    struct demand service = pod("s", ROLE_SERVICE, "j", 0);
    struct demand x = pod("x", ROLE_XPU, "j", 0);
    struct demand h = pod("h", ROLE_HOST, "j", 0);
    service.exclusive = true;
    x.pair_cards = h.cards = h.pair_cards = 2;
    need(&service, 1, 1);
    need(&x, 1, 1);
    bind_to(&s, &service, 0, &c);
    bind_to(&s, &x, 0, &c);
    cr_expect_eq(ask(s, &h, 0, &c), REASON_CARDS_BUSY);
    snapshot_unref(s);
}

Test(schedule, remembered_reasons_are_the_reasons)
{
    struct snapshot *s = simfleet_create(6, 2);
    struct choice c;
    struct demand taker = pod("t", ROLE_HOST, "t", 0);
    struct demand xpu = pod("y", ROLE_XPU, "pair", 0);
    bind_to(&s, &taker, 1, &c);
    taker = pod("u", ROLE_HOST, "u", 0);
    taker.cards = taker.pair_cards = 2;
    bind_to(&s, &taker, 2, &c);
    need(&xpu, 2, 2);
    bind_to(&s, &xpu, 3, &c);
    struct draft *d = draft_create(s);
    draft_set_status(d, "node004", NODE_STALE);
    struct snapshot *next = draft_commit(d);
    struct demand pods[] = {pod("a", ROLE_HOST, "a", 0),
                            pod("b", ROLE_HOST, "pair", 0),
                            pod("u", ROLE_HOST, "u", 0)};
    (void)snprintf(pods[2].uid, sizeof pods[2].uid, "another");
    for (size_t p = 0; p < ARRAY_LEN(pods); p++)
        for (uint8_t cards = 1; cards <= 3; cards++) {
            struct schedule_reasons known = {0};
            struct schedule sc;
            pods[p].cards = pods[p].pair_cards = cards;
            schedule_init(&sc, next, &pods[p]);
            for (int32_t i = 11; i >= 0; i--) {
                int32_t node = i < 6 ? i : i == 6 ? NODE_NONE : i % 6;
                cr_expect_eq(schedule_reason(&sc, node, &known),
                             schedule_choose(&sc, node, &c),
                             "%s, %d cards, node %d", pods[p].name, cards,
                             node);
            }
            schedule_reasons_fini(&known);
        }
    snapshot_unref(next);
    snapshot_unref(s);
}

/* --- services' shares --------------------------------------------------- */

Test(schedule, keeps_a_service_its_share)
{
    static const char text[] = "{\"services\":[{\"namespace\":\"default\","
                               "\"name\":\"svc\",\"cores\":4,\"nodes\":"
                               "\"node000\"}]}";
    struct snapshot *s = simfleet_create(2, 1);
    struct error err = {0};
    cleanup_with(policy) struct policy *policy = NULL;
    cr_assert_eq(policy_read(text, strlen(text), &policy, &err), 0);
    struct draft *d = draft_create(s);
    draft_set_policy(d, policy);
    snapshot_unref(s);
    s = draft_commit(d);

    struct choice c;
    struct demand job = pod("x", ROLE_XPU, "j", 0);
    need(&job, 16, 0);
    cr_expect_eq(ask(s, &job, 0, &c), REASON_CARD_TOO_SMALL);
    cr_expect_eq(ask(s, &job, 1, &c), REASON_NONE);
    struct schedule sc;
    cleanup_str struct str words = STR_INIT(4096);
    schedule_init(&sc, s, &job);
    schedule_explain(&sc, 0, REASON_CARD_TOO_SMALL, &words);
    cr_expect(strstr(str_text(&words), "besides the shares of services"), "%s",
              str_text(&words));
    need(&job, 12, 0);
    bind_to(&s, &job, 0, &c);

    /* the card is full to all but the service */
    struct demand other = pod("o", ROLE_SERVICE, "other", 0);
    need(&other, 1, 0);
    cr_expect_eq(ask(s, &other, 0, &c), REASON_CARD_CORES);
    struct demand svc = pod("v", ROLE_SERVICE, "svc", 0);
    need(&svc, 5, 0);
    cr_expect_eq(ask(s, &svc, 0, &c), REASON_CARD_CORES, "more than its share");
    need(&svc, 4, 0);
    const int32_t all[] = {0, 1};
    uint32_t best[2];
    size_t fitting;
    schedule_init(&sc, s, &svc);
    cr_expect_eq(schedule_best(&sc, all, 2, 2, best, &fitting), 2);
    cr_expect_eq(best[0], 0, "where it fits tightest");
    bind_to(&s, &svc, 0, &c);
    svc = pod("v2", ROLE_SERVICE, "svc", 0);
    need(&svc, 1, 0);
    cr_expect_eq(ask(s, &svc, 0, &c), REASON_CARD_CORES);
    snapshot_unref(s);
}
