#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "router/serve/event_feed.h"

static void count(void *ctx)
{
    ++*(int *)ctx;
}

static void expect(struct event_feed *f, struct event_reader *r,
                   const char *text)
{
    cleanup_str struct str got = STR_INIT(EVENT_FEED_SIZE);
    cr_assert_eq(event_feed_take(f, r, &got), 1);
    cr_assert_str_eq(str_text(&got), text);
}

static void expect_none(struct event_feed *f, struct event_reader *r)
{
    cleanup_str struct str got = STR_INIT(EVENT_FEED_SIZE);
    cr_assert_eq(event_feed_take(f, r, &got), 0);
}

Test(event_feed, each_reader_has_all_since_it_began)
{
    cleanup_with(event_feed) struct event_feed *f = event_feed_create();
    int a_woken = 0, b_woken = 0;
    cr_assert(!event_feed_is_read(f));
    struct event_reader *a = event_feed_join(f, count, &a_woken);
    cr_assert(event_feed_is_read(f));
    event_feed_put(f, "one", 3);
    struct event_reader *b = event_feed_join(f, count, &b_woken);
    event_feed_put(f, "two", 3);
    cr_assert_eq(a_woken, 2);
    cr_assert_eq(b_woken, 1);
    expect(f, a, "one");
    expect(f, b, "two");
    expect_none(f, b);
    expect(f, a, "two");
    expect_none(f, a);
    event_feed_put(f, "three", 5);
    expect(f, a, "three");
    event_feed_leave(f, a);
    event_feed_put(f, "four", 4);
    cr_assert_eq(a_woken, 3, "it has left");
    expect(f, b, "three");
    expect(f, b, "four");
}

Test(event_feed, an_empty_message_is_one)
{
    cleanup_with(event_feed) struct event_feed *f = event_feed_create();
    int woken = 0;
    struct event_reader *r = event_feed_join(f, count, &woken);
    event_feed_put(f, "", 0);
    expect(f, r, "");
    expect_none(f, r);
}

Test(event_feed, who_does_not_take_them_loses_all_and_is_told)
{
    cleanup_with(event_feed) struct event_feed *f = event_feed_create();
    cleanup_free char *big = xcalloc(1, EVENT_FEED_SIZE / 4);
    cleanup_str struct str got = STR_INIT(EVENT_FEED_SIZE);
    int woken = 0;
    struct event_reader *slow = event_feed_join(f, count, &woken);
    struct event_reader *quick = event_feed_join(f, count, &woken);
    for (int i = 0; i < 8; i++) {
        event_feed_put(f, big, EVENT_FEED_SIZE / 4);
        cr_assert_eq(event_feed_take(f, quick, &got), 1);
        cr_assert_eq(got.size, EVENT_FEED_SIZE / 4);
    }
    cr_assert_eq(event_feed_take(f, slow, &got), -EOVERFLOW);
    cr_assert_eq(event_feed_take(f, slow, &got), -EOVERFLOW);
    cr_assert_eq(woken, 16, "both, also the one that has lost them");
    event_feed_leave(f, slow);
}

Test(event_feed, what_was_taken_makes_room)
{
    cleanup_with(event_feed) struct event_feed *f = event_feed_create();
    cleanup_free char *big = xcalloc(1, EVENT_FEED_SIZE / 3);
    cleanup_str struct str got = STR_INIT(EVENT_FEED_SIZE);
    int woken = 0;
    struct event_reader *r = event_feed_join(f, count, &woken);
    event_feed_put(f, big, EVENT_FEED_SIZE / 3);
    for (int i = 0; i < 8; i++) {
        event_feed_put(f, big, EVENT_FEED_SIZE / 3);
        cr_assert_eq(event_feed_take(f, r, &got), 1);
    }
    cr_assert_eq(event_feed_take(f, r, &got), 1);
    cr_assert_eq(event_feed_take(f, r, &got), 0);
}

Test(event_feed, readers_have_a_cap)
{
    cleanup_with(event_feed) struct event_feed *f = event_feed_create();
    int woken = 0;
    struct event_reader *last = NULL;
    for (int i = 0; i < EVENT_FEED_READERS; i++)
        cr_assert_not_null(last = event_feed_join(f, count, &woken));
    cr_assert_null(event_feed_join(f, count, &woken));
    event_feed_leave(f, last);
    cr_assert_not_null(event_feed_join(f, count, &woken));
}
