/* What is old goes, and what goes on stays, however old it is. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "extender/history/history_book.h"
#include "extender/history/history_db.h"
#include "extender/history/history_read.h"
#include "extender/state/scope.h"
#include "lib/base/mem.h"
#include "tests/lib/tmpdir.h"

#define DAY_MS INT64_C(86400000)
#define BEGIN_MS (20000 * DAY_MS)
enum { DAYS = 20, PODS = 400 /* a day */ };

static char *dir;
static struct history_book *book;

static void must(int r, const struct error *err)
{
    cr_assert_eq(r, 0, "%s", err->text);
}

static void tell_place(const char *pod, int64_t ms)
{
    struct error err = {0};
    const struct history_place p = {.pod = pod,
                                    .job = "",
                                    .node = "n1",
                                    .pair = -1,
                                    .devices = "\"cards\":[\"0\"]",
                                    .since_ms = ms};
    const struct history_event e = {.time_ms = ms,
                                    .kind = HISTORY_POD,
                                    .reason = HISTORY_BOUND,
                                    .object = pod,
                                    .node = "n1",
                                    .pair = -1};
    must(history_book_event(book, &e, &err), &err);
    must(history_book_placed(book, &p, &err), &err);
}

static void tell_day(int day)
{
    int64_t ms = BEGIN_MS + day * DAY_MS;
    struct error err = {0};
    must(history_book_begin(book, ms, &err), &err);
    const struct history_node n = {"n1", day % 2, "{\"id\":\"0\"}\n", ms};
    must(history_book_node(book, &n, &err), &err);
    if (day == 0)
        tell_place("ns/old", ms);
    for (int i = 0; i < PODS; i++) {
        char pod[40];
        bool had;
        (void)snprintf(pod, sizeof pod, "ns/pod-of-day-%d-number-%d", day, i);
        tell_place(pod, ms + i);
        must(history_book_freed(book, pod, ms + 3600000, &had, &err), &err);
    }
    must(history_book_commit(book, &err), &err);
}

static void set_up(void)
{
    struct error err = {0};
    dir = tmpdir_create();
    must(history_book_open(dir, &book, &err), &err);
    for (int day = 0; day < DAYS; day++)
        tell_day(day);
}

static void tear_down(void)
{
    history_book_close(book);
    tmpdir_remove(dir);
}

TestSuite(history_drop, .init = set_up, .fini = tear_down);

static void drop(int64_t before_ms)
{
    struct error err = {0};
    bool more = true;
    while (more)
        must(history_book_drop(book, BEGIN_MS + 2 * DAYS * DAY_MS, before_ms,
                               &more, &err),
             &err);
}

static int64_t size(void)
{
    struct error err = {0};
    int64_t bytes = 0;
    must(history_book_size(book, &bytes, &err), &err);
    return bytes;
}

/* --- what is left --------------------------------------------------------- */

static void count_place(void *ctx, const struct history_place *p)
{
    (void)p;
    ++*(size_t *)ctx;
}

static void count_event(void *ctx, const struct history_event *e)
{
    (void)e;
    ++*(size_t *)ctx;
}

static size_t places_at(struct history_reader *r, int64_t ms)
{
    struct error err = {0};
    size_t n = 0;
    must(history_read_places_of_node(r, "n1", ms, count_place, &n, &err), &err);
    return n;
}

static size_t n_events(struct history_reader *r)
{
    struct history_filter f = {.kind = HISTORY_KINDS,
                               .reason = HISTORY_REASONS,
                               .limit = HISTORY_PAGE_MAX};
    struct error err = {0};
    size_t n = 0;
    do
        must(history_read_events(r, &f, count_event, &n, &f.after, &err), &err);
    while (f.after);
    return n;
}

static int node_at(struct history_reader *r, int64_t ms)
{
    struct history_node n = {.status = -1};
    struct error err = {0};
    bool found = false;
    must(history_read_node(r, "n1", ms, &n, &found, &err), &err);
    return found ? n.status : -1;
}

Test(history_drop, what_ended_before_goes_and_all_else_stays)
{
    struct history_reader *r = NULL;
    struct error err = {0};
    int64_t cut_ms = BEGIN_MS + 15 * DAY_MS + 1, oldest_ms, before = size();
    drop(cut_ms);
    must(history_book_check(book, &err), &err);
    must(history_book_oldest(book, &oldest_ms, &err), &err);
    cr_expect_eq(oldest_ms, cut_ms);
    cr_expect_lt(size(), before / 2);

    must(history_reader_open(dir, &r, &err), &err);
    must(history_read_begin(r, &err), &err);
    cr_expect_eq(n_events(r), PODS - 1 + (DAYS - 16) * PODS);
    cr_expect_eq(places_at(r, cut_ms - DAY_MS), 1, "the old one is there");
    cr_expect_eq(places_at(r, cut_ms + PODS), PODS + 1);
    cr_expect_eq(places_at(r, BEGIN_MS + DAYS * DAY_MS), 1);
    cr_expect_eq(node_at(r, cut_ms), 1, "what held then is known");
    cr_expect_eq(node_at(r, cut_ms + DAY_MS), 0);
    cr_expect_eq(node_at(r, cut_ms - DAY_MS), -1);
    history_read_end(r);
    history_reader_close(r);

    /* what went on is known after a start, too, and can end */
    history_book_close(book);
    must(history_book_open(dir, &book, &err), &err);
    cr_expect_str_eq(history_book_where(book, "ns/old"), "n1");
    drop(BEGIN_MS + 2 * DAYS * DAY_MS);
    must(history_book_check(book, &err), &err);
    history_book_close(book);
    must(history_book_open(dir, &book, &err), &err);
    cr_expect_str_eq(history_book_where(book, "ns/old"), "n1");
    cr_expect_lt(size(), before / 4);
}

/* Whoever sees none of many events is told since when there are any. */
Test(history_drop, the_oldest_is_that_of_all)
{
    struct history_reader *r = NULL;
    struct error err = {0};
    cleanup_with(scope) struct scope *other = scope_create(NULL, 0);
    int64_t oldest_ms;
    must(history_reader_open(dir, &r, &err), &err);
    must(history_read_begin(r, &err), &err);
    history_reader_see(r, other);
    must(history_read_oldest(r, &oldest_ms, &err), &err);
    cr_expect_eq(oldest_ms, BEGIN_MS);
    cr_expect_eq(n_events(r), 0, "it goes on to see no more than before");
    history_read_end(r);
    history_reader_close(r);
}

Test(history_drop, numbers_of_events_are_never_given_again)
{
    struct error err = {0};
    uint64_t newest = history_book_newest(book);
    drop(BEGIN_MS + 2 * DAYS * DAY_MS);
    history_book_close(book);
    must(history_book_open(dir, &book, &err), &err);
    cr_expect_eq(history_book_newest(book), newest);
}

Test(history_drop, a_sixteenth_is_so_many)
{
    struct error err = {0};
    int64_t ms = 0, days;
    must(history_book_sixteenth(book, &ms, &err), &err);
    days = (ms - BEGIN_MS) / DAY_MS;
    cr_expect_eq(days, DAYS / 16);
}

Test(history_drop, numbers_go_on_where_another_file_ended)
{
    struct error err = {0};
    uint64_t newest = history_book_newest(book) + 1000;
    history_book_go_on(book, newest);
    history_book_go_on(book, 1); /* it never goes back */
    must(history_book_begin(book, BEGIN_MS + DAYS * DAY_MS, &err), &err);
    tell_place("ns/after", BEGIN_MS + DAYS * DAY_MS);
    must(history_book_commit(book, &err), &err);
    history_book_close(book);
    must(history_book_open(dir, &book, &err), &err);
    cr_expect_eq(history_book_newest(book), newest + 1);
}

Test(history_drop, nodes_that_have_gone_are_forgotten)
{
    const int64_t end_ms = BEGIN_MS + DAYS * DAY_MS;
    const struct history_node gone = {"n2", HISTORY_NODE_GONE_STATUS, "",
                                      end_ms};
    struct error err = {0};
    must(history_book_begin(book, end_ms, &err), &err);
    must(history_book_node(book, &gone, &err), &err);
    must(history_book_commit(book, &err), &err);
    drop(end_ms);
    cr_expect(history_book_node_now(book, "n2"), "it has just gone");
    drop(end_ms + DAY_MS);
    cr_expect_null(history_book_node_now(book, "n2"));
    cr_expect(history_book_node_now(book, "n1"), "it is there");
}
