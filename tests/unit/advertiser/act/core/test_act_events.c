/* Events of cards: what ends is noticed at once, and whoever has none, or
 * sends too many, is listed as before. */
#include <criterion/criterion.h>
#include <curl/curl.h>
#include <dlfcn.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>

#include "advertiser/act/core/actuator.h"
#include "advertiser/act/core/pod_table.h"
#include "advertiser/act/core/state.h"
#include "lib/io/clock.h"
#include "tests/lib/card/actrig.h"
#include "tests/lib/virtual.h"

#define EVENTS "GetContainerEvents"
#define LISTS "ListContainers"

enum {
    QUIET_MS = 3000, /* more than one list without events */
    EXACT_MS = 50,   /* to be in time, when nothing else takes any */
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

/* What happens beside virtual time. */
static void look_again(void)
{
    (void)poll(NULL, 0, 1);
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

static void until_ready(struct actrig *r, const char *name)
{
    cr_assert(actrig_reach(r, name, ACT_RUNNING));
    while (!is_ready(r, name))
        actrig_step(r, PLACE_BUSY_LIST_MS);
}

/* A server tells what happens once it has begun with that stream; neither time
 * nor who lists waits for it. */
static void until_begun(struct actrig *r, size_t card, unsigned n_streams)
{
    while (cardserver_calls(r->cards[card], EVENTS) < n_streams)
        look_again();
}

/* What card 0 answers is known. */
static void until_refused(struct actrig *r)
{
    bool none = false;
    while (!none) {
        look_again();
        act_lock(r->a);
        none = r->a->places[0]->events.none;
        act_unlock(r->a);
    }
}

/* That stream of card 0, 1 being the first.  Its thread waits for events, so time
 * does not wait for it. */
static void until_live(struct actrig *r, unsigned n_streams)
{
    while (!is_live(r)) {
        actrig_step(r, PLACE_BUSY_LIST_MS);
        look_again();
    }
    until_begun(r, 0, n_streams);
    actrig_pass(r, 2 * PLACE_BUSY_LIST_MS); /* what it has not told is listed */
}

/* Cards whose events are `events`, and pod "x" on the first. */
static void begin(struct actrig *r, size_t n, enum cardserver_events events)
{
    virtual_begin();
    actrig_init(r, n);
    for (size_t i = 0; i < n; i++)
        cardserver_events(r->cards[i], events);
    actrig_open(r);
    cr_assert_eq(actrig_want(r, "x", "card-0"), 0);
    until_ready(r, "x");
    if (events == CARDSERVER_NO_EVENTS)
        until_refused(r);
    else
        until_live(r, 1);
    for (size_t i = 0; i < n; i++) {
        cr_assert(actrig_becomes(r, i, ACT_READY));
        until_begun(r, i, 1);
    }
}

static void end(struct actrig *r)
{
    actrig_fini(r);
    virtual_end();
}

/* The containers of `name` end; milliseconds until that is known. */
static int64_t notice(struct actrig *r, size_t card, const char *name)
{
    actrig_settle(r);
    int64_t from = clock_ms();
    cr_assert_eq(cardserver_exit(r->cards[card], name), 1);
    while (is_ready(r, name))
        actrig_step(r, EXACT_MS);
    return clock_ms() - from;
}

/* An event has come that no list has followed, or has. */
static bool is_stirred(struct actrig *r, const char *name)
{
    act_lock(r->a);
    const struct pod_entry *e = pod_entry_by_name(r->a, "lab", name);
    bool stirred = e->stirred;
    act_unlock(r->a);
    return stirred || !is_ready(r, name);
}

/* The same, by an event. */
static int64_t notice_event(struct actrig *r, size_t card, const char *name)
{
    actrig_settle(r);
    int64_t from = clock_ms();
    cr_assert_eq(cardserver_exit(r->cards[card], name), 1);
    while (!is_stirred(r, name))
        look_again();
    while (is_ready(r, name))
        actrig_step(r, EXACT_MS);
    return clock_ms() - from;
}

static void noticed_at_once(bool tcp)
{
    struct actrig r;
    virtual_begin();
    actrig_init(&r, 1);
    if (tcp)
        actrig_tcp(&r, 0);
    cardserver_events(r.cards[0], CARDSERVER_EVENTS);
    actrig_open(&r);
    static const char *const names[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        cr_assert_eq(actrig_want(&r, names[i], "card-0"), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        until_ready(&r, names[i]);
    until_live(&r, 1);
    unsigned lists = cardserver_calls(r.cards[0], LISTS);
    actrig_pass(&r, QUIET_MS);
    cr_expect_leq(cardserver_calls(r.cards[0], LISTS) - lists, 1,
                  "it is listed as if there were no events");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        int64_t ms = notice_event(&r, 0, names[i]);
        cr_expect_leq(ms, PLACE_BUSY_LIST_MS + EXACT_MS, "%s: %d ms", names[i],
                      (int)ms);
    }
    cr_expect_eq(cardserver_calls(r.cards[0], EVENTS), 1);
    end(&r);
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
        actrig_step(r, EXACT_MS);
    cr_expect_lt(clock_ms() - from, PLACE_SWEEP_MS);
}

Test(act_events, a_card_without_them_is_asked_once, .timeout = 180)
{
    struct actrig r;
    begin(&r, 1, CARDSERVER_NO_EVENTS);
    expect_lists(&r);
    cr_expect_lt(notice(&r, 0, "x"), PLACE_SWEEP_MS - PLACE_LIST_MS);
    cr_expect_eq(cardserver_calls(r.cards[0], EVENTS), 1);
    end(&r);
}

Test(act_events, a_card_that_comes_back_is_asked_again, .timeout = 180)
{
    struct actrig r;
    begin(&r, 1, CARDSERVER_EVENTS);
    cardserver_freeze(r.cards[0], true);
    cr_expect(actrig_becomes(&r, 0, ACT_LOST), "a stream is no sign of life");
    while (is_live(&r)) /* its first is closed then */
        look_again();
    cardserver_freeze(r.cards[0], false);
    cr_assert(actrig_becomes(&r, 0, ACT_READY));
    until_live(&r, 2);
    cr_expect_eq(cardserver_calls(r.cards[0], EVENTS), 2);
    cr_expect_leq(notice_event(&r, 0, "x"), PLACE_BUSY_LIST_MS + EXACT_MS);
    end(&r);
}

/* As those of containerd 1.7, of which another client can take some. */
Test(act_events, one_that_does_not_tell_all_is_not_relied_on, .timeout = 180)
{
    struct actrig r;
    begin(&r, 1, CARDSERVER_MUTE);
    cr_expect_leq(notice(&r, 0, "x"), PLACE_SWEEP_MS + EXACT_MS);
    until_ready(&r, "x"); /* it is begun again */
    while (is_live(&r))
        actrig_step(&r, EXACT_MS);
    expect_lists(&r);
    end(&r);
}

/* A stream that has ended so is not begun again for a minute. */
static bool is_flooded(struct actrig *r)
{
    act_lock(r->a);
    const struct place_events *e = &r->a->places[0]->events;
    bool flooded = !e->live && e->failures > 0;
    act_unlock(r->a);
    return flooded;
}

Test(act_events, a_flood_costs_that_card_its_stream, .timeout = 180)
{
    struct actrig r;
    begin(&r, 2, CARDSERVER_EVENTS);
    cr_assert_eq(actrig_want(&r, "y", "card-1"), 0);
    until_ready(&r, "y");
    cr_expect_leq(notice_event(&r, 0, "x"), PLACE_BUSY_LIST_MS + EXACT_MS);
    unsigned lists = cardserver_calls(r.cards[0], LISTS);
    cardserver_events(r.cards[0], CARDSERVER_FLOOD);
    cr_expect_leq(notice_event(&r, 1, "y"), PLACE_BUSY_LIST_MS + EXACT_MS);
    while (!is_flooded(&r))
        look_again();
    actrig_pass(&r, QUIET_MS);
    lists = cardserver_calls(r.cards[0], LISTS) - lists;
    cr_expect_lt(lists, 50, "%u", lists); /* of thousands of events */
    cr_expect_eq(cardserver_calls(r.cards[0], EVENTS), 1);
    cr_expect_eq(cardserver_calls(r.cards[1], EVENTS), 1);
    end(&r);
}

Test(act_events, a_stream_that_cannot_be_begun_is_tried_again, .timeout = 180)
{
    struct actrig r;
    atomic_store(&n_refused, 2); /* after the first it is looked at anyway */
    begin(&r, 1, CARDSERVER_EVENTS);
    cr_assert_eq(atomic_load(&n_refused), 0);
    cr_expect_eq(cardserver_calls(r.cards[0], EVENTS), 1);
    cr_expect_leq(notice_event(&r, 0, "x"), PLACE_BUSY_LIST_MS + EXACT_MS);
    end(&r);
}
