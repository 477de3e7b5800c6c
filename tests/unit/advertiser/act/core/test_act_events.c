/* Events of cards: what ends is noticed at once, and whoever has none, or
 * sends too many, is listed as before. */
#include <criterion/criterion.h>
#include <curl/curl.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "advertiser/act/core/actuator.h"
#include "advertiser/act/core/state.h"
#include "lib/io/clock.h"
#include "tests/lib/card/actrig.h"

#define EVENTS "GetContainerEvents"
#define LISTS "ListContainers"

enum {
    LIVE_MS = 1500,  /* then a stream that stands is believed */
    SOON_MS = 5000,  /* where events come it is listed each PLACE_SWEEP_MS */
    QUIET_MS = 3000, /* more than one of them */
};

/* Streams that cannot be begun. */
static atomic_uint n_refused;

CURLMcode curl_multi_add_handle(CURLM *multi, CURL *curl)
{
    static CURLMcode (*real)(CURLM *, CURL *);
    const char *url = NULL;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "curl_multi_add_handle");
    if (atomic_load(&n_refused) > 0 &&
        curl_easy_getinfo(curl, CURLINFO_EFFECTIVE_URL, &url) == CURLE_OK &&
        url && strstr(url, EVENTS)) {
        atomic_fetch_sub(&n_refused, 1);
        return CURLM_OUT_OF_MEMORY;
    }
    return real(multi, curl);
}

static void rest(unsigned ms)
{
    (void)usleep(ms * 1000);
}

static bool is_ready(struct actrig *r, const char *name)
{
    struct act_pod_status v;
    cr_assert_eq(actuator_find(r->a, "lab", name, &v), 0);
    return v.ready;
}

static bool is_live(struct actrig *r)
{
    act_lock(r->a);
    bool live = r->a->places[0]->events.live;
    act_unlock(r->a);
    return live;
}

/* One card, whose events are `events`, with pod "x"; what is to settle has. */
static void begin(struct actrig *r, size_t n, enum cardserver_events events)
{
    actrig_init(r, n);
    for (size_t i = 0; i < n; i++)
        cardserver_events(r->cards[i], events);
    actrig_open(r);
    cr_assert_eq(actrig_want(r, "x", "card-0"), 0);
    cr_assert(actrig_reach(r, "x", ACT_RUNNING));
    while (!is_ready(r, "x"))
        rest(10);
    rest(LIVE_MS);
    while (events != CARDSERVER_NO_EVENTS && !is_live(r))
        rest(10);
}

/* Milliseconds until the end of `name`'s containers is known. */
static int64_t notice(struct actrig *r, size_t card, const char *name)
{
    int64_t from = clock_ms();
    cr_assert_eq(cardserver_exit(r->cards[card], name), 1);
    for (uint64_t version = 0; is_ready(r, name);) {
        cr_assert_lt(clock_ms() - from, 60000);
        version = actuator_wait(r->a, version, 5);
    }
    return clock_ms() - from;
}

static void noticed_at_once(bool tcp)
{
    struct actrig r;
    actrig_init(&r, 1);
    if (tcp)
        actrig_tcp(&r, 0);
    cardserver_events(r.cards[0], CARDSERVER_EVENTS);
    actrig_open(&r);
    static const char *const names[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        cr_assert_eq(actrig_want(&r, names[i], "card-0"), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        cr_assert(actrig_reach(&r, names[i], ACT_RUNNING));
        while (!is_ready(&r, names[i]))
            rest(10);
    }
    rest(LIVE_MS);
    while (!is_live(&r))
        rest(10);
    unsigned lists = cardserver_calls(r.cards[0], LISTS);
    rest(QUIET_MS);
    cr_expect_leq(cardserver_calls(r.cards[0], LISTS) - lists, 1,
                  "it is listed as if there were no events");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        int64_t ms = notice(&r, 0, names[i]);
        cr_expect_lt(ms, SOON_MS + (i ? PLACE_BUSY_LIST_MS : 0), "%s: %d ms",
                     names[i], (int)ms);
    }
    cr_expect_eq(cardserver_calls(r.cards[0], EVENTS), 1);
    actrig_fini(&r);
}

Test(act_events, what_ends_is_noticed_at_once, .timeout = 180)
{
    noticed_at_once(false);
    noticed_at_once(true);
}

/* Where events come, a second list would be PLACE_SWEEP_MS after the first. */
static void expect_lists(struct actrig *r)
{
    unsigned lists = cardserver_calls(r->cards[0], LISTS);
    int64_t from = clock_ms();
    while (cardserver_calls(r->cards[0], LISTS) - lists < 2)
        rest(10);
    cr_expect_lt(clock_ms() - from, PLACE_SWEEP_MS);
}

Test(act_events, a_card_without_them_is_asked_once, .timeout = 180)
{
    struct actrig r;
    begin(&r, 1, CARDSERVER_NO_EVENTS);
    expect_lists(&r);
    cr_expect_eq(cardserver_calls(r.cards[0], EVENTS), 1);
    cr_expect_lt(notice(&r, 0, "x"), PLACE_SWEEP_MS - PLACE_LIST_MS);
    actrig_fini(&r);
}

Test(act_events, a_card_that_comes_back_is_asked_again, .timeout = 180)
{
    struct actrig r;
    struct act_place_status v[ACT_PLACES_MAX] = {0};
    begin(&r, 1, CARDSERVER_EVENTS);
    cardserver_freeze(r.cards[0], true);
    int64_t from = clock_ms();
    do {
        rest(5);
        cr_assert_eq(actuator_places(r.a, v), 1);
    } while (v[0].health != ACT_LOST && clock_ms() - from < 60000);
    cr_expect_eq(v[0].health, ACT_LOST, "a stream is no sign of life");
    cardserver_freeze(r.cards[0], false);
    do {
        rest(5);
        cr_assert_eq(actuator_places(r.a, v), 1);
    } while (v[0].health != ACT_READY && clock_ms() - from < 120000);
    cr_assert_eq(v[0].health, ACT_READY);
    while (!is_live(&r))
        rest(10);
    cr_expect_eq(cardserver_calls(r.cards[0], EVENTS), 2);
    cr_expect_lt(notice(&r, 0, "x"), SOON_MS);
    actrig_fini(&r);
}

/* As those of containerd 1.7, of which another client can take some. */
Test(act_events, one_that_does_not_tell_all_is_not_relied_on, .timeout = 180)
{
    struct actrig r;
    begin(&r, 1, CARDSERVER_MUTE);
    cr_expect_lt(notice(&r, 0, "x"), PLACE_SWEEP_MS + 20000);
    rest(2000);
    while (!is_ready(&r, "x"))
        rest(50);
    rest(1000);
    expect_lists(&r);
    actrig_fini(&r);
}

Test(act_events, a_flood_costs_that_card_its_stream, .timeout = 180)
{
    struct actrig r;
    begin(&r, 2, CARDSERVER_EVENTS);
    cr_assert_eq(actrig_want(&r, "y", "card-1"), 0);
    cr_assert(actrig_reach(&r, "y", ACT_RUNNING));
    cr_expect_lt(notice(&r, 0, "x"), SOON_MS);
    rest(LIVE_MS);
    unsigned lists = cardserver_calls(r.cards[0], LISTS);
    cardserver_events(r.cards[0], CARDSERVER_FLOOD);
    rest(20);
    cr_expect_lt(notice(&r, 1, "y"), SOON_MS);
    rest(QUIET_MS);
    lists = cardserver_calls(r.cards[0], LISTS) - lists;
    cr_expect_lt(lists, 50, "%u", lists); /* of thousands of events */
    cr_expect_eq(cardserver_calls(r.cards[0], EVENTS), 1);
    cr_expect_eq(cardserver_calls(r.cards[1], EVENTS), 1);
    actrig_fini(&r);
}

Test(act_events, a_stream_that_cannot_be_begun_is_tried_again, .timeout = 180)
{
    struct actrig r;
    atomic_store(&n_refused, 2); /* after the first it is looked at anyway */
    begin(&r, 1, CARDSERVER_EVENTS);
    cr_assert_eq(atomic_load(&n_refused), 0);
    cr_expect_eq(cardserver_calls(r.cards[0], EVENTS), 1);
    cr_expect_lt(notice(&r, 0, "x"), SOON_MS);
    actrig_fini(&r);
}
