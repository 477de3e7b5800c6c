#include "extender/pods/feed_progress.h"

#include <criterion/criterion.h>

Test(feed_progress, is_known_once_it_is_committed)
{
    struct feed_progress *f = feed_progress_create();
    cr_expect_eq(feed_progress_number(f, "a"), 0);
    feed_progress_set_floor(f, 5);
    feed_progress_load(f, "a", 9);
    feed_progress_load(f, "b", 3);
    cr_expect_eq(feed_progress_number(f, "a"), 9);
    cr_expect_eq(feed_progress_number(f, "b"), 5, "all may know those");
    feed_progress_raise(f, "b", 7);
    feed_progress_raise(f, "b", 12);
    feed_progress_raise(f, "a", 8);
    feed_progress_raise(f, "c", 20);
    cr_expect_eq(feed_progress_pending(f, "b"), 12);
    cr_expect_eq(feed_progress_number(f, "b"), 5);
    cr_expect_eq(feed_progress_pending(f, "a"), 9, "it never falls");
    feed_progress_undo(f);
    cr_expect_eq(feed_progress_pending(f, "b"), 5);
    cr_expect_eq(feed_progress_pending(f, "c"), 5);
    feed_progress_raise(f, "b", 12);
    feed_progress_mark(f);
    feed_progress_undo(f);
    cr_expect_eq(feed_progress_number(f, "b"), 12);
    cr_expect_eq(feed_progress_number(f, "c"), 5);
    feed_progress_destroy(f);
    feed_progress_destroy(NULL);
}
