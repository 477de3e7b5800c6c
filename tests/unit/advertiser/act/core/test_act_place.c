/* A place: how it is watched, when threads are scarce, and when it goes. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/lib/card/actrig.h"
#include "tests/lib/virtual.h"

TestSuite(act_place, .init = virtual_begin, .fini = virtual_end,
          .timeout = 180);

/* The actuator's threads alone are begun with attributes. */
static atomic_bool no_threads;
static atomic_uint n_refused;

int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                   void *(*f)(void *), void *arg)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                       void *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    if (attr && atomic_load(&no_threads)) {
        atomic_fetch_add(&n_refused, 1);
        return EAGAIN;
    }
    return real(thread, attr, f, arg);
}

static void until_heard(struct actrig *r)
{
    while (!actrig_place(r, 0).runtime[0])
        actrig_step(r, 10);
}

Test(act_place, a_thread_that_cannot_be_had_blocks_nobody)
{
    struct actrig r;
    struct act_place_status v[ACT_PLACES_MAX] = {0};
    actrig_init(&r, 1);
    actrig_open(&r);
    until_heard(&r); /* the prober, and its connection, are there */
    atomic_store(&no_threads, true);
    cr_assert_eq(actrig_want(&r, "x", "card-0"), 0);
    for (int i = 0; i < 10; i++) {
        actrig_pass(&r, 20);
        cr_assert_eq(actuator_places(r.a, v), 1);
    }
    cr_assert_eq(cardserver_live(r.cards[0], "x"), 0);
    cr_assert_lt(atomic_load(&n_refused), 20, "it tries again without a pause");
    atomic_store(&no_threads, false);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    actrig_fini(&r);
}

/* --- how it fares --------------------------------------------------------- */

static struct act_place_status place_of(struct actrig *r)
{
    return actrig_place(r, 0);
}

static bool becomes(struct actrig *r, enum act_health health)
{
    return actrig_becomes(r, 0, health);
}

Test(act_place, health_comes_and_goes)
{
    struct actrig r;
    struct error err = {0};
    actrig_init(&r, 1);
    actrig_open(&r);
    until_heard(&r);
    cr_assert_str_eq(place_of(&r).runtime, "simulated 1.0");
    cr_assert_eq(place_of(&r).health, ACT_READY);
    cardserver_freeze(r.cards[0], true);
    cr_assert(becomes(&r, ACT_LOST));
    cr_assert_neq(place_of(&r).reason[0], '\0');
    cr_assert_eq(actuator_drain(r.a, "card-0", true, &err), 0);
    cr_assert_eq(place_of(&r).health, ACT_LOST);
    cr_assert(place_of(&r).drained);
    cardserver_freeze(r.cards[0], false);
    cr_assert(becomes(&r, ACT_DRAINED));
    cr_assert_eq(actuator_drain(r.a, "card-0", false, &err), 0);
    cr_assert(becomes(&r, ACT_READY));
    cr_assert_str_eq(place_of(&r).reason, "");
    cr_assert_eq(actuator_drain(r.a, "card-9", true, &err), -ENOENT);
    actrig_fini(&r);
}

static unsigned long long ended(struct actrig *r, enum grpc_outcome how)
{
    cleanup_free struct act_place_calls *calls = NULL;
    cr_assert_eq(actuator_calls(r->a, &calls), 1);
    cr_expect_str_eq(calls[0].name, "card-0");
    return calls[0].ended[how];
}

Test(act_place, calls_are_counted_by_how_they_end)
{
    struct actrig r;
    size_t pods[ACT_STATES];
    actrig_init(&r, 1);
    actrig_open(&r);
    cr_assert_eq(actrig_want(&r, "x", "card-0"), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    unsigned long long before = ended(&r, GRPC_ANSWERED);
    cr_expect_gt(before, 5, "it was made and begun");
    cr_expect_eq(ended(&r, GRPC_LATE), 0);
    actuator_count_pods(r.a, pods);
    for (int i = 0; i < ACT_STATES; i++)
        cr_expect_eq(pods[i], i == ACT_RUNNING, "no helper: %d", i);
    cardserver_freeze(r.cards[0], true);
    cr_assert(becomes(&r, ACT_LOST));
    cr_expect_gt(ended(&r, GRPC_LATE), 0);
    cardserver_freeze(r.cards[0], false);
    cr_assert(becomes(&r, ACT_READY));
    cr_expect_gt(ended(&r, GRPC_ANSWERED), before);
    actrig_fini(&r);
}

/* The same card by another way: what was on the old one is not there. */
Test(act_place, another_endpoint_is_another_runtime)
{
    struct actrig r;
    actrig_init(&r, 2);
    struct act_place other = r.places[1];
    actrig_open(&r);
    cr_assert_eq(actrig_want(&r, "x", "card-0"), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    memcpy(r.places[0].endpoint, other.endpoint, sizeof other.endpoint);
    actrig_set(&r, 1);
    cr_assert(actrig_live(&r, 1, "x", 2));
    cr_assert_eq(cardserver_live(r.cards[0], "x"), 2, "who knows that card?");
    actrig_fini(&r);
}

Test(act_place, keys_that_are_new_need_new_connections_alone)
{
    struct actrig r;
    actrig_init(&r, 1);
    actrig_open(&r);
    cr_assert_eq(actrig_want(&r, "x", "card-0"), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    r.places[0].files_ns = 1;
    actrig_set(&r, 1);
    cr_assert_eq(actrig_want(&r, "y", "card-0"), 0);
    cr_assert(actrig_reach(&r, "y", ACT_RUNNING));
    cr_assert_eq(cardserver_calls(r.cards[0], "RunPodSandbox"), 2);
    actrig_fini(&r);
}

/* What ran may have ended meanwhile: nobody knows before the list. */
Test(act_place, pods_of_a_card_that_is_back_are_looked_at_first)
{
    struct actrig r;
    struct act_pod_status v = {0};
    actrig_init(&r, 1);
    actrig_open(&r);
    cr_assert_eq(actrig_want(&r, "x", "card-0"), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cardserver_freeze(r.cards[0], true);
    cr_assert(becomes(&r, ACT_LOST));
    cardserver_hold(r.cards[0], "ListContainers", true);
    cr_assert_eq(cardserver_exit(r.cards[0], "x"), 1);
    cardserver_freeze(r.cards[0], false);
    cr_assert(becomes(&r, ACT_READY));
    cr_assert_eq(actuator_find(r.a, "lab", "x", &v), 0);
    cr_assert(v.stale && !v.ready, "%s", v.message);
    cr_assert_not_null(strstr(v.message, "answers again"), "%s", v.message);
    uint64_t version = v.version;
    cardserver_hold(r.cards[0], "ListContainers", false);
    while (v.stale) {
        actrig_step(&r, 10);
        cr_assert_eq(actuator_find(r.a, "lab", "x", &v), 0);
    }
    cr_assert_not(v.ready, "it had ended");
    cr_assert_gt(v.version, version, "others are told");
    actrig_fini(&r);
}

/* --- places that leave ---------------------------------------------------- */

/* Until nothing of that UID can be left. */
static void until_left(struct actrig *r, const char *uid)
{
    struct error err;
    while (actuator_left(r->a, NULL, uid, &err) != 0)
        actrig_step(r, 20);
}

static struct act_pod_status view_of(struct actrig *r, const char *name)
{
    struct act_pod_status v;
    cr_assert_eq(actuator_find(r->a, "lab", name, &v), 0);
    return v;
}

Test(act_place, pods_of_a_card_that_left_end)
{
    struct actrig r;
    actrig_init(&r, 2);
    actrig_open(&r); /* with a grace of 30 s */
    cr_assert_eq(actrig_want(&r, "x", "card-1"), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    actrig_set(&r, 1);
    struct act_pod_status v = view_of(&r, "x");
    cr_assert_str_eq(v.reason, "CardLost");
    cr_assert_eq(v.state, ACT_RUNNING, "it is wanted, and may come back");
    cr_assert_eq(actuator_unwant(r.a, "x", -1, NULL), 0);
    cr_assert(actrig_reach(&r, "x", ACT_GONE));
    v = view_of(&r, "x");
    cr_assert_str_eq(v.reason, "CardGone");
    cr_assert_not_null(strstr(v.message, "card-1"));
    cr_assert_eq(cardserver_live(r.cards[1], "x"), 2);
    actrig_set(&r, 2);
    cr_assert(actrig_live(&r, 1, "x", 0), "what it left is nobody's");
    cr_assert_eq(actuator_forget(r.a, "x", NULL), 0);
    actrig_fini(&r);
}

Test(act_place, pods_that_end_while_their_card_leaves_are_gone)
{
    struct actrig r;
    actrig_init(&r, 2);
    actrig_open(&r);
    cr_assert_eq(actrig_want(&r, "x", "card-1"), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cardserver_freeze(r.cards[1], true);
    cr_assert_eq(actuator_unwant(r.a, "x", 5, NULL), 0);
    while (cardserver_calls(r.cards[1], "StopContainer") == 0)
        (void)poll(NULL, 0, 1);
    actrig_set(&r, 1);
    cr_assert(actrig_reach(&r, "x", ACT_GONE));
    cr_assert_str_eq(view_of(&r, "x").reason, "CardGone");
    cardserver_freeze(r.cards[1], false);
    actrig_fini(&r);
}

/* A card file that is edited ends nothing. */
Test(act_place, pods_of_a_card_without_its_endpoint_stay)
{
    struct actrig r;
    struct error err = {0};
    actrig_init(&r, 1);
    struct act_place was = r.places[0];
    actrig_open(&r);
    cr_assert_eq(actrig_want(&r, "x", "card-0"), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    uint64_t version = view_of(&r, "x").version;
    r.places[0].endpoint[0] = '\0';
    actrig_set(&r, 1);
    struct act_pod_status v = view_of(&r, "x");
    cr_expect(v.stale && v.version > version);
    cr_expect_str_eq(v.reason, "CardLost");
    cr_expect_not_null(strstr(v.message, "endpoint"), "%s", v.message);
    cr_expect_eq(place_of(&r).health, ACT_LOST);
    cr_expect_eq(actrig_want(&r, "y", "card-0"), -ENOENT);
    cr_expect_eq(actuator_left(r.a, "card-0", "y", &err), 0, "%s", err.text);
    cr_assert_eq(actuator_unwant(r.a, "x", 1, NULL), 0);
    actrig_pass(&r, 1000);
    cr_expect_neq(view_of(&r, "x").state, ACT_GONE, "nobody was asked");
    r.places[0] = was;
    actrig_set(&r, 1);
    cr_expect(actrig_reach(&r, "x", ACT_GONE));
    cr_expect_str_eq(view_of(&r, "x").reason, "");
    cr_expect_eq(cardserver_live(r.cards[0], "x"), 0);
    r.places[0].endpoint[0] = '\0';
    actrig_set(&r, 1);
    struct act_place_status none[ACT_PLACES_MAX];
    cr_expect_eq(actuator_places(r.a, none), 0, "it is of no use");
    actrig_fini(&r);
}

Test(act_place, what_is_nobodys_stays_without_an_endpoint)
{
    struct actrig r;
    struct error err = {0};
    actrig_init(&r, 1);
    actrig_stray(&r, 0, "u");
    actrig_open(&r);
    until_left(&r, "z");
    r.places[0].endpoint[0] = '\0';
    actrig_set(&r, 1);
    cr_expect_eq(actuator_left(r.a, NULL, "u", &err), -EBUSY);
    cr_expect_eq(actuator_left(r.a, NULL, "z", &err), 0, "%s", err.text);
    actrig_fini(&r);
}

Test(act_place, none_has_left_before_the_first_look)
{
    struct actrig r;
    struct error err = {0};
    actrig_init(&r, 2);
    actrig_open(&r);
    cr_assert_eq(actrig_want(&r, "x", "card-1"), 0);
    cr_assert_eq(actrig_want(&r, "y", "card-1"), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    actrig_close(&r);
    cr_assert_eq(actuator_create(&r.config, &r.a, &err), 0, "%s", err.text);
    cr_assert_eq(actuator_unwant(r.a, "x", 0, NULL), 0);
    actrig_pass(&r, 1000);
    cr_assert_neq(view_of(&r, "x").state, ACT_GONE);
    actrig_set(&r, 1);
    cr_assert_eq(view_of(&r, "x").state, ACT_GONE);
    cr_assert_neq(view_of(&r, "y").state, ACT_GONE);
    /* and it is written down */
    actrig_close(&r);
    cr_assert_eq(actuator_create(&r.config, &r.a, &err), 0, "%s", err.text);
    cr_assert_eq(view_of(&r, "x").state, ACT_GONE);
    cr_assert_eq(cardserver_live(r.cards[1], "x"), 2, "nothing was ended");
    actrig_fini(&r);
}

/* --- what nobody wrote down ----------------------------------------------- */

Test(act_place, nothing_is_nobodys_before_all_is_told)
{
    struct actrig r;
    struct error err = {0};
    static const char *const spared[] = {"later"};
    actrig_init(&r, 1);
    r.config.fed = true;
    r.config.orphan_grace_ms = 50;
    cr_assert_eq(actuator_create(&r.config, &r.a, &err), 0, "%s", err.text);
    cr_assert_eq(actuator_left(r.a, "card-0", "x", &err), -EBUSY);
    actrig_stray(&r, 0, "x");
    actrig_stray(&r, 0, "stray");
    actrig_stray(&r, 0, "later");
    actrig_set(&r, 1);
    until_left(&r, "z");
    cr_assert_eq(actuator_left(r.a, "card-0", "z", &err), 0, "%s", err.text);
    cr_assert_eq(actuator_left(r.a, "card-0", "x", &err), -EBUSY);
    cr_assert_eq(actuator_left(r.a, NULL, "x", &err), -EBUSY);
    cr_assert_eq(actuator_left(r.a, "card-7", "x", &err), 0);
    actrig_pass(&r, 10000);
    cr_assert_eq(cardserver_live(r.cards[0], NULL), 3, "their grace is over");
    cr_assert_eq(actrig_want(&r, "x", "card-0"), 0);
    actuator_told(r.a, spared, 1);
    cr_assert(actrig_live(&r, 0, "stray", 0));
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cr_assert_eq(cardserver_calls(r.cards[0], "RunPodSandbox"), 3,
                 "x has its old one");
    cr_assert_eq(cardserver_live(r.cards[0], "x"), 2);
    cr_assert_eq(cardserver_live(r.cards[0], "later"), 1);
    actuator_told(r.a, NULL, 0);
    cr_assert(actrig_live(&r, 0, "later", 0));
    until_left(&r, "later");
    actrig_fini(&r);
}

Test(act_place, who_is_not_heard_may_have_anything_left)
{
    struct actrig r;
    struct error err = {0};
    actrig_init(&r, 1);
    cardserver_freeze(r.cards[0], true);
    actrig_open(&r);
    cr_assert(actrig_becomes(&r, 0, ACT_LOST));
    cr_assert_eq(actuator_left(r.a, "card-0", "x", &err), -EBUSY);
    cr_assert_not_null(strstr(err.text, "card-0"));
    actrig_set(&r, 0);
    cr_assert_eq(actuator_left(r.a, "card-0", "x", &err), 0, "%s", err.text);
    cardserver_freeze(r.cards[0], false);
    actrig_fini(&r);
}

/* It is refused, and runs; then it is to end. */
Test(act_place, what_was_spared_is_left_until_it_is_removed)
{
    struct actrig r;
    struct error err = {0};
    static const char *const spared[] = {"u"};
    actrig_init(&r, 1);
    r.config.fed = true;
    r.config.orphan_grace_ms = 500;
    actrig_stray(&r, 0, "u");
    cr_assert_eq(actuator_create(&r.config, &r.a, &err), 0, "%s", err.text);
    actuator_told(r.a, spared, 1);
    actrig_set(&r, 1);
    until_left(&r, "z");
    cr_expect_eq(actuator_left(r.a, NULL, "u", &err), -EBUSY);
    actuator_told(r.a, NULL, 0);
    cr_expect_eq(actuator_left(r.a, NULL, "u", &err), -EBUSY);
    until_left(&r, "u");
    cr_expect_eq(cardserver_live(r.cards[0], "u"), 0);
    actrig_fini(&r);
}
