#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/io/clock.h"
#include "router/serve/line.h"
#include "tests/lib/card/cardserver.h"
#include "tests/lib/tmpdir.h"

#define VERSION "/runtime.v1.RuntimeService/Version"
enum { CALL_MS = 60000 };

static struct lines *lines_of(const char *endpoint)
{
    struct act_place place = {.name = "card-0"};
    (void)snprintf(place.endpoint, sizeof place.endpoint, "%s", endpoint);
    return lines_create(&place);
}

Test(line, a_call_goes_over_a_kept_connection)
{
    static const struct cardserver_times quick = {0};
    struct error err = {0};
    struct line a, b;
    struct cri_bytes reply, none = {"", 0};
    char *dir = tmpdir_create();
    cleanup_free char *path = xasprintf("%s/s", dir);
    cleanup_free char *endpoint = xasprintf("unix://%s", path);
    const struct h2_config config = {.socket = path};
    struct cardserver *card = cardserver_start(&config, &quick);
    struct lines *l = lines_of(endpoint);
    cr_assert_eq(lines_take(l, INT64_MAX, &a, &err), 0, "%s", err.text);
    struct cri *first = a.cri;
    cr_assert_eq(cri_call(a.cri, VERSION, none, CALL_MS, &reply, &err), 0, "%s",
                 err.text);
    cr_assert_gt(reply.size, 0);
    cr_assert_eq(lines_take(l, INT64_MAX, &b, &err), 0);
    cr_assert_neq(b.cri, first, "each has its own");
    lines_give(l, &b, true);
    lines_give(l, &a, false);
    cr_assert_eq(lines_take(l, INT64_MAX, &a, &err), 0);
    cr_assert_eq(a.cri, first);
    cardserver_fail(card, "Version", GRPC_UNAVAILABLE, 1);
    cr_assert_eq(cri_call(a.cri, VERSION, none, CALL_MS, &reply, &err),
                 -EAGAIN);
    cr_assert_eq(cri_end(a.cri)->code, GRPC_UNAVAILABLE);
    lines_give(l, &a, false);
    lines_destroy(l);
    cardserver_stop(card);
    tmpdir_remove(dir);
}

Test(line, there_are_so_many_and_no_more)
{
    struct error err = {0};
    struct line lines[LINE_MAX], more;
    struct lines *l = lines_of("unix:///nowhere");
    for (int i = 0; i < LINE_MAX; i++)
        cr_assert_eq(lines_take(l, INT64_MAX, &lines[i], &err), 0);
    cr_assert_eq(lines_take(l, clock_ms(), &more, &err), -EBUSY);
    cr_assert(strstr(err.text, "card-0: 32 calls"), "%s", err.text);
    lines_give(l, &lines[0], false);
    cr_assert_eq(lines_take(l, clock_ms(), &lines[0], &err), 0);
    for (int i = 0; i < LINE_MAX; i++)
        lines_give(l, &lines[i], i % 2);
    lines_destroy(l);
}

Test(line, what_cannot_be_called_takes_no_room)
{
    struct error err = {0};
    struct line line;
    struct lines *l = lines_of("nonsense");
    for (int i = 0; i < LINE_MAX + 1; i++)
        cr_assert_eq(lines_take(l, clock_ms(), &line, &err), -EINVAL, "%s",
                     err.text);
    lines_destroy(l);
}

/* A burst needs two; then one is enough, and then none. */
Test(line, connections_that_nobody_needs_end)
{
    struct error err = {0};
    struct line a, b;
    struct lines *l = lines_of("unix:///nowhere");
    cr_assert_eq(lines_take(l, INT64_MAX, &a, &err), 0);
    cr_assert_eq(lines_take(l, INT64_MAX, &b, &err), 0);
    struct cri *last = b.cri;
    lines_give(l, &a, false);
    lines_give(l, &b, false);
    cr_assert_eq(lines_tidy(l), 0, "both were needed");
    cr_assert_eq(lines_take(l, INT64_MAX, &a, &err), 0);
    cr_assert_eq(a.cri, last);
    lines_give(l, &a, false);
    cr_assert_eq(lines_tidy(l), 1);
    cr_assert_eq(lines_tidy(l), 1);
    cr_assert_eq(lines_tidy(l), 0);
    lines_destroy(l);
}
